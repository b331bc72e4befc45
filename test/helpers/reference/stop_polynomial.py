# SPDX-License-Identifier: Apache-2.0
"""The stop of the documentation as a polynomial in powers, beside that of the loop from its ends."""

from functools import cache
from math import comb, factorial

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike

from eom_dynamics.arrays import Array


class StopPolynomial:
    """Motion x(s) from x_0 ... x_m at s = 0 to rest at s = T, continuous up to the m-th derivative at both ends.

    Its rate is the polynomial of least degree, 2m - 1, that meets x_1 ... x_m at the start, and vanishes with its first
    m - 1 derivatives at the end; with u = s/T,

        xd(s) = sum over i < m of  x_{i+1} T^i / i!  P_i(u),
        P_i(u) = u^i (1 - u)^m  sum over j < m - i of  binomial(j + m - 1, m - 1) u^j,

    where the last sum is the Taylor polynomial of (1 - u)^-m: two-point Hermite interpolation (C. Hermite, Sur la
    formule d'interpolation de Lagrange, J. reine angew. Math. 84, 1878). Where x_1 alone is not zero, xd falls to zero
    monotonically and x(T) = x_0 + T x_1 / 2.

    Attributes:
        duration: T, s.
        end: x(T), of the shape of x_0.
    """

    @np.errstate(over="ignore", invalid="ignore")  # of a state of any size; what is computed of the motion is checked
    def __init__(self, start: ArrayLike, duration: float) -> None:
        """Set the state and the duration.

        Args:
            start: x_0 ... x_m (m + 1, ...), m >= 1.
            duration: T > 0, s.
        """
        x = np.array(start, dtype=float)
        self.duration = float(duration)
        self._start = x
        m = len(x) - 1
        orders = np.arange(m)
        factors = self.duration ** (orders + 1) / [float(factorial(i)) for i in range(m)]
        # Of the powers u^1 ... u^2m of x - x_0, and of those of 1 - u of x - x(T): near the end, the former cancel.
        # The integrals of the rates have coefficients over 1 ... 2m.
        self._from_start, self._from_end = (
            np.tensordot(rates / np.arange(1, 2 * m + 1) * factors[:, np.newaxis], x[1:], (0, 0))
            for rates in _rate_bases(m)
        )
        self.end: Array = x[0] + self._from_start.sum(axis=0)

    @np.errstate(over="ignore", invalid="ignore")
    def derivatives(self, s: ArrayLike) -> Array:
        """X ... its m-th derivative at times s: (m + 1, ...) at one time, (m + 1, N, ...) at N times."""
        at = np.asarray(s, dtype=float)
        u = at.reshape(-1) / self.duration
        m = len(self._start) - 1
        result = np.zeros((m + 1, len(u), *self._start.shape[1:]))
        first, last = u < 0.5, (u >= 0.5) & (u < 1)
        from_start, from_end = _powers(u[first].clip(0.0), m), _powers(1 - u[last], m)
        for k in range(m + 1):
            result[k, first] = np.tensordot(from_start[k], self._from_start, 1) / self.duration**k
            result[k, last] = np.tensordot(from_end[k], self._from_end, 1) / (-self.duration) ** k
        result[0] += np.where(first.reshape(-1, *[1] * (self._start.ndim - 1)), self._start[0], self.end)
        return result.reshape(m + 1, *at.shape, *self._start.shape[1:])


def _powers(u: Array, m: int) -> Array:
    """Derivatives (m + 1, N, 2m) of the powers u^1 ... u^2m."""
    exponents = np.arange(1, 2 * m + 1)
    result = np.zeros((m + 1, len(u), 2 * m))
    factor = np.ones(2 * m)
    for k in range(m + 1):
        result[k] = factor * u[:, np.newaxis] ** np.maximum(exponents - k, 0)
        factor = factor * np.maximum(exponents - k, 0)
    return result


@cache
def _rate_bases(m: int) -> tuple[Array, Array]:
    """Coefficients (m, 2m) of P_0 ... P_{m-1} in powers of u, and of -P_0 ... -P_{m-1} in those of 1 - u: integers."""
    rest = Polynomial([1.0, -1.0]) ** m
    rows, ends = list[Array](), list[Array]()
    for i in range(m):
        rate = rest * Polynomial([0.0] * i + [comb(j + m - 1, m - 1) for j in range(m - i)])
        rows.append(rate.coef)
        ends.append(-rate(Polynomial([1.0, -1.0])).coef)
    return np.round(np.array(rows, dtype=float)), np.round(np.array(ends, dtype=float))
