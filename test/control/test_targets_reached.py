# SPDX-License-Identifier: Apache-2.0
"""Targets on soft springs and of joints with dry friction: no overshoot, within limits, no steps of efforts."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

import eom_dynamics as eom
from eom_dynamics.actuators.springs import CoupledSpring, CubicSpring, DampedSpring, LinearSpring, Spring
from eom_dynamics.arrays import Array
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.online_trajectory import motion_limits
from eom_dynamics.control.robot_table import RobotTable

PERIOD = 1_000_000  # ns
OVERSHOOT = 1e-6  # rad or m


class Motion(NamedTuple):
    """Positions (cycles, n), drive efforts (cycles, m), the last target (n,), and whether it was reached."""

    q: Array
    effort: Array
    target: Array
    arrived: bool
    refusal: str


def soft(name: str, springs: tuple[Spring, ...], **limits: float) -> eom.Robot:
    """A packaged robot with other springs, unless none are given, and the same limits for each joint."""
    robot = eom.load_robot(name)
    limits = {"lower": -2.5, "upper": 2.5, "velocity": 2.0, "acceleration": 10.0, "effort": 45.0} | limits
    joints = [replace(joint, limits=replace(joint.limits, **limits)) for joint in robot.joints]
    joints = [
        replace(joint, spring=spring)
        for joint, spring in zip(joints, springs or [x.spring for x in joints], strict=True)
    ]
    return replace(robot, name="soft", joints=tuple(joints))


def drive(
    arm: eom.ElasticArm, table: RobotTable, start: Array, targets: dict[int, Array], cycles: int, stop: int = -1
) -> Motion:
    """Move to targets by the cycle of their arrival, with a stop in one cycle."""
    loop, now, target = ControlLoop(table), 10**12, start
    loop.configure(safety="strict", stop_duration=0.02)
    loop.limit(motion_limits(arm), 1e-9 * PERIOD)
    loop.restart(start)
    q, effort = [], []
    for k in range(cycles):
        if k == stop:
            loop.act("stop")
        if k in targets:
            target = targets[k]
            assert loop.aim(now, target) == 0
        now += PERIOD
        loop.update(now, 1e-9 * PERIOD)
        q.append(loop.state[0].copy())
        effort.append(loop.sent["drive_effort"].copy())
    return Motion(np.array(q), np.array(effort), target, bool(loop.number("arrived")), loop.text("refusal"))


SOFT = {
    "linear": lambda: soft("planar_2r", (LinearSpring(60.0), LinearSpring(25.0)), effort_rate=600.0),
    "cubic": lambda: soft("planar_2r", (CubicSpring(60.0, 500.0), CubicSpring(25.0, 200.0)), effort_rate=600.0),
    "damped": lambda: soft("planar_2r", (DampedSpring(60.0, 1.0), DampedSpring(25.0, 0.5)), effort_rate=600.0),
    "motors": lambda: soft("sea_planar_2r", (LinearSpring(90.0), LinearSpring(40.0)), effort_rate=900.0),
    "variable": lambda: soft("vsa_planar_2r", (), effort=15.0),
    "prismatic": lambda: soft("planar_pr", (LinearSpring(400.0), LinearSpring(25.0)), velocity=1.0, acceleration=6.0),
    "coupled": lambda: replace(
        soft("planar_2r", (LinearSpring(60.0), LinearSpring(25.0)), effort_rate=600.0),
        coupled_stiffness=((0, 1), CoupledSpring([[70.0, 8.0], [8.0, 30.0]])),
    ),
}


@pytest.mark.parametrize("kind", SOFT)
def test_a_target_on_soft_springs_is_reached_without_overshoot(kind: str) -> None:
    arm = eom.ElasticArm(SOFT[kind]())
    table, draw = RobotTable(arm), np.random.default_rng(4)
    for _ in range(12):
        start = np.array([-1.4, draw.uniform(0, 1)])
        target = start + draw.uniform(-1, 1, 2) * (0.05, 0.5)
        motion = drive(arm, table, start, {1: target}, 4000)
        assert motion.arrived, motion.refusal
        over = (motion.q - target) * np.sign(target - start)
        assert over.max() < OVERSHOOT
        assert ((start - motion.q) * np.sign(target - start)).max() < OVERSHOOT


def test_a_target_amid_motion_that_a_brake_reaches_is_reached_without_overshoot() -> None:
    """A farther target in the same direction is no reason to pass it."""
    arm = eom.ElasticArm(SOFT["linear"]())
    table, draw = RobotTable(arm), np.random.default_rng(5)
    for _ in range(8):
        start = np.array([-1.4, draw.uniform(0, 1)])
        way = draw.choice([-1.0, 1.0], 2) * draw.uniform(0.05, 0.4, 2)
        targets = {1: start + way, int(draw.integers(20, 400)): start + 1.5 * way}
        motion = drive(arm, table, start, targets, 5000)
        assert motion.arrived, motion.refusal
        assert ((motion.q - motion.target) * np.sign(way)).max() < OVERSHOOT


def test_target_of_an_arm_at_rest_soon_after_another_target_is_not_overshot() -> None:
    """Targets in motion that are at most 0.1 s apart may be overshot; here a stop ends the first one."""
    arm = eom.ElasticArm(SOFT["linear"]())
    table, draw = RobotTable(arm), np.random.default_rng(6)
    for _ in range(8):
        start = np.array([-1.4, draw.uniform(0, 1)])
        way = draw.choice([-1.0, 1.0], 2) * draw.uniform(0.01, 0.1, 2)
        motion = drive(arm, table, start, {1: start + way, 100: start + way}, 4000, stop=3)
        assert motion.arrived, motion.refusal
        assert not np.ptp(motion.q[90:100], axis=0).any()
        assert ((motion.q - motion.target) * np.sign(way)).max() < OVERSHOOT


def rubbing(name: str, friction: float) -> eom.Robot:
    """A packaged robot with dry friction: N m (N) of planar arms, a share of the effort limit of others."""
    robot, small = eom.load_robot(name), name in ("sea_planar_2r", "planar_pr")
    joints = []
    for joint in robot.joints:
        limits = joint.limits
        if small:
            limits = replace(limits, lower=-2.5, upper=2.5, velocity=4.0, acceleration=25.0)
        elif not np.isfinite(limits.acceleration):
            limits = replace(limits, acceleration=8.0)
        dry = friction if small else friction * limits.effort
        joints.append(replace(joint, friction=dry, damping=0.5, limits=limits))
    return replace(robot, name="rubbing", joints=tuple(joints), joint_friction=True)


@pytest.mark.parametrize(
    ("name", "friction"),
    [
        *(("sea_planar_2r", x) for x in (0.1, 0.4)),
        *(("planar_pr", x) for x in (1.0, 8.0)),
        *((name, x) for name in ("panda", "ur5e", "iiwa") for x in (0.01, 0.1)),
    ],
)
def test_reversals_with_joint_friction_are_within_limits_and_smooth(name: str, friction: float) -> None:
    """Steps of a motor's effort in 1 ms are at most those without friction, and those of the change of sign."""
    rough, smooth = (eom.ElasticArm(rubbing(name, x)) for x in (friction, 0.0))
    most = np.zeros((2, len(rough.motor_joint)))
    for k, arm in enumerate((rough, smooth)):
        table, draw, limits = RobotTable(arm), np.random.default_rng(2), motion_limits(arm)
        lower, upper = np.maximum(limits.lower, -2.5), np.minimum(limits.upper, 2.5)
        start = (lower + upper) / 2
        for _ in range(4):
            targets = {at: np.clip(start + draw.uniform(-0.5, 0.5, arm.robot.n), lower, upper) for at in (1, 200)}
            motion = drive(arm, table, start, targets, 2500)
            assert motion.arrived, motion.refusal
            most[k] = np.maximum(most[k], np.abs(np.diff(motion.effort[2:], axis=0)).max(axis=0))
    # At a reversal, a rotor is accelerated by a quarter of the joint's limit, then back.
    rotor = 0.5 * np.array([rough.robot.joints[j].rotor_inertia * limits.acceleration[j] for j in rough.motor_joint])
    assert (most[0] <= most[1] + rotor).all(), (most, rotor)


