# SPDX-License-Identifier: Apache-2.0
"""Poses and twists of messages as arrays, and back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import lie
from ..arrays import Array
from ..exceptions import StateError

# Largest deviation of a quaternion's length from one; it is then made one.
_UNIT = 1e-3

_DERIVATIVES = ("twist", "acceleration", "jerk", "snap")


class ToolSetpoint(NamedTuple):
    """Motion of a frame at one time.

    Attributes:
        frame: its name; None for the first tool.
        pose: C (4, 4), m.
        twists: body twist V, Vd, Vdd, Vddd (4, 6), rad/s and m/s, and per s, s², s³.
    """

    frame: str | None
    pose: Array
    twists: Array


def read_task_setpoint(message: Any) -> ToolSetpoint:
    """Motion of the tool in a TaskSetpoint.

    Raises:
        StateError: the orientation is no unit quaternion, or a number is not finite.
    """
    pose = read_pose(message.pose.position, message.pose.orientation, "pose")
    world_aligned = [read_twist(getattr(message, name), name) for name in _DERIVATIVES]
    return ToolSetpoint(message.frame or None, pose, np.array(lie.body_twists(pose, *world_aligned), dtype=float))


def read_pose(position: Any, orientation: Any, name: str) -> Array:
    """Pose (4, 4) of a point or vector, and a quaternion.

    Raises:
        StateError: the quaternion is none of length one, or a number is not finite; with the name of the pose.
    """
    p = np.array([position.x, position.y, position.z])
    quaternion = np.array([orientation.x, orientation.y, orientation.z, orientation.w])
    if not (np.all(np.isfinite(p)) and np.all(np.isfinite(quaternion))):
        raise StateError(f"{name} must be finite, is {p.tolist()}, {quaternion.tolist()}")
    length = float(np.linalg.norm(quaternion))
    if abs(length - 1.0) > _UNIT:
        raise StateError(f"the orientation of {name} must be a quaternion of length 1, has {length:.4g}")
    pose: Array = lie.pose(lie.rotation_from_quaternion(quaternion), p)
    return pose


def read_twist(message: Any, name: str) -> Array:
    """Vector (6,), angular first, of a message with linear and angular parts.

    Raises:
        StateError: a number is not finite; with the name of the vector.
    """
    angular, linear = message.angular, message.linear
    twist = np.array([angular.x, angular.y, angular.z, linear.x, linear.y, linear.z])
    if not np.all(np.isfinite(twist)):
        part, axis = divmod(int(np.argmin(np.isfinite(twist))), 3)
        raise StateError(f"{name}.{('angular', 'linear')[part]}.{'xyz'[axis]} is {twist[3 * part + axis]}")
    return twist
