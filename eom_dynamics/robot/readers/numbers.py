# SPDX-License-Identifier: Apache-2.0
"""Bounds of numbers in robot descriptions, and angles that look like degrees."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable

from ...exceptions import RobotDescriptionWarning

LARGEST, SMALLEST = 1e12, 1e-12
"""Bounds of plausible values in SI units; products of values beyond them overflow."""


def typical_degrees(angle: float) -> bool:
    """Whether an angle, rad, is more than a turn, and a usual number of degrees: a multiple of 2.5, up to 360."""
    return 2 * math.pi < abs(angle) <= 360 and angle % 2.5 == 0


def warn_of_degrees(where: str, angles: Iterable[float]) -> None:
    """Warn of the first angle that looks like degrees; :class:`RobotDescriptionWarning`."""
    for angle in angles:
        if typical_degrees(angle):
            reason = f"angle {angle:g} rad is more than a turn; if it is in degrees, it is {math.radians(angle):.4g}"
            warnings.warn(f"{where}: {reason}", RobotDescriptionWarning, stacklevel=3)
            return
