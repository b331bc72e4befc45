# SPDX-License-Identifier: Apache-2.0
"""Monotone C² curve through increasing points, a quintic in each interval.

The quintics are given by value, slope and second derivative at the points. These start as those of the natural cubic
spline, which may be not monotone between the points. Where it is not, slopes and second derivatives are moved toward
values for which the curve is surely monotone, by the least total amount: the slope in an interval is a quartic,
positive if its five Bernstein coefficients are (W. Heß and J. W. Schmidt, "Positive quartic, monotone quintic C²-spline
interpolation in one and two dimensions", J. Comput. Appl. Math. 55, 1994), which are linear in those values, so that
the least amount is a linear program. Points whose cubic spline has positive coefficients are interpolated by it.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from ...arrays import Array
from .natural_spline import natural_spline

# Least slope at both ends of an interval, relative to the least secant beside it.
_LEAST_SHARE = 0.02


def monotone_quintic(x: Array, y: Array) -> tuple[Array, Array]:
    """Slopes and second derivatives at increasing points x with increasing values y, each (m,), m >= 2."""
    h, secant = np.diff(x), np.diff(y) / np.diff(x)
    wished = natural_spline(h, secant)
    # Surely monotone: the smaller secant at each point, and no second derivative; no coefficient is then smaller.
    beside = np.minimum(np.append(secant[:1], secant), np.append(secant, secant[-1:]))
    safe = np.stack([beside, np.zeros(len(x))])
    step = wished - safe
    # Bernstein coefficients of the slope in an interval, linear in slopes m and second derivatives s at its ends:
    # m0, m0 + s0 h/4, m1 - s1 h/4, m1, and what is left to five times the secant. The unknowns are shares of the step.
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
            # In units of the secant the program is well scaled.
            rows.append(-coefficients / secant[i])
            limits.append((value - least) / secant[i])
    found = linprog(-np.ones(len(x)), A_ub=np.array(rows), b_ub=np.array(limits), bounds=(0, 1)).x
    # Slopes may differ by so many powers of ten that no solution is found.
    share = np.zeros(len(x)) if found is None else found
    slope, bend = np.where(share < 1, safe + np.clip(share, 0, 1) * step, wished)
    return slope, bend
