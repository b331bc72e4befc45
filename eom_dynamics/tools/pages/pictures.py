# SPDX-License-Identifier: Apache-2.0
"""Base of every picture."""

from __future__ import annotations

from matplotlib.axes import Axes

from .style import INK, RULE


def frame(axes: Axes, title: str, x_title: str = "time [s]") -> None:
    """Set titles and a light grid, and remove the frame."""
    axes.set_title(title, fontsize=14, color=INK, loc="left")
    axes.set_xlabel(x_title, fontsize=12.5, color=INK)
    axes.tick_params(labelsize=12, colors=INK, length=0, which="both")
    axes.grid(color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)
