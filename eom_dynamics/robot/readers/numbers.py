# SPDX-License-Identifier: Apache-2.0
"""Checks of the numbers in robot descriptions: finite, of plausible size, positive where they must be."""

from __future__ import annotations

import math

LARGEST, SMALLEST = 1e12, 1e-12
"""Bounds of plausible values in SI units; products of values beyond them overflow."""


def violation(value: float, *, largest: float = LARGEST) -> str | None:
    """Why a value cannot be used; None if it is finite and of plausible size."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"must be finite, is {value}"
    if abs(value) > largest:
        return f"must not exceed {largest:g} in SI units, is {value!r:.60}"
    return None


def negative_violation(value: float) -> str | None:
    """Why a value cannot stand for a quantity that is not negative; None if it can."""
    return f"must not be negative, is {value:g}" if value < 0 else None


def positive_violation(value: float) -> str | None:
    """Why a value cannot stand for a positive quantity; None if it can."""
    if value <= 0:
        return f"must be positive, is {value:g}"
    if value < SMALLEST:
        return f"must be at least {SMALLEST:g}, is {value:g}"
    return None
