# SPDX-License-Identifier: Apache-2.0
"""Messages to arrays and back. Every setpoint and every request is checked here, and nowhere else.

In a received message a ``float64[]`` field is an ``array.array``, which NumPy reads without a copy of its
own; a field that is given a list or a NumPy array is checked number by number, so that fields are always
given an ``array.array``.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..exceptions import StateError, StiffnessError

Array = NDArray[np.float64]

STATE_FIELDS = ("position", "velocity", "acceleration", "jerk", "snap")
"""Fields of q to qdddd, in the setpoint and in the request."""

WRENCH_FIELDS = ("wrench", "wrench_rate", "wrench_acceleration")
"""Fields of the tool wrench and its time derivatives, in the setpoint and in the request."""

STIFFNESS_FIELDS = ("stiffness", "stiffness_rate", "stiffness_acceleration")
"""Fields of a commanded stiffness and its time derivatives, in the setpoint and in the request."""

EFFORT_FIELDS = ("effort", "effort_rate", "effort_acceleration")
"""Fields of the command and of the response with one entry for each joint."""

MOTOR_FIELDS = ("motor_position", "motor_velocity", "motor_acceleration", "motor_effort")
"""Fields of the command and of the response with one entry for each motor."""

COMMAND_FIELDS = EFFORT_FIELDS + MOTOR_FIELDS
"""Fields of the command and of the response, in the order of :class:`eom_dynamics.Feedforward`."""


class StateMessage(Protocol):
    """What a setpoint and a request have in common."""

    joint_names: list[str]
    position: array[float]
    velocity: array[float]
    acceleration: array[float]
    jerk: array[float]
    snap: array[float]
    wrench: array[float]
    wrench_rate: array[float]
    wrench_acceleration: array[float]
    stiffness: array[float]
    stiffness_rate: array[float]
    stiffness_acceleration: array[float]


class JointOrder:
    """The order in which a message lists the robot's joints, and with them its motors.

    The motors of a joint stand in the joint's place, in the robot's order of them.

    Attributes:
        names: the joints in the message's order; the robot's own order where the message names none.
        motor_names: the motors in the message's order.
        message_index: (n,), where each of the robot's joints stands in the message; None where the orders agree.
        robot_index: (n,), which of the robot's joints each entry of the message is; None where the orders agree.
        motor_index: (m,), which of the robot's motors each entry of the message is; None where the orders agree.
    """

    def __init__(
        self,
        robot_names: Sequence[str],
        names: Sequence[str],
        motors: tuple[Sequence[str], NDArray[np.intp]] | None = None,
    ) -> None:
        """Match the names of a message with those of the robot.

        Args:
            robot_names: the robot's joints.
            names: those of the message; none for the robot's order.
            motors: the names of the robot's m motors, and the joint (m,) of each, in the order of joints; by default
                one motor a joint, of its name.

        Raises:
            StateError: a joint is unknown, missing, or named twice.
        """
        self.names = list(names or robot_names)
        known = set(robot_names)
        places: dict[str, int] = {}
        for place, name in enumerate(self.names):
            if name not in known:
                raise StateError(f"joint_names[{place}]: the robot has no joint {_shown(name)}")
            if name in places:
                raise StateError(f"joint_names[{place}]: joint {_shown(name)} stands there twice")
            places[name] = place
        missing = [name for name in robot_names if name not in places]
        if missing:
            raise StateError(f"joint_names: {', '.join(map(_shown, missing))} missing; each joint must be there once")
        same = self.names == list(robot_names)
        self.message_index = None if same else np.array([places[name] for name in robot_names])
        self.robot_index = None if self.message_index is None else np.argsort(self.message_index)
        motor_names, motor_joint = motors or (robot_names, np.arange(len(robot_names)))
        self.motor_index = (
            None if self.message_index is None else np.argsort(self.message_index[motor_joint], kind="stable")
        )
        self.motor_names = [motor_names[i] for i in self.motors_to_message(np.arange(len(motor_names)))]

    def to_robot(self, values: Array) -> Array:
        """Bring values (…, n) from the message's order into the robot's."""
        return values if self.message_index is None else values[..., self.message_index]

    def to_message(self, values: Array) -> Array:
        """Bring values (…, n) from the robot's order into the message's."""
        return values if self.robot_index is None else values[..., self.robot_index]

    def motors_to_message(self, values: NDArray[Any]) -> NDArray[Any]:
        """Bring values (…, m) of motors from the robot's order into the message's."""
        return values if self.motor_index is None else values[..., self.motor_index]


class JointOrders:
    """Joint orders for one robot. A stream repeats its list of names: the last order is kept."""

    def __init__(
        self, robot_names: Sequence[str], motors: tuple[Sequence[str], NDArray[np.intp]] | None = None
    ) -> None:
        """Take the robot's names, as :class:`JointOrder` does."""
        self._robot_names, self._motors = tuple(robot_names), motors
        self._last_names: list[str] = []
        self._last = JointOrder(self._robot_names, (), motors)

    def of(self, names: list[str]) -> JointOrder:
        """The order that a message's list of names says; StateError as for :class:`JointOrder`."""
        if names != self._last_names:
            self._last = JointOrder(self._robot_names, names, self._motors)
            self._last_names = names
        return self._last


