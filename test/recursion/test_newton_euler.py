# SPDX-License-Identifier: Apache-2.0
"""The recursion against the closed form, with which it shares only sines and Leibniz' rule, and its complex steps.

Link frames are rigid, and inertias regrouped.
"""

from typing import Any

import numpy as np
import pytest
import sympy as sp
from chains import fixed_case
from differences import deviation
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from trees import SMALL, MovingTree, chain, moving_trees, tilt, trees, turn_z

from eom_dynamics import Robot
from eom_dynamics.equations import equations_of_motion
from eom_dynamics.recursion import inverse_dynamics, link_tree
from eom_dynamics.recursion.composite import composite_inertias
from eom_dynamics.recursion.effort_partials import effort_by_position


def assert_equal(actual: Any, desired: np.ndarray, tolerance: float) -> None:
    """Row by row, relative to the largest entry of the row or to 1 N m (and per s, s², …), whichever is larger."""
    for row, expected in zip(actual, desired, strict=True):
        assert deviation(row, expected, floor=1.0) < tolerance


def recursion(case: MovingTree) -> list[list[float]]:
    return inverse_dynamics(link_tree(case.robot), case.states.tolist(), case.wrench.tolist())


@given(case=st.integers(1, 6).flatmap(moving_trees))
def test_efforts_of_random_trees_to_the_fifth_derivative(case: MovingTree) -> None:
    """Both have an error of about 1e-14 of their largest term, and terms of high order cancel: 1e-11 allows for it."""
    assert_equal(recursion(case), case.efforts(), 1e-11)


@given(case=moving_trees(1))
def test_composite_inertias_are_the_diagonal_of_the_mass_matrix(case: MovingTree) -> None:
    M = equations_of_motion(case.robot, *case.states[:2]).M[0]
    assert_equal([composite_inertias(link_tree(case.robot), case.states[0].tolist())], np.diagonal(M)[None], 1e-13)


def test_sympy_symbols() -> None:
    case = fixed_case("planar_2r", 2)
    rows = [sp.symbols(f"{name}1:3") for name in ("q", "qd", "qdd")]
    tree = link_tree(case.robot)
    function = sp.lambdify([x for row in rows for x in row], inverse_dynamics(tree, rows)[0])
    np.testing.assert_allclose(
        function(*case.motion.ravel()), inverse_dynamics(tree, case.motion.tolist())[0], rtol=1e-13
    )


@given(case=moving_trees(1))
def test_partial_derivatives_of_random_trees(case: MovingTree) -> None:
    """Im tau(q + i h e_j) / h is exact, since h² is lost in rounding.

    1e-12: both round terms that cancel, up to 100 times as large as the largest entry.
    """
    tree, h, columns = link_tree(case.robot), 1e-100, []
    for j in range(tree.n):
        stepped = case.states.astype(complex)
        stepped[0, j] += h * 1j
        (tau,) = inverse_dynamics(tree, stepped.tolist(), case.wrench.tolist())
        columns.append(np.imag(tau) / h)
    found = np.array(effort_by_position(tree, *case.states.tolist(), case.wrench[0].tolist()))
    assert deviation(found, np.array(columns).T, floor=1.0) < 1e-12


ASKEW = Rotation.from_rotvec([0.7, -0.4, 1.1]).as_matrix()


def efforts(case: MovingTree, *, regrouped: bool = True) -> np.ndarray:
    tree = link_tree(case.robot, regrouped=regrouped)
    return np.array(inverse_dynamics(tree, case.states.tolist(), case.wrench.tolist()))


def assert_exact(robot: Robot) -> None:
    """All orders in a random state to 2e-13 of the largest effort; measured 4e-14."""
    rng = np.random.default_rng(1)
    case = MovingTree(robot, rng.uniform(-2, 2, (5, robot.n)), rng.uniform(-5, 5, (3, 6)))
    for row, expected in zip(efforts(case), case.efforts(), strict=True):
        assert deviation(row, expected) < 2e-13


@given(robot=trees())
def test_links_are_rigid_and_regrouped(robot: Robot) -> None:
    """A product of three rotations is orthogonal to about 1e-15; angles within rounding of zero are set to it."""
    tree = link_tree(robot)
    for R in (*(link.rotation for link in tree.links), *(pose[:3, :3] for _, pose in tree.tools)):
        assert np.max(np.abs(R @ R.T - np.eye(3))) < 2e-14
        assert np.linalg.det(R) > 0
    for link in tree.links:
        if not link.turns:
            assert not np.any(link.second_moment)
        elif link.pitch == 0:
            assert link.mass == link.first_moment[2] == link.second_moment[2, 2] == 0


SPECIAL = {
    **{
        f"nearly parallel, {name}": [(tilt(sine) @ turn_z(0.2), place) for sine in SMALL]
        for name, place in (
            ("common normal far away", [0.3, -0.4, 0.7]),
            ("common normal near", [0.3, 0.4, 0.7]),
            ("intersecting", [0.0, 0.0, 0.7]),
        )
    },
    "parallel": [(turn_z(0.3), [0.6 * distance, 0.8 * distance, 0.7]) for distance in SMALL],
    "skew": [(ASKEW, [distance, 0.0, 0.0]) for distance in SMALL],
}
"""Steps from the second to the third of four axes, within a small distance or angle of a special position."""


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "helical"])
@pytest.mark.parametrize("position", SPECIAL)
def test_special_positions_of_axes(position: str, kind: str) -> None:
    for step in SPECIAL[position]:
        before = [(ASKEW, [0.1, 0.2, 0.3]), (ASKEW, [0.3, -0.2, 0.4])]
        assert_exact(chain([*before, step, (ASKEW.T, [0.2, 0.4, -0.1])], kind))
