# SPDX-License-Identifier: Apache-2.0
"""Geometric paths over σ from 0 to 1, on which any smooth pace starts and ends at rest."""

from __future__ import annotations

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from ...arguments import first_not_finite
from ...arrays import Array
from ...exceptions import TrajectoryError
from ..planned_path import SmoothSpline
from ..spline import Spline
from ..trajectory import Trajectory
from .settings import SETTINGS

# Parameters s = phi(σ) from 0 to 1, by whether their first four derivatives vanish at the start and at the end. Powers
# of σ cancel near 1: there, they are 1 - phi(1 - σ) of those with the ends exchanged.
_START = Polynomial([0, 0, 0, 0, 0, 14, -28, 20, -5])
_PARAMETERS = {
    (False, False): Polynomial([0.0, 1.0]),
    (True, False): _START,
    (False, True): 1 - _START(Polynomial([1.0, -1.0])),
    (True, True): Polynomial([0, 0, 0, 0, 0, 126, -420, 540, -315, 70]),
}


def chain(outer: Array, inner: Array) -> Array:
    """Derivatives of p(f(u)) from derivatives of p by f (4, N, n) and the first K of f by u (K, N): Faà di Bruno."""
    p1, p2, p3, p4 = outer
    a, b, *others = inner[..., np.newaxis]
    rates = [p1 * a, p2 * a**2 + p1 * b]
    if others:
        rates.append(p3 * a**3 + 3 * p2 * a * b + p1 * others[0])
    if len(others) > 1:
        c, d = others
        rates.append(p4 * a**4 + 6 * p3 * a**2 * b + p2 * (3 * b**2 + 4 * a * c) + p1 * d)
    return np.array(rates)


def divided(knots: Array, counts: NDArray[np.intp]) -> Array:
    """Increasing knots with each interval divided into a number of equal parts."""
    passed = np.append(0, np.cumsum(counts))
    return np.asarray(np.interp(np.arange(passed[-1] + 1), passed, knots))


class GeometricPath:
    """Path q(σ) of n joints, σ from 0 to 1, with derivatives up to the fourth that vanish at both ends.

    If the derivatives of the input path do not vanish, its parameter is a polynomial of σ that makes them vanish. So
    any smooth, positive rate of σ is a C⁴ motion from rest to rest. ``breaks`` are the inner knots of a spline, at
    which its fifth derivative may jump if it has ``kinks``.
    """

    def __init__(self, path: Trajectory) -> None:
        """Take the curve of a trajectory; its timing does not matter.

        Raises TrajectoryError if the path has no start or end, has no length, or is not smooth.
        """
        self._path, self.n = path, path.n
        self._start, self._length = path.start, path.end - path.start
        if not (np.isfinite(self._length) and self._length > 0):
            raise TrajectoryError("a path must have a start and an end, with a positive duration between them")
        knots = path.t[1:-1] if isinstance(path, Spline) else np.zeros(0)
        edges = np.concatenate([[path.start], knots, [path.end]])
        # At least so many in each piece: blends of corners may be much shorter than the lines between them.
        counts = np.ceil(SETTINGS.path_steps * np.diff(edges) / self._length).astype(int)
        s = divided(edges, np.maximum(counts, SETTINGS.path_steps_of_piece))
        q, rate, second = self._evaluated(s, 2)
        self._require_motion(s, q, rate, second)
        scale = np.sum(np.max(np.abs(np.diff(q, axis=0)), axis=1))
        powers = self._length ** np.arange(1, 5)[:, np.newaxis, np.newaxis]
        at_ends = np.array(self._evaluated(s[[0, -1]], 4)[1:])
        ends = np.max(np.abs(at_ends * powers), axis=(0, 2)) > SETTINGS.path_at_rest * scale
        self._ends = _PARAMETERS[ends[0], ends[1]], _PARAMETERS[ends[1], ends[0]]
        self.breaks, self.kinks = self._inverse(knots), not isinstance(path, SmoothSpline)

    def positions(self, sigma: Array) -> Array:
        """q (N, n) at σ (N,)."""
        return self._evaluated(self._parameter(self._phi(sigma)), 0)[0]

    def derivatives(self, sigma: Array) -> tuple[Array, Array]:
        """q (N, n) and its derivatives 1 … 4 by σ (4, N, n)."""
        phi = np.array([self._phi(sigma, k) for k in range(5)])
        q, *rates = self._evaluated(self._parameter(phi[0]), 4)
        return q, chain(np.array(rates), self._length * phi[1:])

    def percent(self, sigma: Array) -> Array:
        """Share of the parameter of the given path up to σ (N,), in per cent."""
        return np.asarray(100.0 * self._phi(sigma))

    def parameter(self, sigma: Array) -> Array:
        """Parameters of the given path at σ, in the shape of σ."""
        return np.asarray(self._start + self._length * self._phi(sigma))

    def _phi(self, sigma: Array, k: int = 0) -> Array:
        """A derivative of phi at σ, in the shape of σ."""
        early, late = (phi.deriv(k) for phi in self._ends)
        return np.where(sigma < 0.5, early(sigma), (k == 0) - (-1) ** k * late(1 - sigma))

    def _parameter(self, phi: Array) -> Array:
        return np.clip(self._start + self._length * phi, self._start, self._start + self._length)

    def _evaluated(self, s: Array, order: int) -> tuple[Array, ...]:
        values = self._path.derivatives(s, order)
        for x in values:
            if bad := first_not_finite(x):
                raise TrajectoryError(f"the path is not finite at {s[bad[0]]:.6g}")
        return values

    def _require_motion(self, s: Array, q: Array, rate: Array, second: Array) -> None:
        """Raise an error where a path pauses, or its derivative jumps."""
        step = np.diff(s)[:, np.newaxis]
        moved = np.diff(q, axis=0)
        still = ~np.any(moved, axis=1)
        near = len(still) // SETTINGS.path_near_end
        still[:near], still[-near:] = np.all(still), np.all(still)
        if np.any(still):
            k = int(np.argmax(still))
            where = "anywhere" if np.all(still) else f"between {s[k]:.6g} and {s[k + 1]:.6g}"
            raise TrajectoryError(f"the path does not move {where}; remove repeated points and pauses")
        # The corrected trapezoidal rule is off by the fifth derivative, and where the slope jumps.
        expected = 0.5 * step * (rate[1:] + rate[:-1]) - step**2 / 12 * (second[1:] - second[:-1])
        wrong = np.abs(moved - expected) > SETTINGS.path_smooth * np.max(np.abs(rate)) * np.max(step)
        if np.any(wrong):
            k, joint = np.argwhere(wrong)[0]
            raise TrajectoryError(
                f"the path has a corner between {s[k]:.6g} and {s[k + 1]:.6g}: joint {joint} moves by "
                f"{moved[k, joint]:.3g}, its derivatives give {expected[k, joint]:.3g}; a path must be smooth: "
                "of waypoints leave out those close to others, or blend corners"
            )

    def _inverse(self, s: Array) -> Array:
        """Values of σ for increasing parameters of the given path."""
        wanted = (s - self._start) / self._length
        low, high, rows = np.zeros_like(wanted), np.ones_like(wanted), np.arange(len(wanted))
        for _ in range(SETTINGS.sections):
            tried = np.linspace(low, high, SETTINGS.section_parts + 1, axis=1)
            k = np.sum(self._phi(tried[:, 1:-1]) <= wanted[:, np.newaxis], axis=1)
            low, high = tried[rows, k], tried[rows, k + 1]
        return 0.5 * (low + high)
