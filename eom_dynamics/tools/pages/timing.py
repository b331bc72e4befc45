# SPDX-License-Identifier: Apache-2.0
"""Charts of durations."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from ...arrays import Array
from .charts import chart, logarithmic, over_time, plain, short
from .style import color
from .thinning import thinned

# Durations that differ by more than this factor get a logarithmic axis.
_WIDE = 5.0


def by_percentile(title: str, seconds: Array, points: int, period: float | None = None) -> go.Figure:
    """Draw the distribution of durations by percentile, with room for the rare long ones.

    Args:
        seconds: (N,) durations, s; NaN if unknown.
        period: to compare with, s; drawn as a line.
    """
    figure = chart(title, "percentile", "µs")
    known = 1e6 * np.sort(seconds[~np.isnan(seconds)])
    count = max(1, len(known))
    # Equally many points from 0 to 90 %, from 90 to 99 %, and so on.
    rows = np.unique(count - np.geomspace(count, 1, min(points, count)).round().astype(int))[: len(known)]
    figure.add_scatter(
        x=short(1 - rows / count),
        y=short(known[rows]),
        line={"color": color(0), "width": 2.5},
        name=plain(title),
        hovertemplate="%{y:,.0f} µs<extra></extra>",
    )
    figure.update_xaxes(
        type="log",
        range=[0.08, float(np.log10(0.8 / count))],
        tickvals=[0.5, 0.1, 0.01, 0.001, 0.0001],
        ticktext=["50 %", "90 %", "99 %", "99.9 %", "99.99 %"],
    )
    return _compared(figure, known, period)


def over_run(
    title: str,
    t: Array,
    seconds: Array,
    start: float,
    end: float,
    *,
    points: int,
    group: str = "time",
    period: float | None = None,
) -> go.Figure:
    """Draw durations over the times at which they began: as points, or as a band if there are too many.

    Args:
        t: (N,) times at which they began, s.
        seconds: (N,) durations, s; NaN if unknown.
        start, end: of the run, s.
        period: to compare with, s; drawn as a line.
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
    return _compared(figure, 1e6 * seconds[~np.isnan(seconds)], period)


def _compared(figure: go.Figure, microseconds: Array, period: float | None) -> go.Figure:
    """Draw the period as a line, and choose a y axis for all durations."""
    figure.update_layout(hovermode="closest")
    times = microseconds[microseconds > 0]
    if period is not None:
        figure.add_hline(y=1e6 * period, line={"color": color(1), "width": 1.5, "dash": "dash"})
        times = np.append(times, 1e6 * period)
    if not len(times):
        return figure
    shortest, longest = float(np.min(times)), float(np.max(times))
    if longest > _WIDE * shortest:
        return logarithmic(figure, 0.7 * shortest, 1.4 * longest)
    return figure.update_yaxes(range=[0.95 * shortest, 1.05 * longest], tickformat=",")
