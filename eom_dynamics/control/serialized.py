# SPDX-License-Identifier: Apache-2.0
"""Compiled call from the bytes of a setpoint to the bytes of its command, with one cycle of the control loop.

In a stream, joints, frame and lengths rarely change; only stamp and numbers differ. :class:`ShapeCall` compiles a call
for messages of one such shape: it compares the constant bytes, reads the numbers at their offsets into the loop's
setpoint, and writes the command from the loop's memory. :class:`.SetpointLoop` handles messages of other shapes, and
explains refusals.

ROS 2 messages travel in CDR, the common data representation of the OMG (DDS-XTypes 1.3, section 7.4.1, encoding version
1): four bytes of encapsulation, and then the fields in their order, each aligned to its size from there on. A sequence
has its length in front, a string its size with the zero at its end. Only little-endian messages are described here.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..actuators.drive_units import SIDES
from ..arrays import EFFORT_NAMES, STATE_NAMES, WRENCH_NAMES, Array
from ..codegen.floating_programs import IMU_NAMES
from ..codegen.native import extension
from ..elastic import ElasticArm
from ..elastic.drive_programs import DRIVE_NAMES
from ..elastic.motor_programs import MOTOR_NAMES, STIFFNESS_NAMES
from ..exceptions import KernelError, StateError
from .control_loop import ControlLoop
from .fields import BASE_FIELD, BASE_SHAPE, STIFFNESS_FIELDS, WRENCH_FIELDS, getter
from .joint_order import JointOrder

ENCAPSULATION = b"\x00\x01"
"""First bytes of a message in plain CDR, little-endian; the two after them are options."""

_START = 4
_LENGTH, _DOUBLE = struct.Struct("<I"), 8


def stamp_of(message: bytes) -> int:
    """Stamp, ns, of a serialized message that starts with a header; any number if the message is too short."""
    seconds = int.from_bytes(message[_START : _START + 4], "little", signed=True)
    return seconds * 1_000_000_000 + int.from_bytes(message[_START + 4 : _START + 8], "little")


class TrajectoryOutline(NamedTuple):
    """Beginning of a serialised ``JointTrajectory`` or ``SplineTrajectory``, which takes little time to read."""

    stamp: int  # ns
    frame_id: str
    length: int  # number of points or knots
    first: float  # time of the first point, s; 0 for knots


def trajectory_outline(message: bytes, *, of_points: bool) -> TrajectoryOutline:
    """Read the outline of a message; StateError if it ends before."""
    position = _START + 8

    def number(code: str, size: int = 4) -> Any:
        nonlocal position
        position += (_START - position) % size + size
        return struct.unpack_from(code, message, position - size)[0]

    def text() -> str:
        nonlocal position
        length = number("<I")
        position += length
        return message[position - length : position - 1].decode(errors="replace")

    first = 0.0
    try:
        frame_id = text()
        for _ in range(number("<I")):
            text()
        if (length := number("<I")) and of_points:
            for _ in range(4):  # positions, velocities, accelerations, effort
                if entries := number("<I"):
                    number("<d", _DOUBLE)
                    position += _DOUBLE * (entries - 1)
            first = number("<i") + 1e-9 * number("<I")
    except struct.error:
        raise StateError("the message is incomplete") from None
    return TrajectoryOutline(stamp_of(message), frame_id, length, first)


@dataclass
class MessageLayout:
    """Layout of a message, built field by field in the order of its definition.

    Attributes:
        constants: offsets and contents of constant bytes; padding between fields may have any value.
        numbers: offset and count of each array of doubles, in order.
        stamp: offset of the stamp, int32 seconds and uint32 nanoseconds; -1 without a stamp.
        size: bytes so far, with the encapsulation.
    """

    constants: list[tuple[int, bytes]] = field(default_factory=lambda: [(0, ENCAPSULATION)])
    numbers: list[tuple[int, int]] = field(default_factory=list)
    stamp: int = -1
    size: int = _START

    def header(self, frame_id: str) -> MessageLayout:
        """Add a ``std_msgs/Header``."""
        self._align(4)
        self.stamp = self.size
        self.size += 8
        self._string(frame_id)
        return self

    def strings(self, texts: Sequence[str]) -> MessageLayout:
        """Add a ``string[]``."""
        self.length(len(texts))
        for text in texts:
            self._string(text)
        return self

    def doubles(self, count: int, each: int = 1) -> MessageLayout:
        """Add an array of ``count`` elements of ``each`` doubles, with its length."""
        self.length(count)
        if count:
            self._align(_DOUBLE)
            self.numbers.append((self.size, count * each))
            self.size += count * each * _DOUBLE
        return self

    def length(self, number: int) -> MessageLayout:
        """Add a ``uint32``, such as the length of an empty sequence."""
        self._constant(_LENGTH.pack(number), 4)
        return self

    def byte(self, number: int) -> MessageLayout:
        """Add a ``uint8`` or ``bool``."""
        self._constant(bytes([number]), 1)
        return self

    def byte_array(self, numbers: Sequence[int]) -> MessageLayout:
        """Add a ``uint8[]``."""
        self.length(len(numbers))
        self._constant(bytes(numbers), 1)
        return self

    def double(self, number: float) -> MessageLayout:
        """Add a ``float64`` with the same value in all messages."""
        self._constant(struct.pack("<d", number), _DOUBLE)
        return self

    def describes(self, message: bytes) -> bool:
        """True if a serialized message has this layout; with Fast DDS there are unused bytes at its end."""
        return len(message) >= self.size and all(
            message[at : at + len(wanted)] == wanted for at, wanted in self.constants
        )

    def _string(self, text: str) -> None:
        encoded = text.encode()
        self._constant(_LENGTH.pack(len(encoded) + 1), 4)
        self._constant(encoded + b"\0", 1)

    def _constant(self, constant: bytes, alignment: int) -> None:
        self._align(alignment)
        at, before = self.constants[-1]
        if at + len(before) == self.size:
            self.constants[-1] = at, before + constant
        else:
            self.constants.append((self.size, constant))
        self.size += len(constant)

    def _align(self, alignment: int) -> None:
        self.size += -(self.size - _START) % alignment


FEEDFORWARD, MOTOR_SETPOINT, EFFORT_COMMAND = range(3)
"""Indices of the published messages."""

# Of a Wrench: torque x y z before force x y z in arrays, after it in messages.
_MOMENT_FIRST = (3, 4, 5, 0, 1, 2)

_WRENCH_SIZE = len(_MOMENT_FIRST)


class Shape(NamedTuple):
    """Shape shared by messages: frame, joint names and lengths of optional fields.

    Attributes:
        frame_id: of the header.
        joint_names: as in the message.
        wrenches, stiffness: number of entries of each of WRENCH_FIELDS, and of STIFFNESS_FIELDS.
        on_base: whether there is a motion of the base.
    """

    frame_id: str
    joint_names: tuple[str, ...]
    wrenches: tuple[int, ...]
    stiffness: tuple[int, ...]
    on_base: bool


class ShapeCall:
    """Compiled call for messages of one shape.

    Attributes:
        shape: the shape.
        order: joint order of the messages.
        call: from the bytes of a setpoint, and the time, ns, to the bytes of a command; to a number, a
            :class:`.Refusal`, for a refused setpoint; or to None for a message of another shape, or with a number that
            is not finite. See ``codegen/csrc/stream_call.c``.
    """

    def __init__(self, loop: ControlLoop, shape: Shape, order: JointOrder, message: bytes) -> None:
        """Prepare a call.

        Args:
            loop: the loop.
            shape, order: of the messages.
            message: one of them.

        Raises:
            KernelError: the call cannot be compiled, or a message has another layout than the shape says.
        """
        self.shape, self.order = shape, order
        self._loop = loop
        layout = setpoint_layout(shape, loop.arm.robot.n)
        if not layout.describes(message):
            raise KernelError("the message is not in plain CDR, little-endian")
        self.call = extension("stream_call").StreamCall(
            loop=loop.address,
            size=loop.size,
            given=loop.given_address,
            refer=loop.function_address("loop_refer"),
            update=loop.function_address("loop_update"),
            initial=loop.rest(on_base=shape.on_base),
            constants=_pairs((at, len(same)) for at, same in layout.constants),
            input=(message, layout.stamp, _pairs(self._inputs(layout, order))),
            outputs=self._outputs(shape, order),
        )

    def _inputs(self, layout: MessageLayout, order: JointOrder) -> Iterator[tuple[int, int]]:
        """Offset of each number in a message, and its place in the given setpoint."""
        arm, given = self._loop.arm, self._loop.given
        offsets = {name: _place(values, self._loop.given_address) for name, values in given.items()}
        index, arrays = _order(order.message_index) or range(arm.robot.n), iter(layout.numbers)
        for name in STATE_NAMES:
            at, _ = next(arrays)
            yield from ((at + 8 * i, offsets[name] + k) for k, i in enumerate(index))
        for name, count in zip(WRENCH_NAMES, self.shape.wrenches, strict=True):
            if count:
                at, _ = next(arrays)
                for tool in range(0, _WRENCH_SIZE * count, _WRENCH_SIZE):
                    yield from ((at + 8 * (tool + i), offsets[name] + tool + k) for k, i in enumerate(_MOMENT_FIRST))
        for name, count in zip(STIFFNESS_NAMES, self.shape.stiffness, strict=True):
            if count:
                at, _ = next(arrays)
                # Entries of other joints may be anything.
                yield from ((at + 8 * index[k], offsets[name] + k) for k in np.flatnonzero(arm.variable).tolist())
        if self.shape.on_base:
            at, _ = next(arrays)
            for row, name in enumerate((*IMU_NAMES[0], *IMU_NAMES[1])):
                yield from ((at + 24 * row + 8 * k, offsets[name] + k) for k in range(3))

    def _outputs(self, shape: Shape, order: JointOrder) -> tuple[Any, ...]:
        loop = self._loop
        joints, motors = _order(order.robot_index), _order(order.motor_index)

        def row(vectors: dict[str, Array], name: str, places: Any) -> tuple[int, int, Any]:
            return _place(vectors[name], loop.address), len(vectors[name]), places

        rows = [row(loop.command, name, joints) for name in EFFORT_NAMES]
        rows += [row(loop.command, name, motors) for name in MOTOR_NAMES]
        sides = drive_side_numbers(loop.arm, order)
        command = feedforward_layout(shape.frame_id, order.names, order.motor_names, sides, loop.arm.robot.command_lead)
        setpoint = MessageLayout().header(shape.frame_id).strings(order.motor_names)  # of a JointState
        for name in DRIVE_NAMES:
            setpoint.doubles(len(loop.sent[name]))
        # In the robot's order.
        sent = row(loop.sent, DRIVE_NAMES[2], None)
        return (
            _output(command, rows),
            _output(setpoint, [row(loop.sent, name, motors) for name in DRIVE_NAMES]),
            _output(MessageLayout().length(0).length(0).doubles(sent[1]), [sent]),  # a Float64MultiArray
        )


def _place(values: Array, address: int) -> int:
    """Place of an array over the memory at an address, in numbers."""
    return (values.ctypes.data - address) // values.itemsize


def message_shape(setpoint: Any) -> Shape:
    """Shape of a setpoint."""
    wrenches, stiffness = (tuple(map(len, getter(x)(setpoint))) for x in (WRENCH_FIELDS, STIFFNESS_FIELDS))
    on_base = bool(len(getattr(setpoint, BASE_FIELD)))
    return Shape(setpoint.header.frame_id, tuple(setpoint.joint_names), wrenches, stiffness, on_base)


def setpoint_layout(shape: Shape, n: int) -> MessageLayout:
    """Layout of a ``JointTrajectorySetpoint`` with this shape, for n joints."""
    layout = MessageLayout().header(shape.frame_id).strings(shape.joint_names)
    for _ in STATE_NAMES:
        layout.doubles(n)
    for count in shape.wrenches:
        layout.doubles(count, _WRENCH_SIZE)
    for count in shape.stiffness:
        layout.doubles(count)
    return layout.doubles(int(shape.on_base), BASE_SHAPE[0] * BASE_SHAPE[1])


def drive_side_numbers(arm: ElasticArm, order: JointOrder) -> array[int]:
    """Sides of the drives in messages, in the order of the motors there."""
    numbers = np.array([SIDES.index(side) for side in arm.drive_sides], np.uint8)
    return array("B", order.motors_to_message(numbers).tobytes())


def feedforward_layout(
    frame_id: str, joint_names: Sequence[str], motor_names: Sequence[str], sides: Sequence[int], lead: float = 0.0
) -> MessageLayout:
    """Layout of a fresh ``FeedforwardCommand``."""
    layout = MessageLayout().header(frame_id).strings(joint_names).byte(0).byte(0).double(lead)
    for _ in EFFORT_NAMES:
        layout.doubles(len(joint_names))
    layout.strings(motor_names).byte_array(sides)
    for _ in MOTOR_NAMES:
        layout.doubles(len(motor_names))
    return layout


def _output(layout: MessageLayout, rows: Sequence[tuple[int, int, Any]]) -> tuple[Any, ...]:
    """Bytes of a message, offset of its stamp, and sources of its numbers."""
    message = bytearray(layout.size)
    for at, constant in layout.constants:
        message[at : at + len(constant)] = constant
    numbers = (
        (at + 8 * k, start + i)
        for (at, _), (start, count, order) in zip(layout.numbers, rows, strict=True)
        for k, i in enumerate(order or range(count))
    )
    return bytes(message), layout.stamp, _pairs(numbers)


def _pairs(pairs: Iterable[tuple[int, int]]) -> bytes:
    """Pairs of numbers as the compiled call takes them."""
    return np.array(list(pairs), dtype=np.int32).tobytes()


def _order(index: Any) -> tuple[int, ...] | None:
    return None if index is None else tuple(map(int, index))


# Maximum number of learned shapes, for publishers that alternate.
_MOST_SHAPES = 4


class LearnedShapes:
    """Compiled calls for the latest message shapes of one loop, the most recent first."""

    def __init__(self) -> None:
        self.calls: list[ShapeCall] = []
        self._before: Shape | None = None

    def forget(self) -> None:
        """Clear all shapes."""
        self.calls, self._before = [], None

    def answer(self, message: bytes, now: int, first: int) -> tuple[ShapeCall, bytes | int] | None:
        """Answer a message at clock time ``now``, ns, by the call for its shape; None without such a call.

        Returns:
            The call and its result; ``first`` is the index of the returned output.
        """
        for k, call in enumerate(self.calls):
            call.call.first = first
            answer = call.call(message, now)
            if answer is not None:
                if k:
                    self.calls.insert(0, self.calls.pop(k))
                return call, answer
        return None

    def learn(self, setpoint: Any, message: bytes, call_for: Callable[[Shape], ShapeCall]) -> None:
        """Prepare a call for messages like a valid message, after two messages of equal shape.

        Args:
            setpoint: the setpoint, already answered field by field.
            message: bytes of the same setpoint.
            call_for: creates the call for a shape; raises KernelError, or UnicodeEncodeError for bytes that are not
                text, if there is no call.
        """
        shape, before = message_shape(setpoint), self._before
        self._before = shape
        if shape != before or any(call.shape == shape for call in self.calls):  # it has taken others and not this one
            return
        with suppress(KernelError, UnicodeEncodeError):
            self.calls = [call_for(shape), *self.calls[: _MOST_SHAPES - 1]]
