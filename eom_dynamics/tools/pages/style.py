# SPDX-License-Identifier: Apache-2.0
"""Colours, and the number of points of a curve."""

from __future__ import annotations

# Paul Tol's scheme "bright": seven colours that colour-blind readers tell apart, on light and on dark ground.
# The grey is darker than his, so that a line is visible on white.
_COLORS = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#8A8A8A")

INK = "#30363d"
"""Text of a picture on light ground."""

RULE = "#d8dee4"
"""Grid of a picture on light ground."""

CURVE_POINTS = 1000
"""Points of a curve: more than a screen resolves, few enough for a small page."""

MARKERS = 60
"""Markers along a curve: few enough to keep the line below visible."""


def color(joint: int) -> str:
    """Return the colour of a joint; they repeat after seven joints."""
    return _COLORS[joint % len(_COLORS)]
