# SPDX-License-Identifier: Apache-2.0
"""Payload of a stream of setpoints, and its changes.

Efforts are linear in the parameters P of a payload, tau = tau_robot + Y(q, qd, qdd) P, so that they pass from one
payload to the next without a step where P does. With a weight w from 1 to 0,

    P = w P_before + (1 - w) P_next,

P is that of a body at any time, since the parameters of bodies are a convex cone, also where P_before still changes.
The springs are to exert tau, and motors at theta = q + f⁻¹(tau) have the velocity qd + taud / f': the rates of P
therefore are part of taud and taudd. Without them motor positions would differ from the integral of motor velocities
by Y (P_next - P_before) / f' after each change. Motor efforts depend on taudd: they are continuous because w is twice
continuously differentiable.
"""

from typing import NamedTuple

import numpy as np

from eom_dynamics.arrays import Array
from eom_dynamics.control.settings import LONGEST_BLEND, LONGEST_RESPONSE_STEP
from eom_dynamics.exceptions import StateError
from eom_dynamics.robot import Payload, Robot
from eom_dynamics.robot.payload import payload_shape

# Changes that may be under way at a time; those that wait for a setpoint are one.
MOST_CHANGES = 8

# Stamps further back than this, ns, mean that the clock was set back.
_CLOCK_JUMP = 1_000_000_000


class _Change(NamedTuple):
    start: int | None  # ns on the time of the blend; None before the first setpoint
    begun: int  # the clock at the first setpoint, ns
    duration: int  # ns
    target: Array


class _Progress(NamedTuple):
    """State of a blend after a command."""

    changes: tuple[_Change, ...]  # under way
    settled: Array  # parameters before them
    elapsed: int = 0  # time of the blend, ns; zero while nothing is under way
    stamp: int = 0  # up to which time has passed, ns; zero after a setpoint without stamp
    clock: int = 0  # at the command, ns


class PayloadBlend:
    """Payload at the tools of a robot along a stream, with smooth changes.

    Time is that between the stamps of setpoints, or of the cycles of the loop in its own motions, and where setpoints
    have none (the clock); it never goes back. It passes
    with commands that are sent, see :meth:`commit`, with each by LONGEST_RESPONSE_STEP at most: after a gap of the
    stream, and below 50 Hz, a change takes longer and makes no step. In no change is it ahead of the clock by more than
    that: with two publishers whose stamps differ it would run away.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot, self._shape = robot, payload_shape(robot)
        self._target = np.zeros((len(robot.tools), 10))
        self._progress = self._next = _Progress((), self._target)

    @property
    def blending(self) -> bool:
        """Whether a change is under way, or waits for a setpoint."""
        return bool(self._progress.changes)

    @property
    def target(self) -> list[Array]:
        """Parameters (P,) after all changes, for requests outside the stream; empty for no payload."""
        return [self._target.reshape(self._shape)] if np.any(self._target) else []

    def change(self, payload: Payload, blend_time: float) -> None:
        """Replace the payload of a tool, from the next setpoint on, in a time, s; EomDynamicsError if it cannot."""
        if not 0 <= blend_time <= LONGEST_BLEND:  # NaN, too
            raise StateError(f"blend_time must be from 0 to {LONGEST_BLEND:g} s, is {blend_time:g}")
        tool, parameters = payload.at_tool(self._robot)
        duration, changes = round(blend_time * 1e9), self._progress.changes
        waits = self.blending and changes[-1].start is None
        if len(changes) == MOST_CHANGES and not waits:
            raise StateError(f"{MOST_CHANGES} changes of the payload are still under way: wait for the end of one")
        target = self._target.copy()
        target[tool] = parameters
        self._target = target
        if waits:  # one that begins with it takes its place
            duration, changes = max(duration, changes[-1].duration), changes[:-1]
        self._progress = self._next = self._progress._replace(changes=(*changes, _Change(None, 0, duration, target)))

    def at(self, stamp: int, clock: int) -> list[Array]:
        """Parameters and their time derivatives (P, Pd, Pdd) for a command; empty for no payload.

        Args:
            stamp: of its setpoint, ns; 0 for none.
            clock: time of the clock, ns, from an arbitrary origin.
        """
        self._next = self._progress
        if not self.blending:
            return self.target
        now = self._elapsed(stamp, clock)
        begun = [c._replace(start=now, begun=clock) if c.start is None else c for c in self._progress.changes]
        settled = self._progress.settled
        ended = [k for k, c in enumerate(begun) if now - (c.start or 0) >= c.duration]
        if ended:
            # Changes before a completed one have zero weight.
            settled, begun = begun[ended[-1]].target, begun[ended[-1] + 1 :]
        if not begun:
            self._next = _Progress((), settled)
            return self.target
        before = self._progress.stamp
        # Else one that others have overtaken.
        latest = before if stamp and before - _CLOCK_JUMP <= stamp <= before else stamp
        self._next = _Progress(tuple(begun), settled, now, latest, clock)
        return self._weighed(self._next, now)

    def _weighed(self, progress: _Progress, now: int) -> list[Array]:
        P, Pd, Pdd = progress.settled, np.zeros_like(progress.settled), np.zeros_like(progress.settled)
        for start, _, duration, target in progress.changes:
            if start is None:
                break
            w, wd, wdd = falling((now - start) * 1e-9, max(duration, 1) * 1e-9)
            away = P - target
            P, Pd, Pdd = target + w * away, w * Pd + wd * away, w * Pdd + 2.0 * wd * Pd + wdd * away
        return [x.reshape(self._shape) for x in (P, Pd, Pdd)]

    def commit(self) -> None:
        """Let the time pass to that of the parameters computed last: their command has been sent."""
        self._progress = self._next

    def _elapsed(self, stamp: int, clock: int) -> int:
        """Time of the blend for a command, ns."""
        changes, _, elapsed, before, then = self._progress
        begun = [c for c in changes if c.start is not None]
        if not begun:
            return elapsed
        passed = min(max(stamp - before if stamp and before else clock - then, 0), LONGEST_RESPONSE_STEP)
        most = min((c.start or 0) + max(clock - c.begun, 0) for c in begun) + LONGEST_RESPONSE_STEP
        return max(min(elapsed + passed, most), elapsed)


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
