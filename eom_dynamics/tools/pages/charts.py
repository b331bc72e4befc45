# SPDX-License-Identifier: Apache-2.0
"""Charts: Plotly figures, with the metadata that the page's script reads, and the style of charts and pictures.

Curves of one joint are one group of the legend, by which they are shown and hidden. ``meta`` of a figure names the
group of charts that zoom together along x; ``meta`` of a curve marks limits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from ...arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Paul Tol's scheme "bright": seven colours that colour-blind readers tell apart, on light and on dark ground.
# The grey is darker than his, so that a line is visible on white.
_COLORS = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#8A8A8A")

INK = "#30363d"
"""Text of a picture on light ground."""

# Grid of a picture on light ground.
_RULE = "#d8dee4"

CURVE_POINTS = 1000
"""Points of a curve: more than a screen resolves, few enough for a small page."""

MARKERS = 60
"""Markers along a curve: few enough to keep the line below visible."""

LIMITS = "limits"
"""Group of the legend that shows and hides limits."""

_AT_TOP_LEFT = {"font": {"size": 15}, "x": 0, "y": 1, "yanchor": "top", "pad": {"t": 8}}
_DASHED = {"dash": "dash", "width": 1}
_WIDE = 5.0  # durations that differ by more than this factor get a logarithmic axis


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


def chart(title: str, x_title: str, y_title: str, *, group: str = "") -> go.Figure:
    """Make an empty figure; charts of one ``group`` show the same range of x."""
    return go.Figure(
        layout={
            "template": "none",
            "title": {"text": f"<b>{plain(title)}</b>", **_AT_TOP_LEFT},
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
        markers: circles instead of lines, without hover text.
        line: line style besides the colour.
    """
    shades = [color(i) for i in range(len(names))] if colors is None else colors
    for i, (name, unit, shade) in enumerate(zip(names, units, shades, strict=True)):
        label = f"{name}, {kind}" if kind else name
        style: dict[str, Any]
        if markers:
            rows = np.arange(0, len(t), max(1, len(t) // points))
            marker = {"symbol": "circle-open", "color": shade, "size": 7}
            style = {"mode": "markers", "marker": marker, "hoverinfo": "skip"}
        else:
            rows, text = thinned(values[:, i], points), f"{plain(label)}: %{{y:.4~g}} {unit}<extra></extra>"
            style = {"mode": "lines", "line": {"color": shade, "width": 2, **(line or {})}, "hovertemplate": text}
        x, y, group = t[rows], short(values[rows, i]), _group(name)
        figure.add_scatter(x=x, y=y, name=plain(label), legendgroup=group, showlegend=not kind, **style)
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
    """Draw limits, lower and upper by joint, of the joints that a figure over time shows; infinite for none.

    The legend has an entry that shows and hides them.
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


def thinned(values: Array, points: int) -> NDArray[np.int_]:
    """Select samples to draw.

    The samples are cut into runs of equal length. The minimum and the maximum of each run are kept, so that no peak is
    lost, and so are the first and the last sample. A run without a number leaves a gap.

    Returns increasing indices (K,) of values (N,), NaN if unknown: all if N <= ``points``, else K <= points, >= 4.
    """
    count = len(values)
    if count <= points:
        return np.arange(count)
    runs = (points - 2) // 2
    length = -(-count // runs)
    padded = np.full(-(-count // length) * length, np.nan)
    padded[:count] = values
    table = padded.reshape(-1, length)
    starts = np.arange(len(table)) * length
    unknown = np.isnan(table)
    least = starts + np.argmin(np.where(unknown, np.inf, table), axis=1)
    greatest = starts + np.argmax(np.where(unknown, -np.inf, table), axis=1)
    return np.unique(np.concatenate([[0], least, greatest, [count - 1]]))


def over_run(
    title: str, t: Array, seconds: Array, start: float, end: float, *, points: int, group: str = "time"
) -> go.Figure:
    """Draw durations (N,), s, NaN if unknown, over times (N,), s, from the start to the end of a run.

    They are points, or a band if there are too many.
    """
    figure = over_time(title, "µs", start, end, group=group)
    kept = thinned(seconds, points)
    # As points, the minima and maxima of runs of samples would look like two kinds of durations.
    band = {"mode": "lines", "line": {"color": color(0), "width": 1}}
    dots = {"mode": "markers", "marker": {"color": color(0), "size": 3, "opacity": 0.6}}
    figure.add_scatter(
        x=t[kept],
        y=short(1e6 * seconds[kept]),
        name=plain(title),
        hovertemplate="%{y:,.0f} µs<extra></extra>",
        **(band if len(kept) < len(t) else dots),
    )
    figure.update_layout(hovermode="closest")
    times = 1e6 * seconds[seconds > 0]
    if not len(times):
        return figure
    shortest, longest = float(np.min(times)), float(np.max(times))
    if longest > _WIDE * shortest:
        return logarithmic(figure, 0.7 * shortest, 1.4 * longest)
    return figure.update_yaxes(range=[0.95 * shortest, 1.05 * longest], tickformat=",")
