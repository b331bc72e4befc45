# SPDX-License-Identifier: Apache-2.0
"""Poses and twists in messages as arrays, and back."""

from __future__ import annotations

from math import hypot, isfinite
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
        pose: C (4, 4), m.
        twists: world-aligned twist with three derivatives, (6,) each; rad/s and m/s, and per s, s², s³.
    """

    pose: Array
    twists: tuple[Array, ...]


def read_task_setpoint(message: Any) -> ToolSetpoint:
    """Motion of the tool in a TaskSetpoint.

    Raises:
        StateError: the orientation is not a unit quaternion, or a number is not finite.
    """
    pose = read_pose(message.pose.position, message.pose.orientation, "pose")
    return ToolSetpoint(pose, tuple(read_twist(getattr(message, name), name) for name in _DERIVATIVES))


def read_pose(position: Any, orientation: Any, name: str) -> Array:
    """Pose (4, 4) from a point or vector and a quaternion.

    Raises:
        StateError: the quaternion is not of unit length, or a number is not finite; with the name of the pose.
    """
    numbers = [position.x, position.y, position.z, orientation.x, orientation.y, orientation.z, orientation.w]
    if not all(map(isfinite, numbers)):
        raise StateError(f"{name} must be finite, is {numbers[:3]}, {numbers[3:]}")
    length = hypot(*numbers[3:])
    if abs(length - 1.0) > _UNIT:
        raise StateError(f"the orientation of {name} must be a quaternion of length 1, has {length:.4g}")
    pose: Array = lie.pose(lie.rotation_from_quaternion(numbers[3:]), numbers[:3])
    return pose


def read_twist(message: Any, name: str) -> Array:
    """Vector (6,), angular first, from a message with linear and angular parts.

    Raises:
        StateError: a number is not finite; with the name of the vector.
    """
    angular, linear = message.angular, message.linear
    twist = [angular.x, angular.y, angular.z, linear.x, linear.y, linear.z]
    if not all(map(isfinite, twist)):
        k = next(k for k, x in enumerate(twist) if not isfinite(x))
        raise StateError(f"{name}.{('angular', 'linear')[k // 3]}.{'xyz'[k % 3]} is {twist[k]}")
    return np.array(twist)
