# SPDX-License-Identifier: Apache-2.0
"""Results of a feedforward comparison: HTML page, picture and data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from ...simulation.feedforward_comparison import Comparison
from ..pages.charts import CURVE_POINTS, add_line, chart, logarithmic, over_time, thinned
from ..pages.html_page import lines, place, results_page, section, table
from ..writing import whole_folder
from .picture import write_picture
from .summary import (
    COLORS,
    HEADER,
    LABELS,
    distance,
    endings,
    failures,
    feedback,
    floor,
    model_error,
    rows,
    shown_gain,
    unit,
)


def write_results(
    folder: Path,
    comparison: Comparison,
    about: Mapping[str, str],
    *,
    force: bool = False,
) -> Path:
    """Write index.html, tracking.png and data.npz.

    Returns:
        The path of the page.
    """
    with whole_folder(folder, force=force) as aside:
        np.savez_compressed(
            aside / "data.npz",
            t=comparison.t,
            q=comparison.q,
            natural_frequency=comparison.natural_frequency,
            error=comparison.error,
            joint_names=np.array(comparison.robot.joint_names),
        )
        write_picture(aside / "tracking.png", comparison)
        write_page(aside / "index.html", comparison, about)
    return folder / "index.html"


def write_page(
    path: Path,
    comparison: Comparison,
    about: Mapping[str, str],
) -> None:
    """Write the page; arguments as of :func:`write_results`."""
    robot = comparison.robot.name
    figures = {"time": error_over_time(comparison), "gain": _over_gain(comparison)}
    shown = feedback(comparison, shown_gain(comparison))
    lead = (
        "One arm with elastic joints, one trajectory, one motor PD; only the feedforward and its motor reference "
        f"differ. Errors are those of the links, which no sensor measures. Simulated arm: {model_error(comparison)}."
    )
    sections = [
        lines("lead", [lead]),
        lines("verdict bad", (f"Failed: {line}." for line in failures(comparison))),
        lines("warning", (f"Note: {line}." for line in endings(comparison))),
        section(
            "Over time",
            place("time", tall=True),
            text=f"With {shown}. At each time, the error of the joint with the largest one.",
        ),
        section("Over the feedback gain", place("gain", tall=True)),
        section(
            "Results",
            table([HEADER, *rows(comparison)], text_columns=2),
            lines("soft", ["RMS over time and joints; peak of any joint at any time."]),
        ),
    ]
    heading = f"Tracking error of {robot} under three kinds of feedforward"
    path.write_text(results_page("simulate", robot, heading, sections, figures, about), encoding="utf-8")


def error_over_time(comparison: Comparison) -> go.Figure:
    """Return the chart of the largest link error over time for each feedforward, at the highest gain."""
    t = comparison.t
    figure = over_time("Largest link error", unit(comparison), t[0], t[-1], group="")
    off = 1e3 * distance(comparison)[:, shown_gain(comparison)]
    for errors, label, shade in zip(off.T, LABELS, COLORS, strict=True):
        kept = thinned(errors, CURVE_POINTS)
        # A logarithmic axis has no zero, which errors reach where a link crosses its path.
        shown = np.maximum(errors[kept], 1e-13)
        add_line(figure, t[kept], shown, label, {"color": shade}, unit=unit(comparison))
    return _of_feedforwards(figure, 1e3 * floor(comparison), 2 * float(np.nanmax(off)))


def _over_gain(comparison: Comparison) -> go.Figure:
    figure = chart("RMS link error", "natural frequency of the motor PD [rad/s]", unit(comparison))
    rms = 1e3 * comparison.rms
    for errors, label, shade in zip(rms.T, LABELS, COLORS, strict=True):
        style = {"color": shade}
        add_line(
            figure, comparison.natural_frequency, errors, label, style, unit=unit(comparison), mode="lines+markers"
        )
    return _of_feedforwards(figure, 0.7 * float(np.nanmin(rms)), 1.4 * float(np.nanmax(rms)))


def _of_feedforwards(figure: go.Figure, low: float, high: float) -> go.Figure:
    """Return the figure with a legend and a logarithmic error axis."""
    figure.update_layout(showlegend=True)
    return logarithmic(figure, max(low, 1e-13), max(high, 1e-12))
