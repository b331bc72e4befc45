# SPDX-License-Identifier: Apache-2.0
"""Closed loops against trigonometry and against Lagrange's equations in the independent coordinates."""

from collections.abc import Callable

import numpy as np
import pytest
from differences import derivative, deviation, gradient, polynomial_motion
from linkages import (
    five_bar,
    five_bar_angles,
    four_bar,
    four_bar_angles,
    grounded_four_bar,
    grounded_four_bar_angles,
    pin,
)
from textbook import twist_vector

from eom_dynamics import Robot, StateError, lie
from eom_dynamics.arrays import Array
from eom_dynamics.kinematics import body_poses
from eom_dynamics.loops import ClosedLoopArm

# Mechanism, its joint angles by trigonometry, independent joint variables with four time derivatives.
FOUR_BAR = (four_bar, lambda u: four_bar_angles(u[0]), np.array([[0.7], [1.1], [-2.0], [3.0], [5.0]]))
GROUNDED = (grounded_four_bar, lambda u: grounded_four_bar_angles(u[0]), FOUR_BAR[2])
FIVE_BAR = (five_bar, five_bar_angles, np.array([[2.2, 0.9], [0.8, -0.6], [1.5, 2.0], [-4.0, 3.0], [6.0, -5.0]]))
MECHANISMS = pytest.mark.parametrize(
    ("make", "angles", "u"), [FOUR_BAR, GROUNDED, FIVE_BAR], ids=["four_bar", "cut_at_the_ground", "five_bar"]
)

Angles = Callable[[Array], Array]
Make = Callable[[], ClosedLoopArm]


def energies(robot: Robot, q: Array, qd: Array) -> tuple[float, float]:
    kinetic = potential = 0.0
    rates = derivative(lambda t: np.array(body_poses(robot, q + t * qd)))
    for joint, C, Cd in zip(robot.joints, body_poses(robot, q), rates, strict=True):
        c = joint.center_of_mass
        offset = lie.skew(c)
        about_center = joint.inertia_about_origin - joint.mass * offset.T @ offset
        w, v = twist_vector(lie.inverse(C) @ Cd)[:3], (Cd @ np.append(c, 1.0))[:3]
        kinetic += 0.5 * joint.mass * v @ v + 0.5 * w @ about_center @ w
        potential -= joint.mass * robot.gravity @ (C @ np.append(c, 1.0))[:3]
    return kinetic, potential


def lagrange(robot: Robot, angles: Angles, motion: Callable[[float], Array]) -> Array:
    """Efforts at the independent joints: d/dt dT/dud - d(T - U)/du, all by finite differences."""

    def lagrangian(u: Array, ud: Array) -> float:
        kinetic, potential = energies(robot, angles(u), derivative(lambda t: angles(u + t * ud)))
        return kinetic - potential

    def momentum(t: float) -> Array:
        u, ud = motion(t)[:2]
        return gradient(lambda x: lagrangian(u, x), ud)

    u, ud = motion(0.0)[:2]
    return derivative(momentum, 0.02) - gradient(lambda x: lagrangian(x, ud), u)


@MECHANISMS
def test_motion_and_efforts(make: Make, angles: Angles, u: Array) -> None:
    """Angles by trigonometry, efforts by Lagrange's equations, rates by differences of those below."""
    arm, motion, expected = make(), polynomial_motion(u), angles(u[0])
    # The closure error is at most 1e-11, and the angles are about as accurate.
    np.testing.assert_allclose(arm.close(u[0], expected + 0.1), expected, atol=1e-10)

    def rates(t: float) -> Array:
        state = motion(t)
        return np.array(arm.motion(angles(state[0]), *state[1:])[0])

    def efforts(t: float) -> Array:
        state = motion(t)
        return np.array(arm.inverse_dynamics(angles(state[0]), *state[1:]))

    # Differences have an error of 1e-15 / 0.01; measured 1e-12.
    assert deviation(rates(0.0)[0], derivative(lambda t: angles(motion(t)[0]))) < 1e-10
    assert deviation(rates(0.0)[1:], derivative(rates)[:-1]) < 1e-10
    assert deviation(efforts(0.0)[1:], derivative(efforts)[:-1]) < 1e-10
    # Three nested differences; measured 1e-9.
    assert deviation(efforts(0.0)[0], lagrange(arm.tree, angles, motion)) < 1e-7
    # Measured 4e-15.
    assert deviation(arm.forward_dynamics(expected, u[1], efforts(0.0)[0])[0], u[2]) < 1e-13


@MECHANISMS
def test_effort_of_a_tool_wrench_obeys_virtual_work(make: Make, angles: Angles, u: Array) -> None:
    arm = make()
    W = np.array([0.3, -0.2, 4.0, 5.0, -6.0, 1.0])
    held = arm.inverse_dynamics(angles(u[0]), *u[1:], wrench=(W,))[0] - arm.inverse_dynamics(angles(u[0]), *u[1:])[0]

    def tool(x: Array) -> Array:
        return body_poses(arm.tree, angles(x))[-1]

    work = []
    for direction in np.eye(len(u[0])):
        C, Cd = tool(u[0]), derivative(lambda t, d=direction: tool(u[0] + t * d))
        work.append(W @ twist_vector(lie.inverse(C) @ Cd))
    assert deviation(held, work) < 1e-10


def test_loop_that_cannot_be_closed() -> None:
    arm = four_bar()
    arm.loops = (pin(1, 0.1, 2, 0.1),)
    with pytest.raises(StateError, match=r"four_bar.*guess"):
        arm.close([0.7], [0.7, 0.0, 0.0])


def test_singular_configuration() -> None:
    arm = five_bar()
    # With both forearms in line the tool can move although the motors stand still.
    left, right = 2.0, np.pi - 2.0
    apart = 0.5 + 2 * 0.4 * np.cos(right)
    arm.loops = (pin(1, apart / 2, 3, apart / 2),)
    with pytest.raises(StateError, match="five_bar: singular configuration"):
        arm.motion([left, -left, right, np.pi - right], [1.0, 0.5])


def test_inverse_dynamics_of_a_batch() -> None:
    arm, u = four_bar(), FOUR_BAR[2]
    q = arm.close(u[0], four_bar_angles(u[0][0]))
    rates = np.stack([u[1:], 0.5 * u[1:]], axis=1)
    efforts = arm.inverse_dynamics(np.stack([q, q]), *rates)
    for i in range(2):
        for x, y in zip(efforts, arm.inverse_dynamics(q, *rates[:, i]), strict=True):
            np.testing.assert_array_equal(x[i], y)


def test_wrench_of_a_cut_joint_carries_its_successor() -> None:
    """The rocker turns about its bearing under its weight and the wrench of the pin alone."""
    arm, u, q = four_bar(), FOUR_BAR[2], four_bar_angles(0.7)
    qdd = arm.motion(q, u[1], u[2])[0][1]
    _, (W,) = arm.forward_dynamics(q, u[1], arm.inverse_dynamics(q, *u[1:])[0])
    rocker = arm.tree.joints[2]
    weight = body_poses(arm.tree, q)[2][:3, :3].T @ arm.tree.gravity * rocker.mass
    moment = (np.cross(rocker.center_of_mass, weight) + W[:3] + np.cross([0.6, 0.0, 0.0], W[3:]))[2]
    assert rocker.inertia_about_origin[2, 2] * qdd[2] == pytest.approx(moment, rel=1e-12)
    assert W[2] == pytest.approx(0.0, abs=1e-14)  # a pin passes no moment about its axis
