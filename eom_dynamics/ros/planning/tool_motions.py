# SPDX-License-Identifier: Apache-2.0
"""Joint motions that move a tool through poses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...arrays import Array
from ...exceptions import StateError
from ...kinematics.compiled import kinematics_of
from ...messages.joint_order import JointOrder
from ...messages.waypoints import read_points, read_tool_trajectory
from ...robot import Robot
from ...trajectory import Spline, follow


def tool_motion(
    robot: Robot, trajectory: Any, start: Array, progress: Callable[[float], Any] = lambda fraction: None
) -> tuple[Array, Spline]:
    """Times (K,) of the poses of a MultiDOFJointTrajectory, and the joint motion from ``start`` (n,).

    ``progress`` is called as by :func:`.follow`.
    """
    with np.errstate(all="ignore"):  # poses and twists of any size; the motion of the joints is checked
        found = read_tool_trajectory(trajectory)
        try:
            motion = follow(kinematics_of(robot), found.path, start, frame=found.frame, progress=progress)
        except np.linalg.LinAlgError:
            raise StateError("tool_trajectory is too fast: poses between its points overflow") from None
    return found.path.t, motion.spline


def requested_start(request: Any, order: JointOrder, measured: Callable[[], Array]) -> Array:
    """Joint positions (n,) from which a request's tool_trajectory starts, in the robot's order.

    Raises:
        StateError: they are neither in its only waypoint nor measured.
    """
    points = request.trajectory.points
    if not points:
        return measured()
    if len(points) > 1:
        raise StateError(
            f"trajectory has {len(points)} points; beside tool_trajectory it may have one, with the positions of the "
            "joints at the start"
        )
    positions = read_points(request.trajectory, "positions", order)
    if positions is None:
        raise StateError("points[0].positions is empty; it must have the positions of the joints at the start")
    start: Array = positions[0]
    return start
