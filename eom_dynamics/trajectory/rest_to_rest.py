# SPDX-License-Identifier: Apache-2.0
"""Motions from rest to rest and from a state to rest, and a smooth step."""

from __future__ import annotations

from functools import cache
from math import comb, factorial

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike

from ..arrays import Array
from ..exceptions import TrajectoryError
from .spline import ORDERS, RATE_NAMES, Spline, numbers


def rest_to_rest(start: ArrayLike, end: ArrayLike, duration: float, *, start_time: float = 0.0) -> Spline:
    """Polynomial of degree nine between two positions, with zero velocity, acceleration, jerk and snap at both.

    The motion is a straight line in joint space, without overshoot.

    Args:
        start, end: (n,), rad or m.
        duration: > 0, s.
        start_time: s.

    Raises:
        TrajectoryError: shapes differ, a number is not finite, or the duration is not positive.
    """
    ends = _positions(start, end)
    if not (np.isfinite(duration) and duration > 0):
        raise TrajectoryError(f"duration must be a positive number of seconds, is {duration}")
    states = np.zeros((ORDERS, *ends.shape))
    states[0] = ends
    return Spline([start_time, start_time + duration], states)


def shortest_duration(
    start: ArrayLike,
    end: ArrayLike,
    *,
    velocity: ArrayLike = np.inf,
    acceleration: ArrayLike = np.inf,
    jerk: ArrayLike = np.inf,
    snap: ArrayLike = np.inf,
) -> float:
    """Shortest duration in s for which :func:`rest_to_rest` meets limits; zero if start and end are equal.

    Args:
        start, end: (n,), rad or m.
        velocity, acceleration, jerk, snap: largest magnitude of the derivatives, > 0, a number or (n,); rad or m, per
            s … s⁴.

    Raises:
        TrajectoryError: shapes differ, a limit is not positive, or a joint that moves has no limit.
    """
    ends = _positions(start, end)
    distance = np.abs(ends[1] - ends[0])
    shortest = np.zeros(len(distance))
    for k, (name, limit) in enumerate(zip(RATE_NAMES, (velocity, acceleration, jerk, snap), strict=True), start=1):
        bound = np.asarray(limit, dtype=float)
        if bound.shape not in ((), distance.shape) or not np.all(bound > 0):
            raise TrajectoryError(f"{name} must be a positive limit, or {len(distance)} of them, one for each joint")
        shortest = np.maximum(shortest, (_peaks()[k] * distance / bound) ** (1 / k))
    if np.any((shortest == 0) & (distance > 0)):
        raise TrajectoryError("a joint that moves has no limit; give at least that of the velocity")
    return float(np.max(shortest))


@cache
def _peaks() -> Array:
    """Largest magnitudes (5,) of the derivatives of the motion from 0 to 1 in one second."""
    # Its rate is the polynomial of lowest degree with four zeros at each end.
    rate = Polynomial([0, 1]) ** (ORDERS - 1) * Polynomial([1, -1]) ** (ORDERS - 1)
    curve = rate.integ() / rate.integ()(1.0)
    peaks = []
    for k in range(ORDERS):
        derivative = curve.deriv(k) if k else curve
        turns = derivative.deriv().roots()
        inside = turns.real[(np.abs(turns.imag) < 1e-9) & (turns.real >= 0) & (turns.real <= 1)]
        peaks.append(np.max(np.abs(derivative(np.concatenate([inside, [0.0, 1.0]])))))
    return np.array(peaks)


def _positions(start: ArrayLike, end: ArrayLike) -> Array:
    """Start and end (2, n)."""
    ends = numbers([start, end], "start and end must be positions (n,) of the same joints")
    if ends.ndim != 2 or not ends.shape[1] or not np.all(np.isfinite(ends)):
        raise TrajectoryError(f"start and end must be finite positions (n,), have shape {ends.shape[1:]}")
    return ends


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

        Raises:
            TrajectoryError: the state has no derivative or is not finite, or the duration is not positive.
        """
        x = np.array(start, dtype=float)
        if len(x) < 2 or not np.all(np.isfinite(x)):
            raise TrajectoryError(f"a stop needs a finite state with its derivatives, has shape {x.shape}")
        if not (np.isfinite(duration) and duration > 0):
            raise TrajectoryError(f"duration must be a positive number of seconds, is {duration}")
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


def falling(s: float, duration: float) -> tuple[float, float, float]:
    """Smooth step 1 - 10 u³ + 15 u⁴ - 6 u⁵, u = s/duration, in [0, 1], with two time derivatives, 1/s and 1/s².

    Twice continuously differentiable, also at its ends.

    Args:
        s: time since the start, s.
        duration: s; afterwards it is zero.
    """
    u = min(max(s / duration, 0.0), 1.0)
    v = 1.0 - u
    # (1 - u)³ (1 + 3 u + 6 u²), which is exactly zero at the end; near the start it may round to more than 1.
    return (
        min(v**3 * (1.0 + 3.0 * u + 6.0 * u * u), 1.0),
        -30.0 * (u * v) ** 2 / duration,
        -60.0 * u * v * (v - u) / duration**2,
    )
