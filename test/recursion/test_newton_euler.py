# SPDX-License-Identifier: Apache-2.0
"""The recursion against the closed form, with which it shares only sines and Leibniz' rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp
from chains import FIXED, fixed_case
from differences import deviation
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import MovingTree, moving_trees

from eom_dynamics import Joint, Robot, lie
from eom_dynamics.recursion import inverse_dynamics, link_tree

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


@pytest.mark.parametrize("name", FIXED)
def test_efforts_of_fixed_robots_to_the_sixth_derivative(name: str) -> None:
    case = fixed_case(name, 8)
    moving = MovingTree(case.robot, case.motion, np.vstack([WRENCH, np.ones(6)])[:7])
    assert_equal(recursion(moving), moving.efforts(), 1e-13)


@settings(max_examples=10)
@given(case=moving_trees(3))
def test_number_of_states_does_not_affect_lower_orders(case: MovingTree) -> None:
    low = recursion(MovingTree(case.robot, case.states[:3], case.wrench[:1]))
    assert_equal(low, np.array(recursion(case)[:1]), 1e-14)


@settings(max_examples=5)
@given(case=moving_trees(3))
def test_omitted_wrenches_are_zero(case: MovingTree) -> None:
    tree, states = link_tree(case.robot), case.states.tolist()
    zeros = [[0.0] * 6] * 3
    assert inverse_dynamics(tree, states) == inverse_dynamics(tree, states, zeros)
    assert inverse_dynamics(tree, states, case.wrench[:1]) == inverse_dynamics(
        tree, states, [case.wrench[0], *zeros[1:]]
    )


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


class TestSymPy:
    """A planar 2R arm against its Lagrangian.

    Masses and lengths are sums of powers of two, so that nothing is rounded and differences vanish identically.
    """

    t = sp.Symbol("t")
    m1, m2, L1, L2, g = sp.Integer(2), sp.Rational(3, 4), sp.Rational(1, 2), sp.Rational(5, 4), sp.Integer(8)
    motion = (sp.Function("q1")(t), sp.Function("q2")(t))
    symbols = tuple(tuple(sp.Symbol(f"q{i}_{k}") for i in (1, 2)) for k in range(3))

    def robot(self) -> Robot:
        def link(parent: int, mass: float, length: float, offset: float) -> Joint:
            pose, end = lie.pose(np.eye(3), [offset, 0.0, 0.0]), np.array([length, 0.0, 0.0])
            inertia = mass * np.diag([0.0, length**2, length**2])
            return Joint("link", np.array([0, 0, 1.0, 0, 0, 0]), pose, parent, mass, end, inertia)

        m1, m2, L1, L2, g = map(float, (self.m1, self.m2, self.L1, self.L2, self.g))
        return Robot("2r", (link(-1, m1, L1, 0.0), link(0, m2, L2, L1)), np.array([0, -g, 0]))

    def lagrangian_efforts(self) -> list[Any]:
        rates = [q.diff(self.t) for q in self.motion]
        angles = (self.motion[0], self.motion[0] + self.motion[1])
        elbow = self.L1 * sp.Matrix([sp.cos(angles[0]), sp.sin(angles[0])])
        ends = {self.m1: elbow, self.m2: elbow + self.L2 * sp.Matrix([sp.cos(angles[1]), sp.sin(angles[1])])}
        L = sum(m * (x.diff(self.t).dot(x.diff(self.t)) / 2 - self.g * x[1]) for m, x in ends.items())
        efforts = [L.diff(qd).diff(self.t) - L.diff(q) for q, qd in zip(self.motion, rates, strict=True)]
        values = {q.diff(self.t, k): row[i] for k, row in enumerate(self.symbols) for i, q in enumerate(self.motion)}
        highest_first = dict(reversed(values.items()))
        return [effort.subs(highest_first) for effort in efforts]

    def test_efforts(self) -> None:
        (efforts,) = inverse_dynamics(link_tree(self.robot()), self.symbols)
        for effort, expected in zip(efforts, self.lagrangian_efforts(), strict=True):
            difference = sp.expand(sp.expand_trig(sp.nsimplify(effort, rational=True) - expected))
            squares = {sp.sin(q) ** 2: 1 - sp.cos(q) ** 2 for q in self.symbols[0]}
            assert sp.expand(difference.subs(squares)) == 0
