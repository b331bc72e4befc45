# SPDX-License-Identifier: Apache-2.0
"""Simplification of polynomials in sines and cosines."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from eom_dynamics.lagrange import normal_form, rate, variables

x, y, m = sp.symbols("x y m", real=True)
ANGLES = (x, y, x + y, x - 2 * y, x / 2 + sp.Rational(1, 3))
FACTORS = (*map(sp.sin, ANGLES), *map(sp.cos, ANGLES), x, m, sp.Integer(2), sp.Rational(-1, 3))

polynomials = st.lists(st.lists(st.sampled_from(FACTORS), min_size=1, max_size=5), min_size=1, max_size=4).map(
    lambda terms: sp.Add(*(sp.Mul(*term) for term in terms))
)


@settings(max_examples=15)
@given(polynomials, st.tuples(*[st.floats(-2, 2)] * 3))
def test_the_value_is_kept(expression: sp.Expr, at: tuple[float, ...]) -> None:
    value = dict(zip((x, y, m), map(sp.Float, at), strict=True))
    expected = float(expression.xreplace(value))
    assert float(sp.sympify(normal_form(expression)).xreplace(value)) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@settings(max_examples=10)
@given(polynomials)
def test_equal_expressions_have_no_difference(expression: sp.Expr) -> None:
    assert normal_form(expression - sp.expand_trig(sp.expand(expression))) == 0


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (sp.cos(x) * sp.cos(y) - sp.sin(x) * sp.sin(y), sp.cos(x + y)),
        (m * sp.sin(x) ** 2 + m * sp.cos(x) ** 2, m),
        (2 * sp.sin(x) * sp.cos(x), sp.sin(2 * x)),
        (0.1 * m * sp.sin(x) ** 2 + 0.1 * m * sp.cos(x) ** 2, sp.Rational(1, 10) * m),
        (m / x * sp.sin(y), m / x * sp.sin(y)),
        (m + 1e-17 * sp.sin(x), m),
        (0.25, sp.Rational(1, 4)),
    ],
)
def test_forms(expression: sp.Expr, expected: sp.Expr) -> None:
    assert normal_form(expression) == expected


def test_names_of_variables() -> None:
    (q, qd), (named, rates) = variables(2), variables("x theta_1 phi")
    assert [*map(str, q + qd)] == ["q1", "q2", "qd1", "qd2"]
    assert [*map(str, named + rates)] == ["x", "theta_1", "phi", "xd", "thetad_1", "phid"]
    assert str(rate(rate(q[0]))) == "qdd1"
    assert np.all([v.is_real for v in (*q, *qd)])
