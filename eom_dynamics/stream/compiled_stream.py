# SPDX-License-Identifier: Apache-2.0
"""From the bytes of a setpoint to those of its command in one compiled call.

A stream repeats itself: joints, frame and lengths are those of the message before, and only stamp and numbers differ.
For messages of one such shape, :class:`ShapedStream` has a call that compares the constant bytes, reads the numbers
from their places, calls the compiled inverse dynamics and the exported motor side, checks limits, and writes the
command. Whatever it does not take (another shape, a number that is not finite, a limit that is exceeded) is left to
:class:`.Solver`, which it equals bit for bit.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from ..codegen.native import extension
from ..elastic import ElasticArm, LimitCheck
from ..exceptions import KernelError
from ..messages.cdr import Layout
from ..messages.fields import (
    BASE_FIELD,
    COMMAND_FIELDS,
    EFFORT_FIELDS,
    MOTOR_FIELDS,
    STATE_FIELDS,
    STIFFNESS_FIELDS,
    WRENCH_FIELDS,
)
from ..messages.joint_order import JointOrder
from ..messages.samples import getter
from ..messages.setpoint_to_command import Solution

FEEDFORWARD, MOTOR_SETPOINT, EFFORT_COMMAND = range(3)
"""Numbers of the messages that are written."""

# Of a Wrench: torque x y z before force x y z in arrays, after it in messages.
_MOMENT_FIRST = (3, 4, 5, 0, 1, 2)

_WRENCH_SIZE = len(_MOMENT_FIRST)


class Shape(NamedTuple):
    """What messages of one shape have in common.

    Attributes:
        frame_id: of the header.
        joint_names: as in the message.
        wrenches: number of entries of each of WRENCH_FIELDS.
    """

    frame_id: str
    joint_names: tuple[str, ...]
    wrenches: tuple[int, ...]


class ShapedStream:
    """Call for messages of one shape.

    Attributes:
        shape: the shape.
        order: joint order of the messages.
        call: from the bytes of a setpoint to those of a command, or None for what it does not take; see
            ``codegen/csrc/stream_call.c``.
        state: q … qdddd (5, n) of the setpoint read last, overwritten by the next.
        committed_state: the same of the last one that was committed.
    """

    def __init__(self, compiled: CompiledStream, shape: Shape, order: JointOrder, layout: Layout, length: int) -> None:
        arm = compiled.arm
        n, m, tools = arm.robot.n, len(arm.motor_names), len(arm.robot.tools)
        self.shape, self.order = shape, order
        self._wrench_shape = arm.robot.wrench_shape
        self._sizes = n, m
        size = (len(STATE_FIELDS) + len(EFFORT_FIELDS)) * n + len(MOTOR_FIELDS) * m
        self._scratch = np.zeros(size + len(WRENCH_FIELDS) * _WRENCH_SIZE * tools)
        self._row = np.zeros(size)
        self.state = self._scratch[: len(STATE_FIELDS) * n].reshape(-1, n)
        self.committed_state = self._row[: len(STATE_FIELDS) * n].reshape(-1, n)
        self._has_wrench = any(shape.wrenches)
        self.call = compiled.module.StreamCall(
            dynamics=compiled.dynamics,
            motors=compiled.motors,
            n=n,
            m=m,
            tools=tools,
            scratch=self._scratch,
            row=self._row,
            lower=np.ascontiguousarray(compiled.limits.lower),
            upper=np.ascontiguousarray(compiled.limits.upper),
            limited=compiled.limits.limited and compiled.checks_limits,
            length=length,
            stamp=layout.stamp,
            constants=tuple(layout.constants),
            inputs=self._inputs(layout, order, tools),
            outputs=self._outputs(shape, order, commands_motors=compiled.commands_motors),
        )

    def efforts_and_motors(self) -> tuple[Array, Array]:
        """Efforts (3, n) and motors (4, m) of the last command that was committed, overwritten by the next."""
        return self._split(self._row)

    def solution(self) -> Solution:
        """The last command that was committed, in arrays of its own."""
        n, _ = self._sizes
        row = self._row.copy()
        wrench: tuple[Array, ...] = ()
        if self._has_wrench:
            # Of the last setpoint that was read, which is the one that was committed.
            rows = self._scratch[len(row) :].copy().reshape(len(WRENCH_FIELDS), *self._wrench_shape)
            wrench = tuple(rows)
        return Solution(self.order, row[: len(STATE_FIELDS) * n].reshape(-1, n), wrench, *self._split(row))

    def _split(self, row: Array) -> tuple[Array, Array]:
        n, m = self._sizes
        start = len(STATE_FIELDS) * n
        split = start + len(EFFORT_FIELDS) * n
        return row[start:split].reshape(-1, n), row[split:].reshape(-1, m)

    def _inputs(self, layout: Layout, order: JointOrder, tools: int) -> tuple[Any, ...]:
        n, m = self._sizes
        index = _order(order.message_index)
        places = iter(layout.numbers)
        inputs = [(next(places)[0], k * n, n, index) for k in range(len(STATE_FIELDS))]
        start = (len(STATE_FIELDS) + len(EFFORT_FIELDS)) * n + len(MOTOR_FIELDS) * m
        for k, count in enumerate(self.shape.wrenches):
            if count:
                at, _ = next(places)
                for tool in range(tools):
                    to = start + (k * tools + tool) * _WRENCH_SIZE
                    inputs.append((at + 8 * tool * _WRENCH_SIZE, to, _WRENCH_SIZE, _MOMENT_FIRST))
        return tuple(inputs)

    def _outputs(self, shape: Shape, order: JointOrder, *, commands_motors: bool) -> tuple[Any, ...]:
        n, m = self._sizes
        start = len(STATE_FIELDS) * n
        joints, motors = _order(order.robot_index), _order(order.motor_index)
        # Of each field of a command: its place in a row, its length and its order.
        rows: dict[str, tuple[int, int, Any]] = {}
        for k, field in enumerate(EFFORT_FIELDS):
            rows[field] = start + k * n, n, joints
        for k, field in enumerate(MOTOR_FIELDS):
            rows[field] = start + len(EFFORT_FIELDS) * n + k * m, m, motors
        command = feedforward_layout(shape.frame_id, order.names, order.motor_names)
        setpoint = motor_setpoint_layout(shape.frame_id, order.motor_names)
        effort = effort_command_layout(m if commands_motors else n)
        at, count, _ = rows["motor_effort" if commands_motors else "effort"]
        own = [rows[field] for field in ("motor_position", "motor_velocity", "motor_effort")]
        return (
            _output(command, [rows[field] for field in COMMAND_FIELDS]),
            _output(setpoint, own),
            _output(effort, [(at, count, None)]),  # in the robot's order
        )


class CompiledStream:
    """Calls for the stream of one arm, by the shape of its messages.

    Attributes:
        arm: the arm.
        motors: address of the motor side; 0 where it is not compiled, so that there are no calls.
        commands_motors: whether the effort command is that of the motors, and not that of the joints; for shapes that
            are taken from then on.
        checks_limits: whether a command that exceeds limits is left to :class:`.Solver`; likewise.
    """

    def __init__(self, arm: ElasticArm) -> None:
        """Compile, or load from the cache.

        Raises:
            KernelError: there is no compiled inverse dynamics, or the call cannot be compiled.
        """
        address = arm.dynamics.state_address
        if address is None or sys.byteorder != "little":
            raise KernelError("a stream is compiled for the native backend on little-endian processors only")
        self.arm = arm
        self.module = extension("stream_call")
        self.dynamics = address
        self.limits = LimitCheck(arm)
        self.commands_motors = self.checks_limits = True
        self.motors = 0

    def shaped(self, setpoint: Any, message: bytes, order: JointOrder) -> ShapedStream | None:
        """Call for messages like a valid one; None if its shape is not supported.

        Args:
            setpoint: the setpoint.
            message: the same as it came, in bytes.
            order: its joint order.
        """
        shape = shape_of(setpoint)
        if shape is None or not self.motors:
            return None
        try:
            layout = setpoint_layout(shape, self.arm.robot.n)
        except UnicodeEncodeError:  # bytes that are no text
            return None
        if not layout.describes(message):
            return None
        return ShapedStream(self, shape, order, layout, len(message))


def shape_of(setpoint: Any) -> Shape | None:
    """Shape of a setpoint; None with commanded stiffness or a motion of the base, whose numbers are not read here."""
    if any(map(len, getter(STIFFNESS_FIELDS)(setpoint))) or len(getattr(setpoint, BASE_FIELD)):
        return None
    wrenches = tuple(map(len, getter(WRENCH_FIELDS)(setpoint)))
    return Shape(setpoint.header.frame_id, tuple(setpoint.joint_names), wrenches)


def setpoint_layout(shape: Shape, n: int) -> Layout:
    """Layout of a ``JointTrajectorySetpoint`` of a shape for n joints."""
    layout = Layout().header(shape.frame_id).strings(shape.joint_names)
    for _ in STATE_FIELDS:
        layout.doubles(n)
    for count in shape.wrenches:
        layout.doubles(count, _WRENCH_SIZE)
    for _ in (*STIFFNESS_FIELDS, BASE_FIELD):
        layout.length(0)
    return layout


def feedforward_layout(frame_id: str, joint_names: Sequence[str], motor_names: Sequence[str]) -> Layout:
    """Layout of a fresh ``FeedforwardCommand``."""
    layout = Layout().header(frame_id).strings(joint_names).byte(0).byte(0)
    for _ in EFFORT_FIELDS:
        layout.doubles(len(joint_names))
    layout.strings(motor_names)
    for _ in MOTOR_FIELDS:
        layout.doubles(len(motor_names))
    return layout


def motor_setpoint_layout(frame_id: str, motor_names: Sequence[str]) -> Layout:
    """Layout of a ``JointState`` with position, velocity and effort."""
    layout = Layout().header(frame_id).strings(motor_names)
    for _ in range(3):
        layout.doubles(len(motor_names))
    return layout


def effort_command_layout(count: int) -> Layout:
    """Layout of a ``Float64MultiArray`` without dimensions."""
    return Layout().length(0).length(0).doubles(count)


def _output(layout: Layout, rows: Sequence[tuple[int, int, Any]]) -> tuple[Any, ...]:
    """Bytes of a message, place of its stamp, and where its numbers are from."""
    message = bytearray(layout.size)
    for at, given in layout.constants:
        message[at : at + len(given)] = given
    numbers = [(at, start, count, order) for (at, _), (start, count, order) in zip(layout.numbers, rows, strict=True)]
    return bytes(message), layout.stamp, tuple(numbers)


def _order(index: Any) -> tuple[int, ...] | None:
    return None if index is None else tuple(map(int, index))


def compiled_stream(arm: ElasticArm) -> CompiledStream | None:
    """Calls for the stream of an arm; None where they cannot be compiled, for which Dynamics has warned."""
    try:
        return CompiledStream(arm)
    except KernelError:
        return None
