# SPDX-License-Identifier: Apache-2.0
"""The recursion against the closed form, with which it shares only sines and Leibniz' rule, and its complex steps."""

from typing import Any

import numpy as np
import pytest
import sympy as sp
from chains import fixed_case
from differences import deviation
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import MovingTree, moving_trees

from eom_dynamics.equations import equations_of_motion
from eom_dynamics.recursion import inverse_dynamics, link_tree
from eom_dynamics.recursion.composite import composite_inertias
from eom_dynamics.recursion.effort_partials import effort_by_position

WRENCH = np.random.default_rng(3).uniform(-2, 2, (6, 6))


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


@settings(max_examples=5)
@given(case=moving_trees(3))
def test_batches(case: MovingTree) -> None:
    """NumPy's sines of arrays and of numbers may differ in the last bit."""
    tree, scales = link_tree(case.robot), np.array([1.0, -0.5, 0.0])
    batch = inverse_dynamics(tree, [[x * scales for x in row] for row in case.states], case.wrench.tolist())
    for k, scale in enumerate(scales):
        one = MovingTree(case.robot, scale * case.states, case.wrench)
        assert_equal([[x[k] for x in row] for row in batch], np.array(recursion(one)), 1e-12)


def test_casadi_symbols() -> None:
    """CasADi reorders sums, which changes the rounding error of about 1e-16 each."""
    casadi = pytest.importorskip("casadi", reason="CasADi is not installed")
    case = fixed_case("mixed_chain", 4)
    moving = MovingTree(case.robot, case.motion, WRENCH[:3])
    states = [casadi.SX.sym("x", case.robot.n) for _ in range(5)]
    wrenches = [casadi.SX.sym("W", 6) for _ in range(3)]
    rows = [casadi.vertsplit(x) for x in (*states, *wrenches)]
    efforts = inverse_dynamics(link_tree(case.robot), rows[:5], rows[5:])
    function = casadi.Function("f", [*states, *wrenches], [casadi.vertcat(*row) for row in efforts])
    values = function(*moving.states, *moving.wrench)
    assert_equal([np.array(row).ravel() for row in values], np.array(recursion(moving)), 1e-13)


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
