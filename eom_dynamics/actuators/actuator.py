# SPDX-License-Identifier: Apache-2.0
"""Actuator of a joint: friction, gear and motor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np

from .friction import FRICTIONLESS, Friction
from .gear import LOSSLESS, Gear
from .motor import IDEAL, Motor

Part = TypeVar("Part", Friction, Gear, Motor)


@dataclass(frozen=True, eq=False)
class Actuator:
    """Friction, gear loss and motor of a joint.

    Attributes:
        friction: friction of motor and gear, on the link side of the gear.
        gear: loss of the gear.
        motor: motor before the gear.
    """

    friction: Friction = FRICTIONLESS
    gear: Gear = LOSSLESS
    motor: Motor = IDEAL


IDEAL_ACTUATOR = Actuator()
"""Actuator without friction, loss or limits."""


def stacked(parts: Sequence[Part]) -> Part:
    """Stack parts into one with parameters (number of parts,)."""
    kind = type(parts[0])
    return kind(*(np.array([getattr(part, field.name) for part in parts]) for field in fields(kind)))
