# SPDX-License-Identifier: Apache-2.0
"""The smoothest path through waypoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ...arrays import Array
from ...elastic.bounds import Bounds
from ...exceptions import TrajectoryError
from ..spline import Spline
from ..waypoints import through


def path_through(path: ArrayLike, limits: Bounds, ends: Mapping[str, Sequence[Array]]) -> Spline:
    """Smoothest path through waypoints (K, n), over a parameter that grows with the distance.

    Args:
        path: waypoints (K, n), rad or m.
        limits: limits of the arm.
        ends: velocity … snap at ``"start"`` and ``"end"``, each (n,), that the curve must have; none at an end at rest.

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
    velocity = limits.largest["velocity"][: steps.shape[1]]
    weights = np.where(np.isfinite(velocity), velocity, np.max(velocity[np.isfinite(velocity)], initial=1.0))
    lengths = np.max(np.abs(steps) / weights, axis=1)
    bent = {}
    for end, given in ends.items():
        if given and all(len(each) == len(weights) for each in given):
            pace = np.max(np.abs(given[0]) / weights)
            bent[end] = [each / pace ** (k + 1) for k, each in enumerate(given)]
    return through(np.append(0.0, np.cumsum(lengths)), waypoints, ends=bent)
