# SPDX-License-Identifier: Apache-2.0
"""Wrenches in messages as arrays, and back.

A message has wrenches as ``geometry_msgs/Wrench``, force and torque by name. In arrays, as everywhere in the Python
API, a wrench is (6,), moment first: [m_x, m_y, m_z, f_x, f_y, f_z] in N m and N.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NoReturn

import numpy as np

from ..arrays import Array
from ..exceptions import StateError
from ..robot import Robot
from .joint_order import shown
from .samples import check_length, getter

_COMPONENTS = ("torque.x", "torque.y", "torque.z", "force.x", "force.y", "force.z")


def read_wrenches(message: Any, fields: tuple[str, ...], robot: Robot, count: int = 1) -> tuple[Array, ...]:
    """Wrenches at a robot's tools with their time derivatives, moment first; () where all fields are empty.

    Args:
        message: a setpoint or request; the entries of its fields are ``geometry_msgs/Wrench``, or rows of an array
            (number of entries, 6), moment first.
        fields: some of WRENCH_FIELDS; an empty one is zero.
        robot: has k tools.
        count: number N of samples in the message.

    Returns:
        For each field an array (6,), or (k, 6) where there are several tools; of a field with an entry for each
        sample (N, 6) or (N, k, 6).

    Raises:
        StateError: a field has the wrong number of entries, or a number that is not finite.
    """
    given = getter(fields)(message)
    if not any(map(len, given)):
        return ()
    k = len(robot.tools)
    for field, entries in zip(fields, given, strict=True):
        check_length(field, len(entries), k, count, "tool")
    # All fields in one array: a setpoint has one entry or a few.
    values = np.array([_moment_first(entry) for entry in chain.from_iterable(given)])
    if not np.isfinite(values).all():
        _refuse_number(fields, given, values, robot)
    results, start = [], 0
    for entries in given:
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


def _moment_first(entry: Any) -> Any:
    """A message or row as six numbers."""
    if isinstance(entry, np.ndarray):
        return entry
    torque, force = entry.torque, entry.force
    return torque.x, torque.y, torque.z, force.x, force.y, force.z


def _refuse_number(fields: Sequence[str], given: Sequence[Any], values: Array, robot: Robot) -> NoReturn:
    """Raise StateError for the first number of all entries (number of them, 6) that is not finite."""
    row, component = np.argwhere(~np.isfinite(values))[0]
    ends = np.cumsum([len(entries) for entries in given])
    which = int(np.searchsorted(ends, row, side="right"))
    place, k = row - ends[which] + len(given[which]), len(robot.tools)
    where = [f"sample {place // k}"] if len(given[which]) > k else []
    where += [f"tool {shown(robot.tools[place % k].name)}"] if k > 1 else []
    details = f" ({', '.join(where)})" if where else ""
    raise StateError(f"{fields[which]}[{place}].{_COMPONENTS[component]}{details} is {values[row, component]}")
