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

    held = stays = False
    """Whether changes that have not begun wait: for the end of a motion, or for a reference."""

    def __init__(self, robot: Robot) -> None:
        self._robot, self._shape = robot, payload_shape(robot)
        self._target = np.zeros((len(robot.tools), 10))
        self._progress = self._next = _Progress((), self._target)

    @property
    def blending(self) -> bool:
        """Whether a change is under way, or waits for a setpoint."""
        return bool(self._progress.changes)

    @property
    def waits(self) -> bool:
        return self.blending and self._progress.changes[-1].start is None

    @property
    def present(self) -> bool:
        """Whether any tool carries a payload, or a change is under way."""
        return self.blending or bool(np.any(self._target))

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
        waits = self.waits
        if len(changes) == MOST_CHANGES and not waits:
            raise StateError(f"{MOST_CHANGES} changes of the payload are still under way: wait for the end of one")
        target = self._target.copy()
        target[tool] = parameters
        self._target, self.stays = target, False
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
        starts = not (self.held or self.stays)
        begun = [
            c._replace(start=now, begun=clock) if c.start is None and starts else c for c in self._progress.changes
        ]
        settled = self._progress.settled
        ended = [k for k, c in enumerate(begun) if c.start is not None and now - c.start >= c.duration]
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

    def predicted(self, clock: int, time: int) -> list[Array]:
        """The same for a time, as far as changes have begun; both ns."""
        if not self.present:
            return []
        return self._weighed(self._progress, self._elapsed(0, clock) + max(time - clock, 0))

    def awaited(self, time: float = -1.0) -> list[list[Array]]:
        """The most to come by a time from now on, s, or ever; halfway as fast as the last change, if it may then."""
        if not self.blending:
            return []
        start, _, duration, target = self._progress.changes[-1]
        before, T, weight = self._progress.settled, 1e-9 * duration, 0.0
        if start is None:
            before = self._weighed(self._progress, self._progress.elapsed)[0].reshape(before.shape)
            weight = falling(time, T)[0] if 0 <= time < T else 0.0
        away, rest = target - before, np.zeros_like(target)
        rows = [(target - weight * away, rest, rest)]
        if time <= T:
            rows.append((before + 0.5 * away, 15 / 8 / T * away if T else rest, rest))
        return [[x.reshape(self._shape) for x in row] for row in rows]

    def hold(self, held: bool) -> None:
        """Have changes that have not begun wait, while a motion goes on."""
        self.held, self.stays = held, self.stays and not held

    def stay(self, *, as_before: bool = False) -> bool:
        """Have its change begin anew from the payload of now, or before it, later; return whether it was to change."""
        progress = self._progress
        if not progress.changes or ((self.held or self.stays) and progress.changes[0].start is None):
            return False
        now = progress.settled if as_before else self._weighed(progress, progress.elapsed)[0]
        last = progress.changes[-1]._replace(start=None)
        settled = now.reshape(progress.settled.shape)
        self._progress, self.stays = progress._replace(changes=(last,), settled=settled), True
        return True

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

    def go_by_clock(self) -> None:
        """Let the time pass by the clock until the next setpoint."""
        self._progress = self._progress._replace(stamp=0)

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
