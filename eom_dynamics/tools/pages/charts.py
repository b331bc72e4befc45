# SPDX-License-Identifier: Apache-2.0
"""Charts: Plotly figures, and the style of charts and pictures; curves of one joint are one group of the legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from ...arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Paul Tol's scheme "bright": seven colours that colour-blind readers tell apart.
# The grey is darker than his, so that a line is visible on white.
_COLORS = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#8A8A8A")

INK = "#30363d"
"""Text of a picture."""

_RULE = "#d8dee4"  # grid of a picture

CURVE_POINTS = 1000
"""Points of a curve: more than a screen resolves, few enough for a small page."""

MARKERS = 60
"""Markers along a curve: few enough to keep the line below visible."""

_FONT = {"size": 13, "family": "system-ui, -apple-system, Segoe UI, Roboto, sans-serif"}
_LEGEND = {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "tracegroupgap": 0}
_ROW = 250  # height of one of several charts below each other, pixels


def color(joint: int) -> str:
    """Return the colour of a joint; they repeat after seven joints."""
    return _COLORS[joint % len(_COLORS)]


def frame(axes: Axes, title: str, x_title: str = "time [s]") -> None:
    """Set titles and a light grid, and remove the frame."""
    axes.set_title(title, fontsize=14, color=INK, loc="left")
    axes.set_xlabel(x_title, fontsize=12.5, color=INK)
    axes.tick_params(labelsize=12, colors=INK, length=0, which="both")
    axes.grid(color=_RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)


def chart(title: str, x_title: str, y_title: str) -> go.Figure:
    """Make an empty figure."""
    figure = _styled(go.Figure()).update_xaxes(title_text=x_title).update_yaxes(title_text=y_title)
    return figure.update_layout(
        title={"text": f"<b>{plain(title)}</b>", "x": 0, "font": {"size": 15}}, margin={"t": 40}
    )


def over_time(title: str, y_title: str, start: float, end: float) -> go.Figure:
    """Make an empty figure over time from ``start`` to ``end``, s."""
    margin = 0.01 * (end - start)
    return chart(title, "time [s]", y_title).update_xaxes(range=[start - margin, end + margin], zeroline=False)


def charts_over_time(titles: Mapping[str, str]) -> go.Figure:
    """Make an empty figure of charts below each other, which zoom together over time: units of y by title."""
    figure = make_subplots(len(titles), shared_xaxes=True, vertical_spacing=0.2 / len(titles), subplot_titles=[*titles])
    for row, unit in enumerate(titles.values(), 1):
        figure.update_yaxes(title_text=unit, row=row)
    figure.update_xaxes(title_text="time [s]", row=len(titles))
    return _styled(figure).update_layout(height=_ROW * len(titles) + 80, margin={"t": 40})


def _styled(figure: go.Figure) -> go.Figure:
    figure.update_layout(template="plotly_white", showlegend=False, legend=_LEGEND, font=_FONT, hovermode="x unified")
    return figure.update_xaxes(automargin=True).update_yaxes(automargin=True, exponentformat="power")


def add_joints(
    figure: go.Figure,
    names: Sequence[str],
    units: Sequence[str],
    t: Array,
    values: Array,
    *,
    points: int = CURVE_POINTS,
    colors: Sequence[str] | None = None,
    kind: str = "",
    markers: bool = False,
    line: Mapping[str, Any] | None = None,
    row: int | None = None,
) -> None:
    """Draw one curve for each joint: values (N, n) over time.

    Args:
        units: of the values of each joint (n,).
        t: (N,) s.
        points: maximum number of points of a curve; of more samples, evenly spaced ones are drawn.
        colors: of the joints; by default by index.
        kind: of the curves, if a figure has several kinds, such as "measured"; these are not in the legend.
        markers: circles instead of lines, without hover text.
        line: line style besides the colour.
        row: chart of a stacked figure, from 1 on.
    """
    place: dict[str, Any] = {} if row is None else {"row": row, "col": 1}
    known = {trace.legendgroup for trace in figure.data if trace.showlegend}
    t, values = drawn(t, points), drawn(values, points)
    for i, (name, unit) in enumerate(zip(names, units, strict=True)):
        label = plain(f"{name}, {kind}" if kind else name)
        style: dict[str, Any] = {"mode": "lines", "line": {"width": 2, **(line or {})}}
        style["hovertemplate"] = f"{label}: %{{y:.4~g}} {unit}<extra></extra>"
        if markers:
            style = {"mode": "markers", "marker": {"symbol": "circle-open", "size": 7}, "hoverinfo": "skip"}
        style["line" if not markers else "marker"]["color"] = color(i) if colors is None else colors[i]
        listed = not kind and plain(name) not in known
        figure.add_scatter(
            x=t, y=short(values[:, i]), name=label, legendgroup=plain(name), showlegend=listed, **style, **place
        )
    figure.update_layout(showlegend=True)


def add_line(
    figure: go.Figure,
    x: NDArray[Any] | Sequence[float],
    y: Array,
    name: str,
    style: Mapping[str, Any],
    *,
    unit: str | None = None,
) -> None:
    """Draw a curve of a name that is markup; with a unit, a text at the pointer shows name, value and unit."""
    text = None if unit is None else f"{name}: %{{y:.4~g}} {unit}<extra></extra>"
    x, y = drawn(np.asarray(x)), drawn(y)
    figure.add_scatter(x=x, y=short(y), name=name, mode="lines", line={"width": 2, **style}, hovertemplate=text)


def plain(text: str) -> str:
    """Escape text, since Plotly reads some HTML in names."""
    return escape(text, quote=False)


def short(values: Array) -> NDArray[np.float32]:
    """Round numbers to halve their size on the page; more digits remain than a screen shows."""
    return values.astype(np.float32)


def drawn(values: NDArray[Any], points: int = CURVE_POINTS) -> NDArray[Any]:
    """Evenly spaced rows of values (N, …), from the first on, at most ``points``."""
    return values[:: max(1, -(-len(values) // points))]
