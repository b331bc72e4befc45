# SPDX-License-Identifier: Apache-2.0
"""Motor shafts: motion, torque, current, voltage, and violations of their limits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..units import SHAFT_UNITS


class LimitViolation(NamedTuple):
    """The worst sample of a motor's quantity that exceeds its limit.

    Attributes:
        motor: name of the motor.
        quantity: ``torque``, ``speed``, ``current`` or ``voltage``.
        value, limit: N m, rad/s, A or V; the magnitude of the value.
        sample: index of the sample; 0 for a single state.
    """

    motor: str
    quantity: str
    value: float
    limit: float
    sample: int

    def __str__(self) -> str:
        """Motor, quantity, value and limit with their unit, of the shaft before the gear."""
        unit = SHAFT_UNITS[self.quantity]
        return f"{self.motor}: {self.quantity} {self.value:.4g} {unit}, limit {self.limit:.4g} {unit}"


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


def limit_violations(names: tuple[str, ...], quantity: str, values: Array, limit: Array) -> list[LimitViolation]:
    """Violations by motors whose values (m,) or (N, m) exceed their limits (m,) in magnitude; NaN violates nothing."""
    if not np.any(np.abs(values) > limit):
        return []
    sizes = np.nan_to_num(np.atleast_2d(np.abs(values)), nan=0.0, posinf=np.inf)
    worst = np.argmax(sizes, axis=0)
    return [
        LimitViolation(names[i], quantity, float(sizes[worst[i], i]), float(limit[i]), int(worst[i]))
        for i in np.flatnonzero(sizes[worst, np.arange(len(names))] > limit)
    ]
