# SPDX-License-Identifier: Apache-2.0
"""Interpolating spline with the least integral of its squared m-th derivative; for m = 4 the minimum-snap trajectory.

Its pieces are polynomials of degree 2m - 1. Given derivatives q … q^(m - 1) at a knot are met on both sides; for each
k < m that is not given, q^(k) and q^(2m - 1 - k) are continuous at inner knots, and q^(2m - 1 - k) is zero at an end:
the natural boundary conditions of the variational problem. For m = 4 see C. Richter, A. Bry, N. Roy, "Polynomial
trajectory planning for aggressive quadrotor flight in dense indoor environments", ISRR 2013.

The unknowns are the 2m Taylor coefficients of each piece. Derivatives at knots or B-splines would be fewer unknowns,
but their equations contain the (2m - 1)-th power of the ratio of durations of neighbouring pieces, and lose all digits
when a short piece follows long ones. Here, each equation is a Taylor expansion or an equality.
"""

from __future__ import annotations

from math import comb, factorial

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..exceptions import TrajectoryError
from .spline import ORDERS

UNSOLVED = (
    "times are too uneven or positions too large for a smooth trajectory; omit waypoints that are close in time, and "
    "check the units of positions and their derivatives"
)
"""Reason to refuse waypoints whose equations are singular or overflow."""


def minimum_snap(steps: Array, states: Array, m: int) -> Array:
    """States (5, K, n) of the spline at its knots, completed from given ones.

    Args:
        steps: durations of the pieces (K - 1,), s; K > 1.
        states: q … qdddd at the knots (5, K, n), NaN if not given. All positions are given; other derivatives are given
            for all joints or none. Given derivatives from the m-th on are returned but do not affect the spline.
        m: order of the derivative, 2 … 5; at most the number of knots.

    NumPy may warn about numbers that overflow; they are refused.

    Raises:
        TrajectoryError: the equations are singular in double precision, or overflow.
    """
    m = min(m, len(steps) + 1)
    if not np.any(np.isnan(states[:m])):
        return _completed(states, np.zeros_like(states))
    system = _System(steps, states, m)
    try:
        taylor = system.solution()
    except np.linalg.LinAlgError:
        raise TrajectoryError(UNSOLVED) from None
    solved = np.zeros_like(states)
    last = np.tensordot(system.shift, taylor[-1], 1)
    for k in range(min(ORDERS, 2 * m)):
        solved[k, :-1] = factorial(k) * taylor[:, k] / steps[:, np.newaxis] ** k
        solved[k, -1] = factorial(k) * last[k] / steps[-1] ** k
    if not np.all(np.isfinite(solved)):
        raise TrajectoryError(UNSOLVED)
    return _completed(states, solved)


def _completed(states: Array, solved: Array) -> Array:
    return np.where(np.isnan(states), solved, states)


class _System:
    """Equations of the Taylor coefficients x_k = q^(k) h^k/k! at the start of each piece, x_0 minus its given position.

    Rows: m for the first knot, 2m for each inner knot, m for the last; each involves only the neighbouring pieces.
    """

    def __init__(self, steps: Array, states: Array, m: int) -> None:
        self.steps, self.states, self.m = steps, states, m
        self.size = 2 * m
        orders = range(self.size)
        # (1/k!) d^k/du^k at u = 1 of the powers of u.
        self.shift = np.array([[comb(j, k) for j in orders] for k in orders], dtype=float)
        self._width = 3 * m - 1
        unknowns = self.size * len(steps)
        self._bands = np.zeros((2 * self._width + 1, unknowns))
        self._right = np.zeros((unknowns, states.shape[2]))
        given = ~np.isnan(states[:m, :, 0])
        for k in range(m):
            self._start(k, bool(given[k, 0]))
            self._inside(k, given[k, 1:-1])
            self._end(k, bool(given[k, -1]))

    def solution(self) -> Array:
        """Taylor coefficients (K - 1, 2m, n) of all pieces."""
        width = self._width
        # Its import takes as long as that of this library, which nodes that play motions can do without.
        from scipy.linalg import solve_banded

        x = solve_banded((width, width), self._bands, self._right, overwrite_ab=True, check_finite=False)
        x = x.reshape(len(self.steps), self.size, -1)
        x[:, 0] = self.states[0, :-1]
        return x

    def _start(self, k: int, given: bool) -> None:
        order = k if given else self.size - 1 - k
        self._put(np.array([k]), np.array([0]), order, 1.0)
        if given and k:
            self._right[k] = self._scaled(k, 0, 0)

    def _end(self, k: int, given: bool) -> None:
        row, piece = len(self._right) - self.m + k, len(self.steps) - 1
        self._expand(np.array([row]), np.array([piece]), k if given else self.size - 1 - k, np.ones(1))
        if given:
            self._right[row] = self._change(piece) if k == 0 else self._scaled(k, -1, -1)

    def _inside(self, k: int, given: NDArray[np.bool_]) -> None:
        before = np.arange(len(self.steps) - 1)
        first = self.m + self.size * before + k
        known, open_ = before[given], before[~given]
        for order, rows in ((k, first[~given]), (self.size - 1 - k, first[~given] + self.m)):
            # Scaled by the longer of the two steps, so that pivots can be compared.
            unit = np.maximum(self.steps[open_], self.steps[open_ + 1])
            self._expand(rows, open_, order, (unit / self.steps[open_]) ** order)
            self._put(rows, open_ + 1, order, -((unit / self.steps[open_ + 1]) ** order))
        self._expand(first[given], known, k, np.ones(len(known)))
        self._put(first[given] + self.m, known + 1, k, 1.0)
        if k == 0:
            self._right[first[given]] = self._change(known)
        else:
            self._right[first[given]] = self._scaled(k, known + 1, known)
            self._right[first[given] + self.m] = self._scaled(k, known + 1, known + 1)

    def _put(self, rows: NDArray[np.intp], pieces: NDArray[np.intp], order: int, values: Array | float) -> None:
        columns = self.size * pieces + order
        self._bands[self._width + rows - columns, columns] = values

    def _expand(self, rows: NDArray[np.intp], pieces: NDArray[np.intp], order: int, values: Array) -> None:
        """Add the derivative at the end of pieces; for order 0 without the position at the start."""
        for j in range(max(order, 1), self.size):
            self._put(rows, pieces, j, self.shift[order, j] * values)

    def _change(self, piece: int | NDArray[np.intp]) -> Array:
        return self.states[0, np.add(piece, 1)] - self.states[0, piece]

    def _scaled(self, k: int, knot: int | NDArray[np.intp], piece: int | NDArray[np.intp]) -> Array:
        """Given derivative at a knot as a Taylor coefficient of a piece."""
        return self.states[k, knot] * np.expand_dims(self.steps[piece] ** k / factorial(k), -1)
