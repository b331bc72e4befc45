# SPDX-License-Identifier: Apache-2.0
"""Picture of a feedforward comparison: link error over time, and RMS error over the feedback gain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, NullFormatter

from ...arrays import Array
from ...simulation.feedforward_comparison import Comparison
from ...terminal import printable
from ..pages.charts import INK, frame
from .summary import COLORS, LABELS, compared, distance, feedback, model_error, shown_gain, unit


def write_picture(path: Path, comparison: Comparison) -> None:
    """Write the picture as PNG for a light background, legible at half its size."""
    figure = Figure(figsize=(13, 6.5), layout=ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.1, rect=(0, 0, 1, 0.845)))
    over_time, over_gain = figure.subplots(1, 2, width_ratios=(1.2, 1))
    _over_time(over_time, comparison)
    _over_gain(over_gain, comparison)
    title = f"Link tracking error of an arm with elastic joints ({printable(comparison.robot.name)})"
    about = f"Same trajectory, same motor PD; only the feedforward differs. Simulated arm: {model_error(comparison)}."
    figure.text(0.012, 0.98, title, fontsize=18.5, color=INK, va="top", weight="bold", parse_math=False)
    figure.text(0.012, 0.905, about, fontsize=13.5, color=INK, va="top")
    legend = figure.legend(
        handles=over_time.get_lines(), loc="outside lower center", ncols=len(LABELS), frameon=False, fontsize=15
    )
    for text, color in zip(legend.get_texts(), COLORS, strict=True):
        text.set_color(color)
        text.set_fontweight("bold")
    figure.savefig(path, dpi=130)


def _over_time(axes: Axes, comparison: Comparison) -> None:
    gain = shown_gain(comparison)
    frame(axes, f"Largest link error  [{unit(comparison)}]\nwith {feedback(comparison, gain)}")
    error = 1e3 * distance(comparison)[:, gain]
    for k, name in enumerate(LABELS):
        axes.plot(comparison.t, error[:, k], color=COLORS[k], linewidth=2.6, label=name)
    axes.set_ylim(bottom=0.0)
    axes.margins(x=0.02)


def _over_gain(axes: Axes, comparison: Comparison) -> None:
    frame(
        axes,
        f"RMS link error  [{unit(comparison)}]\nover the feedback gain",
        "natural frequency of the motor PD  [rad/s]",
    )
    rms = 1e3 * comparison.rms
    for k in range(len(LABELS)):
        axes.plot(comparison.natural_frequency, rms[:, k], "o-", color=COLORS[k], linewidth=2.6, markersize=7)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    _label_factors(axes, comparison.natural_frequency, rms)


def _label_factors(axes: Axes, gains: Array, rms: Array) -> None:
    """Label the ratio of the errors of rigid-arm and flatness feedforward at the highest gain."""
    last = int(np.argmax(gains))
    _, rigid, flatness = rms[last]
    if not np.isfinite(rigid / flatness):
        return
    axes.annotate(
        "",
        xy=(gains[last], flatness),
        xytext=(gains[last], rigid),
        arrowprops={"arrowstyle": "<->", "color": INK, "linewidth": 1.4, "shrinkA": 6, "shrinkB": 6},
    )
    axes.annotate(
        f"{compared(rigid / flatness)} ",
        xy=(gains[last], np.sqrt(rigid * flatness)),
        ha="right",
        va="center",
        fontsize=14,
        color=COLORS[2] if flatness <= rigid else COLORS[1],
        weight="bold",
    )
