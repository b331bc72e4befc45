# SPDX-License-Identifier: Apache-2.0
"""Simplification of polynomials in sines and cosines, in time linear in their number of terms.

Products of sines and cosines become sums of sines and cosines of multiple angles (a Fourier series), by SymPy's
polynomials in exponentials of i times the angles. These functions are linearly independent, so that equal expressions
get the same form, and a zero expression becomes 0. SymPy's ``trigsimp`` searches, takes minutes for a three-joint arm,
and guarantees neither; its ``TR8`` takes minutes for the pose of a six-joint arm.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy as sp

from ..arrays import AnyArray

# Rounding error relative to the largest coefficient, after rounded numbers (for example of an oblique axis) cancel.
_ROUNDING = sp.Rational(4, 10**15)


def normal_form(expression: Any) -> Any:
    """Expression as a sum of products of parameters with one sine or cosine.

    Floating-point numbers become fractions of their printed decimals. An expression that is not a polynomial in sines,
    cosines and symbols is returned expanded.
    """
    expression = exact(expression)
    angles = {f: sp.expand(f.args[0]).as_coefficients_dict() for f in expression.atoms(sp.sin, sp.cos)}
    variables = sorted(set().union(*angles.values()), key=sp.default_sort_key)
    n, unit = len(variables), math.lcm(*(int(x.q) for angle in angles.values() for x in angle.values()))
    waves = sp.symbols(f"z:{2 * n}", cls=sp.Dummy)  # exp(i x / unit) of each variable, then their conjugates
    names = {f: _of_exponentials(f, [angle.get(x, 0) * unit for x in variables], waves) for f, angle in angles.items()}
    series = expression.xreplace(names)
    others = sorted(series.free_symbols - {*waves}, key=sp.default_sort_key)
    try:
        polynomial = sp.polys.rings.PolyRing([*waves, *others], sp.QQ_I, sp.polys.orderings.lex).from_expr(series)
    except ValueError:
        return sp.expand(expression)
    terms: dict[Any, Any] = defaultdict(int)
    for powers, factor in polynomial.terms():
        terms[tuple(np.subtract(powers[:n], powers[n : 2 * n]).tolist()), powers[2 * n :]] += factor
    least = _ROUNDING * max((abs(part) for factor in terms.values() for part in (factor.x, factor.y)), default=0)
    total = []
    for (frequencies, powers), factor in terms.items():
        if (leading := next(filter(None, frequencies), 0)) < 0:
            continue  # the conjugate of the wave of the opposite frequency
        real, imaginary = ((sp.QQ.to_sympy(x) if abs(x) > least else 0) for x in (factor.x, factor.y))
        angle = sum(k * x / unit for k, x in zip(frequencies, variables, strict=True))
        wave = 2 * real * sp.cos(angle) - 2 * imaginary * sp.sin(angle) if leading else real
        total.append(sp.expand(wave * sp.Mul(*(x**k for x, k in zip(others, powers, strict=True)))))
    return sp.Add(*total)


def _of_exponentials(f: Any, multiples: Sequence[Any], waves: Sequence[Any]) -> Any:
    """Sine or cosine from the exponential of its angle times i, and the conjugate."""
    n = len(multiples)
    wave, conjugate = (
        sp.Mul(*(waves[i + n * ((k < 0) != conjugated)] ** abs(k) for i, k in enumerate(multiples)))
        for conjugated in (False, True)
    )
    return (conjugate + wave) / 2 if f.func is sp.cos else (conjugate - wave) * sp.I / 2


def normal_forms(expressions: Any) -> AnyArray:
    """Normal form of each entry, as an object array of the same shape."""
    array = np.asarray(expressions, dtype=object)
    return np.array([normal_form(x) for x in array.flat], dtype=object).reshape(array.shape)


def exact(value: Any) -> Any:
    """Exact SymPy number or expression, with fractions for floating-point numbers: 0.1 becomes 1/10."""
    expression = sp.sympify(value)
    return expression.xreplace({x: sp.Rational(repr(float(x))) for x in expression.atoms(sp.Float)})
