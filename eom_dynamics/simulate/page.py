# SPDX-License-Identifier: Apache-2.0
"""The page of a comparison: figures, table, and what it was run on."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

import numpy as np
import plotly.graph_objects as go

from ..pages.charts import chart, logarithmic, over_time, place, short
from ..pages.page import definitions, page, table
from ..pages.style import CURVE_POINTS
from ..pages.thinning import thinned
from .feedforward_comparison import Comparison
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


def write_page(path: Path, comparison: Comparison, about: Mapping[str, str]) -> None:
    """Write the page.

    Args:
        path: of the file.
        comparison: what to show.
        about: names and values, as they are to be read.
    """
    figures = {"time": error_over_time(comparison), "gain": _over_gain(comparison)}
    body = Template(resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")).substitute(
        {name: place(name, figure, tall=True) for name, figure in figures.items()},
        robot=escape(comparison.robot.name),
        error=escape(model_error(comparison)),
        shown=f"With {feedback(comparison, shown_gain(comparison))}.",
        verdict="".join(f'<p class="verdict bad">Failed: {escape(line)}.</p>' for line in failures(comparison)),
        endings="".join(f'<p class="warning">Note: {escape(line)}.</p>' for line in endings(comparison)),
        rows=table([HEADER, *rows(comparison)], text_columns=2),
        about=definitions(about),
    )
    path.write_text(page(f"{comparison.robot.name}: eom_dynamics simulate", body, figures), encoding="utf-8")


def error_over_time(comparison: Comparison) -> go.Figure:
    """The largest error of any link over time for each feedforward, with the stiffest of the gains."""
    t = comparison.t
    figure = over_time("Largest error of a link", unit(comparison), t[0], t[-1], group="")
    off = 1e3 * distance(comparison)[:, shown_gain(comparison)]
    for k, label in enumerate(LABELS):
        kept = thinned(off[:, k], CURVE_POINTS)
        figure.add_scatter(
            x=t[kept],
            # Where links cross their path the error is no number that a logarithm takes.
            y=short(np.maximum(off[kept, k], 1e-13)),
            name=label,
            line={"color": COLORS[k], "width": 2},
            hovertemplate=f"{label}: %{{y:.3~g}} {unit(comparison)}<extra></extra>",
        )
    return _of_feedforwards(figure, 1e3 * floor(comparison), 2 * float(np.nanmax(off)))


def _over_gain(comparison: Comparison) -> go.Figure:
    figure = chart("RMS error of links", "frequency of the motors' PD [rad/s]", unit(comparison))
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
    """With a legend, and room for errors of any magnitude."""
    figure.update_layout(showlegend=True, margin={"t": 30})
    return logarithmic(figure, max(low, 1e-13), max(high, 1e-12))
