# SPDX-License-Identifier: Apache-2.0
"""Rates to snap from twists: they give the twists back, are derivatives of one motion, and follow a prediction."""

from functools import cache

import numpy as np
import pytest
from differences import derivative, deviation, polynomial_motion

from eom_dynamics import Kinematics, lie, load_robot
from eom_dynamics.kinematics import differential_inverse_kinematics
from eom_dynamics.kinematics.motion import ToolTracker
from eom_dynamics.robot.task_space import characteristic_length


# Traced, but not compiled: derivatives of Jacobians are long programs.
@cache
def kinematics_of(name):
    return Kinematics(load_robot(name), backend="numpy")


RATES = np.random.default_rng(3).uniform(-1, 1, (4, 7))
BENT = np.array([0.1, 0.5, 0.2, -1.2, 0.3, 0.8, 0.1])


@pytest.mark.parametrize("reference", ["body", "space", "world_aligned"])
def test_rates_of_an_arm_with_six_joints_come_back(reference):
    kinematics = kinematics_of("ur5e")
    q, rates = np.array([0.3, -1.0, 1.2, 0.4, 0.5, 0.6]), RATES[:, :6]
    J = kinematics.jacobian_derivatives(q, *rates[:3], reference=reference)
    twists = [
        J[0] @ rates[0],
        J[0] @ rates[1] + J[1] @ rates[0],
        J[0] @ rates[2] + 2 * J[1] @ rates[1] + J[2] @ rates[0],
        J[0] @ rates[3] + 3 * J[1] @ rates[2] + 3 * J[2] @ rates[1] + J[3] @ rates[0],
    ]
    found = differential_inverse_kinematics(kinematics, q, twists, reference=reference)
    assert found.damping == 0
    # The condition number of J is 30; K squares it.
    assert deviation(found.rates, rates) < 1e-10
    assert np.max(np.abs(found.missed)) < 1e-10
    batch = differential_inverse_kinematics(
        kinematics, np.tile(q, (3, 1)), [np.tile(V, (3, 1)) for V in twists], reference=reference
    )
    assert deviation(np.array(batch.rates)[:, 2], found.rates) < 1e-12


@pytest.mark.parametrize(("damping", "weights"), [(0.0, None), (0.05, np.arange(1.0, 8.0))])
def test_rates_are_derivatives_of_one_motion(damping, weights):
    """The motion dq/dt = f(q, t), integrated by Runge and Kutta: its derivatives by differences of f."""
    kinematics = kinematics_of("iiwa")
    twists = polynomial_motion(RATES[:, :6])
    preferred = polynomial_motion(0.3 * RATES[::-1])

    def solved(q, t, orders=1):
        options = {"damping": damping, "weights": weights, "null_motion": preferred(t)[:orders]}
        return np.array(differential_inverse_kinematics(kinematics, q, twists(t)[:orders], **options).rates)

    def motion(t):
        q, steps = BENT, 10
        for k in range(steps):
            h, at = t / steps, t * k / steps
            a = solved(q, at)[0]
            b = solved(q + h / 2 * a, at + h / 2)[0]
            c = solved(q + h / 2 * b, at + h / 2)[0]
            d = solved(q + h * c, at + h)[0]
            q = q + h / 6 * (a + 2 * b + 2 * c + d)
        return q

    expected = derivative(lambda t: solved(motion(t), t, 3), step=0.004)
    found = solved(BENT, 0.0, 4)
    # Runge and Kutta's error is 1e-13, over the step.
    assert deviation(found[1:], expected) < 1e-8
    if damping == 0:
        result = differential_inverse_kinematics(kinematics, BENT, twists(0.0), null_motion=preferred(0.0))
        assert np.max(np.abs(result.missed)) < 1e-10
    else:
        result = differential_inverse_kinematics(kinematics, BENT, twists(0.0), damping=damping)
        assert np.max(np.abs(result.missed[0])) > 1e-5


