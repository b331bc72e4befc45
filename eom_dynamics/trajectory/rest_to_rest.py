# SPDX-License-Identifier: Apache-2.0
"""Motions from rest to rest, and a smooth step."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike

from ..arguments import positive
from ..arrays import MOTION, Array
from ..exceptions import TrajectoryError
from .spline import ORDERS, Spline, numbers


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
    duration = positive(duration, "duration", TrajectoryError)
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
    for k, (name, limit) in enumerate(zip(MOTION[1:], (velocity, acceleration, jerk, snap), strict=True), start=1):
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
    first = numbers(start, "start")
    if first.ndim != 1 or not len(first):
        raise TrajectoryError(f"start must have shape (n,), has {first.shape}")
    return np.stack([first, numbers(end, "end", first.shape)])
