# SPDX-License-Identifier: Apache-2.0
"""Elementary functions of scalars of any type: numbers, arrays (elementwise), program expressions, symbols.

A law written with these functions and + - * / runs over all of these types. Types with methods of these names (an
expression, a CasADi symbol) use their methods; others use NumPy or SymPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import factorial
from typing import Any, NamedTuple

import numpy as np

from .arrays import Array
from .jet import Jet

MOST_STEPS = 100
"""Maximum steps of :func:`root`: bisection takes some 60 to neighboring numbers; Halley's method rarely takes six."""

OWN_STEPS = 12
"""Steps of :func:`root` before every other step is a bisection: Halley's method is slow if slopes grow fast.
"""

LAST_STEP = 1e-7
"""Halley's method triples the number of correct digits: after a step this small, relative to x, only rounding remains.
"""


def _function(name: str, x: Any) -> Any:
    if hasattr(x, "free_symbols"):
        import sympy

        if name == "expm1":
            return sympy.exp(x) - 1
        return sympy.log(1 + x) if name == "log1p" else getattr(sympy, name)(x)
    return getattr(x, name)() if hasattr(x, name) else getattr(np, name)(x)


exp, expm1, log, log1p, sqrt, tanh = (
    partial(_function, name) for name in ("exp", "expm1", "log", "log1p", "sqrt", "tanh")
)
"""Functions of x; expm1 is exp(x) - 1 and log1p is log(1 + x), both without cancellation."""


def exp_times(x: Any, rate: Any) -> Any:
    """exp(rate x) for |x| <= 1 and a small number, or array, rate: by Taylor's polynomial, at half the cost of exp.

    Rates beyond log(2)/2 are halved, and the result squared.
    """
    if hasattr(x, "is_symbolic") or hasattr(x, "free_symbols"):
        return exp(rate * x)
    bound = float(np.max(np.abs(rate)))
    if bound > 0.3466:
        root = exp_times(x, 0.5 * rate)
        return root * root
    degree = next(k for k in range(20) if bound ** (k + 1) <= 2.0**-55 * factorial(k + 1))
    value: Any = rate**degree / factorial(degree)
    for k in reversed(range(degree)):
        value = x * value + rate**k / factorial(k)
    return value


def sinh_cosh(x: Any) -> tuple[Any, Any]:
    """Hyperbolic sine and cosine, by e = exp(|x|) - 1: (e + e/(1 + e))/2 and 1 + e²/(1 + e)/2."""
    e = expm1(absolute(x))
    quotient = e / (e + 1.0)
    sinh = 0.5 * (e + quotient)
    return select(x, sinh, -sinh), 0.5 * e * quotient + 1.0


def asinh(x: Any) -> Any:
    """Inverse hyperbolic sine, log(1 + |x| + x²/(1 + sqrt(1 + x²))) with the sign of x."""
    a = absolute(x)
    square = a * a
    value = log1p(a + square / (sqrt(square + 1.0) + 1.0))
    return select(x, value, -value)


def absolute(x: Any) -> Any:
    """|x|."""
    return select(x, x, -x)


def select(condition: Any, positive: Any, other: Any) -> Any:
    """``positive`` if the condition is positive, else ``other``, also for NaN."""
    if hasattr(condition, "select"):
        return condition.select(positive, other)
    if isinstance(condition, np.ndarray):
        return np.where(condition > 0, positive, other)
    if hasattr(condition, "is_symbolic"):
        import casadi

        return casadi.if_else(condition > 0, positive, other)
    if getattr(condition, "free_symbols", None):
        import sympy

        return sympy.Piecewise((positive, condition > 0), (other, True))
    return positive if condition > 0 else other


def clipped(x: Any, low: Any, high: Any) -> Any:
    """Nearest number to x from ``low`` to ``high``."""
    x = select(low - x, low, x)
    return select(x - high, high, x)


def index(x: Any, points: Sequence[float] | Array) -> Any:
    """Number of increasing points that do not exceed x, for :func:`lookup`."""
    if hasattr(x, "index") and hasattr(x, "select"):
        return x.index(tuple(map(float, points)))
    if hasattr(x, "is_symbolic"):
        import casadi

        return sum(casadi.if_else(x >= point, 1.0, 0.0) for point in points)
    if getattr(x, "free_symbols", None):
        return _SymbolicIndex(x, points)
    return np.searchsorted(points, x, side="right")


def lookup(position: Any, table: Sequence[float] | Array) -> Any:
    """Entry of a table at a position of :func:`index`."""
    if hasattr(position, "lookup"):
        return position.lookup(tuple(map(float, table)))
    if hasattr(position, "is_symbolic"):
        import casadi

        value = table[0]
        for k, entry in enumerate(table[1:]):
            value = casadi.if_else(position > k + 0.5, entry, value)
        return value
    return np.asarray(table, dtype=float)[position]


class _SymbolicIndex(NamedTuple):
    """Table index of a SymPy expression."""

    x: Any
    points: Sequence[float] | Array

    def lookup(self, table: Sequence[float]) -> Any:
        import sympy

        cases = [(entry, self.x < point) for entry, point in zip(table[:-1], self.points, strict=True)]
        return sympy.Piecewise(*cases, (table[-1], True))


def root(
    function: Callable[..., Jet], target: Any, bounds: tuple[Any, Any], start: Any, parameters: Sequence[Any] = ()
) -> Any:
    """x with f(x) = target for an increasing function f, by Halley's method inside a bracket, to full precision.

    W. H. Press et al., "Numerical Recipes" (2007), section 9.4: a step out of the bracket is replaced by a bisection,
    and after a number of steps every other step, so that the iteration ends for every increasing function.

    The function takes the jet of x, and the parameters, the only other scalars on which it depends. ``bounds`` are the
    lower and upper end of the bracket, ``start`` is the initial value.
    """
    scalars = (target, *bounds, start, *parameters)
    for x in scalars:
        if hasattr(x, "root"):
            return x.root(function, target, bounds, start, parameters)
    symbolic = any(hasattr(x, "is_symbolic") for x in scalars)
    low, high = bounds
    x, active = clipped(start, low, high), 0.0 * target + 1.0
    for k in range(_SYMBOLIC_STEPS if symbolic else MOST_STEPS):
        value, slope, curvature = function(Jet([x, 1.0, 0.0]), *parameters)
        residual = value - target
        # Newton's step, scaled by the curvature from half to twice its length.
        square = slope * slope
        step = residual * slope / (square - clipped(0.5 * residual * curvature, -square, 0.5 * square))
        new = x - step
        low, high = select(residual, low, x), select(residual, x, high)
        unfinished = select(absolute(step) - LAST_STEP * absolute(x), active, 0.0)
        halved = (
            unfinished
            if k > OWN_STEPS and k % 2
            else select(low - new, unfinished, select(new - high, unfinished, 0.0))
        )
        x = select(active, select(halved, 0.5 * (low + high), new), x)
        active = unfinished
        if not symbolic and not np.any(active):
            break
    return x


# Steps of a root as straight-line code, which cannot stop early: the maximum over the springs in the tests.
_SYMBOLIC_STEPS = 24
