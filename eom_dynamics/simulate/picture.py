# SPDX-License-Identifier: Apache-2.0
"""A picture of a comparison: how far links are off over time, and by how stiffly the motors are held."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from ..demo.style import position_unit
from .feedforward_comparison import Comparison
from .summary import LABELS, distance, floor, model_error, shown_gain

_INK = "#30363d"
_COLORS = ("#8A8A8A", "#EE6677", "#4477AA")


def write_picture(path: Path, comparison: Comparison) -> None:
    """Write the picture as PNG, for a light ground."""
    figure = Figure(figsize=(15, 5.6), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1))
    over_time, over_gain = figure.subplots(1, 2)
    unit = position_unit(comparison.robot)
    gain = shown_gain(comparison)
    _frame(
        over_time, f"largest error of a link  [{unit}]   {_feedback(comparison.natural_frequency[gain])}", "time [s]"
    )
    for k, label in enumerate(LABELS):
        # Where links cross their path the error is no number that a logarithm takes.
        error = np.maximum(distance(comparison)[:, gain, k], 1e-16)
        over_time.plot(comparison.t, error, color=_COLORS[k], linewidth=2.0, label=label)
    over_time.set_yscale("log")
    over_time.set_ylim(bottom=floor(comparison))
    _frame(over_gain, f"RMS error of links  [{unit}]", "natural frequency of the motors' PD [rad/s]")
    for k in range(len(LABELS)):
        over_gain.plot(comparison.natural_frequency, comparison.rms[:, k], "o-", color=_COLORS[k], linewidth=2.0)
    over_gain.set_yscale("log")
    figure.suptitle(
        f"{comparison.robot.name}: the same arm, trajectory and gains, by the feedforward of its motors   "
        f"({model_error(comparison)})",
        fontsize=15,
        color=_INK,
    )
    handles = over_time.get_lines()
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=13, labelcolor=_INK)
    figure.savefig(path, dpi=120)


def _feedback(natural_frequency: float) -> str:
    return f"PD at {natural_frequency:g} rad/s" if natural_frequency else "no feedback"


def _frame(axes: Axes, title: str, x_title: str) -> None:
    axes.set_title(title, fontsize=14, color=_INK, loc="left")
    axes.set_xlabel(x_title, fontsize=12.5, color=_INK)
    axes.tick_params(labelsize=12, colors=_INK, length=0)
    axes.grid(color="#d8dee4", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)
