# SPDX-License-Identifier: Apache-2.0
"""Motor shaft quantities: motion, torque, current and voltage."""

from __future__ import annotations

from typing import NamedTuple

from ..arrays import Array
from .limit_violations import LimitViolation


class Drive(NamedTuple):
    """Motion, torque, current and voltage of m motors before their gears, each (m,) or (N, m).

    Attributes:
        position, velocity, acceleration: rad, and per s, s².
        torque: N m.
        current, voltage: A and V; NaN where the motor's constants are unknown.
        exceeded: limits that the command violates, before any clipping.
    """

    position: Array
    velocity: Array
    acceleration: Array
    torque: Array
    current: Array
    voltage: Array
    exceeded: tuple[LimitViolation, ...]