@pytest.mark.parametrize("name", ["sea_planar_2r", "planar_pr", "ur5e", "iiwa"])
def test_joint_friction_without_an_acceleration_limit_has_no_targets(name: str) -> None:
    """Friction changes its sign by the robot's limit: with a limit of targets alone, 74 of 96 motions were aborted."""
    robot = rubbing(name, 0.1)
    joints = [replace(x, limits=replace(x.limits, acceleration=np.inf)) for x in robot.joints]
    with pytest.raises(eom.StateError, match="dry friction on a spring"):
        motion_limits(eom.ElasticArm(replace(robot, joints=tuple(joints))), {"acceleration": 8.0})
    motion_limits(eom.ElasticArm(replace(robot, joints=tuple(joints), joint_friction=False)), {"acceleration": 8.0})


@pytest.mark.parametrize("friction", [0.1, 0.4])
def test_joint_friction_accelerates_the_motor_by_a_quarter_of_the_limit_at_a_reversal(friction: float) -> None:
    """By second differences of the deflection over a reversal with the largest acceleration."""
    robot = rubbing("sea_planar_2r", friction)
    joint = robot.joints[1]
    t = np.linspace(-0.2, 0.2, 400_001)
    deflection = (
        friction * np.tanh(joint.limits.acceleration * t / joint.friction_law.smoothing_velocity) / joint.stiffness
    )
    most = np.abs(np.diff(deflection, 2)).max() / (t[1] - t[0]) ** 2
    assert most == pytest.approx(joint.limits.acceleration / 4, rel=1e-3)
