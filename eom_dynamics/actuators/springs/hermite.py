# SPDX-License-Identifier: Apache-2.0
"""Quintic Hermite interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def hermite_derivatives(before: Sequence[Any], after: Sequence[Any], dt: Any) -> list[Any]:
    """P^(k)(0) dt^k, k = 0 … 5, of the quintic P with value and two derivatives given at 0 and at dt."""
    square = dt * dt
    p0, p1, p2 = before[0], dt * before[1], square * before[2]
    # Differences at the end from the parabola of the start.
    a = after[0] - p0 - p1 - 0.5 * p2
    b = dt * after[1] - p1 - p2
    c = square * after[2] - p2
    return [p0, p1, p2, 60 * a - 24 * b + 3 * c, -360 * a + 168 * b - 24 * c, 720 * a - 360 * b + 60 * c]
