# SPDX-License-Identifier: Apache-2.0
"""Monotone interpolation: derivatives at knots for which a spline has no overshoot.

The rate of a piece is a polynomial of degree eight, which has one sign if its Bernstein coefficients b_0 … b_8 have
it. b_0 … b_3 follow from the state at the left knot, b_8 … b_5 from that at the right one, and the sum of all is 9 Δq,
which determines b_4. Hence, a rising piece is monotone if the four coefficients of each knot are not negative and their
sum is at most 9/2 Δq. These conditions are linear in the derivatives and separate for each knot, like those of F. N.
Fritsch, R. E. Carlson, "Monotone piecewise cubic interpolation", SIAM J. Numer. Anal. 17 (1980), for cubics. They are
sufficient but not necessary, so that derivatives may be reduced more than required.
"""

from __future__ import annotations

from math import comb, perm

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from .spline import DEGREE, ORDERS

_SIDE = ORDERS - 1
"""Number of Bernstein coefficients of the rate that follow from one knot."""

_SHARE = DEGREE / 2
"""Largest sum of the coefficients of one knot, in Δq."""

# b_r = sum over k of comb(r, k) (8 - k)!/8! p^(k + 1)(0): Bernstein coefficients from derivatives at the end.
_BERNSTEIN = np.array([[comb(r, k) / perm(DEGREE - 1, k) for k in range(_SIDE)] for r in range(_SIDE)])


def without_overshoot(steps: Array, states: Array, fixed: NDArray[np.bool_]) -> Array:
    """States (5, K, n) of a monotone spline near given ones.

    The derivatives at each knot are moved along the straight line to those of a spline that is monotone, as far as
    required.

    Args:
        steps: durations of the pieces (K - 1,), s.
        states: q … qdddd at the knots (5, K, n).
        fixed: (K, n), whether the derivatives at a knot stay zero.
    """
    change = np.diff(states[0], axis=0)
    slope = change / steps[:, np.newaxis]
    size, sign = np.abs(change), np.sign(change)
    before, after = (np.zeros_like(states[0]) for _ in range(2))  # sign of Δq on the pieces next to each knot
    before[1:], after[:-1] = sign, sign
    before[0], after[-1] = after[0], before[-1]
    # Only the smaller slope and curvature of the two neighbouring pieces matter.
    least_slope = np.full_like(states[0], np.inf)
    least_curve = np.full_like(states[0], np.inf)
    h = steps[:, np.newaxis]
    for part in (slice(0, -1), slice(1, None)):
        least_slope[part] = np.minimum(least_slope[part], np.abs(slope))
        least_curve[part] = np.minimum(least_curve[part], size / h**2)
    continues = before * after > 0
    turns = before * after < 0

    wanted = states[1:].copy()
    safe = np.zeros_like(wanted)
    # All four coefficients of a knot are v h, with the bound 9/8 Δq.
    safe[0] = np.where(continues, before * np.clip(before * wanted[0], 0.25 * least_slope, least_slope), 0.0)
    # At an extremum v = 0, and the coefficients are a h²/8 times 0, 1, 2, 3, with the bound 3/4 Δq.
    safe[1] = np.where(turns, after * np.clip(after * wanted[1], 0.25 * least_curve, 4.0 * least_curve), 0.0)
    wanted[0] = np.where(continues, wanted[0], 0.0)
    wanted[:, ~(continues | turns)] = 0.0

    share = np.ones_like(states[0])
    for left in (True, False):
        part = slice(0, -1) if left else slice(1, None)
        b_safe, b_wanted = (_coefficients_of_rate(x[:, part], h, left) * sign for x in (safe, wanted))
        room = np.concatenate([b_safe, [_SHARE * size - b_safe.sum(axis=0)]])
        step = np.concatenate([b_wanted - b_safe, [b_safe.sum(axis=0) - b_wanted.sum(axis=0)]])
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(step < 0, np.maximum(room, 0.0) / -step, np.inf)
        share[part] = np.minimum(share[part], reach.min(axis=0))
    result = states.copy()
    result[1:] = np.where(fixed, 0.0, safe + share * (wanted - safe))
    return result


def _coefficients_of_rate(derivatives: Array, steps: Array, left: bool) -> Array:
    """Bernstein coefficients (4, K - 1, n) of the pieces' rates that follow from derivatives at the left or right knot.

    From the right knot, time is reversed, which alternates the signs of the derivatives.
    """
    signs = np.ones(_SIDE) if left else (-1.0) ** np.arange(_SIDE)
    scaled = np.stack([signs[k] * derivatives[k] * steps ** (k + 1) for k in range(_SIDE)])
    return np.tensordot(_BERNSTEIN, scaled, 1)
