# SPDX-License-Identifier: Apache-2.0
"""Checks of numbers in robot descriptions: finite, of plausible size, positive where required."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable

from ...exceptions import RobotDescriptionWarning

LARGEST, SMALLEST = 1e12, 1e-12
"""Bounds of plausible values in SI units; products of values beyond them overflow."""


def violation(value: float, *, largest: float = LARGEST) -> str | None:
    """Reason why a value cannot be used; None if it is finite and of plausible size."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"must be finite, is {value}"
    if abs(value) > largest:
        return f"must not exceed {largest:g} in SI units, is {value!r:.60}"
    return None


def negative_violation(value: float) -> str | None:
    """Reason why a value is not a non-negative number; None if it is."""
    return f"must not be negative, is {value:g}" if value < 0 else None


def positive_violation(value: float) -> str | None:
    """Reason why a value is not a positive number; None if it is."""
    if value <= 0:
        return f"must be positive, is {value:g}"
    if value < SMALLEST:
        return f"must be at least {SMALLEST:g}, is {value:g}"
    return None


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
