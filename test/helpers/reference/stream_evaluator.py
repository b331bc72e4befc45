# SPDX-License-Identifier: Apache-2.0
"""Commands along a stream of setpoints: the reference with the memory of damped springs, friction and payload."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from eom_dynamics.arrays import Array
from eom_dynamics.control.setpoint_to_command import EvaluatedCommand, SetpointEvaluator
from eom_dynamics.control.settings import LONGEST_GAP
from eom_dynamics.elastic import ElasticArm, Feedforward
from reference.payload_blend import PayloadBlend


class DeflectionFilter:
    """Deflections of an arm's damped springs, and of the bristles of presliding friction, along a stream of setpoints.

    A step goes from the last answered setpoint to the next, with the efforts between them interpolated as in
    :meth:`ElasticArm.deflections_over_time`. Without a stamp (0), and where the stamp goes back or more than
    LONGEST_GAP ahead, the deflection is that without transient, and the state of friction that of the velocity. With
    the same stamp the deflection stays the same.

    Attributes:
        needed: whether the arm has such springs or friction.
        kept: of the last answered setpoint: efforts (3, n), deflections (n,), states of friction and motor positions
            (m,).
    """

    def __init__(self, arm: ElasticArm) -> None:
        n, m = arm.robot.n, len(arm.motor_names)
        self._arm, self.needed, self._stamp = arm, arm.has_memory, 0
        self.kept: tuple[Array, ...] = np.zeros((3, n)), np.zeros(n), np.zeros(m), np.zeros(m)

    def command(self, stamp: int, *state: Array, **given: Any) -> tuple[Feedforward, tuple[Array, ...]]:
        """The feedforward at a stamp, ns, and what to :meth:`keep`; arguments of :meth:`ElasticArm.feedforward`."""
        arm, before = self._arm, self._stamp
        continues = stamp and before and 0 <= stamp - before <= LONGEST_GAP
        step = (stamp - before) * 1e-9 if continues else -1.0
        last, deflection, friction, position = self.kept
        command = arm.feedforward(*state, **given)
        efforts = np.stack(command[:3])
        if arm.damped.any():
            deflection = arm.functions.filtered(deflection, last, efforts, step)
            command = arm.feedforward(*state, deflection=deflection, **given)
        if arm.side.presliding.any() and np.isfinite(np.concatenate(command)).all():
            motion = command.motor_position, command.motor_velocity, np.array([step])
            (friction,) = arm.functions("presliding", friction, position, *motion)
            command = arm.feedforward(*state, deflection=deflection, friction_state=friction, **given)
        return command, (efforts, deflection, friction, command.motor_position)

    def keep(self, stamp: int, *states: Array) -> None:
        """Keep states as the start of the next step; call it once the setpoint has been answered."""
        self._stamp, self.kept = stamp, states


class StreamEvaluator(SetpointEvaluator):
    """Each command of a stream continues from the last command that was sent; call :meth:`commit` once it is sent.

    Attributes:
        deflections: state of springs with dampers and of presliding friction along the stream.
        blend: payload of the stream, which changes along it.
        clock: returns the time in ns, for changes of the payload.
    """

    def __init__(self, arm: ElasticArm) -> None:
        super().__init__(arm)
        self.deflections, self.blend = DeflectionFilter(arm), PayloadBlend(arm.robot)
        self.clock: Callable[[], int] = time.monotonic_ns
        # Stamp and states of a command that may be sent.
        self._stamp, self._states = 0, tuple[Array, ...]()

    def evaluate(self, message: Any, *, stamp: int = 0, limit_policy: str = "warn") -> EvaluatedCommand:
        """Compute the command for a setpoint with a stamp, ns, 0 where it has none."""
        self._stamp, self._states = stamp, ()
        payload = self.blend.at(stamp, self.clock())
        given, lead = self.read(message), self.arm.robot.command_lead
        return self.command(*given, lead=lead, payload=payload, limit_policy=limit_policy)

    def commit(self) -> None:
        """Continue the stream from the command computed last, which has been sent."""
        self.blend.commit()
        if self._states:
            self.deflections.keep(self._stamp, *self._states)

    def _feedforward(self, state: Array, given: dict[str, Any]) -> Feedforward:
        if not self.deflections.needed:
            return super()._feedforward(state, given)
        command, self._states = self.deflections.command(self._stamp, *state, **given)
        return command
