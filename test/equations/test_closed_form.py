# SPDX-License-Identifier: Apache-2.0
"""The closed form: derivatives against finite differences, properties of its terms, energy, and spatial twists.

Tolerances are about ten times the largest deviation in 400 random robots. Differences of order 10 with a step of 0.01
have a rounding error of 1e-16 / 0.01 relative to canceling terms: 3e-13 for fixed robots, 2e-12 for random robots.
"""

from functools import partial

import numpy as np
import pytest
from chains import FIXED, fixed_case
from differences import derivative, deviation, gradient, polynomial_motion
from hypothesis import given, settings
from textbook import body_twists, kinetic_energy, potential_energy
from trees import MovingTree, moving_trees

from eom_dynamics import equations_of_motion, lie
from eom_dynamics.arrays import Array
from eom_dynamics.equations import center_of_mass_jacobians, spatial_equations_of_motion
from eom_dynamics.equations.body_matrices import CORIOLIS_FORMS
from eom_dynamics.kinematics import body_poses

FORMS = tuple(CORIOLIS_FORMS)
TERMS = ("M", "C", "gravity", "external")
WRENCH = np.random.default_rng(3).uniform(-2, 2, (5, 6))


@pytest.mark.parametrize("coriolis", FORMS)
@pytest.mark.parametrize("name", FIXED)
def test_derivatives_to_order_four(name: str, coriolis: str) -> None:
    """Each term, by differences of the previous derivative."""
    case = fixed_case(name, 5)
    motion, wrench = polynomial_motion(case.motion), polynomial_motion(WRENCH)
    terms = equations_of_motion(case.robot, *case.motion, wrench=WRENCH, coriolis=coriolis)
    assert np.all(np.linalg.eigvalsh(terms.M[0]) > 0)

    def row(t: float, order: int) -> Array:
        states, W = motion(t)[: order + 2], wrench(t)[: order + 1]
        there = equations_of_motion(case.robot, *states, wrench=W, coriolis=coriolis)
        return np.concatenate([getattr(there, term)[order].ravel() for term in TERMS])

    for order in range(1, 5):
        found = [getattr(terms, term)[order].ravel() for term in TERMS]
        rates = derivative(lambda t, k=order - 1: row(t, k))
        for x, rate in zip(found, np.split(rates, np.cumsum([x.size for x in found])[:-1]), strict=True):
            assert deviation(x, rate) < 2e-12


@given(tree=moving_trees(3))
def test_properties_of_random_trees(tree: MovingTree) -> None:
    """M symmetric, dM/dt - 2 C skew-symmetric at each order, C qd the same in all forms."""
    *state, last = tree.states
    terms = {form: equations_of_motion(tree.robot, *state, coriolis=form) for form in FORMS}
    for M in terms["christoffel"].M:
        assert deviation(M, M.T, floor=1.0) < 1e-14
    for form in ("christoffel", "skew", "wieber"):
        for k in range(terms[form].order):
            difference = terms[form].M[k + 1] - 2 * terms[form].C[k]
            assert deviation(difference, -difference.T, floor=1.0) < 1e-13
    expected = terms["christoffel"].efforts(last)
    for form in ("skew", "wieber", "paper"):
        for effort, desired in zip(terms[form].efforts(last), expected, strict=True):
            assert deviation(effort, desired, floor=1.0) < 1e-13


@pytest.mark.parametrize("name", FIXED)
def test_wieber_form_by_jacobians_of_the_centres_of_mass(name: str) -> None:
    """Sum of m J_c' dJ_c/dt + J_w' (I dJ_w/dt - [I w] J_w), the derivatives by differences; J_w along body axes."""
    case = fixed_case(name, 2)
    q, qd = case.motion[:2]

    def jacobians(t: float) -> list[tuple[np.ndarray, np.ndarray]]:
        bodies = center_of_mass_jacobians(case.robot, q + t * qd)
        poses = body_poses(case.robot, q + t * qd)
        return [(body.linear, C[:3, :3].T @ body.angular) for body, C in zip(bodies, poses, strict=True)]

    rates = derivative(lambda t: np.array(jacobians(t)))
    expected = np.zeros((case.robot.n,) * 2)
    for joint, (J, J_w), (J_rate, J_w_rate) in zip(case.robot.joints, jacobians(0.0), rates, strict=True):
        I = joint.inertial.about_center_of_mass  # noqa: E741
        expected += joint.mass * J.T @ J_rate + J_w.T @ (I @ J_w_rate - lie.skew(I @ J_w @ qd) @ J_w)
    C, christoffel = (equations_of_motion(case.robot, q, qd, coriolis=form).C[0] for form in ("wieber", "christoffel"))
    assert deviation(C, expected) < 2e-12
    assert name != "iiwa" or deviation(C, christoffel) > 0.01


@settings(max_examples=10)
@given(moving_trees(3))
def test_spatial_twists_of_random_trees_and_of_batches(tree: MovingTree) -> None:
    """Moments about the origin of the base are larger, hence the tolerance."""
    *states, _ = tree.states
    expected = equations_of_motion(tree.robot, *states, wrench=tree.wrench, coriolis="skew")
    batch = [np.stack([0 * x, x]) for x in states]
    for closed_form in (spatial_equations_of_motion, partial(equations_of_motion, coriolis="skew")):
        for motion, row in ((states, ...), (batch, 1)):
            found = closed_form(tree.robot, *motion, wrench=tree.wrench)
            for term in (*TERMS, "rates"):
                for x, y in zip(getattr(found, term), getattr(expected, term), strict=True):
                    assert deviation(x[row], y, floor=1.0) < 1e-12


@pytest.mark.parametrize("name", FIXED)
def test_energy_and_virtual_work(name: str) -> None:
    """From poses by matrix exponentials, which are differentiated by finite differences."""
    case = fixed_case(name, 1)
    q, qd = case.motion
    terms = equations_of_motion(case.robot, q, qd, wrench=WRENCH[:1])
    kinetic = qd @ terms.M[0] @ qd / 2
    assert deviation(kinetic, kinetic_energy(case.parameters, q, qd), floor=1.0) < 3e-12
    gravity = gradient(lambda x: np.array(potential_energy(case.parameters, x)), q)
    assert deviation(terms.gravity[0], gravity, floor=1.0) < 3e-12
    # Virtual work of the wrench on the surroundings: qd' Q_ext = W' V of the tool, at its place on the last body.
    twists = np.array([body_twists(case.parameters, q, unit)[-1] for unit in np.eye(case.robot.n)])
    twists[:, 3:] += np.cross(twists[:, :3], case.robot.tools[0].pose[:3, 3])
    assert deviation(terms.external[0], twists @ WRENCH[0], floor=1.0) < 3e-12
