# SPDX-License-Identifier: Apache-2.0
"""Commands along a stream of setpoints: the reference with the memory of damped springs, friction and payload."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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

    def skip(self, time: int) -> None:
        """Leave out time, ns."""
        self._stamp += time if self._stamp else 0


class Ahead(NamedTuple):
    """Motion ahead of the setpoint, for which a command is computed."""

    lead: float  # time after the setpoint, s
    state: Array  # q, qd, qdd, qddd, qdddd (5, n) then


class StreamEvaluator(SetpointEvaluator):
    """Each command of a stream continues from the last command that was sent; call :meth:`commit` once it is sent.

    A message with a stamp, ns, 0 where it has none, is of the stream; without one it stands alone, after all changes of
    the payload.

    Attributes:
        lead: time by which commands of the stream are ahead of setpoints, s.
        deflections: state of springs with dampers and of presliding friction along the stream.
        blend: payload of the stream, which changes along it.
        clock: returns the time in ns, for changes of the payload.
    """

    def __init__(self, arm: ElasticArm, *, moving_base: bool = True, lead: float = 0.0) -> None:
        super().__init__(arm, moving_base=moving_base)
        self.lead, self.deflections, self.blend = lead, DeflectionFilter(arm), PayloadBlend(arm.robot)
        self.clock: Callable[[], int] = time.monotonic_ns
        self._stamp: int | None = None
        self._ahead: Ahead | None = None
        # Stamp and states of a command that may be sent.
        self._states: tuple[Array, ...] = ()
        self._computed: tuple[int, tuple[Array, ...]] | None = None

    def evaluate(
        self,
        message: Any,
        *options: Any,
        stamp: int | None = None,
        limit_policy: str = "warn",
        admit: Callable[[int, Array], None] | None = None,
    ) -> EvaluatedCommand:
        """Compute a command; ``admit`` takes stamp and state (5, n) first, and raises StateError to refuse them."""
        read = self.read(message, *options)
        if admit is not None:
            admit(stamp or 0, read[1])
        return self.command(*read, stamp=stamp, limit_policy=limit_policy)

    def command(
        self,
        *flow: Any,
        stamp: int | None = None,
        ahead: Ahead | None = None,
        lead: float | None = None,
        payload: Sequence[Array] | None = None,
        **given: Any,
    ) -> EvaluatedCommand:
        """Compute a command; ``ahead``: exact motion at the lead, in the place of :attr:`lead` and Taylor's series."""
        self._stamp, self._ahead, self._states = stamp, ahead, ()
        if payload is None:
            payload = self.blend.target if stamp is None else self.blend.at(stamp, self.clock())
        lead = self.lead if lead is None else lead
        lead = ahead.lead if ahead else lead if stamp is not None else 0.0
        if stamp is not None:
            self._computed = None
        command = super().command(*flow, lead=lead, payload=payload, **given)
        if stamp is not None and self._states:
            self._computed = stamp, self._states
        return command

    def commit(self) -> None:
        """Continue the stream from the command computed last, which has been sent."""
        self.blend.commit()
        if self._computed is not None:
            stamp, states = self._computed
            self.deflections.keep(stamp, *states)

    def _later(self, lead: float, state: Array, given: dict[str, Any]) -> tuple[Array, dict[str, Any]]:
        later, given = super()._later(lead, state, given)
        return (self._ahead.state if self._ahead else later), given

    def _feedforward(self, state: Array, given: dict[str, Any]) -> Feedforward:
        if self._stamp is None or not self.deflections.needed:
            return super()._feedforward(state, given)
        command, self._states = self.deflections.command(self._stamp, *state, **given)
        return command
