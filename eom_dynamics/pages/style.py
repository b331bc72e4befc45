# SPDX-License-Identifier: Apache-2.0
"""Colours, and how many points a curve needs."""

from __future__ import annotations

# Paul Tol's scheme "bright": seven colours that colour-blind readers tell apart, on light and on dark ground.
# His grey is taken darker, to be seen as a line on white.
_COLORS = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#8A8A8A")

INK = "#30363d"
"""Of text in a picture for a light ground."""

RULE = "#d8dee4"
"""Of the grid in a picture for a light ground."""

CURVE_POINTS = 1000
"""Points of a curve: more than a screen shows, and few enough for a small page."""

MARKERS = 60
"""Markers along a curve: few enough to leave the line under them visible."""


def color(joint: int) -> str:
    """Colour of a joint; with more than seven joints the colours start over."""
    return _COLORS[joint % len(_COLORS)]