def read_state(message: StateMessage, order: JointOrder, optional: Collection[str] = ()) -> Array:
    """q, qd, qdd, qddd, qdddd of a message, (5, n) in the robot's order; rad or m, and per s … s⁴.

    Args:
        message: a setpoint or a request.
        order: its joint order.
        optional: fields that may be empty, which means zero.

    Raises:
        StateError: a field has the wrong length or a number that is not finite; the message says which.
    """
    values = _read(message, STATE_FIELDS, len(order.names), optional)
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        name = _shown(order.names[column])
        raise StateError(f"{STATE_FIELDS[row]}[{column}] (joint {name}) is {values[row, column]}")
    return order.to_robot(values)


def read_wrench(message: StateMessage, shape: tuple[int, ...] = (6,)) -> tuple[Array, ...]:
    """W, Wd, Wdd of a message in N m and N, moment first; () where all three are empty.

    Args:
        message: a setpoint or a request.
        shape: of each, (6,) or (number of tools, 6); in the message one tool follows the other.

    Raises:
        StateError: one of them has neither the right number of entries nor none, or a number that is not finite.
    """
    if not (message.wrench or message.wrench_rate or message.wrench_acceleration):
        return ()
    values = _read(message, WRENCH_FIELDS, prod(shape), WRENCH_FIELDS)
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise StateError(f"{WRENCH_FIELDS[row]}[{column}] is {values[row, column]}")
    return tuple(values.reshape(-1, *shape))


def read_stiffness(message: StateMessage, order: JointOrder, variable: NDArray[np.bool_]) -> tuple[Array, ...]:
    """k, kd, kdd of a message, each (n,) in the robot's order, N m/rad or N/m; () where all three are empty.

    Entries of joints whose stiffness is not commanded are not looked at, and may be anything.

    Args:
        message: a setpoint or a request.
        order: its joint order.
        variable: (n,) whether the stiffness of a joint is commanded, in the robot's order.

    Raises:
        StiffnessError: one of them has neither the right number of entries nor none, a time derivative comes
            without the stiffness, or a number is not finite where stiffness is commanded.
    """
    if not (message.stiffness or message.stiffness_rate or message.stiffness_acceleration):
        return ()
    try:
        values = _read(message, STIFFNESS_FIELDS, len(order.names), STIFFNESS_FIELDS)
    except StateError as error:
        raise StiffnessError(str(error)) from None
    if not message.stiffness:
        raise StiffnessError("stiffness is empty, and its time derivatives are not: give it, or none of them")
    wrong = ~np.isfinite(values) & (variable if order.robot_index is None else variable[order.robot_index])
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        name = _shown(order.names[column])
        raise StiffnessError(f"{STIFFNESS_FIELDS[row]}[{column}] (joint {name}) is {values[row, column]}")
    return tuple(order.to_robot(values))


def check_efforts(efforts: Array, joint_names: Sequence[str]) -> None:
    """Refuse joint efforts (3, n), rows as in EFFORT_FIELDS, that overflowed.

    Raises:
        StateError: an entry is not finite.
    """
    _refuse_overflow(efforts, EFFORT_FIELDS, "joint", joint_names)


def check_motors(motors: Array, motor_names: Sequence[str]) -> None:
    """Refuse what motors are to do, (4, m), rows as in MOTOR_FIELDS, where it overflowed.

    Raises:
        StateError: an entry is not finite.
    """
    _refuse_overflow(motors, MOTOR_FIELDS, "motor", motor_names)


def doubles(values: Array) -> array[float]:
    """Any array as the contents of a ``float64[]`` field, row after row."""
    return array("d", values.tobytes())


def _read(message: StateMessage, fields: Sequence[str], length: int, optional: Collection[str]) -> Array:
    """The fields stacked: (number of fields, length)."""
    parts = [getattr(message, field) for field in fields]
    for i, field in enumerate(fields):
        if len(parts[i]) != length:
            if parts[i] or field not in optional:
                allowed = f"{length} or none" if field in optional else f"{length}, one for each joint"
                if field in WRENCH_FIELDS:
                    allowed = f"{length} (moment and force at each tool) or none"
                raise StateError(f"{field} has {len(parts[i])} entries, must have {allowed}")
            parts[i] = array("d", bytes(8 * length))
    return np.frombuffer(b"".join(parts)).reshape(len(fields), length)


def _refuse_overflow(values: Array, fields: Sequence[str], what: str, names: Sequence[str]) -> None:
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise StateError(
            f"numbers too large: {fields[row]} of {what} {_shown(names[column])} would be {values[row, column]}"
        )


def _shown(name: str) -> str:
    """A name for a log line: one from the network can be of any length and hold any character."""
    return repr(name if len(name) <= 60 else name[:57] + "...")
