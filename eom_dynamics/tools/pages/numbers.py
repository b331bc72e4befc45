# SPDX-License-Identifier: Apache-2.0
"""Format numbers: three significant digits, and a dash for unknown ones; in JSON, null."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

NOTHING = "–"
"""Text of an unknown number."""


def number(value: float) -> str:
    """Format three significant digits: ``1,230``, ``12.3``, ``0.00123``; with an exponent outside 1e-4 to 1e7."""
    if math.isnan(value):
        return NOTHING
    if value == 0 or math.isinf(value):
        return f"{value:g}"
    exponent = math.floor(math.log10(abs(value)))
    if not -4 <= exponent <= 6:
        return f"{value:.2e}"
    digits = 2 - math.floor(math.log10(abs(float(f"{value:.2e}"))))  # after rounding: 9.996 is 10.0
    return f"{round(value, digits):,.{max(0, digits)}f}"


def relative(value: float) -> str:
    """Format a relative deviation: two digits."""
    if math.isnan(value):
        return NOTHING
    return f"{value:.1e}" if value else "0"


def microseconds(seconds: float) -> str:
    """Format a duration: µs below 10 ms, else ms."""
    if math.isnan(seconds):
        return NOTHING
    return f"{seconds * 1e6:,.0f} µs" if seconds < 0.01 else f"{seconds * 1e3:,.1f} ms"


def for_json(values: ArrayLike) -> Any:
    """Return a number or an array of numbers as JSON takes them: None for NaN and infinity."""
    known = np.asarray(values, dtype=float)
    return np.where(np.isfinite(known), known, None).tolist()  # type: ignore[call-overload]
