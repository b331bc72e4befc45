# SPDX-License-Identifier: Apache-2.0
"""Computation of the command for a setpoint or single-state request, for stream, service and replay."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from ..elastic import BaseMotion, DriveCommand, ElasticArm, Feedforward, LimitCheck, LimitViolation
from ..elastic.drive_programs import DRIVE_NAMES, SENT_NAMES
from ..elastic.limit_violations import summary
from ..equations import EquationsOfMotion, equations_of_motion
from ..exceptions import EomDynamicsError, StateError, StiffnessError
from ..robot.payload import with_parameters
from ..states import all_finite, refuse_overflow
from .fields import COMMAND_FIELDS, EFFORT_FIELDS, MOTOR_FIELDS, WRENCH_FIELDS, read_samples, read_stiffness
from .joint_order import JointOrder, JointOrders
from .payload_blend import PayloadBlend
from .spatial import read_base_motion, read_wrenches

_HELD: dict[str, tuple[type[StateError], ...]] = {"stiffness": (StiffnessError,), "always": (StateError,), "never": ()}


def is_held(error: Exception, hold_last_command: str) -> bool:
    """Whether a setpoint refused by an error is answered with the last valid command, by the node's parameter.

    Never after an internal error, or while a trajectory is played: then the setpoint is not what is wrong.
    """
    return isinstance(error, _HELD[hold_last_command])


def refusal_reason(error: Exception) -> str:
    """Return the reason of a refusal for a log."""
    internal = "" if isinstance(error, EomDynamicsError) else f"internal error: {type(error).__name__}: "
    return f"{internal}{error}"


# Longest time between two setpoints of one stream, s: those at its ends do not determine the motion over more.
LONGEST_GAP = 0.1


class DeflectionFilter:
    """Deflections of an arm's damped springs, and of the bristles of presliding friction, along a stream of setpoints.

    A step goes from the last answered setpoint to the next, with the efforts between them interpolated as in
    :meth:`ElasticArm.deflections_over_time`. Without a stamp (0), and where the stamp goes back or more than
    LONGEST_GAP ahead, the deflection is that without transient, and the state of friction that of the velocity. With
    the same stamp the deflection stays the same.

    Attributes:
        needed: whether the arm has such springs or friction.
        memory: of the last answered setpoint (4 n + 2 m,): deflections, states of friction, tau, taud, taudd, motor
            positions. Compiled calls read and write it, too.
        stamp: its stamp, ns (1,); 0 for none.
    """

    def __init__(self, arm: ElasticArm) -> None:
        self._arm, self.needed = arm, arm.has_memory
        n, m = arm.robot.n, len(arm.motor_names)
        self.memory = np.zeros(4 * n + 2 * m)
        self._deflections, self._friction, *self._efforts, self._position = np.split(
            self.memory, np.cumsum([n, m, n, n, n])
        )
        self.stamp = np.zeros(1, dtype=np.int64)

    def command(self, stamp: int, *state: Array, **given: Any) -> tuple[Feedforward, tuple[Array, ...]]:
        """The feedforward at a stamp, ns, and what to :meth:`keep`; arguments of :meth:`ElasticArm.feedforward`."""
        arm = self._arm
        command = arm.feedforward(*state, **given)
        efforts, deflection, friction = np.stack(command[:3]), self._deflections, self._friction
        if arm.damped.any():
            deflection = self.at(stamp, efforts)
            command = arm.feedforward(*state, deflection=deflection, **given)
        if arm.side.presliding.any():
            friction = self.slide(stamp, command.motor_position, command.motor_velocity)
            command = arm.feedforward(*state, deflection=deflection, friction_state=friction, **given)
        return command, (efforts, deflection, friction, command.motor_position)

    def at(self, stamp: int, efforts: Array) -> Array:
        """Deflections (n,), rad or m, at a stamp, ns, under tau, taud, taudd (3, n); zero for undamped springs."""
        return self._arm.spring_set.filtered(self._deflections, self._efforts, efforts, self._step(stamp))

    def slide(self, stamp: int, position: Array, velocity: Array) -> Array:
        """States of friction (m,) at a stamp, ns, and motor positions and velocities (m,); zero without presliding."""
        step = np.array([self._step(stamp)])
        return self._arm.functions("presliding", self._friction, self._position, position, velocity, step)[0]

    def keep(
        self,
        stamp: int,
        efforts: Array,
        deflections: Array,
        friction: Array | float = 0.0,
        position: Array | float = 0.0,
    ) -> None:
        """Keep the present state as the start of the next step; call it once the setpoint has been answered."""
        self._deflections[:], self._friction[:], self._position[:] = deflections, friction, position
        for kept, row in zip(self._efforts, efforts, strict=True):
            kept[:] = row
        self.stamp[0] = stamp

    def _step(self, stamp: int) -> float:
        """Time since the last setpoint, s; negative where the filters start again."""
        before = int(self.stamp[0])
        continues = stamp and before and 0 <= (stamp - before) * 1e-9 <= LONGEST_GAP
        return (stamp - before) * 1e-9 if continues else -1.0

    def forget(self) -> None:
        """Restart without transient."""
        self.stamp[0] = 0


def equation_terms(equations: EquationsOfMotion, order: JointOrder) -> dict[str, Array]:
    """Terms of the equations of motion by response field, in the message's joint order.

    Returns:
        mass_matrix, coriolis_matrix (n, n) and gravity_effort, external_effort (n,), each with ``_rate`` and
        ``_acceleration`` for its time derivatives, as far as the equations have them.
    """
    fields: dict[str, Array] = {}
    for k, rate in enumerate(("", "_rate", "_acceleration")[: equations.order + 1]):
        fields[f"mass_matrix{rate}"] = order.axes_to_message(equations.M[k], 2)
        fields[f"coriolis_matrix{rate}"] = order.axes_to_message(equations.C[k], 2)
        fields[f"gravity_effort{rate}"] = order.to_message(equations.gravity[k])
        fields[f"external_effort{rate}"] = order.to_message(equations.external[k])
    return fields


LIMIT_POLICIES = ("ignore", "warn", "refuse", "clip")
"""What to do if a setpoint or its command exceeds limits: not check limits; compute and report it; refuse it; or clip
efforts of joints and motors, and report it. All but the first refuse angles more than a turn beyond their range."""


class Ahead(NamedTuple):
    """Motion ahead of the setpoint, for which a command is computed."""

    lead: float  # time after the setpoint, s
    state: Array  # q, qd, qdd, qddd, qdddd (5, n) then


class EvaluatedCommand(NamedTuple):
    """A command and the motion that it is for, in the robot's order of joints and motors.

    Attributes:
        order: the joint order of the message.
        state: q, qd, qdd, qddd, qdddd (5, n).
        wrench: W, Wd, Wdd, each (6,), with several tools (number of tools, 6); or () for none.
        efforts: tau, taud, taudd (3, n); every entry is finite.
        motors: motor position, velocity, acceleration and effort (4, m); every entry is finite.
        violations: of limits of joints and motors that the command exceeds, before any clipping, the worst first.
        stiffness: k, kd, kdd, each (n,), or () where it is not commanded.
        base: motion of the base, or None for a base at rest.
        payload: parameters of the payload and their time derivatives, as for :meth:`ElasticArm.feedforward`, or ().
        lead: s; the command is that for the motion so much later than the state.
        sent: what drives are sent, where that differs, see :meth:`ElasticArm.drive_command`; or None.
    """

    order: JointOrder
    state: Array
    wrench: tuple[Array, ...]
    efforts: Array
    motors: Array
    violations: tuple[LimitViolation, ...] = ()
    stiffness: tuple[Array, ...] = ()
    base: BaseMotion | None = None
    payload: tuple[Array, ...] = ()
    lead: float = 0.0
    sent: DriveCommand | None = None

    def fields(self) -> dict[str, Array]:
        """The command by field, in the message's order."""
        rows = (*self.order.to_message(self.efforts), *self.order.motors_to_message(self.motors))
        return dict(zip(COMMAND_FIELDS, rows, strict=True))


