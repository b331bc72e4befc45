# SPDX-License-Identifier: Apache-2.0
"""Results of a feedforward comparison: HTML page, picture and data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from ...simulation.feedforward_comparison import Comparison
from ...simulation.margins import LEAST_DAMPING
from ...simulation.model_errors import Sweep
from ..pages.charts import add_line, chart, logarithmic, over_time, place
from ..pages.html_page import lines, results_page, section, table
from ..pages.style import CURVE_POINTS
from ..pages.thinning import thinned
from ..writing import whole_folder
from . import link_feedback as links
from . import sweep as sweeps
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
    sweep: Sweep | None = None,
    of_links: links.LinkFeedback | None = None,
    *,
    force: bool = False,
) -> Path:
    """Write index.html, tracking.png and data.npz.

    Args:
        sweep: the results over errors of the model.
        of_links: feedback of the links, with a sweep.

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
        write_page(aside / "index.html", comparison, about, sweep, of_links)
    return folder / "index.html"


def write_page(
    path: Path,
    comparison: Comparison,
    about: Mapping[str, str],
    sweep: Sweep | None = None,
    of_links: links.LinkFeedback | None = None,
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
    if sweep:
        figures |= {"regions": sweeps.regions(sweep), "alone": sweeps.regions_alone(sweep)}
        sections.append(
            section(
                "Over errors of the model",
                lines("", sweeps.verdicts(sweep)),
                place("regions", tall=True),
                place("alone", tall=True),
                table([sweeps.HEADER, *sweeps.rows(sweep)], text_columns=1),
                text="Four feedforwards with all signs of errors, with sampled commands. Colors are the "
                "least feedforward whose RMS error of the links is within 5 % of the best; numbers are the error with "
                "rigid feedforward over that with flatness, below 1 where flatness is worse.",
            )
        )
    if sweep and of_links:
        charts = links.margin_charts(of_links)
        figures |= charts
        sections.append(
            section(
                "Feedback of the links",
                lines("", links.verdicts(of_links, sweep)),
                *map(place, charts),
                table([links.HEADER, *links.rows(of_links)], text_columns=1),
                text="At rest at the start of the motion, with a damping ratio of resonances of at least "
                f"{100 * LEAST_DAMPING:g} %. A gain margin of 1 or a phase margin of "
                "0 is an unstable loop. The table is of the loop around the PD of the motors, with the weight of the "
                "links' errors that leaves margins of 2.",
            )
        )
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
