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

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from ..exceptions import StateError
from ..robot import Payload, Robot
from ..robot.payload import payload_shape
from ..trajectory.smooth_step import falling
from .deflection_filter import LONGEST_GAP

LONGEST_BLEND = 60.0
"""Longest time of a change, s."""

MOST_CHANGES = 8
"""Changes that may be under way at a time; of those that wait for a setpoint, the last ones are one."""

# Stamps further back than this, ns, mean that the clock was set back.
_CLOCK_JUMP = 1_000_000_000


class _Change(NamedTuple):
    start: int | None  # ns on the clock of the blend; None before the first setpoint
    duration: int  # ns
    target: Array


class PayloadBlend:
    """Payload at the tools of a robot along a stream, with smooth changes.

    Time is that between the stamps of setpoints, or of a clock where they have none; it never goes back.

    Attributes:
        now: parameters and their time derivatives at the last setpoint, as of :meth:`at`.
        version: incremented whenever :attr:`now` may change, so that copies can be refreshed.
    """

    def __init__(self, robot: Robot) -> None:
        """Begin without any payload."""
        self._robot, self._shape = robot, payload_shape(robot)
        self._under_way: list[_Change] = []
        self._target = self._settled = np.zeros((len(robot.tools), 10))
        self._elapsed = self._stamp = self.version = 0
        self.now: list[Array] = []

    @property
    def blending(self) -> bool:
        """Whether a change is under way, or waits for a setpoint."""
        return bool(self._under_way)

    @property
    def present(self) -> bool:
        """Whether any tool carries a payload, or a change is under way."""
        return self.blending or bool(np.any(self._target))

    @property
    def masses(self) -> list[float]:
        """Masses at the tools after all changes, kg."""
        masses: list[float] = self._target[:, 0].tolist()
        return masses

    @property
    def target(self) -> list[Array]:
        """Parameters (P,) after all changes, for requests outside the stream; empty for no payload."""
        return [self._target.reshape(self._shape)] if np.any(self._target) else []

    def follows(self, stamp: int) -> bool:
        """Whether a setpoint with this stamp, ns, begins the changes or follows the last one within LONGEST_GAP."""
        return stamp > 0 and (not self._stamp or 0 <= stamp - self._stamp <= LONGEST_GAP * 1e9)

    def change(self, payload: Payload, blend_time: float) -> None:
        """Replace the payload of a tool, from the next setpoint on.

        Args:
            payload: its mass is zero for nothing.
            blend_time: time in which efforts pass to the new ones, s; 0 for at once.

        Raises:
            RobotDescriptionError: the robot has no such tool.
            StateError: the time is not usable, or too many changes are under way.
        """
        tool, parameters = self.check(payload, blend_time)
        target = self._target.copy()
        target[tool] = parameters
        self._target = target
        duration = round(blend_time * 1e9)
        if len(self._under_way) == MOST_CHANGES:  # the last one has not begun: one that begins with it takes its place
            duration = max(duration, self._under_way.pop().duration)
        self._under_way.append(_Change(None, duration, target))
        self.version += 1

    def check(self, payload: Payload, blend_time: float) -> tuple[int, Array]:
        """Tool of a payload and its parameters, as :meth:`.Payload.at_tool`; errors as for :meth:`change`."""
        if not 0 <= blend_time <= LONGEST_BLEND:  # NaN, too
            raise StateError(f"blend_time must be from 0 to {LONGEST_BLEND:g} s, is {blend_time:g}")
        found = payload.at_tool(self._robot)
        if len(self._under_way) == MOST_CHANGES and self._under_way[-1].start is not None:
            raise StateError(f"{MOST_CHANGES} changes of the payload are still under way: wait for the end of one")
        return found

    def at(self, stamp: int) -> list[Array]:
        """Parameters and their time derivatives (P, Pd, Pdd) at a setpoint's stamp, ns; empty for no payload."""
        if self._under_way:
            self.now = self._at(stamp)
            self.version += 1
        return self.now

    def _at(self, stamp: int) -> list[Array]:
        if self._stamp:
            self._elapsed += max(stamp - self._stamp, 0)
        if not self._stamp - _CLOCK_JUMP <= stamp <= self._stamp:  # else one that others have overtaken
            self._stamp = stamp
        now = self._elapsed
        changes = [c._replace(start=now) if c.start is None else c for c in self._under_way]
        ended = [k for k, c in enumerate(changes) if now - (c.start or 0) >= c.duration]
        if ended:
            # Changes before a completed one have zero weight.
            self._settled = changes[ended[-1]].target
            changes = changes[ended[-1] + 1 :]
        self._under_way = changes
        if not changes:
            self._elapsed = self._stamp = 0
            return self.target
        P, Pd, Pdd = self._settled, np.zeros_like(self._settled), np.zeros_like(self._settled)
        for start, duration, target in changes:
            w, wd, wdd = falling((now - (start or 0)) * 1e-9, duration * 1e-9)
            away = P - target
            P, Pd, Pdd = target + w * away, w * Pd + wd * away, w * Pdd + 2.0 * wd * Pd + wdd * away
        return [x.reshape(self._shape) for x in (P, Pd, Pdd)]


def read_payload(message: Any) -> Payload:
    """The payload of a message; RobotDescriptionError where no rigid body has this mass and inertia."""
    body = message.inertia
    inertia = (body.ixx, body.ixy, body.ixz, body.iyy, body.iyz, body.izz)
    return Payload(body.m, (body.com.x, body.com.y, body.com.z), inertia, message.tool)
