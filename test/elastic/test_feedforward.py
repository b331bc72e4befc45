# SPDX-License-Identifier: Apache-2.0
"""Feedforward of elastic joints: formulas, rigid joints among them, partial derivatives, leads, and moving bases."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from chains import fixed_case, packaged_parameters
from differences import derivative, deviation, polynomial_motion
from floating_motion import FloatingState, floating_motion
from springs import EVERY_KIND, with_springs
from textbook import planar_2r

import eom_dynamics as eom
from eom_dynamics import BaseMotion, ElasticArm, FloatingBase, StateError, base_motion, load_robot
from eom_dynamics.actuators import Actuator, Friction, Gear, Transmission
from eom_dynamics.actuators.springs import LinearSpring
from eom_dynamics.arrays import Array

MOTION = fixed_case("planar_2r", 4).motion
STIFFNESS, ROTOR_INERTIA = np.array([500.0, 300.0]), np.array([0.2, 0.1])
"""Stiffness and rotor inertia of the packaged 2R."""


def arm(**arguments: Any) -> ElasticArm:
    return ElasticArm(load_robot("planar_2r"), **arguments)


def textbook_effort(motion: np.ndarray) -> np.ndarray:
    q, qd, qdd = motion[:3]
    M, forces = planar_2r(packaged_parameters("planar_2r"))(q, qd)
    return M @ qdd + forces


def test_motors_of_the_textbook_arm() -> None:
    """Rates of effort by numerical differentiation, with a rounding error of some 1e-11 in the second."""
    motion = polynomial_motion(MOTION)
    tau = textbook_effort(MOTION)
    taud = derivative(lambda t: textbook_effort(motion(t)))
    taudd = derivative(lambda t: derivative(lambda s: textbook_effort(motion(t + s))))
    command = arm().feedforward(*MOTION)
    thetadd = MOTION[2] + taudd / STIFFNESS
    assert deviation(command.tau, tau) < 1e-14
    assert deviation(command.taud, taud) < 1e-12
    assert deviation(command.taudd, taudd) < 1e-10
    assert deviation(command.motor_position, MOTION[0] + tau / STIFFNESS) < 1e-14
    assert deviation(command.motor_velocity, MOTION[1] + taud / STIFFNESS) < 1e-13
    assert deviation(command.motor_acceleration, thetadd) < 1e-11
    assert deviation(command.motor_effort, ROTOR_INERTIA * thetadd + tau) < 1e-11


ACTUATOR = Actuator(Friction(1.0, 0.5, 0.8, viscous_negative=0.7), Gear(0.8))
STATE = np.random.default_rng(4).uniform(-1, 1, (5, 2))


def arm_of(kind: str) -> ElasticArm:
    robot = with_springs(load_robot("planar_2r"), EVERY_KIND[kind], actuator=ACTUATOR)
    if kind == "cubic":
        robot = replace(robot, transmission=((0, 1), Transmission(np.array([[0.5, 0.5], [0.5, -0.5]]))))
    return ElasticArm(robot)


@pytest.mark.parametrize("kind", ["linear", "cubic", "dead_zone", "tabulated", "damped", "antagonistic_exponential"])
def test_partials_agree_with_differences(kind: str) -> None:
    """Differences of fourth order with a step of 1e-4 have errors of 1e-12 of the largest value over the step."""
    subject, h = arm_of(kind), 1e-4
    found = subject.feedforward_partials(*np.stack([-STATE, STATE], axis=1))
    for k in range(5):
        for j in range(2):
            steps = np.repeat(STATE[:, np.newaxis], 4, axis=1)
            steps[k, :, j] += h * np.array([-2.0, -1.0, 1.0, 2.0])
            values = np.concatenate(subject.feedforward(*steps), axis=-1)
            expected = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h)
            computed = np.concatenate([part[1, :, k, j] for part in found])
            np.testing.assert_allclose(computed, expected, rtol=1e-7, atol=1e-8 * np.abs(values).max())


def test_what_the_feedforward_refuses_has_no_partials() -> None:
    subject = arm_of("variable")
    with pytest.raises(StateError, match=r"1.*outside.*actuator's"):
        subject.feedforward_partials(*STATE, commanded_stiffness=[np.ones(2)])
    with pytest.raises(StateError, match=r"large.*'joint_1'"):
        subject.feedforward_partials(STATE[0], np.full(2, 1e200), *STATE[2:])


ROBOTS = ("planar_2r", "sea_planar_2r", "vsa_planar_2r", "planar_pr")


@pytest.mark.parametrize("name", ROBOTS)
def test_command_is_that_for_the_motion_ahead(name):
    arm = eom.ElasticArm(eom.load_robot(name))
    t, lead, n = np.linspace(0.0, 1.0, 4), 3e-3, arm.robot.n
    # A polynomial of degree four is its own Taylor polynomial.
    rows = np.random.default_rng(3).uniform(-1, 1, (5, n))

    def motion(t):
        shape = [np.polynomial.Polynomial([1, 1, 1 / 2, 1 / 6, 1 / 24]).deriv(k) for k in range(5)]
        return [np.outer(shape[k](t), rows[0]) for k in range(5)]

    wrench = [np.ones((4, 6)), np.full(6, 2.0), np.full(6, 3.0)]
    later = [np.full(6, 1 + lead * 2 + lead**2 * 1.5), np.full(6, 2 + 3 * lead), np.full(6, 3.0)]
    given, exact = {"wrench": wrench}, {"wrench": later}
    if arm.variable.any():
        given["commanded_stiffness"] = [np.full(n, 200.0), np.full(n, 30.0)]
        exact["commanded_stiffness"] = [np.full(n, 200 + 30 * lead), np.full(n, 30.0)]
    found, expected = arm.feedforward(*motion(t), lead=lead, **given), arm.feedforward(*motion(t + lead), **exact)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-10 * (1 + np.abs(y).max()))
    one = arm.feedforward(*(x[2] for x in motion(t)), lead=lead, **given | {"wrench": [np.ones(6), *wrench[1:]]})
    np.testing.assert_allclose(one.motor_effort, found.motor_effort[2], rtol=1e-12)


@pytest.mark.parametrize("name", ["sea_planar_2r", "dual_arm"])
@pytest.mark.parametrize("on_base", [False, True])
def test_payload_and_base_are_ahead_too(name, on_base):
    arm, lead, rng = eom.ElasticArm(eom.load_robot(name)), 1e-2, np.random.default_rng(7)
    shape = () if len(arm.robot.tools) == 1 else (len(arm.robot.tools),)
    P = np.broadcast_to(eom.Payload(0.5, [0.1, 0.0, 0.2]).parameters, (*shape, 10))
    rates, state = 0.1 * rng.normal(size=(2, *P.shape)), rng.normal(size=(5, arm.robot.n))
    w, f = rng.normal(size=(4, 3)), rng.normal(size=(3, 3))
    base = {"base": BaseMotion(w, f)} if on_base else {}
    ahead, others = arm.ahead(lead, *state, payload=[P, *rates], **base)
    if on_base:
        np.testing.assert_allclose(others["base"].angular_velocity[2], w[2] + lead * w[3], rtol=1e-14)
        np.testing.assert_allclose(
            others["base"].specific_force[0], f[0] + lead * f[1] + lead**2 / 2 * f[2], rtol=1e-14
        )
    wanted = [P + lead * rates[0] + lead**2 / 2 * rates[1], rates[0] + lead * rates[1], rates[1]]
    for x, y in zip(others["payload"], wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-14, atol=1e-15)
    found = arm.feedforward(*state, payload=[P, *rates], lead=lead, **base)
    expected = arm.feedforward(*ahead, **others)
    np.testing.assert_array_equal(found.motor_effort, expected.motor_effort)
    assert np.abs(found.tau - arm.feedforward(*state, lead=lead, **base).tau).max() > 0.1
    # A payload without rates is constant.
    tool = arm.robot.tools[0].name
    fixed = arm.ahead(lead, *state, payload=eom.Payload(0.5, tool=tool), **base)[1]["payload"]
    assert np.max(fixed[0]) == 0.5 and not np.any(fixed[1:])


def test_lead_of_a_robot_is_half_a_period_and_the_delay_or_a_whole_one_where_drives_interpolate():
    robot = replace(eom.load_robot("planar_2r"), command_period=0.001, drive_delay=0.002)
    assert robot.command_lead == 0.0025
    assert replace(robot, drive_interpolation="linear").command_lead == 0.003


# Gravity along no axis, so that each of its components counts.
ROBOT = replace(
    with_springs(fixed_case("planar_2r", 0).robot, LinearSpring(500.0), rotor_inertia=0.2),
    gravity=np.array([1.0, -2.0, -9.0]),
)
ARM = ElasticArm(ROBOT)
WRENCH = np.random.default_rng(6).uniform(-5, 5, (3, *ROBOT.wrench_shape))


@pytest.fixture(scope="module")
def motion() -> Callable[[float], FloatingState]:
    return floating_motion(np.random.default_rng(5).uniform(-1, 1, (6, 6 + ROBOT.n)))


def base_of(state: FloatingState) -> BaseMotion:
    return base_motion(ROBOT, state.pose, *state.rates[:4, :6])


def joints_of(state: FloatingState) -> Array:
    return np.array([state.q, *state.rates[:4, 6:]])


def test_angular_velocity_and_specific_force_of_a_motion(motion: Callable[[float], FloatingState]) -> None:
    """The force from positions of the origin; each difference of a difference loses two digits."""

    def force(t: float) -> Array:
        velocity = derivative(lambda s: motion(t + s).pose[:3, 3])
        acceleration = derivative(lambda s: motion(t + s).pose[:3, :3] @ motion(t + s).rates[0, 3:6])
        assert deviation(velocity, motion(t).pose[:3, :3] @ motion(t).rates[0, 3:6]) < 1e-11
        return motion(t).pose[:3, :3].T @ (acceleration - ROBOT.gravity)

    base = base_of(motion(0.0))
    np.testing.assert_array_equal(base.angular_velocity, motion(0.0).rates[:4, :3])
    assert base.specific_force.shape == (3, 3)
    assert deviation(base.specific_force[0], force(0.0)) < 1e-11
    for k in range(2):
        rate = derivative(lambda t, k=k: base_of(motion(t)).specific_force[k])
        assert deviation(base.specific_force[k + 1], rate) < 1e-10


def test_feedforward_is_that_of_the_springs_under_the_efforts_on_a_floating_base(
    motion: Callable[[float], FloatingState],
) -> None:
    """For one motion at three times; motor accelerations contain taudd / k."""
    states = [motion(t) for t in (0.0, 0.1, 0.2)]
    joints = np.stack([joints_of(state) for state in states], axis=1)
    base = BaseMotion(*(np.stack(parts, axis=1) for parts in zip(*map(base_of, states), strict=True)))
    command = ARM.feedforward(*joints, wrench=tuple(WRENCH), base=base)
    efforts = FloatingBase(ROBOT, backend="numpy").joint_efforts(
        *(np.stack([getattr(state, name) for state in states]) for name in ("pose", "q")),
        *np.stack([state.rates[:4] for state in states], axis=1),
        wrench=tuple(WRENCH),
    )
    for ours, theirs in zip(command[:3], efforts, strict=True):
        assert deviation(ours, theirs) < 1e-12
    for ours, link, effort in zip(command[3:6], joints, efforts, strict=False):
        assert deviation(ours, link + effort / 500.0) < 1e-12
    assert deviation(command.motor_effort, 0.2 * (joints[2] + efforts[2] / 500.0) + efforts[0]) < 1e-12
    one = ARM.feedforward(*joints[:, 1], wrench=tuple(WRENCH), base=base_of(states[1]))
    assert deviation(np.concatenate(one), np.concatenate([x[1] for x in command])) < 1e-12
