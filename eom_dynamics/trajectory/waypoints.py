# SPDX-License-Identifier: Apache-2.0
"""Smooth trajectories through waypoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array
from ..exceptions import TrajectoryError
from .minimum_snap import UNSOLVED, minimum_snap
from .monotone import without_overshoot
from .spline import ORDERS, Spline

Ends = Literal["rest", "free"] | Mapping[str, Sequence[ArrayLike]]
"""Conditions at the first and last waypoint; see :func:`through`."""

_DEGREES = {7: 4, 9: 5}
"""Degree of a spline, and the order of the derivative whose squared integral it minimises."""

# Largest overshoot between two waypoints, relative to the range of waypoints and their derivatives; where to check it.
_LARGEST_OVERSHOOT = 10.0
_CHECKED = np.array([0.25, 0.5, 0.75])

_DERIVATIVES = ("velocity", "acceleration", "jerk", "snap")


def through(
    t: ArrayLike,
    positions: ArrayLike,
    *,
    velocities: ArrayLike | None = None,
    accelerations: ArrayLike | None = None,
    ends: Ends = "rest",
    overshoot: bool = True,
    degree: int = 7,
) -> Spline:
    """Smoothest C⁴ trajectory through waypoints, with given velocities and accelerations.

    The interpolating spline of degree 2m - 1 that minimises ∫ (d^m q/dt^m)² dt: with degree 7 the minimum-snap
    trajectory. With positions alone it is C^(degree - 1); velocities and accelerations reduce that by one each. A
    condition at an end that the spline cannot satisfy (the snap with degree 7) is met by a first or last piece of
    degree 9. Time is linear in the number of waypoints.

    Such splines overshoot: a joint moves past a waypoint at which it reverses, the more so the more uneven the times
    are. If the required speeds differ by orders of magnitude (equally distant waypoints with 1/100 of the time
    between some of them), the overshoot is excessive and the waypoints are rejected.

    Without overshoot, each joint is monotone between waypoints and reverses only at them, for any times. The states at
    waypoints are those of the smoothest trajectory, reduced as far as required by a sufficient condition, see
    :mod:`.monotone`. This increases speeds between waypoints, jerk and snap, bends straight lines in joint space, since
    it applies to each joint separately, and stops a joint at consecutive equal positions. It is available for positions
    alone, since given derivatives may require overshoot.

    Args:
        t: (K,), s; increasing, K >= 1. With K = 1 the duration is zero.
        positions: (K, n), rad or m.
        velocities, accelerations: (K, n), rad/s and rad/s², or m; rows of NaN, or None, are not given.
        ends: ``"rest"``: zero velocity, acceleration, jerk and snap at both ends, except for given velocities and
            accelerations; ``"free"``: no conditions; or ``{"start": (velocity, acceleration, jerk, snap), "end":
            (...)}``, each (n,) or a number for all joints: the first ones may be given alone, and an end that is
            omitted is free.
        overshoot: whether a joint may leave the range between two consecutive positions.
        degree: 7 or 9, for minimum snap or minimum rate of snap.

    Raises:
        TrajectoryError: shapes differ, times do not increase, a number is not finite, derivatives are contradictory or
            given with ``overshoot=False``, or times are too uneven for the positions.
    """
    t, q = _waypoints(t, positions)
    if degree not in _DEGREES:
        raise TrajectoryError(f"degree must be one of {', '.join(map(str, _DEGREES))}, is {degree!r}")
    states = np.full((ORDERS, *q.shape), np.nan)
    states[0] = q
    for k, (name, values) in enumerate((("velocities", velocities), ("accelerations", accelerations)), start=1):
        if values is not None:
            states[k] = _given(name, values, q.shape)
    if not overshoot and not np.all(np.isnan(states[1:])):
        raise TrajectoryError("overshoot=False requires positions alone; omit velocities and accelerations")
    _set_ends(states, ends)
    if not overshoot and np.any(np.nan_to_num(states[1:])):
        raise TrajectoryError('overshoot=False requires ends to be "rest" or "free"')
    if len(t) == 1:
        return Spline(t, np.nan_to_num(states))
    # Numbers that overflow are refused; NumPy would warn about each.
    with np.errstate(all="ignore"):
        solved = minimum_snap(np.diff(t), states, _DEGREES[degree])
        if not overshoot:
            solved = without_overshoot(np.diff(t), solved, fixed=~np.isnan(states[1]))
        if not np.all(np.isfinite(solved)) or not np.all(np.isfinite(np.ptp(q, axis=0))):
            raise TrajectoryError(UNSOLVED)
        spline = Spline(t, solved)
        if overshoot:
            _check_overshoot(spline, states)
    return spline


def _check_overshoot(spline: Spline, given: Array) -> None:
    """Raise an error if a spline overshoots excessively, compared with its given states (5, K, n)."""
    steps, q = np.diff(spline.t), spline.states[0]
    between = (spline.t[:-1, np.newaxis] + steps[:, np.newaxis] * _CHECKED).ravel()
    offset = spline.derivatives(between, order=0)[0].reshape(len(steps), len(_CHECKED), -1) - q[:-1, np.newaxis]
    farthest = np.max(np.abs(offset), axis=1)
    longest = np.maximum(np.append(0.0, steps), np.append(steps, 0.0))[:, np.newaxis]
    expected = np.ptp(q, axis=0) + 1e-9
    for k in range(1, ORDERS):
        expected = expected + np.max(np.nan_to_num(np.abs(given[k])) * longest**k, axis=0)
    if np.any(farthest > _LARGEST_OVERSHOOT * expected):
        piece, joint = np.argwhere(farthest > _LARGEST_OVERSHOOT * expected)[0]
        raise TrajectoryError(
            f"times are too uneven for these positions: joint {joint} would overshoot by "
            f"{farthest[piece, joint]:.3g} between waypoints {piece} and {piece + 1}; space times by distance, or set "
            "overshoot=False"
        )


def _waypoints(times: ArrayLike, positions: ArrayLike) -> tuple[Array, Array]:
    t, q = _numbers("times", times), _numbers("positions", positions)
    if t.ndim != 1 or q.ndim != 2 or not len(t) or len(q) != len(t) or not q.shape[1]:
        raise TrajectoryError(
            f"times must have shape (K,) and positions (K, n), K, n >= 1, have {t.shape} and {q.shape}"
        )
    for name, values in (("times", t), ("positions", q)):
        if not np.all(np.isfinite(values)):
            row = int(np.argwhere(~np.isfinite(values))[0, 0])
            raise TrajectoryError(f"{name} must be finite; waypoint {row} has {values[row]}")
    if not np.all(np.diff(t) > 0):
        late = int(np.argmin(np.diff(t) > 0)) + 1
        raise TrajectoryError(
            f"times must increase; waypoint {late} is at {t[late]:g} s, waypoint {late - 1} at {t[late - 1]:g} s"
        )
    return t, q


def _numbers(name: str, values: ArrayLike) -> Array:
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise TrajectoryError(f"{name} is not an array of numbers") from None


def _given(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    array = _numbers(name, values)
    if array.shape != shape:
        raise TrajectoryError(f"{name} must have shape {shape}, as the positions, have {array.shape}")
    missing = np.isnan(array)
    partly = np.flatnonzero(np.any(missing, axis=1) & ~np.all(missing, axis=1))
    if len(partly) or np.any(np.isinf(array)):
        row = int(partly[0] if len(partly) else np.argwhere(np.isinf(array))[0, 0])
        raise TrajectoryError(f"{name} must be finite, or NaN for all joints; waypoint {row} has {array[row]}")
    return array


def _set_ends(states: Array, ends: Ends) -> None:
    """Set conditions at the ends in the given states (5, K, n), where NaN is not given."""
    if isinstance(ends, str):
        if ends not in ("rest", "free"):
            raise TrajectoryError(f'ends must be "rest", "free" or a mapping of derivatives, is {ends!r}')
        if ends == "rest":
            for row in (0, -1):
                states[:, row] = np.nan_to_num(states[:, row])
        return
    for end, values in ends.items():
        if end not in ("start", "end"):
            raise TrajectoryError(f'ends has an unknown key {end!r}; use "start" and "end"')
        if len(values) > len(_DERIVATIVES):
            raise TrajectoryError(f"ends[{end!r}] has {len(values)} derivatives; at most 4, up to the snap")
        row = 0 if end == "start" else -1
        for k, (name, value) in enumerate(zip(_DERIVATIVES, values, strict=False), start=1):
            asked = _numbers(f"ends[{end!r}] {name}", value)
            if asked.shape not in ((), states.shape[2:]) or not np.all(np.isfinite(asked)):
                raise TrajectoryError(f"ends[{end!r}] {name} must be a finite number, or {states.shape[2]} of them")
            present = states[k, row]
            if not np.all(np.isnan(present) | (present == asked)):
                raise TrajectoryError(f"ends[{end!r}] {name} differs from that of the waypoint")
            states[k, row] = asked
