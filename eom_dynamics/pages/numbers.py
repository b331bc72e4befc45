# SPDX-License-Identifier: Apache-2.0
"""Numbers as text, in one style: three digits that count, and a dash where there is nothing to tell."""

from __future__ import annotations

import math

NOTHING = "–"
"""In the place of a number that is not known."""


def number(value: float) -> str:
    """Three significant digits: ``1,230``, ``12.3``, ``0.00123``; with an exponent from a millionth down and up."""
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
    """A relative deviation as text: two digits; a dash where there is none to tell."""
    if math.isnan(value):
        return NOTHING
    return f"{value:.1e}" if value else "0"


def microseconds(seconds: float) -> str:
    """A time as text: µs, or ms from ten of them on; a dash where there is none."""
    if math.isnan(seconds):
        return NOTHING
    return f"{seconds * 1e6:,.0f} µs" if seconds < 0.01 else f"{seconds * 1e3:,.1f} ms"
