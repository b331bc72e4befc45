# SPDX-License-Identifier: Apache-2.0
"""Computation of the command for a setpoint, for stream and replay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arguments import refuse_overflow
from ..arrays import Array
from ..elastic import BaseMotion, DriveCommand, ElasticArm, Feedforward, LimitCheck, LimitViolation
from ..elastic.drive_programs import DRIVE_NAMES, SENT_NAMES
from ..elastic.limit_violations import summary
from ..exceptions import EomDynamicsError, StateError
from ..robot.payload import payload_shape
from .fields import COMMAND_FIELDS, EFFORT_FIELDS, MOTOR_FIELDS, WRENCH_FIELDS, read_samples, read_stiffness
from .joint_order import JointOrder
from .spatial import read_base_motion, read_wrenches


def refusal_reason(error: Exception) -> str:
    """Return the reason of a refusal for a log."""
    internal = "" if isinstance(error, EomDynamicsError) else f"internal error: {type(error).__name__}: "
    return f"{internal}{error}"


class EvaluatedCommand(NamedTuple):
    """Command with the motion that it is for, in the robot's order of joints and motors.

    Attributes:
        order: joint order of the message.
        state: q, qd, qdd, qddd, qdddd (5, n).
        wrench: W, Wd, Wdd, each (6,), or (number of tools, 6) with several tools; () without wrenches.
        efforts: tau, taud, taudd (3, n), finite.
        motors: motor position, velocity, acceleration and effort (4, m), finite.
        violations: limits of joints and motors that the command exceeds, before any clipping, the worst first.
        stiffness: k, kd, kdd, each (n,), or () without commanded stiffness.
        base: motion of the base, or None for a base at rest.
        payload: parameters of the payload and their time derivatives, as for :meth:`ElasticArm.feedforward`, or ().
        lead: command lead, s, by :meth:`ElasticArm.ahead`.
        sent: drive command if it differs from the motors, see :meth:`ElasticArm.drive_command`; or None.
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
    """Evaluator of single setpoints for one arm: checks them and computes their commands, as the control loop does.

    It keeps no state: damped springs have their steady-state deflection, presliding friction follows the velocity, and
    the payload is constant.

    Attributes:
        arm: the arm.
        payload: parameters of the payloads of all tools (number of tools, 10).
    """

    def __init__(self, arm: ElasticArm) -> None:
        """Prepare for an arm."""
        self.arm = arm
        self.payload = np.zeros((len(arm.robot.tools), 10))
        self._names: list[str] = []
        self._order = self.own_order
        self._limits = LimitCheck(arm)
        self._limits.prepare()

    def order_of(self, message: Any) -> JointOrder:
        """The joint order of a message; StateError as for :meth:`evaluate`."""
        if message.joint_names != self._names:  # a stream repeats them
            self._order, self._names = JointOrder.of(self.arm, message.joint_names), message.joint_names
        return self._order

    @property
    def own_order(self) -> JointOrder:
        """The robot's joint order."""
        return JointOrder.of(self.arm, [])

    def evaluate(self, message: Any, *, limit_policy: str = "warn") -> EvaluatedCommand:
        """Compute the command for a setpoint.

        Args:
            message: the setpoint.
            limit_policy: one of LIMIT_POLICIES.

        Raises:
            LimitError: a limit is exceeded, and ``limit_policy`` is ``refuse``.
            StiffnessError: a commanded stiffness cannot be used.
            StateError: the message is invalid, or an angle is more than a turn beyond its range; the error names the
                fault and its location.
        """
        return self.command(*self.read(message), limit_policy=limit_policy)

    def read(self, message: Any) -> tuple[JointOrder, Array, tuple[Array, ...], tuple[Array, ...], BaseMotion | None]:
        """Joint order, state (5, n), wrench, stiffness and base motion of a message; StateError as :meth:`evaluate`."""
        order = self.order_of(message)
        state = read_samples(message, order)[:, 0]
        wrench = read_wrenches(message, WRENCH_FIELDS, self.arm.robot)
        stiffness = read_stiffness(message, order, self.arm.variable)
        base = read_base_motion(message)
        if base is not None and not self.arm.robot.moving_base:
            raise StateError("base is not empty: set moving_base: true in the robot file")
        return order, state, wrench, stiffness, base

    def command(
        self,
        order: JointOrder,
        state: Array,
        wrench: tuple[Array, ...] = (),
        stiffness: tuple[Array, ...] = (),
        base: BaseMotion | None = None,
        *,
        limit_policy: str = "warn",
        lead: float = 0.0,
        payload: Sequence[Array] | None = None,
    ) -> EvaluatedCommand:
        """Compute the command for a state; arguments as of :class:`EvaluatedCommand` and :meth:`evaluate`.

        A payload that is given takes the place of :attr:`payload`.
        """
        arm = self.arm
        if payload is None:
            payload = [self.payload.reshape(payload_shape(arm.robot)).copy()] if self.payload.any() else []
        options = {"wrench": wrench, "commanded_stiffness": stiffness, "base": base, "payload": tuple(payload)}
        options = {name: value for name, value in options.items() if value}  # without any, it is a call in C
        # Numbers that overflow are refused below; NumPy would write to stderr for each.
        with np.errstate(all="ignore"):
            later, options = self._later(lead, state, options)
            command = self._feedforward(later, options)
            values = np.concatenate(command)
            efforts, motors = self._split(values)
            refuse_overflow(efforts, EFFORT_FIELDS, "joint", arm.robot.joint_names)
            refuse_overflow(motors, MOTOR_FIELDS, "motor", arm.motor_names)
            violations = self._violations(state, command, values) if limit_policy != "ignore" else ()
            if violations and limit_policy == "refuse":
                raise violations[0].error(f"exceeds limits: {summary(violations)}")
            sent = None
            if arm.converts:
                sent = arm.drive_command(command, *later[:3], payload=options.get("payload"))
                refuse_overflow(sent[: len(DRIVE_NAMES)], DRIVE_NAMES, "motor", arm.motor_names)
                refuse_overflow(sent[len(DRIVE_NAMES) :], SENT_NAMES, "joint", arm.robot.joint_names)
        return EvaluatedCommand(
            order, state, wrench, efforts, motors, violations, stiffness, base, tuple(payload), lead, sent
        )

    def prepare_payload(self) -> None:
        """Compile the code that takes payloads, or load it from the cache."""
        self.arm.stages(payload=True)
        if self.arm.compensates_payload:
            self.arm.drive_function("drive_command", payload=True)
        if self.arm.robot.moving_base and self.arm.rotors is None:
            self.arm.stages(on_base=True, payload=True)

    def _later(self, lead: float, state: Array, options: dict[str, Any]) -> tuple[Array, dict[str, Any]]:
        """State (5, n) after ``lead`` s, and the other arguments of the feedforward at that time."""
        if not lead:
            return state, options
        rows, later = self.arm.ahead(lead, *state, **options)
        return np.stack(rows), options | later

    def _feedforward(self, state: Array, options: dict[str, Any]) -> Feedforward:
        return self.arm.feedforward(*state, **options)

    def _violations(self, state: Array, command: Feedforward, values: Array) -> tuple[LimitViolation, ...]:
        if not self._limits.any or not self._limits.violated(np.concatenate((state.ravel(), values))):
            return ()
        self._limits.refuse_far(state[0])
        return self._limits.violations(state, command)

    def _split(self, values: Array) -> tuple[Array, Array]:
        """Efforts (3, n) and motors (4, m) of a command."""
        n, m = self.arm.robot.n, len(self.arm.motor_names)
        split = len(EFFORT_FIELDS) * n
        return values[:split].reshape(-1, n), values[split:].reshape(-1, m)
