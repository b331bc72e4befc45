# SPDX-License-Identifier: Apache-2.0
"""Payload of a stream of setpoints, and its changes.

Efforts are linear in the parameters P of a payload, tau = tau_robot + Y(q, qd, qdd) P, so that they pass from one
payload to the next without a step where P does. With a weight w from 1 to 0,

    P = w P_before + (1 - w) P_next,

P is that of a body at any time, since the parameters of bodies are a convex cone.
The springs are to exert tau, and motors at theta = q + f⁻¹(tau) have the velocity qd + taud / f': the rates of P
therefore are part of taud and taudd. Without them motor positions would differ from the integral of motor velocities
by Y (P_next - P_before) / f' after each change. Motor efforts depend on taudd: they are continuous because w is twice
continuously differentiable.
"""

import numpy as np

from eom_dynamics.arrays import Array
from eom_dynamics.control.settings import LONGEST_BLEND, LONGEST_RESPONSE_STEP
from eom_dynamics.exceptions import StateError
from eom_dynamics.robot import Payload, Robot
from eom_dynamics.robot.payload import payload_shape

# Stamps further back than this, ns, mean that the clock was set back.
_CLOCK_JUMP = 1_000_000_000


class PayloadBlend:
    """Payload at the tools of a robot along a stream, with one smooth change at a time, without limits of rates.

    A newer change waits for the end of the present one. Before the first command, changes have no duration.
    Time is that between the stamps of setpoints, or of the cycles of the loop in its own motions, and where setpoints
    have none (the clock); it never goes back. It passes
    with commands that are sent, see :meth:`commit`, with each by LONGEST_RESPONSE_STEP at most: after a gap of the
    stream, and below 50 Hz, a change takes longer and makes no step. A change is not ahead of the clock by more than
    that: with two publishers whose stamps differ it would run away.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot, self._shape = robot, payload_shape(robot)
        self._before = self._after = np.zeros((len(robot.tools), 10))
        self._next: Array | None = None
        # Durations of the present and the next change, elapsed time, and start of the change by the clock, ns.
        self._duration, self._wait, self._elapsed, self._begun = 0, 0, 0, 0
        # Stamp and clock of the last command, ns, and of the command that may be sent, with its elapsed time.
        self._last = self._now = 0, 0, 0
        self._sent = False

    @property
    def changes(self) -> int:
        """Number of changes that are under way or wait."""
        return (self._elapsed < self._duration) + (self._next is not None)

    @property
    def blending(self) -> bool:
        """Whether a change is under way, or waits for a setpoint."""
        return self.changes > 0

    @property
    def target(self) -> list[Array]:
        """Parameters (P,) after all changes, for requests outside the stream; empty for no payload."""
        target = self._after if self._next is None else self._next
        return [target.reshape(self._shape)] if np.any(target) else []

    def change(self, payload: Payload, blend_time: float) -> None:
        """Replace the payload of a tool, from the next setpoint on, in a time, s; EomDynamicsError if it cannot."""
        if not 0 <= blend_time <= LONGEST_BLEND:  # NaN, too
            raise StateError(f"blend_time must be from 0 to {LONGEST_BLEND:g} s, is {blend_time:g}")
        tool, parameters = payload.at_tool(self._robot)
        waits = self._next is not None
        target = (self._after if self._next is None else self._next).copy()
        target[tool] = parameters
        if not self._sent:
            self._after = target
            return
        self._wait = max(round(blend_time * 1e9), self._wait * waits)
        self._next = target

    def at(self, stamp: int, clock: int) -> list[Array]:
        """Parameters and their time derivatives (P, Pd, Pdd) for a command; empty for no payload.

        Args:
            stamp: of its setpoint, ns; 0 for none.
            clock: time of the clock, ns, from an arbitrary origin.
        """
        before, then, _ = self._last
        # Else one that others have overtaken.
        latest = before if stamp and before - _CLOCK_JUMP <= stamp <= before else stamp
        self._now = latest, clock, self._elapsed
        if not self.blending:
            return self.target
        if self._elapsed >= self._duration:
            return [x.reshape(self._shape) for x in (self._after, *np.zeros((2, *self._after.shape)))]
        passed = stamp - before if stamp and before else clock - then
        most = clock - self._begun + LONGEST_RESPONSE_STEP - self._elapsed
        elapsed = min(self._elapsed + min(max(min(passed, most), 0), LONGEST_RESPONSE_STEP), self._duration)
        self._now = latest, clock, elapsed
        w, wd, wdd = falling(elapsed * 1e-9, self._duration * 1e-9)
        away = self._before - self._after
        rates = (wd * away, wdd * away) if elapsed < self._duration else np.zeros((2, *away.shape))
        return [x.reshape(self._shape) for x in (self._after + w * away, *rates)]

    def commit(self) -> None:
        """Let the time pass to that of the parameters computed last: their command has been sent."""
        self._last, self._elapsed, self._sent = self._now, self._now[2], True
        if self._next is not None and self._elapsed >= self._duration:
            self._before, self._after, self._next = self._after, self._next, None
            self._duration, self._elapsed, self._begun = self._wait, 0, self._now[1]


def falling(s: float, duration: float) -> tuple[float, float, float]:
    """Smooth step 1 - 10 u³ + 15 u⁴ - 6 u⁵, u = s/duration, in [0, 1], with two time derivatives, 1/s and 1/s².

    Twice continuously differentiable, also at its ends.

    Args:
        s: time since the start, s.
        duration: s; afterwards it is zero.
    """
    u = min(max(s / duration, 0.0), 1.0)
    v = 1.0 - u
    # (1 - u)³ (1 + 3 u + 6 u²), which is exactly zero at the end; near the start it may round to more than 1.
    return (
        min(v**3 * (1.0 + 3.0 * u + 6.0 * u * u), 1.0),
        -30.0 * (u * v) ** 2 / duration,
        -60.0 * u * v * (v - u) / duration**2,
    )
