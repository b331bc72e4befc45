# SPDX-License-Identifier: Apache-2.0
"""Motors without an effort limit use their joint's limit: the table, messages, clipping, and one verdict."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from eom_dynamics import ElasticArm, Robot, load_robot
from eom_dynamics.actuators import Transmission
from eom_dynamics.actuators.actuator import Actuator, Motor
from eom_dynamics.arrays import STATE_NAMES
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.robot_table import RobotTable, limits_of
from eom_dynamics.elastic import LimitCheck
from eom_dynamics.elastic.limits import arm_limits
from eom_dynamics.robot.model import Limits
from eom_dynamics.trajectory import Samples, check

PERIOD, EFFORT, INF = 1_000_000, 20.0, np.inf


def limited(name: str, *motors: Motor, inertia: float = 0.4, effort: float = EFFORT) -> Robot:
    """Packaged robot with an effort limit of all joints, and these motors or motors without limits."""
    robot = load_robot(name)
    rows = zip(robot.joints, motors or (Motor(),) * len(robot.joints), strict=True)
    changes = {"limits": Limits(effort=effort, velocity=3.0, acceleration=20.0), "rotor_inertia": inertia}
    joints = (replace(joint, actuator=Actuator(motor=motor), gear_ratio=50.0, **changes) for joint, motor in rows)
    return replace(robot, joints=tuple(joints))


def differential(*motors: Motor) -> Robot:
    T = Transmission([[0.5, 0.5], [0.5, -0.5]])
    return replace(limited("planar_2r", *motors), transmission=((0, 1), T))


# Limits of the motor effort at the joints, and the efforts that count there by hand.
OWN = Motor(torque_limit=1.0)
KINDS: dict[str, tuple[Any, list[float], list[list[float]]]] = {
    "single": (lambda: limited("planar_2r"), [EFFORT, EFFORT], [[1, 0], [0, 1]]),
    "one of its own": (lambda: limited("planar_2r", OWN, Motor()), [INF, EFFORT], [[1, 0], [0, 1]]),
    "without rotors": (lambda: limited("planar_2r", inertia=0.0), [INF, INF], [[1, 0], [0, 1]]),
    "prismatic": (lambda: limited("planar_pr"), [EFFORT, EFFORT], [[1, 0], [0, 1]]),
    "pairs": (lambda: limited("vsa_planar_2r"), [EFFORT, EFFORT], [[1, 1, 0, 0], [0, 0, 1, 1]]),
    "pairs of their own": (lambda: limited("vsa_planar_2r", OWN, OWN), [INF, INF], [[1, 1, 0, 0], [0, 0, 1, 1]]),
    "differential": (differential, [EFFORT, EFFORT], [[1, 1], [1, -1]]),
    "differential, one of its own": (lambda: differential(OWN, Motor()), [EFFORT, EFFORT], [[1, 1], [1, -1]]),
    "carried": (lambda: replace(limited("planar_2r"), rotor_model="complete"), [EFFORT] * 2, [[1, 0], [0, 1]]),
}


def arm_of(kind: str) -> ElasticArm:
    return ElasticArm(KINDS[kind][0]())


def follow(loop: ControlLoop, state: Any, cycle: int) -> int:
    """Answer a setpoint in a cycle."""
    loop.rest()
    for name, row in zip(STATE_NAMES, state, strict=True):
        loop.given[name][:] = row
    now = 10**12 + cycle * PERIOD
    loop.refer(now)
    return loop.update(now, 1e-9 * PERIOD)


@pytest.mark.parametrize("kind", KINDS)
def test_motors_without_a_limit_have_that_of_their_joint(kind: str) -> None:
    arm, (_, limits, sums) = arm_of(kind), KINDS[kind]
    table, m = arm_limits(arm), len(arm.motor_names)
    np.testing.assert_allclose(table.motor_sums, sums, atol=1e-15)
    np.testing.assert_array_equal(table.largest["motor_effort"], limits)
    # In the loop, feedback also adds to the efforts of motors without inertia.
    expected = np.full(2, EFFORT) if kind == "without rotors" else np.array(limits)
    for side, sign in (("lower", -1), ("upper", 1)):
        np.testing.assert_allclose(limits_of(arm)[f"{side}.motor_sum"], sign * expected, rtol=1e-8)
    # Virtual work of the motors equals the work of their efforts at the joints.
    rates, efforts = np.random.default_rng(0).normal(size=(2, m))
    sides = np.array(arm.side.joint_sides(list(rates)))
    if not arm.paired.any():
        assert (table.motor_sums @ efforts) @ sides == pytest.approx(rates @ efforts)


def test_messages_have_motor_value_and_limit() -> None:
    arm = ElasticArm(limited("vsa_planar_2r"))
    command = arm.feedforward(*np.zeros((5, 2)))
    for efforts, said in (
        ([500.0, -490.0, 0.0, 0.0], []),  # co-contraction
        ([15.0, 10.0, 0.0, 0.0], ["joint_1_agonist+joint_1_antagonist: motor_effort 25 N m, limit 20 N m"]),
        ([0.0, 0.0, -11.0, -10.0], ["joint_2_agonist+joint_2_antagonist: motor_effort -21 N m, limit -20 N m"]),
    ):
        found = LimitCheck(arm).violations(np.zeros((5, 2)), command._replace(motor_effort=np.array(efforts)))
        assert list(map(str, found)) == said


BRAKING = Motor(torque_constant=0.07, resistance=0.5, voltage_limit=1.5)  # by its back-EMF, beyond what the joint bears


@pytest.mark.parametrize(
    "make",
    [lambda: limited("planar_2r", BRAKING, BRAKING), lambda: differential(Motor(torque_limit=0.1), Motor())],
    ids=["back-EMF", "differential"],
)
def test_clipped_stop_keeps_motor_and_joint_limits(make: Any) -> None:
    """A stop from a setpoint that exceeds limits, which `warn` accepts and `refuse` then clips."""
    first, second = (robot := make()).joints
    weaker = replace(second, limits=replace(second.limits, effort=2.0))
    arm, draw, most = (
        ElasticArm(replace(robot, joints=(first, weaker))),
        np.random.default_rng(3),
        np.array([EFFORT, 2.0]),
    )
    own = np.where(np.isfinite(limits_of(arm)["upper.motor_effort"]), limits_of(arm)["upper.motor_effort"], np.inf)
    limits, table, beyond = LimitCheck(arm), RobotTable(arm), 0
    for _ in range(50):
        loop = ControlLoop(table)
        loop.configure(safety="permissive", limits="warn")
        state = draw.normal(size=(5, 2)) * np.array([[0.3], [5.0], [300.0], [0.0], [0.0]])
        follow(loop, state, 0)
        beyond += bool((np.abs(limits.motor_sums @ loop.command["motor_effort"]) > most).any())
        loop.configure(safety="permissive", limits="refuse")
        loop.act("stop")
        for cycle in range(1, 6):
            loop.update(10**12 + cycle * PERIOD, 1e-9 * PERIOD)
            effort = loop.command["motor_effort"]
            assert (np.abs(limits.motor_sums @ effort) <= most * (1 + 3e-9)).all()  # the tolerance, twice
            assert (np.abs(effort) <= own * (1 + 3e-9)).all()
    assert beyond > 20


@pytest.mark.parametrize("kind", KINDS)
def test_planners_and_the_loop_have_one_verdict(kind: str) -> None:
    arm, draw = arm_of(kind), np.random.default_rng(2)
    table, verdicts = RobotTable(arm), []
    for _ in range(60):
        state = draw.normal(size=(5, 2)) * np.array([[0.1], [0.3], [3.0], [30.0], [10 ** draw.uniform(2, 5)]])
        loop = ControlLoop(table)
        loop.configure(safety="strict", jump_check="ignore")
        verdicts.append(check(arm, Samples(np.zeros(1), *state[:, np.newaxis])).ok)
        assert (follow(loop, state, 0) == 0) == verdicts[-1]
    assert 5 < sum(verdicts) < 55


def test_a_differential_shares_the_speed_of_its_motors() -> None:
    arm = ElasticArm(differential(Motor(speed_limit=100.0), Motor(speed_limit=300.0)))
    robot = arm.robot
    free = tuple(replace(joint, limits=Limits(effort=EFFORT)) for joint in robot.joints)
    rates = LimitCheck(ElasticArm(replace(robot, joints=free))).rate_limits[0]
    np.testing.assert_allclose(rates, [0.5 * (2.0 + 6.0)] * 2, rtol=1e-8)
