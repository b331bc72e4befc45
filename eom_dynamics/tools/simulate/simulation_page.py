# SPDX-License-Identifier: Apache-2.0
"""HTML page of a feedforward comparison: figures, table, and facts about the run."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

import numpy as np
import plotly.graph_objects as go

from ...simulation.feedforward_comparison import Comparison
from ...simulation.model_errors import Sweep
from ..pages.charts import chart, logarithmic, over_time, place, short
from ..pages.html_page import definitions, page, table
from ..pages.style import CURVE_POINTS
from ..pages.thinning import thinned
from . import sweep as sweeps
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


def write_page(path: Path, comparison: Comparison, about: Mapping[str, str], sweep: Sweep | None = None) -> None:
    """Write the page.

    Args:
        path: of the file.
        comparison: the results.
        about: names and values for the foot of the page.
        sweep: the results over errors of the model.
    """
    figures = {"time": error_over_time(comparison), "gain": _over_gain(comparison)}
    if sweep:
        figures["regions"] = sweeps.regions(sweep)
    body = Template(
        resources.files(__package__).joinpath("simulation_page.html").read_text(encoding="utf-8")
    ).substitute(
        {name: place(name, tall=True) for name in ("time", "gain")},
        sweep=_sweep(sweep) if sweep else "",
        robot=escape(comparison.robot.name),
        error=escape(model_error(comparison)),
        shown=f"With {feedback(comparison, shown_gain(comparison))}.",
        verdict="".join(f'<p class="verdict bad">Failed: {escape(line)}.</p>' for line in failures(comparison)),
        endings="".join(f'<p class="warning">Note: {escape(line)}.</p>' for line in endings(comparison)),
        rows=table([HEADER, *rows(comparison)], text_columns=2),
        about=definitions(about),
    )
    path.write_text(page(f"{comparison.robot.name}: eom_dynamics simulate", body, figures), encoding="utf-8")


def _sweep(sweep: Sweep) -> str:
    """Section on errors of the model."""
    lines = "".join(f"<p>{escape(line)}</p>" for line in sweeps.verdicts(sweep))
    return (
        "<section><h2>Over errors of the model</h2>"
        '<p class="soft">Four feedforwards with all signs of errors, on drives that hold their commands. Numbers are '
        "RMS errors of the links.</p>"
        f"{lines}{place('regions', tall=True)}{table([sweeps.HEADER, *sweeps.rows(sweep)], text_columns=1)}</section>"
    )


def error_over_time(comparison: Comparison) -> go.Figure:
    """Return the chart of the largest link error over time for each feedforward, at the highest gain."""
    t = comparison.t
    figure = over_time("Largest link error", unit(comparison), t[0], t[-1], group="")
    off = 1e3 * distance(comparison)[:, shown_gain(comparison)]
    for k, label in enumerate(LABELS):
        kept = thinned(off[:, k], CURVE_POINTS)
        figure.add_scatter(
            x=t[kept],
            # A logarithmic axis has no zero, which errors reach where a link crosses its path.
            y=short(np.maximum(off[kept, k], 1e-13)),
            name=label,
            line={"color": COLORS[k], "width": 2},
            hovertemplate=f"{label}: %{{y:.3~g}} {unit(comparison)}<extra></extra>",
        )
    return _of_feedforwards(figure, 1e3 * floor(comparison), 2 * float(np.nanmax(off)))


def _over_gain(comparison: Comparison) -> go.Figure:
    figure = chart("RMS link error", "natural frequency of the motor PD [rad/s]", unit(comparison))
    for k, label in enumerate(LABELS):
        figure.add_scatter(
            x=comparison.natural_frequency,
            y=1e3 * comparison.rms[:, k],
            name=label,
            mode="lines+markers",
            line={"color": COLORS[k], "width": 2},
            hovertemplate=f"{label}: %{{y:.3~g}} {unit(comparison)}<extra></extra>",
        )
    rms = 1e3 * comparison.rms
    return _of_feedforwards(figure, 0.7 * float(np.nanmin(rms)), 1.4 * float(np.nanmax(rms)))


def _of_feedforwards(figure: go.Figure, low: float, high: float) -> go.Figure:
    """Return the figure with a legend and a logarithmic error axis."""
    figure.update_layout(showlegend=True)
    return logarithmic(figure, max(low, 1e-13), max(high, 1e-12))
