# SPDX-License-Identifier: Apache-2.0
"""Trajectory messages as arrays, and back."""

from __future__ import annotations

from array import array
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from trajectory_msgs.msg import JointTrajectory

from ...exceptions import StateError
from ...stream.conversions import JointOrder, doubles

Array = NDArray[np.float64]


def read_times(trajectory: JointTrajectory) -> Array:
    """Times of the points (K,), s from the start of the trajectory.

    Raises:
        StateError: there is none, or they do not rise from point to point.
    """
    if not trajectory.points:
        raise StateError("trajectory has no points")
    stamps = [point.time_from_start.sec * 10**9 + point.time_from_start.nanosec for point in trajectory.points]
    for k, (before, after) in enumerate(pairwise(stamps), start=1):
        if after <= before:
            raise StateError(
                f"points[{k}].time_from_start is {after / 1e9:g} s, must be later than that of the point before, "
                f"{before / 1e9:g} s"
            )
    return np.array(stamps) * 1e-9


def read_points(trajectory: JointTrajectory, field: str, order: JointOrder) -> Array | None:
    """A field of all points, (K, n) in the robot's order, NaN in points that do not have it; None where none has.

    Raises:
        StateError: a point has the wrong number of entries, or a number that is not finite.
    """
    n = len(order.names)
    parts: list[array[float]] = [getattr(point, field) for point in trajectory.points]
    if not any(parts):
        return None
    nothing = doubles(np.full(n, np.nan))
    for k, part in enumerate(parts):
        if len(part) not in (0, n):
            raise StateError(f"points[{k}].{field} has {len(part)} entries, must have {n}, one for each joint")
    values = np.frombuffer(b"".join([part or nothing for part in parts])).reshape(len(parts), n)
    if not np.isfinite(values).all():
        for k, joint in np.argwhere(~np.isfinite(values)):
            if parts[k]:
                raise StateError(
                    f"points[{k}].{field}[{joint}] (joint {order.names[joint]!r:.60}) is {values[k, joint]}"
                )
    return order.to_robot(values)


def fill_in(
    trajectory: JointTrajectory, field: str, values: Array, order: JointOrder, *, where_given: bool = False
) -> None:
    """Put values (K, n), in the robot's order, into a field of all points of a trajectory, or of those that have it."""
    rows = order.to_message(values)
    for point, row in zip(trajectory.points, rows, strict=True):
        if getattr(point, field) or not where_given:
            setattr(point, field, doubles(row))
