# SPDX-License-Identifier: Apache-2.0
"""Paths through waypoints: the smoothest curve, or straight lines with blends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ...arrays import Array
from ...elastic.bounds import Bounds
from ...exceptions import TrajectoryError
from ..spline import ORDERS, Spline
from ..waypoints import through

# The blend of degree nine from one unit vector to another, over the length 2 d, passes the corner at this share of d
# times the length of their difference.
_PASSING = 35 / 256


def path_through(
    path: ArrayLike,
    limits: Bounds,
    corner: float | None,
    ends: Mapping[str, Sequence[Array]],
    distances: Array | None = None,
) -> Spline:
    """Path through waypoints (K, n), over a parameter that grows with the distance.

    Args:
        path: waypoints (K, n), rad or m.
        limits: limits of the arm.
        corner: None for the smoothest curve through the waypoints; else straight lines, which are left near waypoints
            for blends that pass them at this distance, rad or m.
        ends: velocity … snap at ``"start"`` and ``"end"``, each (n,), that the curve must have; none at an end at rest.
        distances: between waypoints along the parameter of the smoothest curve (K - 1,), by default by joint distances.

    Raises:
        TrajectoryError: there are fewer than two waypoints, or two consecutive ones are equal.
    """
    try:
        waypoints = np.asarray(path, dtype=float)
    except (TypeError, ValueError):
        raise TrajectoryError("path must be a trajectory, or waypoints (K, n)") from None
    if waypoints.ndim != 2 or len(waypoints) < 2 or not waypoints.shape[1]:
        raise TrajectoryError(f"waypoints must have shape (K, n), K >= 2, have {waypoints.shape}")
    if not np.all(np.isfinite(waypoints)):
        row = int(np.argwhere(~np.isfinite(waypoints))[0, 0])
        raise TrajectoryError(f"waypoints must be finite; waypoint {row} has {waypoints[row]}")
    steps = np.diff(waypoints, axis=0)
    still = ~np.any(steps, axis=1)
    if np.any(still):
        k = int(np.argmax(still))
        raise TrajectoryError(f"waypoints {k} and {k + 1} are equal; remove one of them")
    if corner is not None:
        return blended(waypoints, steps, corner)
    velocity = limits.largest["velocity"][: steps.shape[1]]
    weights = np.where(np.isfinite(velocity), velocity, np.max(velocity[np.isfinite(velocity)], initial=1.0))
    lengths = np.max(np.abs(steps) / weights, axis=1)
    bent = {}
    for end, given in ends.items():
        if given and all(len(each) == len(weights) for each in given):
            pace = np.max(np.abs(given[0]) / weights)
            bent[end] = [each / pace ** (k + 1) for k, each in enumerate(given)]
    along = lengths if distances is None else distances
    return through(np.append(0.0, np.cumsum(along)), waypoints, ends=bent)


def blended(waypoints: Array, steps: Array, corner: float) -> Spline:
    """Straight lines with blends of degree nine, over the length of the lines."""
    if not (np.isfinite(corner) and corner > 0):
        raise TrajectoryError(f"corner must be a positive distance, is {corner}")
    lengths = np.linalg.norm(steps, axis=1)
    along = steps / lengths[:, np.newaxis]
    turns = np.linalg.norm(np.diff(along, axis=0), axis=1)
    if np.any(turns > 2 - 1e-6):
        k = int(np.argmax(turns)) + 1
        raise TrajectoryError(f"the path turns back at waypoint {k}, where no blend passes it; end the motion there")
    with np.errstate(divide="ignore"):
        wanted = np.where(turns > 1e-12, corner / (_PASSING * turns), np.inf)
    # At most half of the shorter line, so that neighbouring blends do not overlap.
    reach = np.minimum(wanted, 0.5 * np.minimum(lengths[1:], lengths[:-1]))
    at = np.cumsum(lengths)[:-1]
    times, states, rounding = [0.0], [(waypoints[0], along[0])], 1e-12 * float(np.sum(lengths))
    for k, (distance, s) in enumerate(zip(reach, at, strict=True)):
        for sign, direction in ((-1, along[k]), (1, along[k + 1])):
            if s + sign * distance > times[-1] + rounding:
                times.append(s + sign * distance)
                states.append((waypoints[k + 1] + sign * distance * direction, direction))
    if times[-1] + rounding < np.sum(lengths):
        times.append(float(np.sum(lengths)))
        states.append((waypoints[-1], along[-1]))
    derivatives = np.zeros((ORDERS, len(times), waypoints.shape[1]))
    for i, (q, direction) in enumerate(states):
        derivatives[:2, i] = q, direction
    return Spline(times, derivatives)
