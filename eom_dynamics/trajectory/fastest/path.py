# SPDX-License-Identifier: Apache-2.0
"""Geometric paths over σ from 0 to 1, along which any smooth pace starts and ends at rest, and the speed along them.

The squared speed x = (dσ/dt)² is a B-spline. With x(σ), the time derivatives of σ are functions of x, x', x'', x''' at
the same point, without division:

    σ' = √x,    σ'' = x'/2,    σ''' = √x x''/2,    σ'''' = x x'''/2 + x' x''/4.

A spline of degree four is three times continuously differentiable: so is the speed over σ, and σ(t) four times. Near an
end at rest, the path is q - q_0 ~ σ⁵. There, a constant acceleration is σ ~ t^(2/5), so x ~ σ^-3: the spline is
multiplied by a weight with this power.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from math import comb

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from ...arguments import first_not_finite
from ...arrays import Array
from ...exceptions import TrajectoryError
from ..planned_path import SmoothSpline
from ..trajectory import Spline, Trajectory, basis_rows
from . import SETTINGS

# Parameters s = phi(σ) from 0 to 1, by whether their first four derivatives vanish at the start and at the end. Powers
# of σ cancel near 1: there, they are 1 - phi(1 - σ) with the ends exchanged.
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
    any smooth, positive rate of σ is a C⁴ motion from rest to rest. ``breaks`` are the inner knots of a spline. Its
    fifth derivative may jump there if it has ``kinks``.
    """

    def __init__(self, path: Trajectory) -> None:
        """Use the curve of a trajectory; its timing does not matter.

        Raises TrajectoryError if the path has no start or end, has no length, or is not smooth.
        """
        self._path, self.n = path, path.n
        self._start, self._length = path.start, path.end - path.start
        if not (np.isfinite(self._length) and self._length > 0):
            raise TrajectoryError("a path must have a start and an end with a positive duration between them")
        knots = path.t[1:-1] if isinstance(path, Spline) else np.zeros(0)
        edges = np.concatenate([[path.start], knots, [path.end]])
        # A minimum number in each piece: blends of corners may be much shorter than the lines between them.
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
        """Raise an error if a path pauses, or its derivative jumps."""
        step = np.diff(s)[:, np.newaxis]
        moved = np.diff(q, axis=0)
        still = ~np.any(moved, axis=1)
        near = len(still) // SETTINGS.path_near_end
        still[:near], still[-near:] = np.all(still), np.all(still)
        if np.any(still):
            k = int(np.argmax(still))
            where = "anywhere" if np.all(still) else f"between {s[k]:.6g} and {s[k + 1]:.6g}"
            raise TrajectoryError(f"the path does not move {where}; remove repeated points and pauses")
        # The corrected trapezoidal rule has errors by the fifth derivative, and at jumps of the slope.
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


DEGREE = 4
_POWER = 3  # power of the weight at an end

PAIRS = tuple((k, m) for k in range(4) for m in range(k + 1))
"""Pairs of derivatives of x, in the order of curvatures by them."""

# Entries (row, column) in the lower half of a symmetric matrix of the coefficients of an interval.
_LOWER = tuple((i, j) for i in range(DEGREE + 1) for j in range(i + 1))


