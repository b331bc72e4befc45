# SPDX-License-Identifier: Apache-2.0
"""Fast path: from the bytes of a setpoint to those of its command in one compiled call.

A stream repeats itself: joints, frame and lengths are those of the message before, and only stamp and numbers differ.
For messages of one such shape, :class:`ShapeCall` has a call that compares the constant bytes, reads the numbers
at their offsets, runs the kernels of :meth:`ElasticArm.feedforward`, checks limits, and writes the command. Whatever
it does not take (another shape, a number that is not finite, a command that is refused) is left to
:class:`.SetpointEvaluator`, which runs the same kernels and has the same memory of springs with dampers and of
presliding friction.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from ..codegen.floating_programs import IMU_NAMES
from ..codegen.functions import Stage
from ..codegen.native import NativeKernel, extension
from ..elastic import BaseMotion, DriveCommand, ElasticArm, LimitCheck, LimitViolation
from ..elastic.drive_programs import DRIVE_NAMES, SENT_NAMES, SHARE
from ..elastic.motor_programs import DEFLECTION, FRICTION_STATE, MOTOR_NAMES, SHAFT, STIFFNESS_NAMES
from ..exceptions import KernelError
from ..messages.cdr import MessageLayout
from ..messages.fields import (
    BASE_FIELD,
    BASE_SHAPE,
    COMMAND_FIELDS,
    EFFORT_FIELDS,
    MOTOR_FIELDS,
    STATE_FIELDS,
    STIFFNESS_FIELDS,
    WRENCH_FIELDS,
    getter,
)
from ..messages.joint_order import JointOrder
from ..messages.setpoint_to_command import LIMIT_POLICIES, LONGEST_GAP, EvaluatedCommand, SetpointEvaluator
from ..robot.payload import payload_shape
from ..states import EFFORT_NAMES, PAYLOAD_NAMES, STATE_NAMES, WRENCH_NAMES

FEEDFORWARD, MOTOR_SETPOINT, EFFORT_COMMAND = range(3)
"""Indices of the published messages."""

# Of a Wrench: torque x y z before force x y z in arrays, after it in messages.
_MOMENT_FIRST = (3, 4, 5, 0, 1, 2)

_WRENCH_SIZE = len(_MOMENT_FIRST)

# Vectors that are time derivatives of each other, at which a command is for a later motion.
AHEAD = (STATE_NAMES, WRENCH_NAMES, STIFFNESS_NAMES, PAYLOAD_NAMES, *IMU_NAMES)

# Efforts and motor positions at the setpoint before, which springs with dampers and presliding friction remember.
_BEFORE = tuple(f"{name}_before" for name in (*EFFORT_NAMES, MOTOR_NAMES[0]))


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


class ScratchLayout:
    """Layout of all vectors of a command in one array, including the motion ahead if there is a lead.

    A row of state, efforts and motors comes first, then the voltages of the motors, whose ranges are checked with it,
    then what is sent to the drives, where that differs, then payload, wrench, base and stiffness.

    Attributes:
        offsets, lengths: by name of a vector.
        row_length, kept_length, total_length: of a row, of all of a command that is kept, of the array.
        ahead: names of the vectors that the kernels read, of the motion ahead.
    """

    def __init__(self, arm: ElasticArm) -> None:
        n, m, wrench = arm.robot.n, len(arm.motor_names), _WRENCH_SIZE * len(arm.robot.tools)
        lengths = dict.fromkeys((*STATE_NAMES, *EFFORT_NAMES), n) | dict.fromkeys(MOTOR_NAMES, m)
        self.row_length = sum(lengths.values())
        lengths |= {"voltage": m}
        if arm.converts:
            lengths |= dict.fromkeys(DRIVE_NAMES, m) | dict.fromkeys(SENT_NAMES, n)
        lengths |= dict.fromkeys(PAYLOAD_NAMES, prod(payload_shape(arm.robot)))
        lengths |= dict.fromkeys(WRENCH_NAMES, wrench) | dict.fromkeys((*IMU_NAMES[0], *IMU_NAMES[1]), 3)
        lengths |= dict.fromkeys(STIFFNESS_NAMES, n)
        self.kept_length = sum(lengths.values())
        lengths |= dict.fromkeys((*SHAFT[:3], SHAFT[4]), m) | {"spin": m}
        # The memory of a stream follows the step.
        lengths |= {DEFLECTION: n, FRICTION_STATE: m, "step": 1, "start": n, "friction_start": m}
        lengths |= dict.fromkeys(_BEFORE[:-1], n) | {_BEFORE[-1]: m}
        moving = [name for group in AHEAD for name in group]
        self.ahead = {name: f"{name}_ahead" for name in moving}
        lengths |= {self.ahead[name]: lengths[name] for name in moving} | {"lead": 1}
        lengths |= {SHARE: 2} if arm.converts else {}
        self.lengths = lengths
        ends = np.cumsum([0, *lengths.values()]).tolist()
        self.offsets, self.total_length = dict(zip(lengths, ends, strict=False)), ends[-1]

    def stage(self, stage: Stage, renamed: Mapping[str, str] | None = None) -> tuple[Any, ...]:
        """Address of a kernel and offsets of its vectors, some of which are renamed."""
        names = dict(renamed or {})
        inputs, outputs = (
            tuple(self.offsets[names.get(name, name)] for name in row) for row in (stage.inputs, stage.outputs)
        )
        assert isinstance(stage.kernel, NativeKernel)  # of a compiled stream
        return stage.kernel.state_address, inputs, outputs


class ShapeCall:
    """Compiled call for messages of one shape.

    Attributes:
        shape: the shape.
        order: joint order of the messages.
        call: from the bytes of a setpoint to those of a command, or None for what it does not take; see
            ``codegen/csrc/stream_call.c``.
        state: q … qdddd (5, n) of the setpoint read last, overwritten by the next.
        committed_state: the same of the last one that was committed.
        has_payload: whether payloads are taken into account.
        lead: of the commands, s.
    """

    def __init__(
        self,
        compiled: CompiledStream,
        shape: Shape,
        order: JointOrder,
        layout: MessageLayout,
        length: int,
        limit_policy: str,
        *,
        commands_motors: bool,
    ) -> None:
        arm, scratch = compiled.arm, ScratchLayout(compiled.arm)
        n, m = arm.robot.n, len(arm.motor_names)
        self.shape, self.order = shape, order
        self._arm, self._limits, self._offsets = arm, compiled.limits, scratch.offsets
        self._scratch, self._committed = np.zeros(scratch.total_length), np.zeros(scratch.kept_length)
        self.lead = compiled.evaluator.lead
        self._scratch[self._offsets["lead"]] = self.lead
        if arm.converts:
            self._scratch[self._offsets[SHARE]] = 1.0
        nominal = slice(self._offsets[STIFFNESS_NAMES[0]], self._offsets[STIFFNESS_NAMES[0]] + n)
        self._scratch[nominal] = arm.side.nominal_stiffness
        self.state = self._scratch[: len(STATE_FIELDS) * n].reshape(-1, n)
        self.committed_state = self._committed[: len(STATE_FIELDS) * n].reshape(-1, n)
        memory, payload = compiled.evaluator.deflections, compiled.evaluator.payload
        self.has_payload = payload.present
        start, self._payload_shape = self._offsets[PAYLOAD_NAMES[0]], payload_shape(arm.robot)
        self._payload = self._scratch[start : start + len(PAYLOAD_NAMES) * prod(self._payload_shape)].reshape(
            -1, *self._payload_shape
        )
        self.set_payload(payload.target)
        self.call = compiled.module.StreamCall(
            n=n,
            m=m,
            stages=compiled.stages(scratch, on_base=shape.on_base, payload=self.has_payload),
            late=int(arm.converts),
            scratch=self._scratch,
            committed=self._committed,
            lower=np.concatenate((compiled.limits.lower, -compiled.limits.voltage)),
            upper=np.concatenate((compiled.limits.upper, compiled.limits.voltage)),
            most_effort=compiled.limits.most_effort,
            turn=compiled.limits.turn,
            policy=LIMIT_POLICIES.index(limit_policy if compiled.limits.limited else "ignore"),
            clipped=self._offsets["clipped_effort"],
            memory=memory.memory if memory.needed else None,
            memory_stamp=memory.stamp if memory.needed else None,
            step=self._offsets["step"],
            deflection=self._offsets[DEFLECTION],
            longest_gap=LONGEST_GAP,
            force=self._offsets[IMU_NAMES[1][0]] if shape.on_base else -1,
            length=length,
            stamp=layout.stamp,
            constants=tuple(layout.constants),
            inputs=self._inputs(layout, order),
            outputs=self._outputs(shape, order, commands_motors=commands_motors),
        )

    def set_payload(self, payload: Sequence[Array]) -> None:
        """Set the parameters of the payload, optionally with time derivatives, for all following commands."""
        self._payload[:] = 0.0
        for row, values in zip(self._payload, payload, strict=False):
            row[:] = values

    def command(self) -> EvaluatedCommand:
        """Copy of the last committed command."""
        arm, shape, n, m = self._arm, self.shape, self._arm.robot.n, len(self._arm.motor_names)
        counts = (len(STATE_FIELDS) * n, len(EFFORT_FIELDS) * n, len(MOTOR_FIELDS) * m)
        state, efforts, motors, _ = np.split(self._committed.copy(), np.cumsum(counts))
        wrench = self._vectors(WRENCH_NAMES, arm.robot.wrench_shape) if any(shape.wrenches) else ()
        stiffness = self._vectors(STIFFNESS_NAMES, (n,)) if any(shape.stiffness) else ()
        base = BaseMotion(*(np.array(self._vectors(x, (3,))) for x in IMU_NAMES)) if shape.on_base else None
        payload = self._vectors(PAYLOAD_NAMES, self._payload_shape) if self.has_payload else ()
        sent = None
        if arm.converts:
            sent = DriveCommand(*self._vectors(DRIVE_NAMES, (m,)), *self._vectors(SENT_NAMES, (n,)))
        state, efforts, motors = state.reshape(-1, n), efforts.reshape(-1, n), motors.reshape(-1, m)
        return EvaluatedCommand(
            self.order, state, wrench, efforts, motors, (), stiffness, base, payload, self.lead, sent
        )

    def violations(self) -> tuple[LimitViolation, ...]:
        """Limits exceeded by the command for the last setpoint read, before clipping, the worst first."""
        last, n = self.command(), self._arm.robot.n
        start = self._offsets[DEFLECTION]
        deflection, friction = np.split(self._scratch[start : start + n + len(self._arm.motor_names)].copy(), [n])
        command = self._arm.feedforward(
            *self.state.copy(),
            wrench=last.wrench,
            commanded_stiffness=last.stiffness,
            deflection=deflection if self._arm.damped.any() else None,
            friction_state=friction,
            base=last.base,
            payload=last.payload or None,
            lead=self.lead,
        )
        return self._limits.violations(self.state, command)

    def _vectors(self, names: Sequence[str], shape: tuple[int, ...]) -> tuple[Array, ...]:
        """Copies of vectors of the last committed command."""
        starts = (self._offsets[name] for name in names)
        return tuple(self._committed[start : start + prod(shape)].copy().reshape(shape) for start in starts)

    def _inputs(self, layout: MessageLayout, order: JointOrder) -> tuple[Any, ...]:
        """Offsets of numbers in a message and in the scratch, their count and order."""
        n, offsets = self._arm.robot.n, self._offsets
        index, arrays = _order(order.message_index), iter(layout.numbers)
        inputs = [(next(arrays)[0], offsets[name], n, index) for name in STATE_NAMES]
        for name, count in zip(WRENCH_NAMES, self.shape.wrenches, strict=True):
            if count:
                at, _ = next(arrays)
                for k in range(0, _WRENCH_SIZE * count, _WRENCH_SIZE):
                    inputs.append((at + 8 * k, offsets[name] + k, _WRENCH_SIZE, _MOMENT_FIRST))
        for name, count in zip(STIFFNESS_NAMES, self.shape.stiffness, strict=True):
            if count:
                at, _ = next(arrays)
                # Entries of other joints may be anything.
                for joint in np.flatnonzero(self._arm.variable).tolist():
                    of_message = joint if index is None else index[joint]
                    inputs.append((at + 8 * of_message, offsets[name] + joint, 1, None))
        if self.shape.on_base:
            at, _ = next(arrays)
            for k, name in enumerate((*IMU_NAMES[0], *IMU_NAMES[1])):
                inputs.append((at + 24 * k, offsets[name], 3, None))
        return tuple(inputs)

    def _outputs(self, shape: Shape, order: JointOrder, *, commands_motors: bool) -> tuple[Any, ...]:
        n, m = self._arm.robot.n, len(self._arm.motor_names)
        start = len(STATE_FIELDS) * n
        joints, motors = _order(order.robot_index), _order(order.motor_index)
        # Of each field of a command: its offset in a row, its length and its order.
        rows = {field: (start + k * n, n, joints) for k, field in enumerate(EFFORT_FIELDS)}
        start += len(EFFORT_FIELDS) * n
        rows |= {field: (start + k * m, m, motors) for k, field in enumerate(MOTOR_FIELDS)}
        command = feedforward_layout(shape.frame_id, order.names, order.motor_names, self.lead)
        setpoint = motor_setpoint_layout(shape.frame_id, order.motor_names)
        effort = effort_command_layout(m if commands_motors else n)
        own = [rows[field] for field in ("motor_position", "motor_velocity", "motor_effort")]
        at, count, _ = rows["motor_effort" if commands_motors else "effort"]
        if self._arm.converts:
            own = [(self._offsets[name], m, motors) for name in DRIVE_NAMES]
            at = self._offsets[DRIVE_NAMES[2] if commands_motors else SENT_NAMES[0]]
        return (
            _output(command, [rows[field] for field in COMMAND_FIELDS]),
            _output(setpoint, own),
            _output(effort, [(at, count, None)]),  # in the robot's order
        )


class CompiledStream:
    """Compiled calls for the stream of one arm, one for each shape of messages.

    Attributes:
        arm: the arm.
        evaluator: of the arm; it answers the messages that the calls do not take.
        limits: limits of the arm.
    """

    def __init__(self, evaluator: SetpointEvaluator) -> None:
        """Compile, or load from the cache.

        Raises:
            KernelError: kernels are not compiled, or the call cannot be compiled.
        """
        arm = evaluator.arm
        if arm.backend != "native" or sys.byteorder != "little":
            raise KernelError("a stream is compiled for the native backend on little-endian processors only")
        self.arm, self.evaluator, self.limits = arm, evaluator, LimitCheck(arm)
        self.module = extension("stream_call")
        # Compiled here rather than in the first call.
        scratch = ScratchLayout(arm)
        self.stages(scratch, on_base=False)
        for group in AHEAD:
            self._ahead(scratch, group)

    def stages(self, scratch: ScratchLayout, *, on_base: bool, payload: bool = False) -> tuple[Any, ...]:
        """Kernels that compute a command, with the offsets of their input and output vectors."""
        links, motors = self.arm.stages(on_base=on_base, payload=payload)
        stages: list[tuple[Any, ...]] = []
        names: Mapping[str, str] = {}
        if self.evaluator.lead:
            names = scratch.ahead
            used = {*links.inputs, *motors.inputs}
            for group in (group for group in AHEAD if used.intersection(group)):
                stages.append(self._ahead(scratch, group))
        stages.append(scratch.stage(links, names))
        if self.arm.damped.any():
            renamed = {DEFLECTION: "start", "deflection_now": DEFLECTION}
            stages.append(scratch.stage(self.arm.functions.function("filtered").stages[0], renamed))
        stages.append(scratch.stage(motors, names))
        if self.arm.side.presliding.any():
            renamed = {FRICTION_STATE: "friction_start", f"{FRICTION_STATE}_now": FRICTION_STATE}
            stages.append(scratch.stage(self.arm.functions.function("presliding").stages[0], renamed))
            stages.append(stages[-2])  # the motors once more, with their friction
        if self.limits.limited:
            stages.append(scratch.stage(self.arm.functions.function("drive").stages[0]))
        if self.arm.converts:
            loaded = payload and self.arm.compensates_payload
            stages.append(scratch.stage(self.arm.drive_function("drive_command", payload=loaded).stages[0], names))
        return tuple(stages)

    def _ahead(self, scratch: ScratchLayout, group: Sequence[str]) -> tuple[Any, ...]:
        """Kernel from vectors that are time derivatives of each other to those at the lead."""
        function = self.arm.functions.function("ahead", count=len(group), size=scratch.lengths[group[0]])
        (stage,) = function.stages
        renamed = dict(zip(stage.inputs, group, strict=False))
        renamed |= {y: scratch.ahead[name] for y, name in zip(stage.outputs, group, strict=True)}
        return scratch.stage(stage, renamed)

    def call_for(self, setpoint: Any, message: bytes, *, limit_policy: str, commands_motors: bool) -> ShapeCall | None:
        """Compiled call for messages like a valid one; None if its shape is not supported.

        Args:
            setpoint: the setpoint, which the evaluator has answered.
            message: the same as it came, in bytes.
            limit_policy: one of LIMIT_POLICIES.
            commands_motors: whether the effort command is that of the motors, and not that of the joints.
        """
        shape = message_shape(setpoint)
        try:
            layout = setpoint_layout(shape, self.arm.robot.n)
        except UnicodeEncodeError:  # bytes that are not text
            return None
        if not layout.describes(message):
            return None
        order = self.evaluator.order_of(setpoint)
        return ShapeCall(self, shape, order, layout, len(message), limit_policy, commands_motors=commands_motors)


def message_shape(setpoint: Any) -> Shape:
    """Shape of a setpoint."""
    wrenches, stiffness = (tuple(map(len, getter(x)(setpoint))) for x in (WRENCH_FIELDS, STIFFNESS_FIELDS))
    on_base = bool(len(getattr(setpoint, BASE_FIELD)))
    return Shape(setpoint.header.frame_id, tuple(setpoint.joint_names), wrenches, stiffness, on_base)


def setpoint_layout(shape: Shape, n: int) -> MessageLayout:
    """Layout of a ``JointTrajectorySetpoint`` with this shape, for n joints."""
    layout = MessageLayout().header(shape.frame_id).strings(shape.joint_names)
    for _ in STATE_FIELDS:
        layout.doubles(n)
    for count in shape.wrenches:
        layout.doubles(count, _WRENCH_SIZE)
    for count in shape.stiffness:
        layout.doubles(count)
    return layout.doubles(int(shape.on_base), BASE_SHAPE[0] * BASE_SHAPE[1])


def feedforward_layout(
    frame_id: str, joint_names: Sequence[str], motor_names: Sequence[str], lead: float = 0.0
) -> MessageLayout:
    """Layout of a fresh ``FeedforwardCommand``."""
    layout = MessageLayout().header(frame_id).strings(joint_names).byte(0).byte(0).double(lead)
    for _ in EFFORT_FIELDS:
        layout.doubles(len(joint_names))
    layout.strings(motor_names)
    for _ in MOTOR_FIELDS:
        layout.doubles(len(motor_names))
    return layout


def motor_setpoint_layout(frame_id: str, motor_names: Sequence[str]) -> MessageLayout:
    """Layout of a ``JointState`` with position, velocity and effort."""
    layout = MessageLayout().header(frame_id).strings(motor_names)
    for _ in range(3):
        layout.doubles(len(motor_names))
    return layout


def effort_command_layout(count: int) -> MessageLayout:
    """Layout of a ``Float64MultiArray`` without dimensions."""
    return MessageLayout().length(0).length(0).doubles(count)


def _output(layout: MessageLayout, rows: Sequence[tuple[int, int, Any]]) -> tuple[Any, ...]:
    """Bytes of a message, offset of its stamp, and where its numbers are from."""
    message = bytearray(layout.size)
    for at, given in layout.constants:
        message[at : at + len(given)] = given
    numbers = [(at, start, count, order) for (at, _), (start, count, order) in zip(layout.numbers, rows, strict=True)]
    return bytes(message), layout.stamp, tuple(numbers)


def _order(index: Any) -> tuple[int, ...] | None:
    return None if index is None else tuple(map(int, index))


def compiled_stream(evaluator: SetpointEvaluator) -> CompiledStream | None:
    """Compiled calls for the stream of an arm; None where compilation fails, of which Dynamics has warned."""
    try:
        return CompiledStream(evaluator)
    except KernelError:
        return None


# Shapes that are kept: of publishers of setpoints that take turns.
_MOST_SHAPES = 4


class LearnedShapes:
    """Compiled calls for the latest message shapes.

    Attributes:
        latest: call for messages of the shape that was taken last; None until a shape is learned.
    """

    latest: ShapeCall | None

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget all shapes."""
        self.latest = None
        # That of `latest` first.
        self._calls: list[ShapeCall] = []
        self._before: Shape | None = None

    def set_payload(self, payload: Sequence[Array]) -> None:
        """Set the payload of all calls, as :meth:`.ShapeCall.set_payload`."""
        for call in self._calls:
            call.set_payload(payload)

    def switch_to(self, message: bytes) -> bool:
        """Switch to another call that accepts the message, as :attr:`latest`; return whether there is one."""
        for k, call in enumerate(self._calls[1:], start=1):
            if call.call(message) is not None:
                self._calls.insert(0, self._calls.pop(k))
                self.latest = call
                return True
        return False

    def learn(self, setpoint: Any, message: bytes, call_for: Callable[[Any, bytes], ShapeCall | None]) -> None:
        """Prepare a call for messages like a valid one, once two in a row are alike.

        Args:
            setpoint: the setpoint, which has been answered field by field.
            message: the same as it came, in bytes.
            call_for: creates the call, as :meth:`.CompiledStream.call_for`.
        """
        shape, before = message_shape(setpoint), self._before
        self._before = shape
        if shape != before:
            return
        if any(call.shape == shape for call in self._calls):  # it has taken others and not this one
            return
        if call := call_for(setpoint, message):
            self._calls = [call, *self._calls[: _MOST_SHAPES - 1]]
            self.latest = call
