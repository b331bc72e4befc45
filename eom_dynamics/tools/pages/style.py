# SPDX-License-Identifier: Apache-2.0
"""Colours, the number of points of a curve, and the frame of a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


def frame(axes: Axes, title: str, x_title: str = "time [s]") -> None:
    """Set titles and a light grid, and remove the frame."""
    axes.set_title(title, fontsize=14, color=INK, loc="left")
    axes.set_xlabel(x_title, fontsize=12.5, color=INK)
    axes.tick_params(labelsize=12, colors=INK, length=0, which="both")
    axes.grid(color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)
