# SPDX-License-Identifier: Apache-2.0
"""The base of every chart: a Plotly figure with its title and what the page's script does with it.

Plotly keeps what it does not know in ``meta``: that of a figure holds its title and its group, whose charts zoom
together along x; that of a trace the joint that it belongs to, by which it is picked.
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

from .style import color
from .thinning import thinned

Array = NDArray[np.float64]


LIMITS = "limits"
"""Group of curves that are limits."""


def chart(title: str, x_title: str, y_title: str, *, group: str = "") -> go.Figure:
    """An empty figure with its titles; charts of one group share what is shown of x."""
    return go.Figure(
        layout={
            "template": "none",
            "meta": {"title": title, "group": group},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "margin": {"l": 64, "r": 10, "t": 8, "b": 42},
            "showlegend": False,
            "hovermode": "x unified",
            "font": {"size": 13, "family": "system-ui, -apple-system, Segoe UI, Roboto, sans-serif"},
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
            "xaxis": {"title": {"text": x_title, "standoff": 6}},
            "yaxis": {"title": {"text": y_title, "standoff": 6}, "automargin": True, "exponentformat": "power"},
        }
    )


def over_time(title: str, y_title: str, start: float, end: float, *, group: str = "time") -> go.Figure:
    """An empty figure over time from ``start`` to ``end``, s."""
    margin = 0.01 * (end - start)
    figure = chart(title, "time [s]", y_title, group=group)
    return figure.update_xaxes(range=[start - margin, end + margin], zeroline=False)


def logarithmic(figure: go.Figure, low: float, high: float) -> go.Figure:
    """Give a figure a logarithmic axis of y from ``low`` to ``high``, both above 0, with plain numbers on it."""
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
    """Draw one curve for each joint.

    Args:
        figure: over time.
        names: of the joints (n,).
        units: of the values of each joint (n,).
        t: (N,) s.
        values: (N, n).
        points: of a curve, at most.
        colors: of the joints; by default those of their places.
        kind: what the curves are, where a figure has several kinds.
        of: the joints by which curves are picked, of motors for one; by default names.
        markers: circles instead of lines, that are not read by pointing at them.
        line: what its line has beside its colour.
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
        figure.add_scatter(x=t[rows], y=short(values[rows, i]), name=plain(label), meta=joint, **style)


def add_limits(figure: go.Figure, limits: Mapping[str, tuple[float, float]], colors: Mapping[str, str]) -> None:
    """Draw the limits of joints as bands.

    The page shows them on demand. It fills the band of a joint that is seen alone: those of many on each other would be
    a grey ground.

    Args:
        figure: over time, with curves.
        limits: of y by joint; infinite where there is none.
        colors: by joint.
    """
    start, end = figure.layout.xaxis.range
    # The sides of a band are no limits, and stay out of sight.
    start, end = start - (end - start), end + (end - start)
    within = [bound for band in limits.values() for bound in band if np.isfinite(bound)]
    if not within:
        return
    values = np.concatenate([within, *(trace.y for trace in figure.data)])
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    margin = 0.06 * (high - low) or 1.0
    figure.layout.meta = {**figure.layout.meta, "limits": [low - margin, high + margin]}
    outside = 100 * margin
    for joint, (lower, upper) in limits.items():
        if not np.isfinite([lower, upper]).any():
            continue
        bottom, top = max(lower, low - outside), min(upper, high + outside)
        figure.add_scatter(
            x=[start, end, end, start, start],
            y=[bottom, bottom, top, top, bottom],
            mode="lines",
            fill="toself",
            fillcolor=f"rgba{(*bytes.fromhex(colors[joint][1:]), 0.1)}",
            line={"color": colors[joint], "width": 1, "dash": "dash"},
            opacity=0.6,
            visible=False,
            hoverinfo="skip",
            legendgroup=LIMITS,
            showlegend=False,
            name=f"{plain(joint)}, limits",
            meta=joint,
        )


def plain(text: str) -> str:
    """Text that Plotly, which reads some HTML in names, shows as it is."""
    return escape(text, quote=False)


def short(values: Array) -> NDArray[np.float32]:
    """Half the size on the page, and still more digits than a screen shows."""
    return values.astype(np.float32)


def place(name: str, figure: go.Figure, *, tall: bool = False) -> str:
    """The HTML element in which the page's script draws a figure, with its title and its buttons."""
    limits = '<button data-do="limits" aria-pressed="false" title="show or hide limits">limits</button>'
    return (
        f'<figure class="chart{" tall" if tall else ""}" data-chart="{escape(name)}"><figcaption>'
        f"<h3>{escape(figure.layout.meta['title'])}</h3>"
        f'<span class="tools">{limits if "limits" in figure.layout.meta else ""}'
        '<button data-do="reset" title="show all of it again">reset</button>'
        '<button data-do="png" title="download this figure as shown">PNG</button>'
        '<button data-do="csv" title="download the points that are shown">CSV</button></span></figcaption>'
        '<div class="plot"></div></figure>'
    )


def as_json(figures: Mapping[str, go.Figure]) -> str:
    """Figures as JSON, in which Plotly leaves no character that is markup to a script element."""
    members = (f"{json.dumps(name)}: {figure.to_json()}" for name, figure in figures.items())
    return f"{{{', '.join(members)}}}"
