# SPDX-License-Identifier: Apache-2.0
"""Trajectory messages as arrays, and back."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ..arrays import Array
from ..exceptions import StateError
from .joint_order import JointOrder, shown
from .samples import doubles


def read_times(trajectory: Any) -> Array:
    """Times of the points (K,), s from the start of the trajectory.

    Args:
        trajectory: a ``trajectory_msgs/JointTrajectory``, here and below.

    Raises:
        StateError: there are no points, or the times do not increase.
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


def require_rest_at_the_end(trajectory: Any) -> None:
    """Refuse a trajectory whose last point has a velocity: the arm would stop with a step.

    Raises:
        StateError: it has one that single precision tells from zero.
    """
    for joint, velocity in enumerate(trajectory.points[-1].velocities if trajectory.points else ()):
        if not abs(velocity) <= np.finfo(np.float32).eps:
            name = shown(trajectory.joint_names[joint]) if joint < len(trajectory.joint_names) else joint
            raise StateError(
                f"points[{len(trajectory.points) - 1}].velocities[{joint}] (joint {name}) is {velocity:.3g} rad/s or "
                "m/s, must be 0 at the end (parameter allow_nonzero_velocity_at_trajectory_end)"
            )


def read_points(trajectory: Any, field: str, order: JointOrder) -> Array | None:
    """A field of all points, (K, n) in the robot's order, NaN where it is empty; None if it is empty in all.

    Raises:
        StateError: a point has the wrong number of entries, or a number that is not finite.
    """
    n = len(order.names)
    parts = [getattr(point, field) for point in trajectory.points]
    if not any(map(len, parts)):
        return None
    empty = doubles(np.full(n, np.nan))
    for k, part in enumerate(parts):
        if len(part) not in (0, n):
            raise StateError(f"points[{k}].{field} has {len(part)} entries, must have {n}, one for each joint")
    values = np.frombuffer(b"".join([part if len(part) else empty for part in parts])).reshape(len(parts), n)
    for k, joint in np.argwhere(~np.isfinite(values)):
        if len(parts[k]):
            name = shown(order.names[joint])
            raise StateError(f"points[{k}].{field}[{joint}] (joint {name}) is {values[k, joint]}")
    return order.to_robot(values)


def read_positions(trajectory: Any, order: JointOrder) -> Array:
    """Positions of all points, (K, n) in the robot's order."""
    positions = read_points(trajectory, "positions", order)
    missing = [k for k, point in enumerate(trajectory.points) if not len(point.positions)]
    if positions is None or missing:
        raise StateError(f"points[{missing[0] if missing else 0}].positions is empty; each point must have positions")
    return positions


def fill_in(trajectory: Any, field: str, values: Array, order: JointOrder, *, where_given: bool = False) -> None:
    """Assign values (K, n), in the robot's order, to a field of all points, or of those that have it."""
    rows = order.to_message(values)
    for point, row in zip(trajectory.points, rows, strict=True):
        if len(getattr(point, field)) or not where_given:
            setattr(point, field, doubles(row))
