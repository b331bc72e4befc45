# SPDX-License-Identifier: Apache-2.0
"""Interpolation of tables and time steps: quintic Hermite polynomials, natural cubic and monotone quintic splines.

SciPy is imported at the first table: its optimization module takes a second to import, and few robots have tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...arrays import Array


def hermite_derivatives(before: Sequence[Any], after: Sequence[Any], dt: Any) -> list[Any]:
    """P^(k)(0) dt^k, k = 0 … 5, of the quintic P from value and two derivatives at 0 and at dt."""
    square = dt * dt
    p0, p1, p2 = before[0], dt * before[1], square * before[2]
    # Differences at the end between the values and the parabola of the start.
    a = after[0] - p0 - p1 - 0.5 * p2
    b = dt * after[1] - p1 - p2
    c = square * after[2] - p2
    return [p0, p1, p2, 60 * a - 24 * b + 3 * c, -360 * a + 168 * b - 24 * c, 720 * a - 360 * b + 60 * c]


def natural_spline(h: Array, secant: Array) -> Array:
    """Natural cubic spline: slopes and second derivatives (2, m) at m >= 2 points, from widths and secants (m - 1,)."""
    from scipy.linalg import solve_banded

    bend = np.zeros(len(h) + 1)
    if len(h) > 1:
        diagonals = np.zeros((3, len(h) - 1))
        diagonals[0, 1:], diagonals[1], diagonals[2, :-1] = h[1:-1], 2 * (h[:-1] + h[1:]), h[1:-1]
        bend[1:-1] = solve_banded((1, 1), diagonals, 6 * np.diff(secant))
    start, end = secant - h * (2 * bend[:-1] + bend[1:]) / 6, secant + h * (bend[:-1] + 2 * bend[1:]) / 6
    return np.stack([np.append(start, end[-1]), bend])


# Least slope at both ends of an interval, relative to the least adjacent secant.
_LEAST_SHARE = 0.02


def monotone_quintic(x: Array, y: Array) -> tuple[Array, Array]:
    """Slopes and second derivatives of a monotone C² curve, a quintic in each interval, through increasing points.

    The points x and y are (m,), m >= 2. Initial derivatives are from the natural cubic spline, which may fail to be
    monotone between points. There, they are moved toward values with a certainly monotone curve, by the least total
    amount. The slope in an interval is a quartic, positive if its five Bernstein coefficients are positive (W. Heß and
    J. W. Schmidt, "Positive quartic, monotone quintic C²-spline interpolation in one and two dimensions", J. Comput.
    Appl. Math. 55, 1994). The coefficients are linear in the derivatives, so that the least amount is a linear program.
    """
    from scipy.optimize import linprog

    h, secant = np.diff(x), np.diff(y) / np.diff(x)
    natural = natural_spline(h, secant)
    # Certainly monotone: the smaller secant as slope at each point, and zero second derivative; no coefficient is then
    # smaller.
    beside = np.minimum(np.append(secant[:1], secant), np.append(secant, secant[-1:]))
    safe = np.stack([beside, np.zeros(len(x))])
    step = natural - safe
    # Bernstein coefficients of the slope in an interval, linear in slopes m and second derivatives s at its ends: m0,
    # m0 + s0 h/4, m1 - s1 h/4, m1, and the rest to a sum of five times the secant. The unknowns are shares of the step.
    rows, limits = [], []
    for i in range(len(h)):
        ends = np.zeros((2, 2, len(x)))  # side, (slope, bend): coefficients of the shares
        for side in (0, 1):
            ends[side, :, i + side] = step[:, i + side]
        base = safe[:, i : i + 2]
        inner = [(ends[s, 0] + q * ends[s, 1], base[0, s] + q * base[1, s]) for s, q in ((0, h[i] / 4), (1, -h[i] / 4))]
        outer = [(ends[s, 0], base[0, s]) for s in (0, 1)]
        middle = (-sum(x for x, _ in inner + outer), 5 * secant[i] - sum(value for _, value in inner + outer))
        least = _LEAST_SHARE * np.min(secant[max(i - 1, 0) : i + 2])
        for coefficients, value in (*inner, *outer, middle):
            # Units of the secant make the program well scaled.
            rows.append(-coefficients / secant[i])
            limits.append((value - least) / secant[i])
    solution = linprog(-np.ones(len(x)), A_ub=np.array(rows), b_ub=np.array(limits), bounds=(0, 1)).x
    # If slopes differ by many powers of ten, the solver may fail.
    share = np.zeros(len(x)) if solution is None else solution
    slope, bend = np.where(share < 1, safe + np.clip(share, 0, 1) * step, natural)
    return slope, bend
