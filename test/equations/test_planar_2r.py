# SPDX-License-Identifier: Apache-2.0
"""The symbolic planar 2R of the paper, term by term against its Lagrangian, differentiated by SymPy.

Two revolute joints about z, each link with a point mass at its end; gravity acts along -y. Nothing is rounded: each
entry of each difference has to vanish identically.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import sympy as sp

from eom_dynamics import EquationsOfMotion, Joint, Robot, equations_of_motion, lie

ORDERS = (0, 1, 2)

t = sp.Symbol("t")
m1, m2, L1, L2, g = sp.symbols("m1 m2 L1 L2 g", positive=True)
motion = [sp.Function("q1")(t), sp.Function("q2")(t)]
wrench = [sp.Function(f"W{i}")(t) for i in range(6)]

# The library is called with a symbol for each time derivative of a function.
symbols = {
    function.diff(t, k): sp.Symbol(f"{function.func}_{k}")
    for function in (*motion, *wrench)
    for k in reversed(range(5))
}
sines = {f(symbols[q]): sp.Symbol(f"{f.__name__}_{i}") for i, q in enumerate(motion) for f in (sp.sin, sp.cos)}
circles = [sp.Symbol(f"sin_{i}") ** 2 + sp.Symbol(f"cos_{i}") ** 2 - 1 for i in range(2)]


def vanishes(expression: Any) -> bool:
    """Whether an expression is zero for all values of its symbols.

    It is a polynomial in sines and cosines, which has a normal form modulo sin² + cos² = 1.
    """
    exact = expression.xreplace({number: sp.Rational(number) for number in expression.atoms(sp.Float)})
    polynomial = sp.expand(sp.expand_trig(exact).xreplace(sines))
    return bool(sp.reduced(polynomial, circles, *sines.values())[1] == 0)


def assert_equal(actual: np.ndarray, expected: sp.Matrix) -> None:
    expected = np.array(expected.xreplace(symbols)).reshape(actual.shape)
    for index in np.ndindex(actual.shape):
        assert vanishes(actual[index] - expected[index]), f"entry {index}: {actual[index]}, not {expected[index]}"


@pytest.fixture(scope="module")
def library() -> EquationsOfMotion:
    """Equations of motion with two time derivatives."""

    def link(name: str, parent: int, mass: sp.Symbol, length: sp.Symbol, offset: Any) -> Joint:
        end = np.array([length, 0, 0])
        return Joint(
            name=name,
            screw=np.array([0, 0, 1, 0, 0, 0]),
            reference_pose=lie.pose(np.eye(3, dtype=int), np.array([offset, 0, 0], dtype=object)),
            parent=parent,
            mass=mass,
            center_of_mass=end,
            inertia_about_origin=mass * np.diag([0, length**2, length**2]),
        )

    robot = Robot("planar_2r", (link("a", -1, m1, L1, 0), link("b", 0, m2, L2, L1)), np.array([0, -g, 0]))
    states = [np.array([symbols[q.diff(t, k)] for q in motion]) for k in range(4)]
    wrenches = [np.array([symbols[W.diff(t, k)] for W in wrench]) for k in ORDERS]
    return equations_of_motion(robot, *states, wrench=wrenches)


@pytest.fixture(scope="module")
def lagrangian() -> dict[str, sp.Matrix]:
    """The same terms by Lagrange's equations, from positions and energies."""
    rates = [q.diff(t) for q in motion]
    elbow = L1 * sp.Matrix([sp.cos(motion[0]), sp.sin(motion[0])])
    forearm = sp.Matrix([sp.cos(motion[0] + motion[1]), sp.sin(motion[0] + motion[1])])
    ends = {m1: elbow, m2: elbow + L2 * forearm}
    kinetic = sum(m * end.diff(t).dot(end.diff(t)) / 2 for m, end in ends.items())
    potential = sum(m * g * end[1] for m, end in ends.items())

    M = sp.hessian(kinetic, rates)
    C = sp.zeros(2)
    for i, j, k in itertools.product(range(2), repeat=3):
        C[i, j] += (M[i, j].diff(motion[k]) + M[i, k].diff(motion[j]) - M[j, k].diff(motion[i])) / 2 * rates[k]
    # The tool wrench acts at the elbow, in the frame of the forearm.
    force = wrench[3] * forearm + wrench[4] * sp.Matrix([-forearm[1], forearm[0]])
    external = elbow.jacobian(motion).T * force + wrench[2] * sp.ones(2, 1)
    gravity = sp.Matrix([potential.diff(q) for q in motion])

    L = kinetic - potential
    tau = sp.Matrix([L.diff(qd).diff(t) - L.diff(q) for q, qd in zip(motion, rates, strict=True)]) + external
    return {"M": M, "C": C, "gravity": gravity, "external": external, "tau": tau, "coriolis": C * sp.Matrix(rates)}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("term", ["M", "C", "gravity", "external"])
def test_term(term: str, order: int, library: EquationsOfMotion, lagrangian: dict[str, sp.Matrix]) -> None:
    assert_equal(getattr(library, term)[order], lagrangian[term].diff(t, order))


@pytest.mark.parametrize("order", ORDERS)
def test_efforts(order: int, library: EquationsOfMotion, lagrangian: dict[str, sp.Matrix]) -> None:
    last = np.array([symbols[q.diff(t, 4)] for q in motion])
    assert_equal(library.efforts(last)[order], lagrangian["tau"].diff(t, order))


def test_check_itself_finds_errors() -> None:
    s, c = sp.sin(symbols[motion[0]]), sp.cos(symbols[motion[0]])
    assert vanishes(m1 * s**2 + m1 * c**2 - 1.0 * m1)
    assert not vanishes(m1 * s**2 + m1 * c**2 - 0.5 * m1)
    assert not vanishes(m1 * s**2 - m1 * c**2)
