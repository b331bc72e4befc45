# SPDX-License-Identifier: Apache-2.0
"""Base of every chart: a Plotly figure, with the metadata that the page's script reads.

Curves of one joint are one group of the legend, by which they are shown and hidden. ``meta`` of a figure names the
group of charts that zoom together along x; ``meta`` of a curve marks limits.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from ...arrays import Array
from .style import color
from .thinning import thinned

LIMITS = "limits"
"""Group of the legend that shows and hides limits."""

_DASHED = {"dash": "dash", "width": 1}


def chart(title: str, x_title: str, y_title: str, *, group: str = "") -> go.Figure:
    """Make an empty figure; charts of one ``group`` show the same range of x."""
    return go.Figure(
        layout={
            "template": "none",
            "title": {
                "text": f"<b>{plain(title)}</b>",
                "font": {"size": 15},
                "x": 0,
                "y": 1,
                "yanchor": "top",
                "pad": {"t": 8},
            },
            "meta": {"group": group},
            "margin": {"l": 64, "r": 10, "t": 40, "b": 42},
            "showlegend": False,
            "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "tracegroupgap": 0},
            "hovermode": "x unified",
            "font": {"size": 13, "family": "system-ui, -apple-system, Segoe UI, Roboto, sans-serif"},
            "xaxis": {"title": {"text": x_title, "standoff": 6}, "automargin": True},
            "yaxis": {"title": {"text": y_title, "standoff": 6}, "automargin": True, "exponentformat": "power"},
        }
    )


def over_time(title: str, y_title: str, start: float, end: float, *, group: str = "time") -> go.Figure:
    """Make an empty figure over time from ``start`` to ``end``, s."""
    margin = 0.01 * (end - start)
    figure = chart(title, "time [s]", y_title, group=group)
    return figure.update_xaxes(range=[start - margin, end + margin], zeroline=False)


def logarithmic(figure: go.Figure, low: float, high: float) -> go.Figure:
    """Give a figure a logarithmic y axis from ``low`` to ``high``, both positive, labelled with plain numbers."""
    digits = (1,) if high > 1e3 * low else (1, 2, 5)
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = 1 + len(exponents) // 10
    ticks = [digit * 10.0**exponent for exponent in exponents if exponent % every == 0 for digit in digits]
    return figure.update_yaxes(
        type="log",
        range=[math.log10(low), math.log10(high)],
        tickvals=ticks,
        ticktext=[f"{tick:,.0f}" if 10 <= tick < 1e6 else f"{tick:g}" for tick in ticks],
    )


def add_joints(
    figure: go.Figure,
    names: Sequence[str],
    units: Sequence[str],
    t: Array,
    values: Array,
    *,
    points: int,
    colors: Sequence[str] | None = None,
    kind: str = "",
    of: Sequence[str] | None = None,
    markers: bool = False,
    line: Mapping[str, Any] | None = None,
) -> None:
    """Draw one curve for each joint: values (N, n) over time.

    Args:
        units: of the values of each joint (n,).
        t: (N,) s.
        points: maximum number of points of a curve.
        colors: of the joints; by default those of their indices.
        kind: of the curves, if a figure has several kinds, such as "measured".
        of: joint by which the legend shows and hides each curve, for curves of motors; by default ``names``.
        markers: circles instead of lines, without hover text.
        line: line style besides the colour.
    """
    shades = [color(i) for i in range(len(names))] if colors is None else colors
    joints = names if of is None else of
    for i, (name, joint, unit, shade) in enumerate(zip(names, joints, units, shades, strict=True)):
        label = f"{name}, {kind}" if kind else name
        style: dict[str, Any] = (
            {
                "mode": "markers",
                "marker": {"symbol": "circle-open", "color": shade, "size": 7},
                "hoverinfo": "skip",
            }
            if markers
            else {
                "mode": "lines",
                "line": {"color": shade, "width": 2, **(line or {})},
                "hovertemplate": f"{plain(label)}: %{{y:.4~g}} {unit}<extra></extra>",
            }
        )
        rows = np.arange(0, len(t), max(1, len(t) // points)) if markers else thinned(values[:, i], points)
        figure.add_scatter(
            x=t[rows],
            y=short(values[rows, i]),
            name=plain(label),
            legendgroup=_group(joint),
            showlegend=not kind,
            **style,
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
    mode: str = "lines",
) -> None:
    """Draw a curve of a name that is markup; with a unit, a text beside the pointer shows name, value and unit."""
    text = None if unit is None else f"{name}: %{{y:.4~g}} {unit}<extra></extra>"
    figure.add_scatter(x=x, y=short(y), name=name, mode=mode, line={"width": 2, **style}, hovertemplate=text)


def add_limits(figure: go.Figure, limits: Mapping[str, tuple[float, float]], colors: Mapping[str, str]) -> None:
    """Draw the limits of the joints that a figure shows; its legend has an entry that shows and hides them.

    Args:
        figure: over time, with curves.
        limits: lower and upper limit by joint; infinite if there is none.
        colors: by joint.
    """
    groups = {trace.legendgroup for trace in figure.data}
    finite = {joint: [bound for bound in bounds if np.isfinite(bound)] for joint, bounds in limits.items()}
    for joint, bounds in finite.items():
        if bounds and _group(joint) in groups:
            figure.add_scatter(
                x=[*figure.layout.xaxis.range, None] * len(bounds),
                y=[value for bound in bounds for value in (bound, bound, None)],
                name=f"{plain(joint)}, limits",
                legendgroup=_group(joint),
                meta=LIMITS,
                visible=False,
                showlegend=False,
                hoverinfo="skip",
                mode="lines",
                line={**_DASHED, "color": colors[joint]},
            )
    if any(trace.meta == LIMITS for trace in figure.data):
        line = {**_DASHED, "color": "gray"}
        figure.add_scatter(x=[None], y=[None], name=LIMITS, legendgroup=LIMITS, mode="lines", line=line)


def _group(joint: str) -> str:
    return f"joint {joint}"  # LIMITS may be the name of a joint


def plain(text: str) -> str:
    """Escape text, since Plotly reads some HTML in names."""
    return escape(text, quote=False)


def short(values: Array) -> NDArray[np.float32]:
    """Round numbers to halve their size on the page; more digits remain than a screen shows."""
    return values.astype(np.float32)


def place(name: str, *, tall: bool = False) -> str:
    """Return the HTML element in which the page's script draws a figure."""
    return f'<div class="chart{" tall" if tall else ""}" data-chart="{escape(name)}"></div>'


def as_json(figures: Mapping[str, go.Figure]) -> str:
    """Return figures as JSON; Plotly escapes all characters that would be markup in a script element."""
    members = (f"{json.dumps(name)}: {figure.to_json()}" for name, figure in figures.items())
    return f"{{{', '.join(members)}}}"
