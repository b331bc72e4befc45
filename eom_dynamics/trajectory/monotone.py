# SPDX-License-Identifier: Apache-2.0
"""States at knots between which a spline is monotone.

The derivative of a piece is a polynomial of degree eight, and where its nine Bernstein coefficients b_0 … b_8 all have
one sign it has that sign everywhere. b_0 … b_3 follow from the state at the left knot, b_8 … b_5 from that at the right
one, and b_4 is what is left of their sum, 9 Δq. So a piece that rises is monotone if the four of each knot are not
negative and sum up to no more than 9/2 Δq: conditions on each knot by itself, linear in its derivatives, as those of
F. N. Fritsch, R. E. Carlson, "Monotone piecewise cubic interpolation", SIAM J. Numer. Anal. 17 (1980) for cubics.
They are sufficient, not necessary: a trajectory may be drawn in a little further than it would have to be.
"""

from __future__ import annotations

from math import comb, perm

import numpy as np
from numpy.typing import NDArray

from .spline import DEGREE, ORDERS

Array = NDArray[np.float64]

_SIDE = ORDERS - 1
"""Bernstein coefficients of the rate that follow from one knot: as many as it has derivatives."""

_SHARE = DEGREE / 2
"""Of Δq: what those of one knot may sum up to, 9/2."""

# b_r = sum over k of comb(r, k) (8 - k)!/8! p^(k + 1)(0): Bernstein coefficients from derivatives at the end.
_BERNSTEIN = np.array([[comb(r, k) / perm(DEGREE - 1, k) for k in range(_SIDE)] for r in range(_SIDE)])


def without_overshoot(steps: Array, states: Array, fixed: NDArray[np.bool_]) -> Array:
    """The states (5, K, n), drawn in at knots where the spline might not be monotone on the pieces beside.

    Each knot's derivatives go along the straight line to others that are safe, as far as needed and no further.

    Args:
        steps: durations of the pieces (K - 1,), s.
        states: q … qdddd at the knots (5, K, n).
        fixed: (K, n) knots whose derivatives are zero and stay.
    """
    change = np.diff(states[0], axis=0)
    slope = change / steps[:, np.newaxis]
    size, sign = np.abs(change), np.sign(change)
    before, after = (np.zeros_like(states[0]) for _ in range(2))  # pieces beside each knot: sign of Δq
    before[1:], after[:-1] = sign, sign
    before[0], after[-1] = after[0], before[-1]
    # The slope and curvature of the steeper and shorter neighbour do not count: that of the other binds.
    least_slope = np.full_like(states[0], np.inf)
    least_curve = np.full_like(states[0], np.inf)
    h = steps[:, np.newaxis]
    for part in (slice(0, -1), slice(1, None)):
        least_slope[part] = np.minimum(least_slope[part], np.abs(slope))
        least_curve[part] = np.minimum(least_curve[part], size / h**2)
    goes_on = before * after > 0
    turns = before * after < 0

    wanted = states[1:].copy()
    safe = np.zeros_like(wanted)
    # All four coefficients of a knot are v h then, and may be up to 9/8 Δq.
    safe[0] = np.where(goes_on, before * np.clip(before * wanted[0], 0.25 * least_slope, least_slope), 0.0)
    # At a turn v = 0, and the coefficients are a h²/8 times 0, 1, 2, 3: up to 3/4 Δq.
    safe[1] = np.where(turns, after * np.clip(after * wanted[1], 0.25 * least_curve, 4.0 * least_curve), 0.0)
    wanted[0] = np.where(goes_on, wanted[0], 0.0)
    wanted[:, ~(goes_on | turns)] = 0.0

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
    """The four Bernstein coefficients (4, K - 1, n) of a piece's rate in its own time that a knot's derivatives say.

    Seen from the right end time runs backwards, and each derivative after the first changes its sign once more.
    """
    signs = np.ones(_SIDE) if left else (-1.0) ** np.arange(_SIDE)
    scaled = np.stack([signs[k] * derivatives[k] * steps ** (k + 1) for k in range(_SIDE)])
    return np.tensordot(_BERNSTEIN, scaled, 1)
