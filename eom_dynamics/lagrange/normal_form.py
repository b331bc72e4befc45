# SPDX-License-Identifier: Apache-2.0
"""Simplification of polynomials in sines and cosines, in time linear in their number of terms.

Products of sines and cosines become sums of those of multiple angles (a Fourier series). These functions are linearly
independent, so that equal expressions get the same form, and what is zero becomes 0: SymPy's own ``trigsimp`` searches,
takes minutes for a three-joint arm, and promises neither.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from math import comb
from typing import Any

import numpy as np
import sympy as sp

from ..arrays import AnyArray

# Relative to the largest coefficient: what is left where rounded numbers, as those of an oblique axis, cancel.
_ROUNDING = sp.QQ(4, 10**15)


def normal_form(expression: Any) -> Any:
    """The expression as a sum of products of parameters with one sine or cosine, or of their powers if that is shorter.

    Floating-point numbers become fractions of the decimals that they print. An expression that is not a polynomial in
    sines, cosines and symbols is returned expanded.
    """
    expression = exact(expression)
    angles = sorted({f.args[0] for f in expression.atoms(sp.sin, sp.cos)}, key=sp.default_sort_key)
    sines, cosines = ([sp.Dummy(f"{name}{i}") for i in range(len(angles))] for name in "sc")
    names = {sp.sin(x): s for x, s in zip(angles, sines, strict=True)}
    names |= {sp.cos(x): c for x, c in zip(angles, cosines, strict=True)}
    polynomial = expression.xreplace(names)
    others = sorted(polynomial.free_symbols - {*sines, *cosines}, key=sp.default_sort_key)
    if not sines and not others:
        return polynomial
    ring = sp.polys.rings.PolyRing([*sines, *cosines, *others], sp.QQ, sp.polys.orderings.lex)
    try:
        element = ring.from_expr(polynomial)
    except ValueError:
        return sp.expand(expression)
    terms = _without_rounding(_without_squares(element, len(angles)))
    powers = _expression(terms, [*map(sp.sin, angles), *map(sp.cos, angles), *others])
    if not angles:
        return powers
    series = _fourier_series(terms, angles, others)
    return min(series, powers, key=sp.count_ops)


def normal_forms(expressions: Any) -> AnyArray:
    """The normal form of each entry, as an object array of the same shape."""
    array = np.asarray(expressions, dtype=object)
    result = np.empty(array.shape, dtype=object)
    for index in np.ndindex(array.shape):
        result[index] = normal_form(array[index])
    return result


def exact(value: Any) -> Any:
    """SymPy's number or expression with fractions in place of floating-point numbers: 0.1 becomes 1/10."""
    expression = sp.sympify(value)
    return expression.xreplace({x: sp.Rational(repr(float(x))) for x in expression.atoms(sp.Float)})


def _without_squares(element: Any, n: int) -> dict[tuple[int, ...], Any]:
    """Terms by exponents, with 1 - cos² for sin²; the first n generators are sines, the next n their cosines."""
    total: dict[tuple[int, ...], Any] = defaultdict(int)
    for exponents, coefficient in element.terms():
        partial = {exponents: coefficient}
        for i in range(n):
            halves = exponents[i] // 2
            if halves:
                partial = {
                    _shifted(old, i, halves, n, k): c * (-1) ** k * comb(halves, k)
                    for old, c in partial.items()
                    for k in range(halves + 1)
                }
        for key, c in partial.items():
            total[key] += c
    return {key: c for key, c in total.items() if c}


def _shifted(exponents: tuple[int, ...], i: int, halves: int, n: int, k: int) -> tuple[int, ...]:
    changed = list(exponents)
    changed[i] -= 2 * halves
    changed[n + i] += 2 * k
    return tuple(changed)


def _without_rounding(terms: dict[tuple[int, ...], Any]) -> dict[tuple[int, ...], Any]:
    largest = max((abs(c) for c in terms.values()), default=0)
    return {key: c for key, c in terms.items() if abs(c) > _ROUNDING * largest}


def _fourier_series(terms: dict[tuple[int, ...], Any], angles: list[Any], others: list[Any]) -> Any:
    n = len(angles)
    parts = [sp.expand(angle).as_coefficients_dict() for angle in angles]
    variables = sorted({x for part in parts for x in part}, key=sp.default_sort_key)
    frequencies = np.array([[sp.Rational(part.get(x, 0)) for x in variables] for part in parts], dtype=object)
    # Of each sum of angles, by exponents of the other symbols: real and imaginary part of the Fourier coefficient.
    waves: dict[tuple[Any, ...], dict[tuple[int, ...], list[Any]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for exponents, coefficient in terms.items():
        product = {(sp.S.Zero,) * len(variables): (coefficient, 0 * coefficient)}
        for i in range(n):
            powers = (exponents[i], exponents[n + i])
            if any(powers):
                product = _multiplied(product, frequencies[i], _single(*powers))
        for frequency, (re, im) in product.items():
            parts_of_wave = waves[frequency][exponents[2 * n :]]
            parts_of_wave[0] += re
            parts_of_wave[1] += im
    total = []
    for frequency, wave in waves.items():
        leading = next((f for f in frequency if f), sp.S.Zero)
        if leading < 0:
            continue  # the conjugate of the wave of the opposite frequency
        angle = sum(f * x for f, x in zip(frequency, variables, strict=True))
        twice = 2 if leading else 1
        cosine = _expression({key: twice * re for key, (re, _) in wave.items()}, others)
        sine = _expression({key: -twice * im for key, (_, im) in wave.items()}, others)
        total += [sp.expand(cosine * sp.cos(angle)), sp.expand(sine * sp.sin(angle)) if leading else 0]
    return sp.Add(*total)


def _multiplied(product: dict[Any, Any], step: AnyArray, series: dict[int, tuple[Any, Any]]) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for frequency, (a, b) in product.items():
        for k, (re, im) in series.items():
            key = tuple(f + k * s for f, s in zip(frequency, step, strict=True))
            x, y = result.get(key, (0, 0))
            result[key] = (x + a * re - b * im, y + a * im + b * re)
    return result


@cache
def _single(sine: int, cosine: int) -> dict[int, tuple[Any, Any]]:
    """Fourier coefficients of sin(x)^sine cos(x)^cosine: of exp(i k x) by k, as real and imaginary parts."""
    result = {0: (sp.QQ(1), sp.QQ(0))}
    half = sp.QQ(1, 2)
    for _ in range(sine):
        result = _multiplied_once(result, {1: (0 * half, -half), -1: (0 * half, half)})
    for _ in range(cosine):
        result = _multiplied_once(result, {1: (half, 0 * half), -1: (half, 0 * half)})
    return result


def _multiplied_once(left: dict[int, Any], right: dict[int, Any]) -> dict[int, Any]:
    result: dict[int, Any] = {}
    for i, (a, b) in left.items():
        for j, (re, im) in right.items():
            x, y = result.get(i + j, (0, 0))
            result[i + j] = (x + a * re - b * im, y + a * im + b * re)
    return result


def _expression(terms: dict[tuple[int, ...], Any], generators: list[Any]) -> Any:
    return sp.Add(
        *(
            sp.QQ.to_sympy(sp.QQ(c)) * sp.Mul(*(x**k for x, k in zip(generators, key, strict=True) if k))
            for key, c in terms.items()
            if c
        )
    )
