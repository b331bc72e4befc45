# SPDX-License-Identifier: Apache-2.0
"""Smooth trajectories through waypoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exceptions import TrajectoryError
from .monotone import without_overshoot
from .smoothest import smoothest
from .spline import ORDERS, Spline

Array = NDArray[np.float64]

Ends = Literal["rest", "free"] | Mapping[str, Sequence[ArrayLike]]
"""What is asked of the first and last waypoint; see :func:`through`."""

_DEGREES = {7: 4, 9: 5}
"""Degree of a spline, and the order of the derivative whose square it makes least."""

# Between two waypoints a joint goes no further than this many times all that it is asked to; and where to look.
_LARGEST_SWING = 10.0
_LOOK = np.array([0.25, 0.5, 0.75])

_DERIVATIVES = ("velocity", "acceleration", "jerk", "snap")


def through(
    times: ArrayLike,
    positions: ArrayLike,
    *,
    velocities: ArrayLike | None = None,
    accelerations: ArrayLike | None = None,
    ends: Ends = "rest",
    overshoot: bool = True,
    degree: int = 7,
) -> Spline:
    """The smoothest trajectory through waypoints, C⁴ and with their velocities and accelerations where given.

    The interpolating spline of the degree 2m - 1, which makes ∫ (d^m q/dt^m)² dt least: of degree 7 the minimum-snap
    trajectory. With positions alone it is C^(degree - 1); with velocities, and with accelerations, one less each. What
    is asked of an end beyond the spline's reach (the snap at degree 7) is met by the first or last piece, which then is
    of degree 9. The cost is linear in the number of waypoints.

    Splines of such degrees overshoot: a joint swings past a waypoint at which it turns, the further the more uneven
    the times. Where positions ask for speeds that differ wildly (waypoints with 1/100 of the time of others between
    them, but as far apart) they swing beyond all reason, and the trajectory is refused.

    Without overshoot each joint is monotone between two waypoints, so that it stays between their positions, and
    turns only at waypoints, however uneven the times. The states at waypoints are those of the smoothest trajectory,
    drawn no further than needed towards states of which that can be proven: :mod:`.monotone`. That costs smoothness
    (speeds between waypoints, jerk and snap are larger), joints are drawn in one by one, which bends straight lines in
    joint space, and at a stretch of equal positions a joint is at rest. It takes positions alone, since given
    derivatives may ask for overshoot.

    Args:
        times: of the waypoints (K,), s; increasing, K >= 1. With K = 1 the trajectory lasts no time.
        positions: (K, n), rad or m.
        velocities, accelerations: (K, n), rad/s and rad/s² or m; a row of NaN is not given, as are all if None.
        ends: ``"rest"``: velocity, acceleration, jerk and snap are zero at both ends, save velocities and accelerations
            that are given there. ``"free"``: nothing is asked. Or what is asked, as ``{"start": (velocity,
            acceleration, jerk, snap), "end": (...)}``, each (n,) or one number for all joints; as many as wanted, from
            the velocity on; an end that is not named is free.
        overshoot: whether a joint may leave the range of the two positions beside it.
        degree: 7 or 9: least snap, or least rate of snap.

    Raises:
        TrajectoryError: shapes differ, times do not increase, a number is not finite, derivatives contradict each
            other or come with ``overshoot=False``, or times are too uneven for the positions.
    """
    t, q = _waypoints(times, positions)
    if degree not in _DEGREES:
        raise TrajectoryError(f"degree must be one of {', '.join(map(str, _DEGREES))}, is {degree!r}")
    states = np.full((ORDERS, *q.shape), np.nan)
    states[0] = q
    for k, (name, values) in enumerate((("velocities", velocities), ("accelerations", accelerations)), start=1):
        if values is not None:
            states[k] = _given(name, values, q.shape)
    if not overshoot and not np.all(np.isnan(states[1:])):
        raise TrajectoryError("overshoot=False takes positions alone; leave out velocities and accelerations")
    _set_ends(states, ends)
    if not overshoot and np.any(np.nan_to_num(states[1:])):
        raise TrajectoryError('overshoot=False takes ends that are "rest" or "free"')
    if len(t) == 1:
        return Spline(t, np.nan_to_num(states))
    solved = smoothest(np.diff(t), states, _DEGREES[degree])
    if not overshoot:
        return Spline(t, without_overshoot(np.diff(t), solved, fixed=~np.isnan(states[1])))
    spline = Spline(t, solved)
    _refuse_swings(spline, states)
    return spline


def _refuse_swings(spline: Spline, given: Array) -> None:
    """Refuse a spline that goes far beyond what its waypoints and their given derivatives (5, K, n) ask for."""
    steps, q = np.diff(spline.times), spline.states[0]
    between = (spline.times[:-1, np.newaxis] + steps[:, np.newaxis] * _LOOK).ravel()
    swing = spline.derivatives(between, order=0)[0].reshape(len(steps), len(_LOOK), -1) - q[:-1, np.newaxis]
    farthest = np.max(np.abs(swing), axis=1)
    longest = np.maximum(np.append(0.0, steps), np.append(steps, 0.0))[:, np.newaxis]
    asked = np.ptp(q, axis=0) + 1e-9
    for k in range(1, ORDERS):
        asked = asked + np.max(np.nan_to_num(np.abs(given[k])) * longest**k, axis=0)
    if np.any(farthest > _LARGEST_SWING * asked):
        piece, joint = np.argwhere(farthest > _LARGEST_SWING * asked)[0]
        raise TrajectoryError(
            f"times are too uneven for these positions: between waypoints {piece} and {piece + 1} joint {joint} would "
            f"swing by {farthest[piece, joint]:.3g}; space waypoints by distance, or forbid overshoot"
        )


def _waypoints(times: ArrayLike, positions: ArrayLike) -> tuple[Array, Array]:
    t, q = _numbers("times", times), _numbers("positions", positions)
    if t.ndim != 1 or q.ndim != 2 or not len(t) or len(q) != len(t) or not q.shape[1]:
        raise TrajectoryError(f"times must have shape (K,) and positions (K, n), K, n >= 1; {t.shape}, {q.shape}")
    for name, values in (("times", t), ("positions", q)):
        if not np.all(np.isfinite(values)):
            row = int(np.argwhere(~np.isfinite(values))[0, 0])
            raise TrajectoryError(f"{name} must be finite; waypoint {row} has {values[row]}")
    if not np.all(np.diff(t) > 0):
        late = int(np.argmin(np.diff(t) > 0)) + 1
        raise TrajectoryError(
            f"times must increase from waypoint to waypoint; waypoint {late} is at {t[late]:g} s, that before it "
            f"at {t[late - 1]:g} s"
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
        raise TrajectoryError(f"{name} must have the shape {shape} of the positions, have {array.shape}")
    missing = np.isnan(array)
    partly = np.flatnonzero(np.any(missing, axis=1) & ~np.all(missing, axis=1))
    if len(partly) or np.any(np.isinf(array)):
        row = int(partly[0] if len(partly) else np.argwhere(np.isinf(array))[0, 0])
        raise TrajectoryError(f"{name} must be finite, or NaN for all joints; waypoint {row} has {array[row]}")
    return array


def _set_ends(states: Array, ends: Ends) -> None:
    """Put what is asked of the ends among the states (5, K, n), of which NaN is not given."""
    if isinstance(ends, str):
        if ends not in ("rest", "free"):
            raise TrajectoryError(f'ends must be "rest", "free" or derivatives by end, is {ends!r}')
        if ends == "rest":
            for row in (0, -1):
                states[:, row] = np.nan_to_num(states[:, row])
        return
    for end, values in ends.items():
        if end not in ("start", "end"):
            raise TrajectoryError(f'ends has an entry {end!r}; known are "start" and "end"')
        if len(values) > len(_DERIVATIVES):
            raise TrajectoryError(f"ends[{end!r}] holds {len(values)} derivatives; the last is the snap, number 4")
        row = 0 if end == "start" else -1
        for k, (name, value) in enumerate(zip(_DERIVATIVES, values, strict=False), start=1):
            asked = _numbers(f"ends[{end!r}] {name}", value)
            if asked.shape not in ((), states.shape[2:]) or not np.all(np.isfinite(asked)):
                raise TrajectoryError(f"ends[{end!r}] {name} must be a finite number, or {states.shape[2]} of them")
            present = states[k, row]
            if not np.all(np.isnan(present) | (present == asked)):
                raise TrajectoryError(f"ends[{end!r}] {name} differs from that given with the waypoint")
            states[k, row] = asked