class SquaredSpeed:
    """Space of functions x(σ) = w(σ) y(σ), y a B-spline with coefficients c (count,).

    Attributes:
        knots: increasing, from 0 to 1 (I + 1,).
        count: number of coefficients, I + DEGREE.
        counts: number of nodes in each interval (I,).
        nodes: values of σ (M,), evenly distributed in each interval; 0 and 1 are among them.
        steps: share of each node in the unit interval (M,).
        rows: derivatives 0 … 3 of x at the nodes by the coefficients of their intervals (4, DEGREE + 1, M).
        finer: number of nodes for each one of :meth:`thinned`.
    """

    def __init__(self, knots: Array, finer: int = 1) -> None:
        """Set knots, and an odd factor ``finer`` of the numbers of nodes between them."""
        self.knots, self.finer = knots, finer
        counts = np.full(len(knots) - 1, SETTINGS.nodes)
        counts[[0, -1]] = SETTINGS.end_nodes
        self.counts = counts = counts * finer
        self._t = np.concatenate([np.full(DEGREE, knots[0]), knots, np.full(DEGREE, knots[-1])])
        self.count = len(knots) - 1 + DEGREE
        interval = np.repeat(np.arange(len(counts)), counts)
        # From each knot on, because motor efforts behind springs have kinks there; the last interval ends at its node.
        self.nodes = np.delete(divided(knots, counts), len(interval) - counts[-1])
        self.steps = _steps(self.nodes)
        self.rows = np.ascontiguousarray(self._rows(self.nodes, interval, 4).transpose(0, 2, 1))
        self._columns = interval + np.arange(DEGREE + 1)[:, np.newaxis]
        self._products = np.zeros((0, len(_LOWER), 0))

    def thinned(self, more: NDArray[np.intp]) -> tuple[SquaredSpeed, NDArray[np.intp]]:
        """Equal functions at the nodes without ``finer`` and at nodes ``more``, by index; and the indices of all."""
        finer, counts = self.finer, self.counts // self.finer
        place = np.arange(0, len(self.nodes), finer)
        place[-counts[-1] :] += finer - 1
        index = np.union1d(place, more)
        thin = copy(self)
        thin.nodes, thin.steps = self.nodes[index], _steps(self.nodes[index])
        thin.rows, thin._columns = self.rows[..., index], self._columns[:, index]
        thin.counts = np.bincount(np.repeat(np.arange(len(counts)), self.counts)[index])
        return thin, index

    def at_nodes(self, c: Array) -> Array:
        """x and its derivatives 1 … 3 at the nodes (4, M)."""
        return np.asarray(np.einsum("kdm,dm->km", self.rows, c[self._columns]))

    def capped(self, largest: Array) -> Array:
        """Upper bounds of x at the nodes (M,), reduced in the intervals next to the ends.

        A path q - q_0 ~ σ⁵ does not limit x by its velocity there. The bound grows no faster than the weight, and an
        interval takes as long as two cycles of a drive at 1 kHz.
        """
        w, bound = self._weight(self.nodes)[0], largest.copy()
        parts = (slice(0, self.counts[0]), self.counts[0] - 1), (slice(-self.counts[-1], None), -self.counts[-1])
        for end, (part, edge) in zip((0, -1), parts, strict=True):
            length = np.diff(self.knots)[end]
            bound[part] = np.minimum(bound[part], (length / SETTINGS.end_time) ** 2)
            bound[part] = np.minimum(bound[part], bound[edge] * w[part] / w[edge])
        return bound

    def below(self, largest: Array) -> Array:
        """Coefficients (count,) of a smooth x that is nowhere much above upper bounds at the nodes (M,)."""
        least = np.minimum.reduceat(largest / self._weight(self.nodes)[0], np.append(0, np.cumsum(self.counts)[:-1]))
        # Minimum over the intervals of each coefficient and their neighbors; then means over three of these, twice.
        y = np.pad(np.log(least), DEGREE, mode="edge")
        y = np.min(sliding_window_view(y, DEGREE + 1), axis=1)
        for _ in range(2):
            y = np.mean(sliding_window_view(np.pad(y, 1, mode="edge"), 3), axis=1)
        return np.asarray(np.exp(y))

    def gradient(self, by_values: Array) -> Array:
        """Derivatives of a number by the coefficients (count,), from derivatives by x … at the nodes (K, M), K <= 4."""
        local = np.einsum("km,kdm->dm", by_values, self.rows[: len(by_values)])
        return np.asarray(np.bincount(self._columns.ravel(), local.ravel(), self.count), dtype=float)

    def bands(self, curvature: Array) -> Array:
        """Lower bands (DEGREE + 1, count) of Σ Rᵀ K R, for symmetric K and the rows R at the nodes.

        Args:
            curvature: entries of K (P, M), for the first P of :data:`PAIRS`.
        """
        if len(self._products) < len(curvature):
            self._products = np.array([self._products_of(*pair) for pair in PAIRS[: len(curvature)]])
            # A band and a column for each product.
            self._entries = np.concatenate([(i - j) * self.count + self._columns[j] for i, j in _LOWER])
        local = np.einsum("pm,pbm->bm", curvature, self._products[: len(curvature)])
        size = DEGREE + 1, self.count
        return np.asarray(np.bincount(self._entries, local.ravel(), size[0] * size[1]), dtype=float).reshape(size)

    def _products_of(self, k: int, m: int) -> Array:
        """Factors (entries, M) of the entry of K for a pair, and for its mirror image."""
        a, b = self.rows[k], self.rows[m]
        return np.array([a[i] * b[j] + (b[i] * a[j] if k != m else 0.0) for i, j in _LOWER])

    def values(self, c: Array, sigma: Array, orders: int = 4) -> Array:
        """x and its first derivatives (orders, N) at any σ (N,)."""
        # Its import takes longer than importing this library.
        from scipy.interpolate import BSpline

        y, w = BSpline(self._t, c, DEGREE), self._weight(sigma)
        return _product(w, [y(sigma, nu=k) for k in range(orders)])

    def _rows(self, sigma: Array, interval: NDArray[np.intp], orders: int) -> Array:
        """Derivatives 0 … of x at σ (N,) by the coefficients of their intervals (orders, N, DEGREE + 1)."""
        y = basis_rows(self._t, DEGREE, sigma, interval, range(orders))
        return _product(self._weight(sigma)[..., np.newaxis], y)

    def _weight(self, sigma: Array) -> Array:
        """The weight and its derivatives 1 … 3 (4, N)."""
        ends = []
        for distance, sign in ((sigma, 1.0), (1.0 - sigma, -1.0)):
            inverse = 1.0 / (distance + SETTINGS.layer)
            power = [np.prod([inverse] * _POWER, axis=0)]
            for k in range(3):
                power.append(power[-1] * (-sign * (_POWER + k)) * inverse)
            ends.append(power)
        return _product(*ends)


def _steps(nodes: Array) -> Array:
    """Share of each node in the unit interval (M,): to the middle between it and its neighbors."""
    return np.diff(np.concatenate([[0.0], 0.5 * (nodes[1:] + nodes[:-1]), [1.0]]))


def _product(a: Sequence[Array] | Array, b: Sequence[Array]) -> Array:
    """Derivatives 0 … of a product, as many as of b, from the derivatives of its factors."""
    return np.array([sum(comb(k, j) * a[j] * b[k - j] for j in range(k + 1)) for k in range(len(b))])


def time_derivatives(x: Array) -> Array:
    """Time derivatives 1 … 4 of σ (4, N) from x … x''' (4, N)."""
    root = np.sqrt(x[0])
    return np.array([root, 0.5 * x[1], 0.5 * root * x[2], 0.5 * x[0] * x[3] + 0.25 * x[1] * x[2]])
