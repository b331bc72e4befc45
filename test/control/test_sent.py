# SPDX-License-Identifier: Apache-2.0
"""What drives are sent when sources of motion change, and inputs or the clock misbehave, by the interface in C."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from checked import HOME, QUIET, check, resting, steps, swing
from loop_rig import MS, LoopRig, Record, rest, straight
from random_scenes import ROBOTS, steady
from sent_oracle import CHANGE, SentOracle

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.actuators.actuator import Motor
from eom_dynamics.arrays import Array
from eom_dynamics.control.control_loop import Refusal
from eom_dynamics.control.robot_table import limits_of
from eom_dynamics.control.settings import Status
from eom_dynamics.robot import Limits

# --- Pace -------------------------------------------------------------------------------------------------------------

PACES: dict[str, Any] = {
    "slider": lambda k, rng: 0.65 + 0.35 * np.cos(1e-3 * np.pi * k),
    "random": lambda k, rng: float(rng.uniform(0, 1)),
    "toggled": lambda k, rng: 0.3 + 0.7 * (k // 150 % 2),
}


@pytest.mark.parametrize("robot", ["panda", "ur5e"])
@pytest.mark.parametrize(("paces", "every"), [("slider", 10), ("random", 10), ("random", 50), ("toggled", 10)])
def test_speed_scaling_that_is_streamed(robot: str, paces: str, every: int) -> None:
    """Efforts change as their rates have it, and the pace at most as from 1 to 0 in stop_duration, by each rate."""
    rng, rig, T, found = np.random.default_rng(1), resting(robot), 0.3, []
    rig.trajectory(straight([0.0, 1.5, 3.0], rig.q + np.array([0, 1, 0])[:, None] * 0.3 * rng.uniform(-1, 1, rig.n)))
    for k in range(3000):
        if k % every == 0:
            rig.loop.speed(PACES[paces](k, rng))
        rig.run()
        found.append(rig.number("pace"))
    assert np.ptp(found) > 0.1
    for order, bound in ((1, 2.188 / T), (2, 7.513 / T**2), (3, 52.5 / T**3)):
        assert np.abs(np.diff(found, order)).max() <= bound * 1e-3**order * (1 + 1e-2) + 1e-12
    record, oracle = check(rig), SentOracle(rig.arm)
    change = np.abs(np.diff(record.sent["drive_effort"], axis=0))
    predicted = np.maximum(oracle.predicted(record)[1:], oracle.predicted(record)[:-1])
    assert (change <= 2 * predicted + CHANGE * oracle.scale).all(), change.max()


# --- Setpoints and targets --------------------------------------------------------------------------------------------


def differences(path: Array) -> Array:
    """A path (K, n) with its rates by differences (K, 5, n), as planners have them."""
    fields = [path]
    for _ in range(4):
        fields.append(np.diff(fields[-1], axis=0, prepend=fields[-1][:1]) / 1e-3)
    return np.stack(fields, axis=1)


@pytest.mark.parametrize("noise", [0.0, 6e-8])
def test_target_after_noisy_setpoints(noise: float) -> None:
    """A target 0.05 rad away after rates that are differences of float32: no further than that, and within limits."""
    rng, rig = np.random.default_rng(1), resting(cycles=0, targets={})
    t = np.arange(-8, 300) * 1e-3
    path = HOME + 0.05 * (1 - np.cos(2 * np.pi * np.clip(t, 0, None)))[:, None] * np.ones(7)
    rig.stream(differences(path + noise * rng.normal(size=path.shape))[8:])
    start, first = rig.q, rig.count
    rig.target(start + 0.05)
    rig.cycles(2500)
    record = check(rig, first - 1)
    assert rig.limits is not None
    assert np.abs(record.state[:, 0] - start).max() < 0.05 + 0.05  # as far as its velocity takes it to stop
    assert (np.abs(record.state[1:, 1]) < 1.02 * rig.limits.velocity + 1e-6).all()
    np.testing.assert_allclose(rig.q, start + 0.05, atol=1e-6)


@pytest.mark.parametrize(
    ("robot", "limits", "field", "value", "most"),
    [
        *(("panda", {}, field, value, {"q": 0.01}) for field, value in ((4, 1e6), (3, 1e3), (2, 5.0))),
        # Without limits of acceleration, it went on for the time of the averages, at 2.4 times its limit of velocity.
        ("iiwa", {"acceleration": 6.5}, 2, -34.8, {"q": 0.3, "qd": 1.05 * 1.3089}),
    ],
)
def test_target_after_a_setpoint_with_rates_of_no_motion(
    robot: str, limits: dict[str, float], field: int, value: float, most: dict[str, float]
) -> None:
    """One setpoint at rest but for a rate, then a target where the arm is: it stays there."""
    rig = resting(robot, targets=limits)
    home = rig.q
    x = rest(home)
    x[field, 3] = value
    rig.stream([x])
    rig.target(home)
    rig.cycles(2000)
    record = check(rig)
    for name, bound in most.items():
        assert np.abs(record.setpoint[name] - record.setpoint[name][0]).max() < bound, name


def test_speed_of_motors() -> None:
    """Its own limit, that of its joint with its spring, or as fast as the joint can brake within its range."""
    limits = (Limits(velocity=2.0, effort_rate=300.0), Limits(lower=-1.0, upper=3.0, acceleration=8.0))
    arm = load_robot("sea_planar_2r")
    without = Motor(torque_constant=0.1)
    joints = [
        replace(joint, limits=own, actuator=replace(joint.actuator, motor=without))
        for joint, own in zip(arm.joints, limits, strict=True)
    ]
    subject = ElasticArm(replace(arm, joints=joints))
    np.testing.assert_allclose(limits_of(subject)["motor_speed"], [2.0 + 300.0 / subject.stiffness[0], 8.0])
    endless = replace(joints[1], limits=Limits(acceleration=8.0))
    assert limits_of(ElasticArm(replace(arm, joints=[joints[0], endless])))["motor_speed"][1] == np.inf


def test_target_that_is_reached_after_a_stall_leaves_damped_springs_their_motion() -> None:
    """The lost time passed at once where the target was reached: what springs had left of motion ended in a step."""
    q = np.array([-1.4, 0.3])
    rig = resting(ROBOTS["damped"](), q, 20, targets={"acceleration": 15.0})
    rig.target(q + 0.5)
    rig.cycles(100)
    rig.now += 3000 * MS
    rig.cycles(1500)
    assert rig.codes.max() <= 0
    np.testing.assert_allclose(rig.q, q + 0.5, atol=1e-9)


# --- Setpoints in less time than motors need --------------------------------------------------------------------------


def fast(t: float) -> Array:
    """Back and forth by a radian, close to the limit of velocity."""
    return swing(t, size=0.5, rate=4.0)


@pytest.mark.parametrize("stall", [0.09, 0.3, 0.45])
def test_setpoints_that_come_in_a_burst_after_a_stall(stall: float) -> None:
    """Motors that stood still are sent to catch up no further than they can in that time, of which 0.1 s count."""
    rig = resting()
    begin = rig.now
    rig.stream(fast(1e-3 * k) for k in range(300))
    stalled = rig.now
    rig.now += round(1e9 * stall)
    first = rig.count
    for k in range(round(1e3 * stall)):
        rig.refer(fast(1e-9 * (stalled + k * MS - begin)), stalled + k * MS)
        rig.run(30_000)
    moved = np.ptp(Record(rig, first).sent["drive_position"][:, 0])
    assert moved <= 2.175 * (min(stall, 0.1) + 0.023)


@pytest.mark.parametrize("slow", [False, True], ids=["node", "sender"])
def test_stream_that_catches_up_is_answered_in_full(slow: bool) -> None:
    """Close to the limit of velocity: a node is held up for 80 ms, or a sender comes ever later than its stamps."""
    rig = resting()
    begin, codes = rig.now, []
    for k in range(1500):
        arrival = begin + k * MS
        rig.refer(fast(1e-3 * k), arrival)
        late = slow and 300 <= k < 400
        codes.append(rig.run((8 * MS) // 5 if late else 30_000 if arrival < rig.now - MS else MS))
        rig.now += 80 * MS if k == 299 and not slow else max(arrival - rig.now, 0)
    assert max(codes[10:]) <= 0  # it begins at 8 rad/s²


@pytest.mark.parametrize("begins", ["restart", "loss"])
def test_first_setpoints_have_no_time_of_a_gap_before(begins: str) -> None:
    """As if others had waited since then, one 5 ms later could move motors by their way in 0.1 s."""
    rig = resting(cycles=50 * (begins == "loss"), targets={}, setpoint_timeout=0.02, setpoint_lifespan=0.0)
    rig.cycles(300)
    rig.refer(rest(HOME), rig.now - 100 * MS)
    rig.cycles(5)
    assert rig.stream([rest(HOME + 0.07 * np.eye(7)[0])])[0] in (
        Refusal["motor_step"],
        Refusal["jump"],
        Refusal["far_from_hold"],
    )
    rig.cycles(10)
    assert np.abs(rig.q - HOME).max() < 1e-9


@pytest.mark.parametrize("hosted", [False, True], ids=["own", "planned by a host"])
@pytest.mark.parametrize("what", ["trajectory", "target"])
def test_empty_trajectory_begins_its_stop_at_the_present(what: str, hosted: bool) -> None:
    """Of a host that plans before the cycle, it began a cycle ahead: positions stood still, or went twice as far."""
    rig = resting(cycles=5, targets={"velocity": 1.5, "acceleration": 8.0}, hosted=hosted)
    to = HOME + np.array([1.0, 0, 0, 0, 0, 0, 0])
    rig.target(to) if what == "target" else rig.trajectory(straight([0, 1.2], [HOME, to]))
    rig.cycles(600)
    rig.empty_trajectory()
    rig.cycles(5)
    moved = steps(Record(rig, 590))[:, 0]
    assert moved.min() > 1e-3
    assert np.abs(np.diff(moved)).max() < 0.02 * moved.max()


def test_target_after_one_that_was_left_in_motion_begins_where_the_arm_is() -> None:
    """A host leaves it; the next one began where it would have led meanwhile."""
    rig = resting(cycles=0, targets={}, on_setpoint_loss="none")
    for _ in range(3):
        rig.refer(rest(HOME))
        rig.cycles(60)
    rig.target(HOME + 0.5)
    rig.cycles(80)
    rig.loop.act("halt")
    rig.cycles(3)
    before = rig.q
    rig.target(HOME)
    rig.cycles(2)
    assert np.abs(rig.q - before).max() < 1e-5


def test_target_that_is_refused_after_a_stream_that_has_ended_does_not_move_the_arm() -> None:
    """It began at rest, and when the gate blocked it, a stop began with the velocity of the last setpoint."""
    start = np.array(QUIET["slide"])
    rig = resting(ROBOTS["slide"](), start, 0, targets={"acceleration": 8.0}, on_setpoint_loss="none")
    assert (
        max(rig.stream(steady(start, 0, 0.5, 0.2, 1e-3 * np.arange(100)))) <= 0
    )  # springs are bent where it speeds up
    rig.cycles(300)
    before = rig.q
    rig.target(before + 0.1)
    rig.cycles(500)
    assert Refusal["motor_step"] in rig.codes[: rig.count]
    np.testing.assert_allclose(rig.q, before, atol=1e-3)


@pytest.mark.parametrize("per_ms", [1, 2, 10])
def test_setpoints_that_come_faster_than_motors_can_follow(per_ms: int) -> None:
    """With positions a millisecond ahead of velocities, each."""
    start = np.array([-2.5, *HOME[1:]])
    rig = resting(q=start, cycles=100)
    first, q, v, h = rig.count, -2.5, 0.0, 1e-3 / per_ms
    for _ in range(400 * per_ms):
        v, rises = min(v + 10.0 * h, 2.1), v < 2.1
        state = rest(start)
        state[:3, 0] = q + 0.98 * v * (h + 1e-3), v, 10.0 * rises
        rig.refer(state)
        if rig.run(MS // per_ms) <= 0:
            q = state[0, 0]
    position = Record(rig, first).sent["drive_position"][:, 0]
    window = 100 * per_ms
    way = np.max(position[window:] - position[:-window])
    assert 0.2 < way <= 2.175 * (0.1 + 0.026)  # 21 ms may be ahead, and a stop goes on


@pytest.mark.parametrize("velocity", [10.0, 100.0, 1e9])
def test_restart_that_measures_more_than_the_limit_of_velocity(velocity: float) -> None:
    rig = LoopRig("panda")
    rig.loop.measure(q=np.stack([HOME, np.full(7, velocity)]))
    rig.restart(None)
    rig.cycles(10)
    assert not rig.number("valid") and not rig.number("followed")


# --- What stops tell and hold -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["refuse", "warn"])
def test_efforts_that_are_told_of_a_stop_are_those_that_are_sent(policy: str) -> None:
    """A motor that can just do the motion, and no stop: no reader of the command gets more than the drives."""
    arm, limit = load_robot("panda"), 3.8
    weak = Motor(torque_limit=limit / ElasticArm(arm).side.gear_ratio[1])
    joints = list(arm.joints)
    joints[1] = replace(joints[1], actuator=replace(joints[1].actuator, motor=weak))
    rig = resting(replace(arm, joints=tuple(joints)), HOME, 10, limits=policy)
    assert rig.stream(swing(1e-3 * k, joint=1) for k in range(200))[-1] <= 0
    first = rig.count
    rig.loop.act("stop")
    rig.cycles(800)
    record = Record(rig, first)
    told, sent = (np.abs(x[:, 1]).max() for x in (record.command["motor_effort"], record.sent["drive_effort"]))
    np.testing.assert_allclose([told, sent], limit, rtol=1e-9)


@pytest.mark.parametrize("how", ["loss", "stop"])
def test_stop_that_cannot_be_computed_as_planned_comes_to_rest(how: str) -> None:
    """Stiffness whose rate leads out of its range: drives got the last velocity, for ever."""
    rig = resting("vsa_planar_2r", cycles=10, on_setpoint_loss="hold")
    for k in range(200):
        rig.refer(swing(1e-3 * k, np.array(QUIET["vsa_planar_2r"])), k=[300.0, 300.0], kd=[-1e4 * (k == 199), 0.0])
        code = rig.run()
    assert code <= 0
    before = np.abs(rig.loop.sent["drive_velocity"]).max()
    if how == "stop":
        rig.loop.act("stop")
    rig.cycles(5000)  # of a stop that is made longer
    record = Record(rig, rig.count - 1000)
    assert before > 1.0 and not record.sent["drive_velocity"].any()
    assert record.numbers["status"][-1] == Status.HELD
    assert np.abs(record.sent["drive_effort"][-1]).max() > 1.0


@pytest.mark.parametrize("back", [0.05, 10.0, 1e9])
@pytest.mark.parametrize("rate", [1, 10])
def test_clock_that_is_set_back_costs_one_setpoint_of_a_stream(back: float, rate: int) -> None:
    rig, codes = resting(cycles=10, setpoint_timeout=0.1), []
    for k in range(0, 1500, rate):
        rig.refer(swing(1e-3 * k))
        codes.append(rig.run(rate * MS))
        if k == 500:
            rig.now -= round(1e9 * back)
    assert np.flatnonzero(np.array(codes) > 0).tolist() == [500 // rate + 1]
    assert codes[500 // rate + 1] == Refusal.suspect_stamp  # type: ignore[attr-defined]


def test_stop_that_begins_as_the_clock_goes_back_begins_at_the_last_command() -> None:
    """Not at the one before, as where cycles are of one time."""
    rig = resting(cycles=100, jump_check="ignore")
    x = rest(HOME)
    x[2, 1] = 3.0
    rig.refer(x)
    assert rig.run() <= 0
    first = rig.count - 2
    rig.now -= 10**9
    rig.loop.act("stop")
    rig.cycles(3)
    before, last, *others = Record(rig, first).sent["drive_effort"][:, 1]
    assert last - before > 5.0
    np.testing.assert_allclose(others, last, atol=0.3)  # the acceleration ends within 10 ms


def test_stop_after_a_stream_does_not_return_to_an_earlier_path() -> None:
    """A setpoint that leads at the time of the last command of a trajectory, as of a clock that stands still."""
    rig = resting(cycles=20, start_tolerance=0.1, jump_check="ignore")
    rig.trajectory(straight([0.0, 0.5], [HOME, HOME + 0.2]))
    rig.run()
    while rig.number("playing"):
        rig.run()
    rig.now -= MS
    x = rest(rig.q + 0.05 * np.eye(7)[0])
    x[1, 0] = 0.2
    rig.refer(x)
    assert rig.run() == 0
    rig.loop.act("stop")
    rig.cycles(10)
    assert 0.25 <= rig.q[0] < 0.26
