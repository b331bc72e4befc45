# SPDX-License-Identifier: Apache-2.0
"""Smooth step from one to zero."""

from __future__ import annotations


def falling(s: float, duration: float) -> tuple[float, float, float]:
    """Smooth step 1 - 10 u³ + 15 u⁴ - 6 u⁵, u = s/duration, in [0, 1], with two time derivatives, 1/s and 1/s².

    Twice continuously differentiable, also at its ends.

    Args:
        s: time since the start, s.
        duration: s; afterwards it is zero.
    """
    u = min(max(s / duration, 0.0), 1.0)
    v = 1.0 - u
    # (1 - u)³ (1 + 3 u + 6 u²), which is exactly zero at the end; near the start it may round to more than 1.
    return (
        min(v**3 * (1.0 + 3.0 * u + 6.0 * u * u), 1.0),
        -30.0 * (u * v) ** 2 / duration,
        -60.0 * u * v * (v - u) / duration**2,
    )
