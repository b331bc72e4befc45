# SPDX-License-Identifier: Apache-2.0
"""Servo drives: commanded effort plus a PD around a motor motion."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array


class Servo(NamedTuple):
    """Servo of m motors: effort + kp (position - theta) + kd (velocity - thetad), on the link side of the gears.

    The law of :func:`eom_dynamics.elastic.motor_pd_effort` by its parts: a step that knows the gains is stable for
    any of them, like the current loop of a drive, which is much faster than the step.

    Attributes:
        effort: (m,), N m or N.
        position, velocity: reference (m,), rad or m, and per s.
        kp, kd: gains (m,), not negative, N m/rad and N m s/rad (N/m, N s/m).
    """

    effort: Array
    position: Array
    velocity: Array
    kp: Array
    kd: Array

    def wanted(self, theta: Array, thetad: Array) -> Array:
        """Commanded efforts (m,) at motor positions theta and velocities thetad (m,)."""
        return self.effort + self.kp * (self.position - theta) + self.kd * (self.velocity - thetad)

    def after(self, former: Servo, share: float) -> Servo:
        """Servo on the straight line from a former one to this one, at a share of it; this one if its gains differ."""
        if share == 1.0 or not (np.array_equal(self.kp, former.kp) and np.array_equal(self.kd, former.kd)):
            return self
        effort, position, velocity = (x + share * (y - x) for x, y in zip(former[:3], self[:3], strict=True))
        return self._replace(effort=effort, position=position, velocity=velocity)


def effort_only(effort: Array) -> Servo:
    """Servo without feedback."""
    zero = np.zeros_like(effort)
    return Servo(effort, zero, zero, zero, zero)
