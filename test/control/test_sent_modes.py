# SPDX-License-Identifier: Apache-2.0
"""What drives are sent around another mode, while efforts and positions pass, and of an arm that is elsewhere."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from checked import HOME, QUIET, check, resting, steps, swing
from loop_rig import MS, LoopRig, Record, rest, straight
from random_scenes import arm_of

from eom_dynamics import ExternalEffortObserver, Robot, load_robot
from eom_dynamics.actuators import Friction
from eom_dynamics.arrays import Array


def measured(rig: LoopRig, count: int, motors: Any = None, state: Any = None, **more: Any) -> list[int]:
    """Run cycles with a reference and motors measured at motors(k), by default as commanded; return their codes."""
    codes = []
    for k in range(count):
        if motors:
            velocity = (motors(k) - motors(k - 1)) / 1e-3 if k else np.zeros(rig.m)
            rig.measure_motors(motors(k), np.where(np.abs(velocity) < 10, velocity, 0))  # a glitch is no motion
        else:
            rig.measure_motors(rig.loop.sent["drive_position"])
        if state is not None:
            rig.refer(state, **more)
        codes.append(rig.run())
    return codes


@pytest.mark.parametrize("stiffness", [50.0, 200.0])
def test_variable_stiffness_pushed_until_a_spring_is_slack(stiffness: float) -> None:
    rig = resting("vsa_planar_2r", stiffness=[stiffness])
    start = rig.loop.command["motor_position"].copy()
    rig.loop.change_mode("impedance")
    measured(rig, 1450, lambda k: start + 0.0005 * k * np.array([1, 1, 0, 0]), rest(rig.q))
    record = check(rig, rules="finite")
    assert np.isfinite(record.sent["drive_effort"]).all()


@pytest.mark.parametrize(("share", "follows"), [(0.9, True), (1.4, False), (-0.4, False)])
def test_drives_that_pass_their_last_command_by_its_velocity(share: float, follows: bool) -> None:
    """While a node is held up they hold the velocity, too: a damper leads them on, which is no push."""
    rig = resting()
    begin = rig.now
    for _ in range(300):
        rig.measure_motors(rig.loop.command["motor_position"])
        rig.refer(swing(1e-9 * (rig.now - begin), size=0.5, rate=4.0), rig.now)
        assert rig.run() <= 0 or rig.now - begin < 10 * MS
    theta, velocity = rig.loop.command["motor_position"].copy(), rig.loop.command["motor_velocity"].copy()
    due = rig.now
    rig.now += 200 * MS
    rig.measure_motors(theta + share * 0.1 * velocity)
    rig.refer(swing(1e-9 * (due - begin), size=0.5, rate=4.0), due)
    assert (rig.run() <= 0) is follows


@pytest.mark.parametrize("glitch", [0.3, 6.283])
def test_one_wrong_sample_as_gravity_compensation_begins_does_not_move_motors(glitch: float) -> None:
    """Motors were sent where it said, and stayed there."""
    rig = resting(cycles=0, targets={})
    measured(rig, 300, state=rest(HOME))
    before, first = rig.loop.sent["drive_position"].copy(), rig.count
    rig.loop.change_mode("gravity_compensation")
    measured(rig, 500, lambda k: before + (k == 0) * glitch * np.eye(7)[0])
    assert np.abs(Record(rig, first).sent["drive_position"] - before).max() < 0.01
    assert rig.number("mode") == 2


@pytest.mark.parametrize("then", ["target", "restart"])
@pytest.mark.parametrize("sensors", ["motors", "links"])
def test_while_positions_pass_the_arm_is_where_motors_are_sent(sensors: str, then: str) -> None:
    """Away from where it is commanded to rest, and on its way there: a target leads, and a restart stops it."""
    rig = resting(cycles=100, start_tolerance=0.5, targets={})
    rig.loop.act("stop")
    rig.cycles(200)
    deflection = rig.loop.command["motor_position"] - HOME

    def follow() -> None:
        sent = rig.loop.sent["drive_position"]
        if sensors == "motors":
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
    measured(rig, 600, lambda k: start + way * min(1, k / 300) * np.eye(rig.m)[0], rest(q))
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
    measured(rig, 1)
    rig.target(q)
    measured(rig, 2999)
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
    measured(rig, 2500, state=rest(HOME))
    record = Record(rig, first)
    feedback = np.abs(record.sent["drive_effort"] - record.command["motor_effort"]).max(axis=1)
    assert feedback[1] == pytest.approx(9.07, abs=0.1)  # of the impedance, which passes in 0.3 s
    assert feedback[300:].max() < 0.1


@pytest.mark.parametrize("policy", ["refuse", "warn"])
def test_efforts_that_pass_from_another_mode_keep_to_their_rate(policy: str) -> None:
    """They passed in 0.3 s, whatever it was: by 57 of 20 N m/s."""
    rig = LoopRig(limited(effort_rate=20.0), stiffness=[100.0], start_tolerance=0.1, limits=policy)
    pushed(rig, HOME, 0.09)
    first = rig.count - 1
    measured(rig, 2500, state=rest(HOME))
    effort = Record(rig, first).sent["sent_effort"][:, 0]
    assert np.abs(effort[0] - effort[-1]) > 5
    assert np.abs(np.diff(effort)).max() < 20e-3 * 1.01


@pytest.mark.parametrize("hosted", [False, True], ids=["own", "planned by a host"])
@pytest.mark.parametrize("what", ["setpoint", "trajectory"])
def test_wrong_sample_at_rest_is_not_where_the_arm_is(what: str, hosted: bool) -> None:
    """It was held there: 0.3 rad in 1 ms."""
    rig = resting(targets={}, hosted=hosted)
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


def test_a_change_of_the_payload_leaves_limits_of_motors() -> None:
    """In its blend time, it would move the motor by more than 50 N m of 40."""
    rig = resting(arm_of("slide").robot, QUIET["slide"], 20)
    rig.cycles(300)
    body = np.array([2.0, 0, 0, 0, *4e-3 * np.array([1, 0, 0, 1, 0, 1])])
    first = rig.count - 1
    rig.library.loop_post_payload(rig.address, 0, body.ctypes.data, 0.02)
    rig.cycles(200)
    record = Record(rig, first)
    mass, effort = record.setpoint["P"][:, 0], record.sent["drive_effort"][:, 1]
    assert mass[-1] == 2.0 and 0.02 < 1e-3 * np.argmax(mass == 2.0) < 0.1
    assert 20.0 < np.abs(effort).max() < 30.0


def stiffness_that_efforts_do_not_allow(limits: str, lead: float) -> LoopRig:
    """An arm that complies and is pushed, with a stiffness that its springs do not have under these efforts."""
    arm = load_robot("vsa_planar_2r")
    actuators = [replace(joint.actuator, friction=Friction(0.5, 0.3)) for joint in arm.joints]
    joints = (replace(x, actuator=y) for x, y in zip(arm.joints, actuators, strict=True))
    settings = {"limits": limits, "stiffness": [100.0, 50.0], "setpoint_timeout": 0.0}
    rig = LoopRig(
        replace(arm, joints=tuple(joints), drive_delay=lead), targets={"velocity": 1.0, "acceleration": 5.0}, **settings
    )
    q = np.array([0.2, 0.3])
    rig.restart(q)
    start = rig.loop.sent["drive_position"].copy()
    measured(rig, 20, lambda k: start, rest(q))
    rig.loop.change_mode("impedance")
    measured(rig, 600, lambda k: start - 0.06 * min(k / 300, 1) * np.array([1, 1, 0, 0]), rest(q))
    stiffness = rig.loop.setpoint["k"].copy()
    for _ in range(20):
        stiffness[0] -= 7.25
        measured(rig, 1, lambda k: start - 0.06 * np.array([1, 1, 0, 0]), rest(q), k=stiffness)
    return rig


@pytest.mark.parametrize(("limits", "lead"), [("refuse", 0.0), ("warn", 0.02), ("ignore", 0.0)])
def test_a_restart_goes_on_from_efforts_that_the_stiffness_does_not_allow(limits: str, lead: float) -> None:
    """They passed as NaN, which the drives were sent, and then held back all that came later."""
    rig = stiffness_that_efforts_do_not_allow(limits, lead)
    first = rig.count
    rig.restart(None, rig.now)
    rig.loop.change_mode("position")
    measured(rig, 50)
    measured(rig, 300, state=rest(rig.q))
    before = rig.loop.sent["drive_position"].copy()
    rig.target(rig.q + 0.1)
    measured(rig, 1500)
    record = Record(rig, first)
    assert all(np.isfinite(rows).all() for rows in record.sent.values())
    assert (np.abs(record.sent["drive_position"]).max(axis=1) > 0.1).all()  # nor zeros
    np.testing.assert_allclose(rig.loop.sent["drive_position"] - before, 0.1, atol=1e-3)


def complying() -> tuple[LoopRig, Array]:
    """An arm at rest in impedance, and where its motors are measured."""
    rig = resting(stiffness=[300.0])
    start = rig.loop.sent["drive_position"].copy()
    measured(rig, 20, lambda k: start, rest(rig.q))
    rig.loop.change_mode("impedance")
    measured(rig, 400, lambda k: start)
    return rig, start


def test_motors_that_are_not_measured_in_a_cycle_make_no_step() -> None:
    """Damping stays as it was; it was left out."""
    rig, start = complying()
    first, one = rig.count, np.eye(7)[0]
    for k in range(1000):
        t = 1e-3 * k
        lost = k in (700, 702, 704)
        rig.measure_motors(None if lost else start + 0.3 * (1 - np.cos(2 * t)) * one, 0.6 * np.sin(2 * t) * one)
        rig.run()
    steps = np.abs(np.diff(Record(rig, first).sent["drive_effort"][:, 0]))
    assert steps[695:710].max() < 1.01 * steps[:690].max() < 1.0


def test_velocities_that_no_motor_has_count_as_not_measured() -> None:
    """The arm complied no more, and nobody said so."""
    rig, start = complying()
    for _ in range(200):
        rig.measure_motors(start, 1e200 * np.eye(7)[0])
        rig.run()
    assert rig.number("mode") == 0 and rig.number("unmeasured") > 90
