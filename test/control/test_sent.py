# SPDX-License-Identifier: Apache-2.0
"""What drives are sent when sources of motion change, and inputs or the clock misbehave, by the interface in C."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from loop_rig import MS, LoopRig, Record, rest, straight
from random_scenes import ROBOTS, arm_of, steady
from sent_oracle import CHANGE, POSITION, Marks, SentOracle, Settings

from eom_dynamics import ElasticArm, ExternalEffortObserver, Robot, load_robot
from eom_dynamics.actuators.actuator import Motor
from eom_dynamics.arrays import Array
from eom_dynamics.control.control_loop import Refusal
from eom_dynamics.control.robot_table import limits_of
from eom_dynamics.control.settings import Status
from eom_dynamics.robot import Limits

HOME = np.array([0.0, -0.5, 0.0, -1.5, 0.0, 1.5, 0.5])
QUIET = {"panda": HOME, "ur5e": np.array([0, -1.2, 1.3, -1.0, -1.5, 0.0]), "vsa_planar_2r": np.array([0.3, 0.4])}
QUIET |= {"sea_planar_2r": np.array([0.2, 0.3]), "iiwa": np.array([0, 0.8, 0, -1.0, 0, 0.5, 0])}


def check(rig: LoopRig, first: int = 0, *, moved: bool = False, rules: str = "", **settings: Any) -> Record:
    """Assert that the oracle finds nothing in the cycles of a rig from one on; return their record."""
    record, oracle = Record(rig, first), SentOracle(rig.arm)
    marks = Marks.none(len(record.time))
    marks.moved[:] = moved
    marks.jumped[1:] = np.diff(record.time) != MS
    found = [x for x in oracle.findings(record, Settings(**settings), marks) if rules in x.rule]
    assert not found, f"{len(found)} findings, the first: {'; '.join(map(str, found[:5]))}"
    return record


def steps(record: Record) -> Array:
    """Steps of the motors in each cycle (N - 1, m), rad."""
    return np.abs(np.diff(record.sent["drive_position"], axis=0))


# --- Pace -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("robot", ["panda", "ur5e"])
@pytest.mark.parametrize("every", [20, 50, 150])
def test_speed_scaling_that_is_streamed(robot: str, every: int) -> None:
    """A slider or a monitor of distances: efforts stay within limits, and change as their own rates have it."""
    for seed in range(2):
        rng, rig = np.random.default_rng(seed), LoopRig(robot)
        rig.restart(QUIET[robot])
        waypoints = QUIET[robot] + np.array([0, 1, 0, 1])[:, None] * 0.3 * rng.uniform(-1, 1, rig.n)
        rig.trajectory(straight(np.arange(4.0), waypoints))
        for k in range(2000):
            if k % every == 0:
                rig.loop.speed(float(rng.uniform(0, 1.5)) if seed else 0.65 + 0.35 * np.cos(np.pi * 1e-3 * k))
            rig.run()
        record = check(rig)
        oracle = SentOracle(rig.arm)
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


@pytest.mark.parametrize("noise", [0.0, 1e-8, 6e-8, 1e-7])
def test_target_after_noisy_setpoints(noise: float) -> None:
    """A target 0.05 rad away after rates that are differences of float32: no further than that, and within limits."""
    rng, rig = np.random.default_rng(1), LoopRig("panda", targets={})
    rig.restart(HOME)
    t = np.arange(-8, 300) * 1e-3
    path = HOME + 0.05 * (1 - np.cos(2 * np.pi * np.clip(t, 0, None)))[:, None] * np.ones(7)
    for state in differences(path + noise * rng.normal(size=path.shape))[8:]:
        rig.refer(state)
        rig.run()
    start, first = rig.q, rig.count
    rig.target(start + 0.05)
    rig.cycles(2500)
    record = check(rig, first - 1)
    assert rig.limits is not None
    assert np.abs(record.state[:, 0] - start).max() < 0.05 + 0.05  # as far as its velocity takes it to stop
    assert (np.abs(record.state[1:, 1]) < 1.02 * rig.limits.velocity + 1e-6).all()
    np.testing.assert_allclose(rig.q, start + 0.05, atol=1e-6)


@pytest.mark.parametrize(("field", "value"), [(4, 1e6), (3, 1e3), (2, 5.0)])
def test_target_after_a_setpoint_with_rates_of_no_motion(field: int, value: float) -> None:
    """One setpoint at rest but for a rate, then a target where the arm is: it stays there."""
    rig = LoopRig("panda", targets={})
    rig.restart(HOME)
    rig.cycles(20, rest(HOME))
    x = rest(HOME)
    x[field, 0] = value
    rig.refer(x)
    rig.run()
    rig.target(HOME)
    rig.cycles(2000)
    record = check(rig)
    assert np.abs(record.state[:, 0] - HOME).max() < 0.01


def test_target_after_a_setpoint_with_an_acceleration_beyond_its_limits() -> None:
    """An arm without such limits went on with it for the time of the averages, at 2.4 times its limit of velocity."""
    rig = LoopRig("iiwa", targets={"acceleration": 6.5})
    home = QUIET["iiwa"]
    rig.restart(home)
    rig.cycles(20, rest(home))
    x = rest(home)
    x[2, 3] = -34.8
    rig.refer(x)
    assert rig.run() == 0
    rig.cycles(5)
    rig.target(home)
    rig.cycles(1500)
    assert np.abs(Record(rig, 0).state[:, 1]).max() < 1.05 * 1.3089
    np.testing.assert_allclose(rig.q, home, atol=0.3)


@pytest.mark.parametrize(("policy", "field", "value"), [("refuse", 4, 1e6), ("refuse", 4, 1e7), ("refuse", 4, 1e154)])
def test_efforts_of_motors_are_limited_by_those_of_joints(policy: str, field: int, value: float) -> None:
    rig = LoopRig("panda", limits=policy)
    rig.restart(HOME)
    rig.cycles(5, rest(HOME))
    x = rest(HOME)
    x[field, 1] = value
    rig.refer(x)
    rig.run()
    rig.cycles(5, rest(HOME))
    check(rig, limits=policy)


def test_efforts_of_motors_are_clipped_to_those_of_joints() -> None:
    rig = LoopRig("panda", limits="clip", jump_check="ignore")
    rig.restart(HOME)
    rig.cycles(5, rest(HOME))
    for value in (-100.0, 100.0):
        x = rest(HOME)
        x[2, 1] = value
        rig.refer(x)
        rig.run()
    check(rig, limits="clip", rules="effort of")
    check(rig, limits="clip", rules="motor effort")


@pytest.mark.parametrize("policy", ["refuse", "clip"])
@pytest.mark.parametrize("turn", [2 * np.pi, 0.4, -0.4])
def test_feedback_is_clipped_to_what_the_feedforward_leaves(policy: str, turn: float) -> None:
    """An encoder sample that is a turn off, with gains of the motors; it refuses no setpoint."""
    rig = LoopRig("panda", limits=policy, motor_kp=[200.0], motor_kd=[2.0])
    rig.restart(HOME)
    for k in range(40):
        rig.measure_motors(rig.loop.command["motor_position"] + turn * (k in (10, *range(20, 30))) * np.eye(7)[1])
        rig.refer(rest(HOME))
        assert rig.run() == 0
    record = check(rig, limits=policy, feedback=True)
    assert np.abs(np.diff(record.sent["drive_effort"][19:22, 1])).max() > 10 or abs(turn) > 1  # feedback is there


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


@pytest.mark.parametrize(("robot", "joint"), [("sea_planar_2r", 0), ("sea_planar_2r", 1), ("iiwa", 3)])
def test_setpoint_a_radian_away_without_limits_of_joint_velocity(robot: str, joint: int) -> None:
    """The speed of the motors, and limits of targets, imply those of the joints."""
    q = QUIET[robot]
    limits = {"velocity": 1.5, "acceleration": 8.0}
    rig = LoopRig(robot, targets=limits)
    rig.restart(q)
    rig.cycles(20, rest(q))
    rig.refer(rest(q + np.eye(len(q))[joint]))
    assert rig.run() > 0
    rig.cycles(20)
    record = check(rig)
    assert steps(record).max() < 0.01


@pytest.mark.parametrize(("robot", "amplitude", "rate"), [("panda", 0.3, 3.0), ("ur5e", 0.8, 3.4)])
@pytest.mark.parametrize("ahead", [0.03, 0.09])
def test_setpoint_ahead_of_its_time(robot: str, amplitude: float, rate: float, ahead: float) -> None:
    """A stamp that runs ahead by more than the others gives a setpoint no more time to move."""
    q = QUIET[robot]
    rig = LoopRig(robot, setpoint_timeout=0.1)
    rig.restart(q)
    ones = np.ones(rig.n)

    def state(t: float) -> Array:
        w = rate
        rows = [
            1 - np.cos(w * t),
            w * np.sin(w * t),
            w**2 * np.cos(w * t),
            -(w**3) * np.sin(w * t),
            -(w**4) * np.cos(w * t),
        ]
        return amplitude * np.outer(rows, ones) + np.outer([1, 0, 0, 0, 0], q)

    rig.cycles(20)  # after which efforts may step by those of the first acceleration
    for k in range(700):
        late = ahead if k in (500, 600) else 0.0
        rig.refer(state(1e-3 * k + late), rig.now + round(late * 1e9))
        rig.run()
    record = check(rig)
    assert (record.code[20:520] == 0).all()


def test_stream_into_a_limit_of_position() -> None:
    """It is refused while the arm can still stop, and the stop ends before the limit."""
    for joint, speed in ((0, 2.0), (3, 1.5), (1, 1.5)):
        oracle = SentOracle(LoopRig("panda").arm)
        rig = LoopRig("panda")
        way = np.eye(7)[joint]
        start = HOME + (oracle.upper[joint] - 0.9 - HOME[joint]) * way
        rig.restart(start)
        rise = 0.4

        for k in range(1300):
            t = 1e-3 * k
            u = min(t / rise, 1.0)
            # Velocity rises as a smooth step of degree nine, then stays.
            v = u**5 * (126 - 420 * u + 540 * u**2 - 315 * u**3 + 70 * u**4)
            a = 630 * (u * (1 - u)) ** 4 / rise
            j = 2520 * (u * (1 - u)) ** 3 * (1 - 2 * u) / rise**2
            s = 2520 * (u * (1 - u)) ** 2 * (3 * (1 - 2 * u) ** 2 - 2 * u * (1 - u)) / rise**3
            x = u**6 * (21 - 60 * u + 67.5 * u**2 - 35 * u**3 + 7 * u**4) * rise + max(t - rise, 0)
            rig.refer(np.outer([1, 0, 0, 0, 0], start) + speed * np.outer([x, v, a, j, s], way))
            rig.run()
        rig.cycles(500)
        record = check(rig)
        assert record.setpoint["q"][:, joint].max() <= oracle.upper[joint] + 1e-9, (joint, speed)
        assert record.setpoint["q"][:, joint].max() > start[joint] + 0.05  # it was followed


def run_into_limit(rig: LoopRig, limit: float) -> Array:
    """Setpoints of the first joint towards its limit of position, until they are refused for it; where they began."""
    start = HOME + (limit - 0.9 - HOME[0]) * np.eye(7)[0]
    rig.restart(start)
    for state in steady(start, 0, 1.5, 0.5, 1000):
        rig.refer(state)
        if rig.run() == Refusal.cannot_stop:  # type: ignore[attr-defined]
            break
    return start


@pytest.mark.parametrize("after", [5, 30, 60])
def test_target_amid_a_stop_before_a_limit_of_position(after: int) -> None:
    """A stop may brake harder than limits of the motion to targets allow, which would end beyond it."""
    oracle, rig = SentOracle(LoopRig("panda").arm), LoopRig("panda", targets={}, stop_duration=0.3)
    run_into_limit(rig, oracle.upper[0])
    rig.loop.act("lose")
    rig.cycles(after)
    rig.target(HOME)
    rig.cycles(1000)
    record = check(rig)
    assert oracle.upper[0] - 0.1 < record.setpoint["q"][:, 0].max() <= oracle.upper[0]


def test_target_from_a_velocity_beyond_its_limit_has_the_velocity_of_its_positions() -> None:
    """Also between the periods of the motion, in which it slows down."""
    rig = LoopRig("panda", targets={"velocity": 0.5, "acceleration": 2.0})
    rig.restart(HOME)
    for state in steady(HOME, 0, 1.0, 0.3, 500):
        rig.refer(state)
        rig.run()
    first = rig.count
    rig.target(HOME)
    for _ in range(300):
        rig.run(700_000)
    q, qd = (Record(rig, first).setpoint[name][:, 0] for name in ("q", "qd"))
    assert qd[100] > 0.6
    assert np.max(np.abs(np.diff(q) - 7e-4 * (qd[1:] + qd[:-1]) / 2)) < 2e-8


@pytest.mark.parametrize("wait", [2, 40, 80])
def test_trajectory_that_takes_over_before_a_limit_of_position(wait: int) -> None:
    """Setpoints that run into the limit are refused; a transition to a slow motion away from it would pass it."""
    oracle, rig = SentOracle(LoopRig("panda").arm), LoopRig("panda", setpoint_timeout=0.1)
    start = run_into_limit(rig, oracle.upper[0])
    rig.cycles(wait)
    rig.trajectory(straight([0.0, 1.0], [rig.q, start]))
    rig.cycles(1000)
    record = check(rig)
    assert oracle.upper[0] - 0.1 < record.setpoint["q"][:, 0].max() <= oracle.upper[0]


# --- Stops ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["trajectory", "target"])
def test_stop_that_was_asked_for_holds(what: str) -> None:
    """An empty trajectory stops what is played; a stream that was refused meanwhile is not followed at once."""
    rig = LoopRig("panda", targets={})
    rig.restart(HOME)
    rig.cycles(100, rest(HOME))
    if what == "target":
        rig.target(HOME + 0.5)
    else:
        rig.trajectory(straight([0.0, 1.0], [HOME, HOME + 0.5]))
    rig.cycles(450, rest(HOME))
    first = rig.count
    rig.empty_trajectory()
    rig.cycles(2000, rest(HOME))
    record = check(rig)
    # It rests before anything else leads, and far from the stream, which is not followed there.
    at_rest = np.abs(record.setpoint["qd"][first:]).max(axis=1) < 1e-9
    assert at_rest[-1] and np.abs(rig.q - HOME).max() > 0.05


# --- Modes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", [True, False])
@pytest.mark.parametrize(
    ("robot", "joint", "way", "settings"),
    [
        ("panda", 3, 1.46, {"stiffness": [100.0]}),
        ("panda", 3, 1.46, {"stiffness": [100.0], "motor_kp": [200.0]}),
        ("sea_planar_2r", 0, 1.5, {"stiffness": [150.0]}),
        ("panda", 0, 1.5, {"stiffness": [150.0]}),
    ],
)
def test_impedance_to_position(robot: str, joint: int, way: float, ask: bool, settings: dict[str, Any]) -> None:
    """Pushed away, one of them beyond a limit of position: the arm stays where it is, at efforts within limits."""
    q = QUIET[robot]
    rig = LoopRig(robot, setpoint_timeout=0.0, on_setpoint_loss="none", **settings)
    rig.restart(q)
    start = rig.loop.command["motor_position"].copy()

    def push(count: int, reach: Any) -> None:
        for k in range(count):
            rig.measure_motors(start + way * reach(k) * np.eye(rig.m)[joint])
            rig.run()

    push(100, lambda k: 0)
    rig.loop.change_mode("impedance")
    push(3000, lambda k: min(1, k / 2500))
    first = rig.count
    if ask:
        rig.loop.change_mode("position")
        push(400, lambda k: 1)
    else:
        rig.measure_motors(None)
        rig.cycles(500)
    assert rig.number("mode") == POSITION
    check(rig, first - 1, setpoint_timeout=0.0, feedback="motor_kp" in settings)
    check(rig, setpoint_timeout=0.0, feedback="motor_kp" in settings, rules="effort")
    # Links are away from the motors by the deflection that hand and impedance have caused.
    moved, deflection = rig.loop.sent["drive_position"] - start, 100.0 / rig.arm.stiffness[joint]
    assert abs(moved[joint] - way) < 0.05 + deflection, "the arm is referred to somewhere else"


@pytest.mark.parametrize("stiffness", [50.0, 200.0])
def test_variable_stiffness_pushed_until_a_spring_is_slack(stiffness: float) -> None:
    q = QUIET["vsa_planar_2r"]
    rig = LoopRig("vsa_planar_2r", stiffness=[stiffness])
    rig.restart(q)
    start = rig.loop.command["motor_position"].copy()
    for k in range(1500):
        if k == 50:
            rig.loop.change_mode("impedance")
        rig.measure_motors(start + 0.0005 * max(k - 50, 0) * np.array([1, 1, 0, 0]))
        rig.refer(rest(q))
        rig.run()
    record = check(rig, rules="finite")
    assert np.isfinite(record.sent["drive_effort"]).all()


@pytest.mark.parametrize(("jump", "wait"), [(-5, 2000), (10, 17), (-5, 100)])
def test_clock_that_jumps_amid_a_blend_of_modes(jump: int, wait: int) -> None:
    q = QUIET["iiwa"]
    rig = LoopRig("iiwa", stiffness=[300.0])
    rig.restart(q)
    m = rig.loop.command["motor_position"].copy()

    def held(count: int) -> None:
        for _ in range(count):
            rig.measure_motors(m)
            rig.refer(rest(q))
            rig.run()

    held(100)
    rig.loop.change_mode("impedance")
    held(500)
    for _ in range(300):  # pushed by 0.3 rad: the springs pull
        m[1] += 1e-3
        held(1)
    rig.loop.change_mode("gravity_compensation")
    held(wait)
    rig.now += jump * 10**9
    held(400)
    effort = Record(rig).sent["drive_effort"]
    # The blend itself takes 90 N m down in 0.3 s, with at most 1.9 times its mean rate.
    assert np.abs(np.diff(effort[900:], axis=0)).max() < 90 / 0.3 * 2.0 * 0.021


# --- Stiffness and wrench ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["setpoint", "target", "trajectory", "stop"])
@pytest.mark.parametrize(
    ("robot", "extra"), [("vsa_planar_2r", {"k": [600.0, 300.0]}), ("panda", {"W": [0, 0, 0, 0, 0, 60.0]})]
)
def test_stiffness_and_wrench_that_a_motion_begins_from(robot: str, extra: dict[str, Any], what: str) -> None:
    """The next source begins with them; a setpoint without is refused until motors can make its step."""
    q = QUIET[robot]
    rig = LoopRig(robot, targets={"velocity": 1.0, "acceleration": 5.0})
    rig.restart(q)
    if robot == "vsa_planar_2r":  # from the nominal ones
        for share in np.linspace(0, 1, 600):
            rig.refer(rest(q), k=(1 - share) * np.array([250.0, 120.0]) + share * np.array(extra["k"]))
            rig.run()
        assert rig.loop.setpoint["k"][0] == pytest.approx(600.0)
    else:
        for share in np.linspace(0, 1, 600):
            rig.refer(rest(q), W=share * np.array(extra["W"]))
            rig.run()
    first = rig.count
    if what == "target":
        rig.target(q + 0.1)
    elif what == "trajectory":
        rig.trajectory(straight([0.0, 1.0], [q, q + 0.1]))
    elif what == "stop":
        rig.loop.act("stop")
    for _ in range(900):
        if what == "setpoint":
            rig.refer(rest(q))
        rig.run()
    record, oracle = check(rig), SentOracle(rig.arm)
    if what == "setpoint":
        assert rig.loop.number("refused") > 5
        return
    change = np.abs(np.diff(record.sent["drive_effort"][first - 1 :], axis=0))
    assert (change <= CHANGE * oracle.scale + 0.5).all(), change.max()


# --- Time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hosted", [False, True])
@pytest.mark.parametrize("stall", [0.03, 0.096, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("what", ["trajectory", "target", "stop"])
def test_late_cycle_and_stalled_process(what: str, stall: float, hosted: bool) -> None:
    """Motions go on by at most 20 ms a cycle, or stop, whatever the cause."""
    rig = LoopRig("panda", targets={}, hosted=hosted)
    rig.restart(HOME)
    rig.cycles(20, rest(HOME))
    if what == "target":
        rig.target(HOME + 0.6)
    else:
        rig.trajectory(straight([0.0, 1.0], [HOME, HOME + 0.6]))
    rig.cycles(450)
    if what == "stop":
        rig.loop.act("stop")
        rig.cycles(50)
    rig.now += round(stall * 1e9)
    rig.cycles(1500)
    record = check(rig)
    velocity = SentOracle(rig.arm).joint_velocity
    assert (steps(record) <= velocity * 0.021 + 1e-3).all()


# --- Where the arm is -------------------------------------------------------------------------------------------------


def test_target_that_is_reached_after_a_stall_leaves_damped_springs_their_motion() -> None:
    """The lost time passed at once where the target was reached: what springs had left of motion ended in a step."""
    rig = LoopRig(ROBOTS["damped"](), targets={"acceleration": 15.0})
    q = np.array([-1.4, 0.3])
    rig.restart(q)
    rig.cycles(20, rest(q))
    rig.target(q + 0.5)
    rig.cycles(100)
    rig.now += 3000 * MS
    rig.cycles(1500)
    assert rig.codes.max() <= 0
    np.testing.assert_allclose(rig.q, q + 0.5, atol=1e-9)


@pytest.mark.parametrize("elsewhere", [0.4, 1.5])
def test_target_while_the_arm_is_measured_elsewhere(elsewhere: float) -> None:
    """After a pause the arm is where it is measured: a motion begins there, or is refused."""
    rig = LoopRig("panda", targets={})
    rig.restart(HOME)
    for _ in range(50):
        rig.measure_motors(rig.loop.command["motor_position"])
        rig.refer(rest(HOME))
        rig.run()
    away = rig.loop.command["motor_position"] + elsewhere * np.eye(7)[0]
    rig.now += 10**9  # nothing is commanded
    rig.measure_motors(away)
    first = rig.count
    rig.target(HOME + 0.1)
    for _ in range(300):
        rig.measure_motors(away)
        rig.run()
    sent = Record(rig, first).sent["drive_position"]
    moved = np.abs(np.diff(sent, axis=0)).max() > 1e-6
    assert not moved or np.abs(sent[0] - away).max() < 0.05


@pytest.mark.parametrize(("share", "follows"), [(0.9, True), (1.4, False), (-0.4, False)])
def test_drives_that_pass_their_last_command_by_its_velocity(share: float, follows: bool) -> None:
    """While a node is held up they hold the velocity, too: a damper leads them on, which is no push."""
    rig = LoopRig("panda")
    rig.restart(HOME)
    rig.cycles(50, rest(HOME))
    begin = rig.now
    for _ in range(300):
        rig.measure_motors(rig.loop.command["motor_position"])
        rig.refer(swing(1e-9 * (rig.now - begin)), rig.now)
        assert rig.run() <= 0 or rig.now - begin < 10 * MS
    theta, velocity = rig.loop.command["motor_position"].copy(), rig.loop.command["motor_velocity"].copy()
    due = rig.now
    rig.now += 200 * MS
    rig.measure_motors(theta + share * 0.1 * velocity)
    rig.refer(swing(1e-9 * (due - begin)), due)
    assert (rig.run() <= 0) is follows


@pytest.mark.parametrize("efforts", ["zero", "gravity", "keep"])
def test_last_command_after_a_pause_is_where_the_arm_is_measured(efforts: str) -> None:
    rig = LoopRig("panda", effort_on_deactivate=efforts)
    rig.restart(HOME)
    rig.cycles(50, rest(HOME))
    away = rig.loop.command["motor_position"] + 0.4 * np.eye(7)[0]
    rig.now += 10**9
    rig.measure_motors(away)
    rig.run()
    rig.measure_motors(away)
    rig.loop.act("release")
    last = rig.loop.sent_last["drive_position"]
    assert np.isnan(last).all() or np.abs(last - away).max() < 0.05


# --- Setpoints in less time than motors need --------------------------------------------------------------------------


def swing(t: float, rate: float = 4.0) -> Array:
    """The first joint, back and forth by a radian, close to its limit of velocity."""
    state, c, s = rest(HOME), np.cos(rate * t), np.sin(rate * t)
    state[:, 0] += 0.5 * np.array([1 - c, rate * s, rate**2 * c, -(rate**3) * s, -(rate**4) * c])
    return state


@pytest.mark.parametrize("stall", [0.09, 0.3, 0.45])
def test_setpoints_that_come_in_a_burst_after_a_stall(stall: float) -> None:
    """Motors that stood still are sent to catch up no further than they can in that time, of which 0.1 s count."""
    rig = LoopRig("panda")
    rig.restart(HOME)
    rig.cycles(50, rest(HOME))
    begin = rig.now
    for _ in range(300):
        rig.refer(swing(1e-9 * (rig.now - begin)))
        rig.run()
    stalled = rig.now
    rig.now += round(1e9 * stall)
    first = rig.count
    for k in range(round(1e3 * stall)):
        rig.refer(swing(1e-9 * (stalled + k * MS - begin)), stalled + k * MS)
        rig.run(30_000)
    moved = np.ptp(Record(rig, first).sent["drive_position"][:, 0])
    assert moved <= 2.175 * (min(stall, 0.1) + 0.023)


def test_stream_that_waits_shortly_is_answered_in_full() -> None:
    """Close to the limit of velocity: what waited for a node that was held up is within the time that has passed."""
    rig = LoopRig("panda")
    rig.restart(HOME)
    rig.cycles(50, rest(HOME))
    begin, codes = rig.now, []
    for k in range(1500):
        arrival = begin + k * MS
        rig.refer(swing(1e-3 * k), arrival)
        codes.append(rig.run(30_000 if 300 <= k < 380 else MS))
        rig.now += 80 * MS if k == 299 else max(arrival - rig.now, 0)
    assert max(codes[10:]) <= 0  # it begins at 8 rad/s²


def test_stream_that_catches_up_slow_arrivals_is_answered_in_full() -> None:
    """Without a gap: its sender, held up again and again, came ever later than its stamps, then sent all at once."""
    rig = LoopRig("panda")
    rig.restart(HOME)
    rig.cycles(50, rest(HOME))
    begin, codes = rig.now, []
    for k in range(1500):
        arrival = begin + k * MS
        rig.refer(swing(1e-3 * k), arrival)
        slow = 300 <= k < 400
        codes.append(rig.run(30_000 if not slow and arrival < rig.now - MS else (8 * MS) // 5 if slow else MS))
        rig.now += max(arrival - rig.now, 0)
    assert max(codes[10:]) <= 0  # it begins at 8 rad/s²


@pytest.mark.parametrize("begins", ["restart", "loss"])
def test_first_setpoints_have_no_time_of_a_gap_before(begins: str) -> None:
    """As if others had waited since then, one 5 ms later could move motors by their way in 0.1 s."""
    rig = LoopRig("panda", targets={}, setpoint_timeout=0.02, setpoint_lifespan=0.0)
    rig.restart(HOME)
    if begins == "loss":
        rig.cycles(50, rest(HOME))
    rig.cycles(300)
    rig.refer(rest(HOME), rig.now - 100 * MS)
    rig.cycles(5)
    far = rest(HOME)
    far[0, 0] += 0.07
    rig.refer(far)
    assert rig.run() in (Refusal["motor_step"], Refusal["jump"], Refusal["far_from_hold"])
    rig.cycles(10)
    assert np.abs(rig.q - HOME).max() < 1e-9


@pytest.mark.parametrize("glitch", [0.3, 6.283])
def test_one_wrong_sample_as_gravity_compensation_begins_does_not_move_motors(glitch: float) -> None:
    """Motors were sent where it said, and stayed there."""
    rig = LoopRig("panda", targets={})
    rig.restart(HOME)
    for _ in range(300):
        rig.measure_motors(rig.loop.sent["drive_position"])
        rig.refer(rest(HOME))
        rig.run()
    before = rig.loop.sent["drive_position"].copy()
    rig.loop.change_mode("gravity_compensation")
    first = rig.count
    for k in range(500):
        rig.measure_motors(before + (k == 0) * glitch * np.eye(7)[0])
        rig.run()
    assert np.abs(Record(rig, first).sent["drive_position"] - before).max() < 0.01
    assert rig.number("mode") == 2


@pytest.mark.parametrize("hosted", [False, True], ids=["own", "planned by a host"])
@pytest.mark.parametrize("what", ["trajectory", "target"])
def test_empty_trajectory_begins_its_stop_at_the_present(what: str, hosted: bool) -> None:
    """Of a host that plans before the cycle, it began a cycle ahead: positions stood still, or went twice as far."""
    rig = LoopRig("panda", targets={"velocity": 1.5, "acceleration": 8.0}, hosted=hosted)
    rig.restart(HOME)
    rig.cycles(5, rest(HOME))
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
    rig = LoopRig("panda", targets={}, on_setpoint_loss="none")
    rig.restart(HOME)
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
    rig = LoopRig(ROBOTS["slide"](), targets={"acceleration": 8.0}, on_setpoint_loss="none")
    start = np.array([0.1, -0.6])
    rig.restart(start)
    for state in steady(start, 0, 0.5, 0.2, 100):  # springs are bent where it speeds up
        rig.refer(state)
        rig.run()
    assert rig.codes[: rig.count].max() <= 0
    rig.cycles(300)
    before = rig.q
    rig.target(before + 0.1)
    rig.cycles(500)
    assert Refusal["motor_step"] in rig.codes[: rig.count]
    np.testing.assert_allclose(rig.q, before, atol=1e-3)


@pytest.mark.parametrize("per_ms", [1, 2, 10])
def test_setpoints_that_come_faster_than_motors_can_follow(per_ms: int) -> None:
    """With positions a millisecond ahead of velocities, each."""
    rig = LoopRig("panda")
    start = np.array([-2.5, *HOME[1:]])
    rig.restart(start)
    rig.cycles(100, rest(start))
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
    assert (
        0.2 < np.max(position[window:] - position[:-window]) <= 2.175 * (0.1 + 0.026)
    )  # 21 ms may be ahead, and a stop goes on


@pytest.mark.parametrize("velocity", [10.0, 100.0, 1e9])
def test_restart_that_measures_more_than_the_limit_of_velocity(velocity: float) -> None:
    rig = LoopRig("panda")
    rig.loop.measure(q=np.stack([HOME, np.full(7, velocity)]))
    rig.restart(None)
    rig.cycles(10)
    assert not rig.number("valid") and not rig.number("followed")


@pytest.mark.parametrize("then", ["target", "trajectory"])
@pytest.mark.parametrize(("field", "value"), [("Wdd", 1e6), ("Wdd", 1e5)])
def test_motion_that_limits_refuse_for_its_wrench_ends_without_the_rates(then: str, field: str, value: float) -> None:
    """They are noise of differences; within limits, they fade as in a stop."""
    rig = LoopRig("panda", targets={})
    rig.restart(HOME)
    rig.cycles(200, rest(HOME))
    rig.refer(rest(HOME), **{field: value * np.eye(6)[5]})
    assert rig.run() == 0
    rig.target(HOME) if then == "target" else rig.trajectory(straight([0.0, 1.0], [HOME, HOME]))
    first = rig.count
    rig.cycles(1000)
    record = Record(rig, first)
    assert np.abs(record.setpoint["W"]).max() < 30.0 and np.ptp(record.sent["drive_position"], axis=0).max() < 2e-3
    assert np.abs(record.command["motor_effort"]).max() <= 87.0


# --- What stops tell and hold -----------------------------------------------------------------------------------------


def sway(t: float, position: Array = HOME, joint: int = 0) -> Array:
    """The state (5, n) of a joint that swings with 0.3 rad and 3 rad/s."""
    state, sine, cosine = rest(position), np.sin(3 * t), np.cos(3 * t)
    state[:, joint] += 0.3 * np.array([1 - cosine, 3 * sine, 9 * cosine, -27 * sine, -81 * cosine])
    return state


@pytest.mark.parametrize("policy", ["refuse", "clip", "warn"])
def test_efforts_that_are_told_of_a_stop_are_those_that_are_sent(policy: str) -> None:
    """A motor that can just do the motion, and no stop: no reader of the command gets more than the drives."""
    arm, limit = load_robot("panda"), 3.8
    weak = Motor(torque_limit=limit / ElasticArm(arm).side.gear_ratio[1])
    joints = list(arm.joints)
    joints[1] = replace(joints[1], actuator=replace(joints[1].actuator, motor=weak))
    rig = LoopRig(replace(arm, joints=tuple(joints)), limits=policy)
    rig.restart(HOME)
    rig.cycles(10, rest(HOME))
    for k in range(200):
        rig.refer(sway(1e-3 * k, joint=1))
        code = rig.run()
    assert code <= 0
    first = rig.count
    rig.loop.act("stop")
    rig.cycles(800)
    record = Record(rig, first)
    told, sent = (np.abs(x[:, 1]).max() for x in (record.command["motor_effort"], record.sent["drive_effort"]))
    np.testing.assert_allclose([told, sent], limit, rtol=1e-9)


@pytest.mark.parametrize("how", ["loss", "stop", "ramp"])
def test_stop_that_cannot_be_computed_holds(how: str) -> None:
    """Stiffness whose rate leads out of its range: drives got the last velocity, for ever."""
    rig = LoopRig("vsa_planar_2r", on_setpoint_loss="ramp" if how == "ramp" else "hold")
    rig.restart(QUIET["vsa_planar_2r"])
    rig.cycles(10, rest(QUIET["vsa_planar_2r"]))
    for k in range(200):
        rig.refer(sway(1e-3 * k, QUIET["vsa_planar_2r"]), k=[300.0, 300.0], kd=[-1e4 * (k == 199), 0.0])
        code = rig.run()
    assert code <= 0
    before = np.abs(rig.loop.sent["drive_velocity"]).max()
    if how == "stop":
        rig.loop.act("stop")
    rig.cycles(1500)
    record = Record(rig, rig.count - 1000)
    assert before > 1.0 and not record.sent["drive_velocity"].any()
    assert record.numbers["status"][-1] == Status.HELD
    assert (np.abs(record.sent["drive_effort"][-1]).max() > 1.0) == (how != "ramp")


@pytest.mark.parametrize("lag", [0.0, 0.02, 0.2])
def test_restart_amid_a_motion_that_links_lag_behind(lag: float) -> None:
    """As a controller manager restarts one: a stop from the command, or from where the arm is; efforts do not step."""
    rig = LoopRig("panda", targets={})
    rig.restart(HOME)
    rig.target(HOME + 0.5)
    rig.cycles(400)
    first = rig.count - 1
    rig.loop.measure(q=np.stack([rig.q - lag, rig.loop.setpoint["qd"]]))
    rig.restart(None, rig.now)
    rig.loop.measure()
    rig.cycles(1000)
    record, oracle = Record(rig, first), SentOracle(rig.arm)
    change = np.abs(np.diff(record.sent["drive_effort"], axis=0))
    assert (change <= 2 * oracle.predicted(record)[1:] + CHANGE * oracle.scale).all(), change.max()
    assert not record.sent["drive_velocity"][-1].any()
    assert steps(record)[0 if lag < 0.05 else 1 :].max() < 2.2e-3


@pytest.mark.parametrize("back", [0.05, 10.0, 1e9])
@pytest.mark.parametrize("rate", [1, 10])
def test_clock_that_is_set_back_costs_one_setpoint_of_a_stream(back: float, rate: int) -> None:
    rig, codes = LoopRig("panda", setpoint_timeout=0.1), []
    rig.restart(HOME)
    rig.cycles(10, rest(HOME))
    for k in range(0, 1500, rate):
        rig.refer(sway(1e-3 * k))
        codes.append(rig.run(rate * MS))
        if k == 500:
            rig.now -= round(1e9 * back)
    assert np.flatnonzero(np.array(codes) > 0).tolist() == [500 // rate + 1]
    assert codes[500 // rate + 1] == Refusal.suspect_stamp  # type: ignore[attr-defined]


def test_stop_that_begins_as_the_clock_goes_back_begins_at_the_last_command() -> None:
    """Not at the one before, as where cycles are of one time."""
    rig = LoopRig("panda", jump_check="ignore")
    rig.restart(HOME)
    rig.cycles(100, rest(HOME))
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
    rig = LoopRig("panda", resume_distance=0.1, jump_check="ignore")
    rig.restart(HOME)
    rig.cycles(20, rest(HOME))
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


# --- What passes ------------------------------------------------------------------------------------------------------


def test_positions_pass_no_faster_than_motors_can() -> None:
    """Of setpoints that lead again, some way off: 0.45 rad in 0.3 s would be 2.8 rad/s, of 2.2."""
    rig = LoopRig("panda", resume_distance=0.5)
    rig.restart(HOME)
    rig.cycles(100, rest(HOME))
    rig.loop.act("stop")
    rig.cycles(200)
    rig.cycles(1200, rest(HOME + 0.45 * np.eye(7)[0]))
    record = check(rig, resume_distance=0.5)
    np.testing.assert_allclose(record.sent["drive_position"][-1, 0], HOME[0] + 0.45, atol=1e-6)
    assert steps(record)[:, 0].max() < 2.175e-3


@pytest.mark.parametrize("then", ["target", "restart"])
@pytest.mark.parametrize("measured", ["motors", "links"])
def test_while_positions_pass_the_arm_is_where_motors_are_sent(measured: str, then: str) -> None:
    """Away from where it is commanded to rest, and on its way there: a target leads, and a restart stops it."""
    rig = LoopRig("panda", resume_distance=0.5, targets={})
    rig.restart(HOME)
    rig.cycles(100, rest(HOME))
    rig.loop.act("stop")
    rig.cycles(200)
    deflection = rig.loop.command["motor_position"] - HOME

    def follow() -> None:
        sent = rig.loop.sent["drive_position"]
        if measured == "motors":
            rig.measure_motors(sent)
        else:
            rig.loop.measure(q=np.stack([sent - deflection, np.zeros(7)]))

    for _ in range(250):
        rig.refer(rest(HOME + 0.45 * np.eye(7)[0]))
        follow()
        rig.run()
    assert 0.1 < np.abs(rig.loop.sent["drive_position"] - rig.loop.command["motor_position"]).max() < 0.4
    first = rig.count - 1
    if then == "target":
        rig.target(rig.q + 0.1)
        rig.run()
        assert rig.number("aiming") and not rig.number("refused")
        return
    follow()
    rig.restart(None, rig.now)
    rig.cycles(20)
    assert steps(Record(rig, first)).max() < 2.175e-3
    assert rig.q[0] == pytest.approx(HOME[0] + 0.45, abs=1e-6)


def pushed(rig: LoopRig, q: Array, way: float) -> None:
    """Impedance at q, where hands push the first joint by a way, rad; then the mode is position again."""
    rig.restart(q)
    rig.cycles(200, rest(q))
    start = rig.loop.command["motor_position"].copy()
    rig.loop.change_mode("impedance")
    for k in range(600):
        rig.measure_motors(start + way * min(1, k / 300) * np.eye(rig.m)[0])
        rig.refer(rest(q))
        rig.run()
    rig.loop.change_mode("position")


def limited(**limits: float) -> Robot:
    """A Panda whose first joint has other limits."""
    panda = load_robot("panda")
    first, *others = panda.joints
    return replace(panda, joints=(replace(first, limits=replace(first.limits, **limits)), *others))


@pytest.mark.parametrize(("way", "room"), [(0.09, 0.1), (-0.09, 0.1), (0.09, 0.05)])
def test_positions_that_pass_stay_within_limits(way: float, room: float) -> None:
    """Beside a target at a limit, motors were sent 34 mrad beyond it, 57 where hands had pushed the arm by 40."""
    rig = LoopRig(limited(velocity=0.2, acceleration=0.5), targets={}, stiffness=[100.0], start_tolerance=0.1)
    limit = rig.arm.robot.independent_joints[0].limits.upper * np.sign(way)
    q = HOME.copy()
    q[0] = limit - room * np.sign(way)
    pushed(rig, q, way)
    first, q[0] = rig.count, limit
    for k in range(3000):
        if k == 1:
            rig.target(q)
        rig.measure_motors(rig.loop.sent["drive_position"])
        rig.run()
    record = Record(rig, first)
    links = record.setpoint["q"][:, 0] + (record.sent["drive_position"] - record.command["motor_position"])[:, 0]
    beyond = (np.abs(links) - abs(limit)).max()
    assert links[-1] == pytest.approx(limit, abs=1e-9) and beyond < max(abs(way) - room, 0) + 1e-6
    assert steps(record)[:, 0].max() < 0.2e-3 * 1.01


def test_feedback_counts_from_where_motors_are_sent_while_positions_pass() -> None:
    """It counted from where they pass to: up to 17 N m against drives that hold the arm where they are sent."""
    rig = LoopRig(limited(velocity=0.2), stiffness=[100.0], start_tolerance=0.1, motor_kp=np.full(7, 200.0))
    pushed(rig, HOME, 0.09)
    first = rig.count
    for _ in range(2500):
        rig.measure_motors(rig.loop.sent["drive_position"])
        rig.refer(rest(HOME))
        rig.run()
    record = Record(rig, first)
    feedback = np.abs(record.sent["drive_effort"] - record.command["motor_effort"]).max(axis=1)
    assert feedback[1] == pytest.approx(9.07, abs=0.1)  # of the impedance, which passes in 0.3 s
    assert feedback[300:].max() < 0.1


@pytest.mark.parametrize("policy", ["refuse", "clip", "warn"])
def test_efforts_that_pass_from_another_mode_keep_to_their_rate(policy: str) -> None:
    """They passed in 0.3 s, whatever it was: by 57 of 20 N m/s."""
    rig = LoopRig(limited(effort_rate=20.0), stiffness=[100.0], start_tolerance=0.1, limits=policy)
    pushed(rig, HOME, 0.09)
    first = rig.count - 1
    for _ in range(2500):
        rig.measure_motors(rig.loop.sent["drive_position"])
        rig.refer(rest(HOME))
        rig.run()
    effort = Record(rig, first).sent["sent_effort"][:, 0]
    assert np.abs(effort[0] - effort[-1]) > 5
    assert np.abs(np.diff(effort)).max() < 20e-3 * 1.01


@pytest.mark.parametrize("hosted", [False, True], ids=["own", "planned by a host"])
@pytest.mark.parametrize("what", ["setpoint", "trajectory"])
def test_wrong_sample_at_rest_is_not_where_the_arm_is(what: str, hosted: bool) -> None:
    """It was held there: 0.3 rad in 1 ms."""
    rig = LoopRig("panda", targets={}, hosted=hosted)
    rig.restart(HOME)
    rig.cycles(50, rest(HOME))
    before, first = rig.loop.sent["drive_position"].copy(), rig.count
    for k in range(400):
        rig.measure_motors(before + (200 <= k < 210) * 0.3 * np.eye(7)[0])
        if what == "setpoint" and k > 100:
            rig.refer(rest(HOME + 0.6))  # is refused
        elif what == "trajectory" and k == 205:
            rig.trajectory(straight([0, 1], [HOME + 0.3 * np.eye(7)[0], HOME]))
        rig.run()
    np.testing.assert_allclose(Record(rig, first).sent["drive_position"], before[None] + np.zeros((400, 1)), atol=1e-9)


def test_samples_before_a_restart_are_not_where_the_arm_is() -> None:
    """It was held where it had been 20 ms before."""
    rig = LoopRig("panda", targets={}, hosted=True)
    observer = ExternalEffortObserver(rig.arm, 60.0, "torque", loop=rig.loop)
    sensed = rig.loop.vectors("sensed", dict.fromkeys(("q", "qd", "tau"), 7))
    rig.restart(HOME)
    assert observer
    for _ in range(50):
        sensed["q"][:], sensed["qd"][:], sensed["tau"][:] = HOME, 0.0, rig.loop.command["tau"]
        rig.loop.sense(rig.now, 5)
        rig.refer(rest(HOME))
        rig.run()
    assert rig.loop.vectors("observed", {"q": 7})["q"] == pytest.approx(HOME)
    rig.now += 20 * MS
    elsewhere = HOME + 0.3
    rig.restart(elsewhere)
    rig.cycles(20)
    np.testing.assert_allclose(rig.q, elsewhere, atol=1e-9)


def test_efforts_pass_where_limits_end_a_change_of_the_payload() -> None:
    """Its rates move the motor by more than 50 N m of 40, which ended in one cycle."""
    rig, q = LoopRig(arm_of("slide").robot), np.array([0.1, -0.6])
    rig.restart(q)
    rig.cycles(20, rest(q))
    rig.cycles(300)
    body = np.array([2.0, 0, 0, 0, *4e-3 * np.array([1, 0, 0, 1, 0, 1])])
    first = rig.count - 1
    rig.library.loop_post_payload(rig.address, 0, body.ctypes.data, 0.02)
    rig.cycles(200)
    record = Record(rig, first)
    mass, effort = record.setpoint["P"][:, 0], record.sent["drive_effort"][:, 1]
    end = int(np.argmax(mass == mass[-1]))
    assert 0 < mass[-1] < 0.1 and effort[end] - effort[-1] > 20.0
    assert np.abs(np.diff(effort[end:])).max() < 1.875 * (effort[end] - effort[-1]) / 10 + 1.0


def test_another_leader_while_efforts_pass_from_another_mode() -> None:
    """All that efforts differ by passes as one: that of the leader passed within 10 ms, that of the mode in 0.3 s."""
    q = QUIET["iiwa"]
    rig = LoopRig("iiwa", stiffness=[300.0], setpoint_timeout=0.1)
    rig.restart(q)
    wrench = {"W": np.array([0, 0, 0, 0, 0, 60.0])}
    rig.cycles(300, rest(q), **wrench)
    start = rig.loop.command["motor_position"].copy()
    rig.loop.change_mode("impedance")
    for k in range(1000):
        rig.measure_motors(start + 0.3 * min(1, k / 900) * np.eye(7)[3])
        rig.refer(rest(q), **wrench)
        rig.run()
    rig.loop.change_mode("position")
    rig.cycles(30)
    first = rig.count
    rig.cycles(100, rest(rig.q))
    record = Record(rig, first - 1)
    assert (record.code <= 0).all()
    assert np.abs(np.diff(record.sent["drive_effort"], axis=0)).max() < 1.0
