# SPDX-License-Identifier: Apache-2.0
"""What drives do: efforts as commanded, and a PD around a motor motion."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..actuators import ElasticArm

Array = NDArray[np.float64]


class Servo(NamedTuple):
    """effort + kp (position - theta) + kd (velocity - thetad) of m motors, on the link side of their gears.

    The law of :func:`eom_dynamics.actuators.motor_pd_effort`, its parts kept apart: a step that knows the gains stays
    stable whatever they are, as the current loop of a drive does, which is far faster than the step.

    Attributes:
        effort: (m,), N m or N.
        position, velocity: (m,), rad or m, and per s.
        kp, kd: gains (m,), not negative, N m/rad and N m s/rad (N/m, N s/m).
    """

    effort: Array
    position: Array
    velocity: Array
    kp: Array
    kd: Array

    def wanted(self, theta: Array, thetad: Array) -> Array:
        """The efforts (m,) asked for where motors are at theta, thetad (m,)."""
        return self.effort + self.kp * (self.position - theta) + self.kd * (self.velocity - thetad)


def effort_only(effort: Array) -> Servo:
    """Efforts (m,) alone, without feedback."""
    zero = np.zeros_like(effort)
    return Servo(effort, zero, zero, zero, zero)


class EffortLimits:
    """What the motors of an arm can give, by their limits of torque, current and voltage."""

    def __init__(self, arm: ElasticArm) -> None:
        """Take the motors of the arm."""
        self._motor, self._ratio = arm.motor, arm.gear_ratio
        limits = (self._motor.torque_limit, self._motor.current_limit, self._motor.voltage_limit)
        self._none = not any(np.any(np.isfinite(limit)) for limit in limits)

    def clipped(self, effort: Array, thetad: Array) -> Array:
        """The efforts (m,) nearest to these that the motors can give at velocities thetad (m,), link side."""
        if self._none:
            return effort
        return self._motor.clipped(effort / self._ratio, self._ratio * thetad) * self._ratio
