# SPDX-License-Identifier: Apache-2.0
"""The squared speed x = (dσ/dt)² along a path as a B-spline.

With x(σ), the time derivatives of σ are functions of x, x', x'', x''' at the same point, without division:

    σ' = √x,    σ'' = x'/2,    σ''' = √x x''/2,    σ'''' = x x'''/2 + x' x''/4.

A spline of degree four is three times continuously differentiable: so is the speed over σ, and σ(t) four times. Near an
end at rest, where the path is q - q_0 ~ σ⁵, a constant acceleration is σ ~ t^(2/5), hence x ~ σ^-3: the spline is
multiplied by a weight with this power. At an end with a given velocity, x and those derivatives that are given fix as
many coefficients.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array

DEGREE = 4
"""Degree of the spline."""

NODES = 3
"""Number of nodes in an interval between knots."""

END_NODES = 16
"""Number of nodes in the first and the last interval."""

# Least duration of these intervals, s.
_END_TIME = 2e-3

# Distance of a node from an end with a given state, in steps.
_NEAR = 0.02

# Power of the weight at an end, and the distance from the end within which it is constant.
_POWER = 3
_LAYER = 0.01


class SquaredSpeed:
    """Space of functions x(σ) = w(σ) y(σ), y a B-spline with coefficients c (count,).

    Attributes:
        knots: increasing, from 0 to 1 (I + 1,).
        count: number of coefficients, I + DEGREE.
        counts: number of nodes in each interval (I,).
        nodes: values of σ (M,), evenly distributed in each interval; 0 and 1 are among them.
        steps: share of each node in the unit interval (M,).
        rows: derivatives 0 … 3 of x at the nodes by the coefficients of their intervals (M, 4, DEGREE + 1).
        fixed: number of coefficients that given states fix at the start and at the end, 0 at an end at rest.
        free: the others.
        resting: indices of the intervals next to an end at rest: 0, -1, or both.
    """

    def __init__(self, knots: Array, counts: NDArray[np.intp] | None = None, fixed: tuple[int, int] = (0, 0)) -> None:
        """Set the knots, the numbers of nodes between them, and of fixed coefficients."""
        self.knots, self.fixed = knots, fixed
        self.resting = [end for end, number in zip((0, -1), fixed, strict=True) if not number]
        if counts is None:
            counts = np.full(len(knots) - 1, NODES)
            counts[self.resting] = END_NODES
        self.counts = counts
        self._t = np.concatenate([np.full(DEGREE, knots[0]), knots, np.full(DEGREE, knots[-1])])
        self.count = len(knots) - 1 + DEGREE
        self.free = slice(fixed[0], self.count - fixed[1])
        self._first = np.concatenate([[0], np.cumsum(counts)[:-1]])
        interval = np.repeat(np.arange(len(counts)), counts)
        self.steps = (np.diff(knots) / counts)[interval]
        # In the middle of their steps, but for intervals next to an end at rest, which is a node.
        offset = np.full(len(interval), 0.5)
        # Next to an end that moves, where what is given may be at a limit.
        offset[[0, -1]] = _NEAR, 1 - _NEAR
        for end in self.resting:
            offset[interval == interval[end]] = -float(end)
        self.nodes = knots[interval] + (np.arange(len(interval)) - self._first[interval] + offset) * self.steps
        self.rows = self._rows(self.nodes, interval)
        self._columns = interval[:, np.newaxis] + np.arange(DEGREE + 1)

    def at_nodes(self, c: Array) -> Array:
        """x and its derivatives 1 … 3 at the nodes (4, M)."""
        found: Array = np.einsum("mkd,md->km", self.rows, c[self._columns])
        return found

    def capped(self, largest: Array) -> Array:
        """Upper bounds of x at the nodes (M,), reduced in the intervals next to the ends.

        A path q - q_0 ~ σ⁵ does not limit x by its velocity there. The bound grows no faster than the weight, and an
        interval takes as long as two cycles of a drive at 1 kHz.
        """
        w, bound = self._weight(self.nodes)[0], largest.copy()
        parts = (slice(0, self.counts[0]), self.counts[0] - 1), (slice(-self.counts[-1], None), -self.counts[-1])
        for end in self.resting:
            part, edge = parts[end]
            length = np.diff(self.knots)[end]
            bound[part] = np.minimum(bound[part], (length / _END_TIME) ** 2)
            bound[part] = np.minimum(bound[part], bound[edge] * w[part] / w[edge])
        return bound

    def collocation(self) -> tuple[Array, Array]:
        """Values of σ that determine the coefficients (count,), and x there by the coefficients (count, count)."""
        sigma = np.array([float(np.mean(self._t[i + 1 : i + 1 + DEGREE])) for i in range(self.count)])
        interval = np.clip(np.searchsorted(self.knots, sigma, side="right") - 1, 0, len(self.knots) - 2)
        matrix = np.zeros((self.count, self.count))
        columns = interval[:, np.newaxis] + np.arange(DEGREE + 1)
        np.put_along_axis(matrix, columns, self._rows(sigma, interval)[:, 0], axis=1)
        return sigma, matrix

    def end_coefficients(self, end: int, x: Array) -> Array:
        """The first (end 0) or last (end -1) m coefficients, for x … x''' or the first m of them (m,) at that end."""
        row = self._rows(self.knots[[end]], np.array([end % (len(self.knots) - 1)]))[0, : len(x)]
        # The k-th derivative is determined by the k + 1 outer coefficients.
        columns = slice(0, len(x)) if end == 0 else slice(-len(x), None)
        found: Array = np.linalg.solve(row[:, columns], x).astype(float)
        return found

    def gradient(self, by_values: Array) -> Array:
        """Derivatives of a number by the coefficients (count,), from those by x … x''' at the nodes (4, M)."""
        local = np.add.reduceat(np.einsum("km,mkd->md", by_values, self.rows), self._first, axis=0)
        total = np.zeros(self.count)
        for k in range(DEGREE + 1):
            total[k : k + len(local)] += local[:, k]
        return total

    def bands(self, by_values: Array) -> Array:
        """Lower bands (DEGREE + 1, count) of Σ Rᵀ K R, for symmetric K at the nodes (M, 4, 4) and their rows R."""
        local = np.matmul(self.rows.transpose(0, 2, 1), np.matmul(by_values, self.rows))
        local = np.add.reduceat(local, self._first, axis=0)
        total = np.zeros((DEGREE + 1, self.count))
        for i in range(DEGREE + 1):
            for j in range(i + 1):
                total[i - j, j : j + len(local)] += local[:, i, j]
        return total

    def values(self, c: Array, sigma: Array) -> Array:
        """x and its derivatives 1 … 3 (4, N) at any σ (N,)."""
        interval = np.clip(np.searchsorted(self.knots, sigma, side="right") - 1, 0, len(self.knots) - 2)
        local = c[interval[:, np.newaxis] + np.arange(DEGREE + 1)]
        found: Array = np.einsum("mkd,md->km", self._rows(sigma, interval), local)
        return found

    def _rows(self, sigma: Array, interval: NDArray[np.intp]) -> Array:
        # Its import takes longer than that of this library.
        from scipy.interpolate import BSpline

        # In each interval DEGREE + 1 consecutive splines are not zero, one of each column.
        basis = BSpline(self._t, np.eye(DEGREE + 1)[np.arange(self.count) % (DEGREE + 1)], DEGREE)
        columns = (interval[:, np.newaxis] + np.arange(DEGREE + 1)) % (DEGREE + 1)
        y = [np.take_along_axis(basis(sigma, nu=k), columns, axis=1) for k in range(4)]
        w = self._weight(sigma)
        return np.stack(
            [sum(comb(k, j) * w[j][:, np.newaxis] * y[k - j] for j in range(k + 1)) for k in range(4)], axis=1
        )

    def _weight(self, sigma: Array) -> Array:
        """The weight and its derivatives 1 … 3 (4, N)."""
        ends = []
        for number, distance, sign in zip(self.fixed, (sigma, 1.0 - sigma), (1.0, -1.0), strict=True):
            exponent = 0 if number else _POWER
            power = [(distance + _LAYER) ** -exponent]
            for k in range(3):
                power.append(power[-1] * -sign * (exponent + k) / (distance + _LAYER))
            ends.append(power)
        return np.array([sum(comb(k, j) * ends[0][j] * ends[1][k - j] for j in range(k + 1)) for k in range(4)])


def time_derivatives(x: Array) -> Array:
    """Time derivatives 1 … 4 of σ (4, N) from x … x''' (4, N)."""
    root = np.sqrt(x[0])
    return np.array([root, 0.5 * x[1], 0.5 * root * x[2], 0.5 * x[0] * x[3] + 0.25 * x[1] * x[2]])


def time_derivative_changes(x: Array) -> Array:
    """Derivatives of :func:`time_derivatives` by x … x''' (4 by x … x''', 4, N)."""
    root = np.sqrt(x[0])
    result = np.zeros((4, *x.shape))
    result[0, 0] = 0.5 / root
    result[1, 1] = 0.5
    result[0, 2], result[2, 2] = 0.25 * x[2] / root, 0.5 * root
    result[:, 3] = 0.5 * x[3], 0.25 * x[2], 0.25 * x[1], 0.5 * x[0]
    return result