def test_least_norm_and_weights():
    kinematics = kinematics_of("iiwa")
    J, V = kinematics.jacobian(BENT), RATES[0, :6]
    assert deviation(differential_inverse_kinematics(kinematics, BENT, [V]).rates[0], np.linalg.pinv(J) @ V) < 1e-12
    W = np.arange(1.0, 8.0)  # least qd' W qd
    weighted = np.linalg.pinv(J / np.sqrt(W)) @ V / np.sqrt(W)
    assert deviation(differential_inverse_kinematics(kinematics, BENT, [V], weights=W).rates[0], weighted) < 1e-12
    u = RATES[1]  # least (qd - u)' W (qd - u)
    expected = u + np.linalg.pinv(J / np.sqrt(W)) @ (V - J @ u) / np.sqrt(W)
    found = differential_inverse_kinematics(kinematics, BENT, [V], weights=W, null_motion=[u])
    assert deviation(found.rates[0], expected) < 1e-12


def test_singularities_are_damped_and_what_is_missing_is_told():
    kinematics = kinematics_of("ur5e")
    stretched = np.array([0.3, -1.0, 1e-6, 0.4, 0.5, 0.6])  # the elbow
    J = kinematics.jacobian(stretched)
    # Lengths in units of the arm's size, for which missing twists are smallest.
    units = np.repeat([1.0, characteristic_length(kinematics.robot, (kinematics.frame(),))], 3)
    lost = units * np.linalg.svd(J / units[:, np.newaxis])[0][:, -1]
    found = differential_inverse_kinematics(kinematics, stretched, [lost])
    assert found.damping > 0
    assert np.max(np.abs(found.rates[0])) < 1.0 < np.max(np.abs(np.linalg.solve(J, lost)))
    assert deviation(found.missed[0], lost) < 0.1
    possible = J @ np.ones(6)
    assert np.linalg.norm(
        differential_inverse_kinematics(kinematics, stretched, [possible]).missed[0]
    ) < 0.01 * np.linalg.norm(possible)


def test_fewer_joints_than_six_do_what_they_can():
    kinematics = kinematics_of("planar_2r")
    q, rates = np.array([0.3, 0.8]), RATES[:2, :2]
    J, Jd = kinematics.jacobian_derivatives(q, rates[0])
    found = differential_inverse_kinematics(kinematics, q, [J @ rates[0], J @ rates[1] + Jd @ rates[0]])
    assert deviation(found.rates, rates) < 1e-12
    # At the elbow a direction of translation alone is missed; at the tip it depends on the weight of lengths.
    out_of_reach = lie.body_twist(kinematics.pose(q, "joint_2"), [0, 0, 0, 0, 1.0, 0])
    missed = differential_inverse_kinematics(kinematics, q, [out_of_reach], frame="joint_2").missed[0]
    assert deviation(kinematics.jacobian(q, "joint_2").T @ missed, np.zeros(2), floor=1.0) < 1e-14


# --- Motion next to a prediction ----------------------------------------------------


BENT_ELBOW = np.array([0.3, -1.2, 1.4, 0.3, 0.9, 0.6])


@pytest.mark.parametrize("name", ["ur5e", "planar_2r"])
def test_the_motion_of_the_joints_comes_back(name):
    kinematics = Kinematics(load_robot(name))
    n = kinematics.robot.n
    q, rates = BENT_ELBOW[6 - n :], RATES[:, :n]
    C, *twists = kinematics.motion(q, *rates)
    found = ToolTracker(kinematics).solve(q[None] + 0.01, C[None], *[x[None] for x in twists])
    assert found.refusals[0] == ""
    assert deviation(found.q[0], q, floor=1.0) < 1e-12
    assert deviation(found.rates[:, 0], rates) < 1e-9


def test_a_motion_that_few_joints_cannot_make_is_refused():
    kinematics = Kinematics(load_robot("planar_2r"))
    q, still = np.array([0.3, 0.8]), np.zeros((1, 6))
    upwards = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 0.2]])
    C = kinematics.pose(q)[None]
    tracker = ToolTracker(kinematics)
    assert tracker.solve(q[None], C, still, still).refusals[0] == ""
    for twists, reason in (
        ([upwards, still], "the joints cannot give the tool its twist: 0.2 is missing"),
        ([still, upwards], "the joints cannot give the tool its first derivative of the twist: 0.2 is missing"),
    ):
        assert tracker.solve(q[None], C, *twists).refusals[0] == reason
