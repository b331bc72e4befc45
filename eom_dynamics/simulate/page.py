# SPDX-License-Identifier: Apache-2.0
"""The page of a comparison: one HTML file that needs nothing beside it, no network either."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

import numpy as np
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from ..demo.style import CURVE_POINTS, position_unit
from .feedforward_comparison import Comparison
from .summary import HEADER, LABELS, distance, failures, floor, model_error, rows, shown_gain

_COLORS = ("#8A8A8A", "#EE6677", "#4477AA")


def write_page(path: Path, comparison: Comparison, about: Mapping[str, str]) -> None:
    """Write the page: figures, table, and what it was run on.

    Args:
        path: of the file.
        comparison: what to show.
        about: names and values, as they are to be read.
    """
    template = Template(resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
    gain = comparison.natural_frequency[shown_gain(comparison)]
    figures = {"time": _over_time(comparison), "gain": _over_gain(comparison)}
    page = template.substitute(
        robot=escape(comparison.robot.name),
        error=escape(model_error(comparison)),
        shown=f"With a PD of natural frequency {gain:g} rad/s on the motors." if gain else "Without any feedback.",
        failures="".join(f'<p class="bad">Failed: {escape(line)}.</p>' for line in failures(comparison)),
        rows="".join([_row(HEADER, "th"), *(_row(row, "td") for row in rows(comparison))]),
        about="".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in about.items()),
        plotly=get_plotlyjs(),
        # Plotly leaves no character in JSON that is markup to a script element.
        figures=f"{{{', '.join(f'{json.dumps(name)}: {figure.to_json()}' for name, figure in figures.items())}}}",
    )
    path.write_text(page, encoding="utf-8")


def _row(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _over_time(comparison: Comparison) -> go.Figure:
    figure = _figure("time [s]", position_unit(comparison.robot))
    every = max(1, len(comparison.t) // CURVE_POINTS)
    off = distance(comparison)[::every, shown_gain(comparison)]
    for k, label in enumerate(LABELS):
        figure.add_scatter(
            x=comparison.t[::every].astype(np.float32),
            # Where links cross their path the error is no number that a logarithm takes.
            y=np.maximum(off[:, k], 1e-16).astype(np.float32),
            name=label,
            line={"color": _COLORS[k], "width": 2},
        )
    return figure.update_yaxes(range=np.log10([floor(comparison), 2 * np.max(off)]))


def _over_gain(comparison: Comparison) -> go.Figure:
    figure = _figure("natural frequency of the motors' PD [rad/s]", position_unit(comparison.robot))
    for k, label in enumerate(LABELS):
        figure.add_scatter(
            x=comparison.natural_frequency,
            y=comparison.rms[:, k],
            name=label,
            mode="lines+markers",
            line={"color": _COLORS[k], "width": 2},
        )
    return figure


def _figure(x_title: str, y_title: str) -> go.Figure:
    return go.Figure(
        layout={
            "template": "none",
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "margin": {"l": 70, "r": 8, "t": 12, "b": 42},
            "hovermode": "x unified",
            "dragmode": False,
            "legend": {"orientation": "h", "y": 1.1},
            "font": {"size": 13, "family": "system-ui, -apple-system, Segoe UI, Roboto, sans-serif"},
            "xaxis": {"title": {"text": x_title, "standoff": 6}},
            "yaxis": {"title": {"text": y_title}, "type": "log", "exponentformat": "power", "automargin": True},
        }
    )
