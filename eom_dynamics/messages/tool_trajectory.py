# SPDX-License-Identifier: Apache-2.0
"""Motions of a tool through poses, from ``trajectory_msgs/MultiDOFJointTrajectory``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import lie
from ..arrays import Array
from ..exceptions import StateError
from ..trajectory import PoseSpline, through_poses
from .poses import read_pose, read_twist
from .waypoints import read_times


class ToolTrajectory(NamedTuple):
    """Motion of a frame.

    Attributes:
        frame: its name; None for the first tool.
        path: through the poses.
    """

    frame: str | None
    path: PoseSpline


def read_tool_trajectory(trajectory: Any) -> ToolTrajectory:
    """Smooth motion through the poses of a trajectory.

    ``joint_names`` has the name of the frame, or is empty for the first tool. Each point has one transform in the base
    frame; the first and the last one may have a velocity and an acceleration, along the axes of the base frame, which
    are zero otherwise.

    Raises:
        StateError: the message is invalid.
        TrajectoryError: there is no motion through the poses, as for :func:`.through_poses`.
    """
    names, points = list(trajectory.joint_names), trajectory.points
    if len(names) > 1:
        raise StateError(f"tool_trajectory.joint_names must have the name of one frame or be empty, has {len(names)}")
    times = read_times(trajectory)
    if len(points) < 2:
        raise StateError("tool_trajectory must have two points or more")
    poses = []
    for k, point in enumerate(points):
        if len(point.transforms) != 1:
            raise StateError(f"points[{k}].transforms must have one entry, has {len(point.transforms)}")
        transform = point.transforms[0]
        poses.append(read_pose(transform.translation, transform.rotation, f"points[{k}].transforms[0]"))
        if 0 < k < len(points) - 1 and (point.velocities or point.accelerations):
            raise StateError(
                f"points[{k}] has velocities or accelerations; only the first and last point may have them"
            )
    path = through_poses(times, poses, start=_twists(points, 0, poses[0]), end=_twists(points, -1, poses[-1]))
    return ToolTrajectory(names[0] if names else None, path)


def _twists(points: Any, place: int, pose: Array) -> list[Array]:
    """Body twist and its derivative at the first or last point; those that are given."""
    point, k = points[place], place % len(points)
    given = [point.velocities, point.accelerations]
    if given[1] and not given[0]:
        raise StateError(f"points[{k}] has accelerations without velocities")
    for name, entries in zip(("velocities", "accelerations"), given, strict=True):
        if len(entries) > 1:
            raise StateError(f"points[{k}].{name} must have one entry or none, has {len(entries)}")
    world_aligned = [read_twist(entries[0], f"points[{k}]") for entries in given if entries]
    if not world_aligned:
        return []
    with np.errstate(over="ignore", invalid="ignore"):
        twists = [np.asarray(x, dtype=float) for x in lie.body_twists(pose, *world_aligned)]
    if not np.isfinite(twists).all():
        raise StateError(f"numbers too large: the body twist of points[{k}] would be infinite")
    return twists
