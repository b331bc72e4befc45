# SPDX-License-Identifier: Apache-2.0
"""Elementary functions of jets, elementwise and to the order of their argument.

Each function satisfies a first-order differential equation, so that its derivatives follow recursively from Leibniz'
rule: R. D. Neidinger, "Introduction to automatic differentiation and MATLAB object-oriented programming", SIAM Review
52 (2010).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import comb
from typing import Any

from . import elementary
from .jet import Jet, leibniz
from .lie import sincos


def exponential(x: Jet, value: Any = None) -> Jet:
    """exp(x): y' = y x'; from its value if known."""
    y = [elementary.exp(x[0]) if value is None else value]
    for k in range(len(x) - 1):
        y.append(_product(y, x[1:], k))
    return Jet(y)


def logarithm_of_one_plus(x: Jet) -> Jet:
    """log(1 + x), x > -1: (1 + x) y' = x'."""
    value = elementary.log1p(x[0])
    return Jet([value, *quotient(x.rate, x + 1.0)]) if len(x) > 1 else Jet([value])


def exponential_less_one(x: Jet) -> Jet:
    """exp(x) - 1: y' = (1 + y) x'."""
    value = elementary.expm1(x[0])
    return Jet([value, *exponential(x, value + 1.0).rate])


def hyperbolic_sine(x: Jet) -> Jet:
    """sinh(x): s' = c x', with c = cosh(x), c' = s x'."""
    return _sine_and_cosine(x, elementary.sinh_cosh(x[0]), lambda rate: rate)[0]


def sine_cosine(x: Jet) -> tuple[Jet, Jet]:
    """sin(x) and cos(x): s' = c x', c' = -s x'."""
    return _sine_and_cosine(x, sincos(x[0]), operator.neg)


def _sine_and_cosine(x: Jet, values: tuple[Any, Any], signed: Callable[[Any], Any]) -> tuple[Jet, Jet]:
    """s and c with s' = c x' and c' = ±s x', with the sign from the function ``signed``."""
    s, c = ([value] for value in values)
    for k in range(len(x) - 1):
        sine = _product(c, x[1:], k)
        c.append(signed(_product(s, x[1:], k)))
        s.append(sine)
    return Jet(s), Jet(c)


def square_root(x: Jet) -> Jet:
    """sqrt(x), x > 0: y² = x."""
    y = [elementary.sqrt(x[0])]
    for k in range(1, len(x)):
        mixed = sum((comb(k, j) * y[j] * y[k - j] for j in range(1, k)), 0.0)
        y.append((x[k] - mixed) / (2 * y[0]))
    return Jet(y)


def hyperbolic_tangent(x: Jet) -> Jet:
    """tanh(x): y' = (1 - y²) x'."""
    y = [elementary.tanh(x[0])]
    slope: list[Any] = []
    for k in range(len(x) - 1):
        slope.append(float(k == 0) - _product(y, y, k))
        y.append(_product(slope, x[1:], k))
    return Jet(y)


def quotient(x: Jet, y: Jet) -> Jet:
    """x/y, y not 0: y z = x."""
    z: list[Any] = []
    for k in range(min(len(x), len(y))):
        known = sum((comb(k, j) * y[j] * z[k - j] for j in range(1, k + 1)), 0.0)
        z.append((x[k] - known) / y[0])
    return Jet(z)


def inverted(function: Callable[..., Jet], start: Any, y: Jet, parameters: Sequence[Any] = ()) -> Jet:
    """Jet of x with f(x) = y, from the value ``start`` of x, by implicit differentiation.

    The function takes the jet of x, and parameters that are constant in time. The time derivative of f^(m)(x) is
    f^(m+1)(x) x', so that each derivative of x follows from f' and lower derivatives.
    """
    if len(y) == 1:
        return Jet([start])
    _, *slopes = function(Jet([start, 1.0, *([0.0] * (len(y) - 2))]), *parameters)
    inverse_slope = 1.0 / slopes[0]
    x: list[Any] = [start]
    outer: list[list[Any]] = [[slope] for slope in slopes]  # outer[m - 1][k]: k-th time derivative of f^(m)(x)
    for k in range(len(y) - 1):
        known = sum((comb(k, j) * outer[0][j] * x[k - j + 1] for j in range(1, k + 1)), 0.0)
        x.append((y[k + 1] - known) * inverse_slope)
        for m in range(len(slopes) - k - 1):
            outer[m].append(_product(outer[m + 1], x[1:], k))
    return Jet(x)


def composed(values: Sequence[Any], x: Jet) -> Jet:
    """f(x), from f, f', f'', … at x[0], one for each entry of x: f^(m)(x)' = f^(m+1)(x) x'."""
    rows: list[list[Any]] = [[value] for value in values]  # rows[m][k]: k-th time derivative of f^(m)(x)
    for k in range(len(x) - 1):
        for m in range(len(values) - k - 1):
            rows[m].append(_product(rows[m + 1], x[1:], k))
    return Jet(rows[0])


def _product(first: Sequence[Any], second: Sequence[Any], k: int) -> Any:
    return leibniz(first, second, k, operator.mul)
