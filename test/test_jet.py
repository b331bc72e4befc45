# SPDX-License-Identifier: Apache-2.0
"""Jets: sums, products, constants and elementary functions against differences of polynomials."""

import numpy as np
import pytest
from chains import numbers
from differences import derivative, deviation, polynomial_motion
from hypothesis import given, settings

from eom_dynamics import jet_functions as functions
from eom_dynamics.jet import Jet, leibniz


def jet(coefficients: np.ndarray, t: float = 0.0) -> Jet:
    """Jet of a polynomial with these derivatives (k, 2, 2) at time 0, at time t."""
    flat = polynomial_motion(coefficients.reshape(len(coefficients), -1))(t)
    return Jet(list(flat.reshape(coefficients.shape)))


jets = numbers(2.0, (4, 2, 2))
OPERATIONS = {
    "sum": lambda a, b: a + b,
    "difference": lambda a, b: a - b,
    "negative": lambda a, b: -a,
    "scaled": lambda a, b: 0.5 * a + b * 2.0,
    "constant terms": lambda a, b: 2.0 + a - 0.5,
    "matrix less jet": lambda a, b: np.array([[1.0, 2.0], [3.0, 5.0]]) - a,
    "jet and matrix": lambda a, b: (b + np.array([[1.0, 2.0], [3.0, 5.0]])) * a,
    "product": lambda a, b: a @ b,
    "elementwise product": lambda a, b: a * b,
    "three factors": lambda a, b: a @ b @ a,
    "transposed": lambda a, b: a.T @ b,
    "constant on the left": lambda a, b: np.array([[1.0, 2.0], [3.0, 5.0]]) @ a,
    "constant on the right": lambda a, b: a @ np.array([[1.0, 2.0], [3.0, 5.0]]),
}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
@settings(max_examples=5)
@given(a=jets, b=jets)
def test_derivatives_agree_with_differences(operation, a: np.ndarray, b: np.ndarray) -> None:
    """Differences of these polynomials, with values up to some thousands, have a relative error of 1e-13."""
    result = operation(jet(a), jet(b))
    assert len(result) == 4
    np.testing.assert_array_equal(result[0], operation(a[0], b[0]))
    for k in range(3):
        expected = derivative(lambda t, k=k: operation(jet(a, t), jet(b, t))[k])
        assert deviation(result[k + 1], expected, floor=1.0) < 3e-12


def test_leibniz_at_order_two() -> None:
    a, b = np.random.default_rng(0).uniform(-1, 1, (2, 3, 2, 2))
    expected = a[2] @ b[0] + 2 * a[1] @ b[1] + a[0] @ b[2]
    np.testing.assert_allclose(leibniz(jet(a), jet(b), 2), expected, rtol=1e-14)


def test_lower_order_of_two_jets() -> None:
    long, short = Jet([np.eye(2)] * 4), Jet([np.eye(2)] * 2)
    assert [len(x) for x in (long + short, short - long, long @ short, short @ long, long.rate)] == [2, 2, 2, 2, 3]


def test_constant() -> None:
    assert list(Jet.constant(3.0, 4)) == [3.0, 0.0, 0.0, 0.0]


def hardening(x: Jet, scale: float = 0.5) -> Jet:
    return x * x * x * scale + x


# Arguments where square roots and logarithms exist, and whose derivatives are known to order three.
FUNCTIONS = {
    "exponential": (functions.exponential, np.exp),
    "exponential_less_one": (functions.exponential_less_one, np.expm1),
    "logarithm_of_one_plus": (lambda x: functions.logarithm_of_one_plus(x * x), lambda x: np.log1p(x**2)),
    "hyperbolic_sine": (functions.hyperbolic_sine, np.sinh),
    "hyperbolic_tangent": (functions.hyperbolic_tangent, np.tanh),
    "square_root": (lambda x: functions.square_root(x * x + 0.5), lambda x: np.sqrt(x**2 + 0.5)),
    "quotient": (lambda x: functions.quotient(x, x * x + 0.5), lambda x: x / (x**2 + 0.5)),
    "inverted": (lambda x: functions.inverted(hardening, x[0], hardening(x)), lambda x: x),
    "inverted with a parameter": (
        lambda x: functions.inverted(hardening, x[0], hardening(x, 0.2), (0.2,)),
        lambda x: x,
    ),
    "composed": (
        lambda x: functions.composed([f(x[0]) for f in (np.sin, np.cos, minus_sine, minus_cosine)], x),
        np.sin,
    ),
}


def minus_sine(x: np.ndarray) -> np.ndarray:
    return -np.sin(x)


def minus_cosine(x: np.ndarray) -> np.ndarray:
    return -np.cos(x)


@pytest.mark.parametrize(("of_jets", "of_numbers"), FUNCTIONS.values(), ids=FUNCTIONS)
@given(a=numbers(1.0, (4, 2, 2)))
def test_functions_of_jets_agree_with_differences(of_jets, of_numbers, a: np.ndarray) -> None:
    result = of_jets(jet(a))
    assert len(result) == 4
    np.testing.assert_allclose(result[0], of_numbers(a[0]), rtol=1e-14, atol=1e-15)
    for k in range(3):
        expected = derivative(lambda t, k=k: of_jets(jet(a, t))[k])
        assert deviation(result[k + 1], expected, floor=10.0) < 1e-10
