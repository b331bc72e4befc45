# SPDX-License-Identifier: Apache-2.0
"""Motor shafts: what they do and need, and where that is more than they can."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Excess(NamedTuple):
    """A limit that a command exceeds: the worst sample of a motor and quantity.

    Attributes:
        motor: name of the motor.
        quantity: ``torque``, ``speed``, ``current`` or ``voltage``.
        value, limit: N m, rad/s, A or V; the value without its sign.
        sample: number of the sample; 0 for a single state.
    """

    motor: str
    quantity: str
    value: float
    limit: float
    sample: int


class Drive(NamedTuple):
    """What m motor shafts do and need, each (m,) or (N, m), before the gear.

    Attributes:
        position, velocity, acceleration: rad, and per s, s².
        torque: N m.
        current, voltage: A and V; NaN where the constants are not known.
        exceeded: limits that the command exceeds, before any clipping.
    """

    position: Array
    velocity: Array
    acceleration: Array
    torque: Array
    current: Array
    voltage: Array
    exceeded: tuple[Excess, ...]


def excesses(names: tuple[str, ...], quantity: str, values: Array, limit: Array) -> list[Excess]:
    """The motors whose values (m,) or (N, m) exceed their limits (m,) in size; NaN exceeds nothing."""
    if not np.any(np.abs(values) > limit):
        return []
    sizes = np.nan_to_num(np.atleast_2d(np.abs(values)), nan=0.0, posinf=np.inf)
    worst = np.argmax(sizes, axis=0)
    return [
        Excess(names[i], quantity, float(sizes[worst[i], i]), float(limit[i]), int(worst[i]))
        for i in np.flatnonzero(sizes[worst, np.arange(len(names))] > limit)
    ]
