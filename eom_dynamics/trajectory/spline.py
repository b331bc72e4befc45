# SPDX-License-Identifier: Apache-2.0
"""Piecewise polynomials of degree nine: C⁴ by construction, whatever the states at their knots are."""

from __future__ import annotations

from math import comb, factorial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exceptions import TrajectoryError
from .trajectory import Scaled

Array = NDArray[np.float64]

ORDERS = 5
"""q and its four time derivatives: what a knot says."""

DEGREE = 2 * ORDERS - 1

# On a piece u = 0 … 1 with p = sum c_j u^j: (1/k!) d^k p/du^k at u = 1 is the sum of comb(j, k) c_j. The first five
# coefficients are those of Taylor at u = 0; the rest close the gap that these leave at u = 1.
_TAYLOR_AT_1 = np.array([[comb(j, k) for j in range(ORDERS)] for k in range(ORDERS)], dtype=float)
_CLOSING = np.round(np.linalg.inv([[comb(j, k) for j in range(ORDERS, DEGREE + 1)] for k in range(ORDERS)]))
_FACTORIALS = np.array([factorial(k) for k in range(ORDERS)], dtype=float)

# Rows that are evaluated together: what they need fits in a core's cache, and memory stays flat.
_CHUNK = 1024


class Spline:
    """The trajectory that has given states q … qdddd at knots, and between two knots is their polynomial of degree 9.

    The Hermite interpolant: ten numbers a piece, five from each side. It is C⁴ everywhere, exact at the knots, and
    each piece depends on nothing but the two states beside it.

    Attributes:
        times: of the knots (K,), s.
        states: q, qd, qdd, qddd, qdddd at the knots (5, K, n), rad or m, and per s, s², s³, s⁴.
    """

    def __init__(self, times: ArrayLike, states: ArrayLike) -> None:
        """Take times (K,), K >= 1, in s, which increase, and states (5, K, n).

        Raises:
            TrajectoryError: shapes differ from these, times do not increase, or a number is not finite.
        """
        self.times, self.states = np.array(times, dtype=float), np.array(states, dtype=float)
        if self.times.ndim != 1 or not len(self.times):
            raise TrajectoryError(f"times must have shape (K,), K >= 1, have {self.times.shape}")
        if self.states.ndim != 3 or self.states.shape[:2] != (ORDERS, len(self.times)):
            raise TrajectoryError(f"states must have shape ({ORDERS}, {len(self.times)}, n), have {self.states.shape}")
        if not (np.all(np.isfinite(self.times)) and np.all(np.isfinite(self.states))):
            raise TrajectoryError("times and states of a spline must be finite")
        self._steps = np.diff(self.times)
        if not np.all(self._steps > 0):
            late = int(np.argmin(self._steps > 0)) + 1
            raise TrajectoryError(f"times must increase; times[{late}] = {self.times[late]!r} does not")
        self._coefficients = _coefficients(self._steps, self.states)

    @property
    def n(self) -> int:
        """Number of joints."""
        return self.states.shape[2]

    @property
    def start(self) -> float:
        """First time, s."""
        return float(self.times[0])

    @property
    def end(self) -> float:
        """Last time, s."""
        return float(self.times[-1])

    def derivatives(self, t: ArrayLike, order: int = 4) -> tuple[Array, ...]:
        """q and its time derivatives up to ``order``; before the start and after the end it stands still.

        Args:
            t: one time, or times (N,), in s.
            order: the highest derivative; from the fifth on they jump at knots, and the later piece counts.

        Returns:
            ``order`` + 1 arrays, each (n,) for one time and (N, n) for N of them.
        """
        at = np.asarray(t, dtype=float)
        rows = at.reshape(-1)
        result = np.empty((order + 1, len(rows), self.n))
        for first in range(0, len(rows), _CHUNK):
            part = slice(first, first + _CHUNK)
            self._evaluate(rows[part], result[:, part])
        return tuple(result.reshape(order + 1, *at.shape, self.n))

    def scaled(self, s: float | None) -> Scaled:
        """The same path, s times as slowly; TrajectoryError where there is no such s, as of :class:`Scaled`."""
        return Scaled(self, s)

    def _evaluate(self, t: Array, out: Array) -> None:
        outside = (t < self.start) | (t > self.end)
        if len(self.times) == 1:
            out[:] = 0.0
            known = min(len(out), ORDERS)
            out[:known] = self.states[:known]
            out[1:, outside] = 0.0
            return
        piece = np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, len(self._steps) - 1)
        step = self._steps[piece]
        before, after = t - self.times[piece], t - self.times[piece + 1]
        near_end = -after < before
        u = np.clip(np.where(near_end, after, before) / step, -1.0, 1.0)
        u[outside] = 0.0
        # Times run along the last axis, where NumPy is fast.
        c = self._coefficients[:, :, piece + near_end * len(self._steps)]
        value, following = np.zeros((2, len(out), self.n, len(t)))
        for j in range(DEGREE, -1, -1):
            np.multiply(value, u, out=following)
            following[1:] += value[:-1]
            following[0] += c[j]
            value, following = following, value
        for k in range(len(out)):
            np.multiply(value[k].T, (factorial(k) / step**k)[:, np.newaxis], out=out[k])
        out[1:, outside] = 0.0


def _coefficients(steps: Array, states: Array) -> Array:
    """Coefficients (10, n, 2 K - 2) of the powers of u on all pieces.

    First of u = (t - t_i)/h from the left of each piece, then of u = (t - t_(i + 1))/h from the right. Each serves the
    half beside, so that knots are met exactly, and powers lose few digits in between.
    """
    orders = np.arange(ORDERS)[:, np.newaxis]
    scale = (steps**orders / _FACTORIALS[:, np.newaxis])[..., np.newaxis]
    left, right = states[:, :-1] * scale, states[:, 1:] * scale
    backwards = ((-1.0) ** np.arange(DEGREE + 1))[:, np.newaxis, np.newaxis]
    mirrored = _from_left(right * backwards[:ORDERS], left * backwards[:ORDERS]) * backwards
    both = np.concatenate([_from_left(left, right), mirrored], axis=1)
    return np.ascontiguousarray(np.moveaxis(both, 1, 2))


def _from_left(left: Array, right: Array) -> Array:
    """(10, K - 1, n) from the derivatives over their factorials, in a piece's own time, at both its ends."""
    # From the difference of positions, so that their size takes no digits from short pieces.
    gap = right.copy()
    gap[0] -= left[0]
    gap -= np.tensordot(_TAYLOR_AT_1[:, 1:], left[1:], 1)
    return np.concatenate([left, np.tensordot(_CLOSING, gap, 1)])
