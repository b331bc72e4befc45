# SPDX-License-Identifier: Apache-2.0
"""Elementary functions of jets, elementwise and to the order of their argument.

Each function satisfies a first-order differential equation, so that its derivatives follow recursively from Leibniz'
rule: R. D. Neidinger, "Introduction to automatic differentiation and MATLAB object-oriented programming", SIAM Review
52 (2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Any

import numpy as np

from .arrays import Array
from .jet import Jet, leibniz


def plus(x: Jet, constant: Any) -> Jet:
    """x + c."""
    return Jet([x[0] + constant, *x[1:]])


def exponential(x: Jet) -> Jet:
    """exp(x): y' = y x'."""
    y = [np.exp(x[0])]
    for k in range(len(x) - 1):
        y.append(_product(y, x[1:], k))
    return Jet(y)


def logarithm(x: Jet) -> Jet:
    """log(x), x > 0: x y' = x'."""
    return Jet([np.log(x[0]), *quotient(x.rate, x)]) if len(x) > 1 else Jet([np.log(x[0])])


def square_root(x: Jet) -> Jet:
    """sqrt(x), x > 0: y² = x."""
    y = [np.sqrt(x[0])]
    for k in range(1, len(x)):
        mixed = sum((comb(k, j) * y[j] * y[k - j] for j in range(1, k)), 0.0)
        y.append((x[k] - mixed) / (2 * y[0]))
    return Jet(y)


def tanh(x: Any) -> Any:
    """Hyperbolic tangent of a number, an array (elementwise) or a symbol with its own method ``tanh``."""
    if hasattr(x, "tanh"):
        return x.tanh()
    if hasattr(x, "free_symbols"):
        import sympy

        return sympy.tanh(x)
    return np.tanh(x)


def hyperbolic_tangent(x: Jet) -> Jet:
    """tanh(x): y' = (1 - y²) x'."""
    y = [tanh(x[0])]
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


def inverted(start: Array, slopes: Sequence[Array], y: Jet) -> Jet:
    """Jet of x with f(x) = y, from the value of x and the derivatives of f there.

    The time derivative of f^(m)(x) is f^(m+1)(x) x', so that each derivative of x follows from f' and lower ones.

    Args:
        start: x, with f(x) = y[0].
        slopes: f', f'', … at x, as many as y has time derivatives.
        y: jet of f(x).
    """
    x: list[Any] = [start]
    outer: list[list[Any]] = [[slope] for slope in slopes]  # outer[m - 1][k]: k-th time derivative of f^(m)(x)
    for k in range(len(y) - 1):
        known = sum((comb(k, j) * outer[0][j] * x[k - j + 1] for j in range(1, k + 1)), 0.0)
        x.append((y[k + 1] - known) / slopes[0])
        for m in range(len(slopes) - k - 1):
            outer[m].append(_product(outer[m + 1], x[1:], k))
    return Jet(x)


def composed(values: Sequence[Any], x: Jet) -> Jet:
    """f(x), from f, f', f'', … at x[0], as many as x has entries: f^(m)(x)' = f^(m+1)(x) x'."""
    rows: list[list[Any]] = [[value] for value in values]  # rows[m][k]: k-th time derivative of f^(m)(x)
    for k in range(len(x) - 1):
        for m in range(len(values) - k - 1):
            rows[m].append(_product(rows[m + 1], x[1:], k))
    return Jet(rows[0])


def _product(left: Sequence[Any], right: Sequence[Any], k: int) -> Any:
    return leibniz(left, right, k, np.multiply)
