# SPDX-License-Identifier: Apache-2.0
"""Poses, twists, wrenches, payloads and the motion of the base in messages as arrays, and back.

A message has wrenches as ``geometry_msgs/Wrench``, force and torque by name. In arrays, as everywhere in the Python
API, a wrench is (6,), moment first: [m_x, m_y, m_z, f_x, f_y, f_z] in N m and N.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import hypot
from typing import Any, NoReturn

import numpy as np

from .. import lie
from ..arguments import all_finite, first_not_finite
from ..arrays import Array
from ..elastic import BaseMotion
from ..exceptions import StateError
from ..robot import Payload, Robot
from .fields import ANGULAR_FIELDS, BASE_FIELD, FORCE_FIELDS, check_length, getter
from .joint_order import shown_name

# Largest deviation of a quaternion's length from one; it is then made one.
_UNIT = 1e-3


def read_pose(position: Any, orientation: Any, name: str) -> Array:
    """Pose (4, 4) from a point or vector and a quaternion.

    Raises:
        StateError: the quaternion is not of unit length, or a number is not finite; with the name of the pose.
    """
    numbers = [position.x, position.y, position.z, orientation.x, orientation.y, orientation.z, orientation.w]
    if not all_finite(numbers):
        raise StateError(f"{name} must be finite, is {numbers[:3]}, {numbers[3:]}")
    length = hypot(*numbers[3:])
    if abs(length - 1.0) > _UNIT:
        raise StateError(f"the orientation of {name} must be a quaternion of length 1, has {length:.4g}")
    return lie.pose(lie.rotation_from_quaternion(numbers[3:]), numbers[:3])


def read_twist(message: Any, name: str) -> Array:
    """Vector (6,), angular first, from a message with linear and angular parts.

    Raises:
        StateError: a number is not finite; with the name of the vector.
    """
    angular, linear = message.angular, message.linear
    twist = np.array([angular.x, angular.y, angular.z, linear.x, linear.y, linear.z])
    if bad := first_not_finite(twist):
        (k,) = bad
        raise StateError(f"{name}.{('angular', 'linear')[k // 3]}.{'xyz'[k % 3]} is {twist[k]}")
    return twist


_FIELDS = ANGULAR_FIELDS + FORCE_FIELDS


def read_base_motion(message: Any, count: int = 1) -> BaseMotion | None:
    """Base motion of a setpoint or request of ``count`` samples; None for a base at rest.

    An entry is a ``BaseMotion`` or rows (7, 3). One entry holds for all samples.

    A specific force of exactly zero is refused: it is the default of a message that was not filled in, and would
    remove gravity. For a base in free fall, use a small force, for example 1e-9 m/s².

    Raises:
        StateError: wrong number of entries, a number that is not finite, or no specific force.
    """
    entries: Any = getattr(message, BASE_FIELD, ())  # older recordings do not have the field
    if not len(entries):
        return None
    if len(entries) not in (1, count):
        for_samples = f", {count} (one for each sample)" if count > 1 else ""
        raise StateError(f"base has {len(entries)} entries, must have one{for_samples} or none")
    rows = []
    for k, entry in enumerate(entries):
        if isinstance(entry, np.ndarray):
            values = entry
        else:
            values = np.array([[vector.x, vector.y, vector.z] for vector in getter(_FIELDS)(entry)])
        if bad := first_not_finite(values):
            row, column = bad
            raise StateError(f"base[{k}].{_FIELDS[row]}.{'xyz'[column]} is {values[row, column]}")
        if force_is_unset(values):
            raise StateError(
                f"base[{k}].specific_force is zero, as if the base fell freely; set it to the accelerometer's value "
                "(at rest and upright, 9.81 m/s² along z), or to 1e-9 for free fall"
            )
        rows.append(values)
    values = np.stack(rows, axis=1) if count > 1 and len(rows) > 1 else rows[0]
    return BaseMotion(values[: len(ANGULAR_FIELDS)], values[len(ANGULAR_FIELDS) :])


def force_is_unset(values: Array) -> Any:
    """True if the specific force is exactly zero, in vectors of the fields (7, 3), or in each of (7, N, 3)."""
    return np.all(values[len(ANGULAR_FIELDS)] == 0, axis=-1)


def read_payload(message: Any) -> Payload:
    """Payload of a message; RobotDescriptionError for physically inconsistent mass and inertia."""
    body = message.inertia
    inertia = (body.ixx, body.ixy, body.ixz, body.iyy, body.iyz, body.izz)
    return Payload(body.m, (body.com.x, body.com.y, body.com.z), inertia, message.tool)


_COMPONENTS = ("torque.x", "torque.y", "torque.z", "force.x", "force.y", "force.z")


def read_wrenches(message: Any, fields: tuple[str, ...], robot: Robot, count: int = 1) -> tuple[Array, ...]:
    """Wrenches at a robot's tools with their time derivatives, moment first; () if all fields are empty.

    Args:
        message: setpoint or request; the entries of its fields are ``geometry_msgs/Wrench``, or rows of an array
            (number of entries, 6), moment first.
        fields: some of WRENCH_FIELDS; empty fields are zero.
        robot: robot with k tools.
        count: number N of samples in the message.

    Returns:
        For each field, an array (6,), or (k, 6) for several tools; (N, 6) or (N, k, 6) for a field with an entry for
        each sample.

    Raises:
        StateError: a field has the wrong number of entries, or a number that is not finite.
    """
    columns = getter(fields)(message)
    if not any(map(len, columns)):
        return ()
    k = len(robot.tools)
    for field, entries in zip(fields, columns, strict=True):
        check_length(field, len(entries), k, count, "tool")
    # All fields in one array: a setpoint has one entry or a few.
    values = np.array([moment_first(entry) for entry in chain.from_iterable(columns)])
    if bad := first_not_finite(values):
        _refuse_number(fields, columns, values, robot, *bad)
    results, start = [], 0
    for entries in columns:
        part = values[start : (start := start + len(entries))] if len(entries) else np.zeros((k, 6))
        results.append(part.reshape((count, *robot.wrench_shape) if len(part) > k else robot.wrench_shape))
    return tuple(results)


def wrench_messages(values: Array) -> list[Any]:
    """List of ``geometry_msgs/Wrench`` from wrenches (…, 6), moment first; needs ROS 2."""
    from geometry_msgs.msg import Vector3, Wrench

    return [
        Wrench(torque=Vector3(x=row[0], y=row[1], z=row[2]), force=Vector3(x=row[3], y=row[4], z=row[5]))
        for row in np.asarray(values, dtype=float).reshape(-1, 6).tolist()
    ]


def moment_first(entry: Any) -> Any:
    """A ``geometry_msgs/Wrench`` or row as six numbers."""
    if isinstance(entry, np.ndarray):
        return entry
    torque, force = entry.torque, entry.force
    return torque.x, torque.y, torque.z, force.x, force.y, force.z


def _refuse_number(
    fields: Sequence[str], columns: Sequence[Any], values: Array, robot: Robot, row: int, component: int
) -> NoReturn:
    """Raise StateError for a number of all entries (number of them, 6) that is not finite."""
    ends = np.cumsum([len(entries) for entries in columns])
    which = int(np.searchsorted(ends, row, side="right"))
    place, k = row - ends[which] + len(columns[which]), len(robot.tools)
    where = [f"sample {place // k}"] if len(columns[which]) > k else []
    where += [f"tool {shown_name(robot.tools[place % k].name)}"] if k > 1 else []
    details = f" ({', '.join(where)})" if where else ""
    raise StateError(f"{fields[which]}[{place}].{_COMPONENTS[component]}{details} is {values[row, component]}")
