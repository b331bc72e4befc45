# SPDX-License-Identifier: Apache-2.0
"""Commands along a stream of setpoints: the reference with the memory of damped springs, friction and payload."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from eom_dynamics.arrays import Array
from eom_dynamics.elastic import ElasticArm, Feedforward
from eom_dynamics.loop.settings import LONGEST_GAP
from eom_dynamics.messages.setpoint_to_command import EvaluatedCommand, SetpointEvaluator
from reference.payload_blend import PayloadBlend


class DeflectionFilter:
    """Deflections of an arm's damped springs, and of the bristles of presliding friction, along a stream of setpoints.

    A step goes from the last answered setpoint to the next, with the efforts between them interpolated as in
    :meth:`ElasticArm.deflections_over_time`. Without a stamp (0), and where the stamp goes back or more than
    LONGEST_GAP ahead, the deflection is that without transient, and the state of friction that of the velocity. With
    the same stamp the deflection stays the same.

    Attributes:
        needed: whether the arm has such springs or friction.
        memory: of the last answered setpoint (4 n + 2 m,): deflections, states of friction, tau, taud, taudd, motor
            positions.
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
        if arm.side.presliding.any() and np.isfinite(np.concatenate(command)).all():
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
        continues = stamp and before and 0 <= stamp - before <= LONGEST_GAP
        return (stamp - before) * 1e-9 if continues else -1.0

    def forget(self) -> None:
        """Restart without transient."""
        self.stamp[0] = 0


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