class SetpointEvaluator:
    """Checks setpoints and requests and computes their commands, for one arm.

    Each command of a stream continues from the last command that was sent; call :meth:`commit` once it is sent.

    Attributes:
        arm: the arm.
        moving_base: whether a message may have a motion of the base.
        lead: s; the command for a setpoint in a stream is that for the motion so much later, :meth:`ElasticArm.ahead`.
        deflections: state of springs with dampers and of presliding friction along the stream.
        payload: of the stream, which changes along it.
        clock: returns the time in ns, for changes of the payload.
    """

    def __init__(self, arm: ElasticArm, *, moving_base: bool = True, lead: float = 0.0) -> None:
        """Prepare for an arm; ``moving_base`` is whether a message may have a motion of the base."""
        self.arm, self.lead, self.moving_base = arm, lead, moving_base
        self.clock: Callable[[], int] = time.monotonic_ns
        self._orders = JointOrders(arm)
        self.deflections = DeflectionFilter(arm)
        self.payload = PayloadBlend(arm.robot)
        # Stamp and states of a command that may be sent.
        self._computed: tuple[int, tuple[Array, ...]] | None = None
        self._limits = LimitCheck(arm)
        self._limits.prepare()

    def order_of(self, message: Any) -> JointOrder:
        """The joint order of a message; StateError as for :meth:`evaluate`."""
        return self._orders.of(message.joint_names)

    @property
    def own_order(self) -> JointOrder:
        """The robot's joint order."""
        return self._orders.of([])

    def require_moving_base(self) -> None:
        """Raise StateError unless a message may have a motion of the base."""
        if not self.moving_base:
            raise StateError("base is not empty: set the parameter moving_base to true before the robot is loaded")

    def evaluate(
        self,
        message: Any,
        optional: Collection[str] = (),
        *,
        stamp: int | None = None,
        limit_policy: str = "warn",
        admit: Callable[[int, Array], None] | None = None,
        ahead: Ahead | None = None,
    ) -> EvaluatedCommand:
        """Compute the command for a setpoint or request; one of a stream is to be followed by :meth:`commit`.

        Args:
            message: the setpoint or request.
            optional: fields of STATE_FIELDS that may be empty, which means zero.
            stamp: of a setpoint in a stream, ns, 0 where it has none: springs with dampers, presliding friction and a
                payload that changes continue from the last command that was sent. None for a message that stands alone:
                deflections are then those without transient, friction that of the velocity, and the payload that after
                its changes.
            limit_policy: one of LIMIT_POLICIES.
            admit: receives stamp and state (5, n) before anything is computed; raises StateError to refuse it.
            ahead: exact motion at the lead, in place of :attr:`lead` and the Taylor polynomial.

        Raises:
            LimitError: a limit is exceeded, and ``limit_policy`` is ``refuse``.
            StiffnessError: a commanded stiffness cannot be used.
            StateError: the message cannot be used, or an angle is more than a turn beyond its range; the error says
                what is wrong, and where.
        """
        arm = self.arm
        order = self.order_of(message)
        state = read_samples(message, order, optional=optional)[:, 0]
        wrench = read_wrenches(message, WRENCH_FIELDS, arm.robot)
        stiffness = read_stiffness(message, order, arm.variable)
        base = read_base_motion(message)
        if base is not None:
            self.require_moving_base()
        if admit is not None:
            admit(stamp or 0, state)
        return self.command(order, state, wrench, stiffness, base, stamp=stamp, limit_policy=limit_policy, ahead=ahead)

    def command(
        self,
        order: JointOrder,
        state: Array,
        wrench: tuple[Array, ...] = (),
        stiffness: tuple[Array, ...] = (),
        base: BaseMotion | None = None,
        *,
        stamp: int | None = None,
        limit_policy: str = "warn",
        ahead: Ahead | None = None,
        lead: float | None = None,
        payload: Sequence[Array] | None = None,
    ) -> EvaluatedCommand:
        """Compute the command for a state; arguments as of :class:`EvaluatedCommand` and :meth:`evaluate`.

        A lead and a payload that are given take the places of those of the stream.
        """
        arm, states = self.arm, None
        if stamp is not None:
            self._computed = None
        if payload is None:
            payload = self.payload.target if stamp is None else self.payload.at(stamp, self.clock())
        lead = self.lead if lead is None else lead
        lead = ahead.lead if ahead else lead if stamp is not None else 0.0
        # Numbers that overflow are refused below; NumPy would write to stderr for each.
        with np.errstate(all="ignore"):
            given: dict[str, Any] = {"wrench": wrench, "commanded_stiffness": stiffness, "base": base}
            given["payload"] = tuple(payload) or None
            later = state
            if lead:
                rows, later_given = arm.ahead(lead, *state, **given)
                later, given = np.stack(rows), given | later_given
            if ahead:
                later = ahead.state
            if stamp is not None and self.deflections.needed:
                command, states = self.deflections.command(stamp, *later, **given)
            else:
                command = arm.feedforward(*later, **given)
            values = np.concatenate(command)
            efforts, motors = self._checked(values)
            violations = self._violations(state, command, values) if limit_policy != "ignore" else ()
            if violations and limit_policy == "refuse":
                raise violations[0].error(f"exceeds limits: {summary(violations)}")
            if stamp is not None and states is not None:
                self._computed = stamp, states
            if violations and limit_policy == "clip":
                command = self._limits.clipped(command)
                efforts, motors = self._split(np.concatenate(command))
            sent = None
            if arm.converts:
                sent = arm.drive_command(command, *later[:3], payload=given["payload"])
                refuse_infinite_drives(arm, sent)
        return EvaluatedCommand(
            order, state, wrench, efforts, motors, violations, stiffness, base, tuple(payload), lead, sent
        )

    def commit(self) -> None:
        """Continue the stream from the command computed last, which has been sent."""
        self.payload.commit()
        if self._computed is not None:
            stamp, states = self._computed
            self.deflections.keep(stamp, *states)

    def prepare_payload(self) -> None:
        """Compile the code that takes payloads, or load it from the cache."""
        self.arm.stages(payload=True)
        if self.arm.compensates_payload:
            self.arm.drive_function("drive_command", payload=True)
        if self.moving_base and self.arm.rotors is None:
            self.arm.stages(on_base=True, payload=True)

    def _violations(self, state: Array, command: Feedforward, values: Array) -> tuple[LimitViolation, ...]:
        if not self._limits.limited or not self._limits.violated(np.concatenate((state.ravel(), values))):
            return ()
        self._limits.refuse_far(state[0])
        return self._limits.violations(state, command)

    def _checked(self, values: Array) -> tuple[Array, Array]:
        """Efforts (3, n) and motors (4, m) of a command, finite."""
        efforts, motors = self._split(values)
        if not np.isfinite(values).all():
            refuse_overflow(efforts, EFFORT_FIELDS, "joint", self.arm.robot.joint_names)
            refuse_overflow(motors, MOTOR_FIELDS, "motor", self.arm.motor_names)
        return efforts, motors

    def _split(self, values: Array) -> tuple[Array, Array]:
        n, m = self.arm.robot.n, len(self.arm.motor_names)
        split = len(EFFORT_FIELDS) * n
        return values[:split].reshape(-1, n), values[split:].reshape(-1, m)


def refuse_infinite_drives(arm: ElasticArm, sent: DriveCommand) -> None:
    """Raise StateError, with field and motor or joint, where what drives are sent is not finite."""
    if not all_finite(sent):
        refuse_overflow(sent[: len(DRIVE_NAMES)], DRIVE_NAMES, "motor", arm.motor_names)
        refuse_overflow(sent[len(DRIVE_NAMES) :], SENT_NAMES, "joint", arm.robot.joint_names)


def matrices(evaluator: SetpointEvaluator, command: EvaluatedCommand) -> dict[str, Array]:
    """Terms of the equations of motion for a command, by response field, as :func:`equation_terms`."""
    q, qd, qdd, qddd, _ = command.state
    with np.errstate(all="ignore"):
        robot = with_parameters(evaluator.arm.robot, command.payload[0]) if command.payload else evaluator.arm.robot
        equations = equations_of_motion(robot, q, qd, qdd, qddd, wrench=command.wrench)
    return equation_terms(equations, command.order)
