# SPDX-License-Identifier: Apache-2.0
"""The closed form: derivatives against finite differences, properties of its terms, energy, and spatial twists.

Tolerances are about ten times the largest deviation in 400 random chains. Differences of order 10 with a step of 0.01
have a rounding error of 1e-16 / 0.01 relative to terms that cancel: 3e-13 for fixed robots, 2e-12 in random chains.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from chains import FIXED, Case, cases, fixed_case
from differences import derivative, deviation, gradient, polynomial_motion
from hypothesis import given, settings
from textbook import body_twists, kinetic_energy, potential_energy
from trees import MovingTree, moving_trees

from eom_dynamics import Robot, equations_of_motion, floating_equations_of_motion, lie, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.equations import center_of_mass_jacobians, spatial_equations_of_motion
from eom_dynamics.equations.body_matrices import CORIOLIS_FORMS
from eom_dynamics.kinematics import body_poses
from eom_dynamics.robot import Inertial

FORMS = tuple(CORIOLIS_FORMS)
TERMS = ("M", "C", "gravity", "external")
WRENCH = np.random.default_rng(3).uniform(-2, 2, (5, 6))


@pytest.mark.parametrize("coriolis", FORMS)
@pytest.mark.parametrize("name", FIXED)
def test_derivatives_to_order_four(name: str, coriolis: str) -> None:
    """Of each term, by differences of the derivative below."""
    case = fixed_case(name, 5)
    motion, wrench = polynomial_motion(case.motion), polynomial_motion(WRENCH)
    terms = equations_of_motion(case.robot, *case.motion, wrench=WRENCH, coriolis=coriolis)

    def row(t: float, order: int) -> Array:
        states, W = motion(t)[: order + 2], wrench(t)[: order + 1]
        there = equations_of_motion(case.robot, *states, wrench=W, coriolis=coriolis)
        return np.concatenate([getattr(there, term)[order].ravel() for term in TERMS])

    for order in range(1, 5):
        found = [getattr(terms, term)[order].ravel() for term in TERMS]
        rates = derivative(lambda t, k=order - 1: row(t, k))
        for x, rate in zip(found, np.split(rates, np.cumsum([x.size for x in found])[:-1]), strict=True):
            assert deviation(x, rate) < 2e-12


@given(case=cases(derivatives=4))
def test_properties_of_random_chains(case: Case) -> None:
    """M symmetric and positive definite, dM/dt - 2 C skew-symmetric at each order, C qd the same in all forms."""
    *state, last = case.motion
    terms = {form: equations_of_motion(case.robot, *state, coriolis=form) for form in FORMS}
    for M in terms["christoffel"].M:
        assert deviation(M, M.T, floor=1.0) < 1e-14
    assert np.all(np.linalg.eigvalsh(terms["christoffel"].M[0]) > 0)
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


def test_wieber_form_on_a_floating_base() -> None:
    case = fixed_case("iiwa", 2)
    base = Inertial.about_center(3.0, np.array([0.1, -0.2, 0.3]), np.diag([0.3, 0.4, 0.5]))
    robot = replace(case.robot, base=base)
    nu, nud = np.random.default_rng(2).uniform(-1, 1, (2, 6 + robot.n))
    forms = {x: floating_equations_of_motion(robot, np.eye(4), case.motion[0], nu, nud, coriolis=x) for x in FORMS}
    wieber = forms["wieber"]
    assert deviation(wieber.C[0] @ nu, forms["christoffel"].C[0] @ nu) < 1e-14
    assert deviation(wieber.C[0], forms["christoffel"].C[0]) > 0.01
    difference = wieber.M[1] - 2 * wieber.C[0]
    assert deviation(difference, -difference.T) < 1e-14


def test_omitted_wrenches_are_zero() -> None:
    case = fixed_case("iiwa", 3)
    zeros = np.zeros(6)
    short = equations_of_motion(case.robot, *case.motion, wrench=WRENCH[:1])
    full = equations_of_motion(case.robot, *case.motion, wrench=[WRENCH[0], zeros, zeros])
    np.testing.assert_array_equal(short.external, full.external)
    assert not np.any(equations_of_motion(case.robot, *case.motion).external)


def test_a_batch_is_its_states() -> None:
    case = fixed_case("planar_2r", 4)
    rng = np.random.default_rng(5)
    motion, wrench, rate = rng.normal(size=(5, 3, 2)), rng.normal(size=(3, 6)), rng.normal(size=6)
    batch = equations_of_motion(case.robot, *motion[:4], wrench=(wrench, rate))
    efforts = batch.efforts(motion[4])
    assert batch.M[2].shape == (3, 2, 2) and batch.gravity[1].shape == efforts[0].shape == (3, 2)
    for i in range(3):
        one = equations_of_motion(case.robot, *motion[:4, i], wrench=(wrench[i], rate))
        for term in TERMS:
            for x, y in zip(getattr(batch, term), getattr(one, term), strict=True):
                np.testing.assert_array_equal(x[i], y)
        for x, y in zip(efforts, one.efforts(motion[4, i]), strict=True):
            np.testing.assert_allclose(x[i], y, rtol=1e-13)  # sums in another order


@settings(max_examples=10)
@given(moving_trees(3))
def test_spatial_twists_of_random_trees(tree: MovingTree) -> None:
    *states, _ = tree.states
    check_spatial(tree.robot, states, tree.wrench)


def test_spatial_twists_of_a_batch_of_two_arms() -> None:
    robot, rng = load_robot("dual_arm"), np.random.default_rng(3)
    check_spatial(robot, rng.uniform(-1, 1, (3, 2, robot.n)), [rng.uniform(-5, 5, (2, *robot.wrench_shape))])


def check_spatial(robot: Robot, states: Sequence[Array], wrench: Sequence[Array]) -> None:
    """Terms in spatial twists: moments about the origin of the base are larger, hence the tolerance."""
    found = spatial_equations_of_motion(robot, *states, wrench=wrench)
    expected = equations_of_motion(robot, *states, wrench=wrench, coriolis="skew")
    for term in (*TERMS, "rates"):
        for x, y in zip(getattr(found, term), getattr(expected, term), strict=True):
            assert deviation(x, y, floor=1.0) < 1e-12


@given(case=cases(derivatives=1))
def test_energy_and_virtual_work(case: Case) -> None:
    """From poses by matrix exponentials, which are differentiated by finite differences."""
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
