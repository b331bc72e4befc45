# SPDX-License-Identifier: Apache-2.0
"""Order of joints and motors in messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import first_not_finite
from ..arrays import Array
from ..elastic import ElasticArm
from ..exceptions import StateError

_SHOWN_NAMES = 20


def places(
    names: Sequence[str], listed: Sequence[str], *, field: str, kind: str, others: bool = False
) -> NDArray[np.intp]:
    """Index of each of the robot's names in the list of a message.

    Args:
        field: name of the list, for errors.
        kind: "joint" or "motor", for errors.
        others: allow names that the robot does not have.

    Raises:
        StateError: a name is unknown, missing or listed twice.
    """
    known = set(names)
    place_of: dict[str, int] = {}
    for place, name in enumerate(listed):
        if name not in known and not others:
            has = ", ".join(names[:_SHOWN_NAMES])
            raise StateError(f"{field}[{place}]: the robot has no {kind} {shown_name(name)}; it has {has}")
        if name in place_of and name in known:
            raise StateError(f"{field}[{place}]: {kind} {shown_name(name)} is listed twice")
        place_of[name] = place
    if missing := [shown_name(name) for name in names if name not in place_of]:
        there = ", ".join(map(shown_name, listed[:_SHOWN_NAMES])) or "is empty"
        remedy = f"{field} has {there}" if others and listed else f"list each {kind} once"
        raise StateError(f"{field}: {kind} {', '.join(missing[:_SHOWN_NAMES])} missing; {remedy}")
    return np.array([place_of[name] for name in names])


class JointOrder:
    """Order of the robot's joints and motors in a message.

    Motors follow the order of their joints; the motors of one joint are in the robot's order.

    Attributes:
        names: joints in the message's order; the robot's order if the message has no names.
        motor_names: motors in the message's order.
        message_index: (n,) index in the message of each joint of the robot; None if the orders are equal.
        robot_index: (n,) index in the robot of each joint of the message; None if the orders are equal.
        motor_index: (m,) index in the robot of each motor of the message; None if the orders are equal.
    """

    def __init__(
        self,
        robot_names: Sequence[str],
        names: Sequence[str],
        motors: tuple[Sequence[str], NDArray[np.intp]] | None = None,
    ) -> None:
        """Match the joint names of a message with the robot's joints.

        Args:
            robot_names: the robot's joints.
            names: joint names of the message; empty: the robot's order.
            motors: names of the robot's m motors and the joint index (m,) of each, in the order of joints; by default
                one motor for each joint, with its name.

        Raises:
            StateError: a joint is unknown, missing or repeated.
        """
        self.names = list(names or robot_names)
        index = places(robot_names, self.names, field="joint_names", kind="joint")
        self.message_index = None if self.names == list(robot_names) else index
        self.robot_index = None if self.message_index is None else np.argsort(self.message_index)
        motor_names, motor_joint = motors or (robot_names, np.arange(len(robot_names)))
        self.motor_index = (
            None if self.message_index is None else np.argsort(self.message_index[motor_joint], kind="stable")
        )
        self.motor_names = [motor_names[i] for i in self.motors_to_message(np.arange(len(motor_names)))]

    @classmethod
    def of(cls, arm: ElasticArm, names: Sequence[str]) -> JointOrder:
        """Joint order of a message with this list of names, none for the order of an arm; StateError as above."""
        return cls(arm.robot.joint_names, names, (arm.motor_names, arm.motor_joint))

    def to_robot(self, values: Array) -> Array:
        """Reorder values (…, n) from the message's order to the robot's order."""
        return values if self.message_index is None else values[..., self.message_index]

    def to_message(self, values: Array) -> Array:
        """Reorder values (…, n) from the robot's order to the message's order."""
        return values if self.robot_index is None else values[..., self.robot_index]

    def axes_to_message(self, values: Array, axes: int) -> Array:
        """Reorder the last ``axes`` axes of values, each of size n, from the robot's order to the message's order."""
        if self.robot_index is not None:
            for axis in range(-axes, 0):
                values = np.take(values, self.robot_index, axis=axis)
        return values

    def motors_to_message(self, values: NDArray[Any]) -> NDArray[Any]:
        """Reorder motor values (…, m) from the robot's order to the message's order."""
        return values if self.motor_index is None else values[..., self.motor_index]


def read_motors(names: Sequence[str], field: str, listed: Sequence[str], **values: Any) -> list[Array]:
    """Motor values by field name, each (m,) in the robot's order.

    Args:
        names: the robot's motors.
        field: name of the list of names in the message, for errors.
        listed: names in the message; empty for the robot's order.
        values: contents of the fields. The first must not be empty; empty fields are zero.

    Raises:
        StateError: a motor is unknown, missing or repeated, or a field has the wrong length or a number that is not
            finite.
    """
    index = places(names, listed, field=field, kind="motor") if listed else np.arange(len(names))
    required, *_ = values
    rows = []
    for name, value in values.items():
        if len(value) != len(names) and (len(value) or name == required):
            or_none = "" if name == required else " or none"
            raise StateError(f"{name} has {len(value)} entries, must have {len(names)}{or_none}")
        row = np.array(value, dtype=float)[index] if len(value) else np.zeros(len(names))
        if bad := first_not_finite(row):
            (k,) = bad
            raise StateError(f"{name} of motor {shown_name(names[k])} is {row[k]}")
        rows.append(row)
    return rows


def shown_name(name: str) -> str:
    """Name as printable, bounded text for an error message."""
    return repr(name if len(name) <= 60 else name[:57] + "...")
