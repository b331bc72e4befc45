# SPDX-License-Identifier: Apache-2.0
"""Charts of how long something took, a number of times."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from .charts import chart, logarithmic, over_time, short
from .style import color
from .thinning import thinned

Array = NDArray[np.float64]

# Durations that differ by more than this are drawn by their logarithms.
_WIDE = 5.0


def by_percentile(title: str, seconds: Array, points: int, period: float | None = None) -> go.Figure:
    """Durations (N,) by the share of them that are shorter, with room for the rare long ones.

    Args:
        title: of the chart.
        seconds: s; NaN where there is none.
        points: how many to draw, at most.
        period: what they are held against, s.
    """
    figure = chart(title, "share that is shorter", "µs")
    known = 1e6 * np.sort(seconds[~np.isnan(seconds)])
    count = max(1, len(known))
    # As many points for each tenth of what is left.
    rows = np.unique(count - np.geomspace(count, 1, min(points, count)).round().astype(int))[: len(known)]
    figure.add_scatter(
        x=short(1 - rows / count),
        y=short(known[rows]),
        line={"color": color(0), "width": 2.5},
        name=title,
        hovertemplate="%{y:,.0f} µs<extra></extra>",
    )
    figure.update_xaxes(
        type="log",
        range=[0.08, float(np.log10(0.8 / count))],
        tickvals=[0.5, 0.1, 0.01, 0.001, 0.0001],
        ticktext=["50 %", "90 %", "99 %", "99.9 %", "99.99 %"],
    )
    return _held_against(figure, known, period)


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
    """Durations over the times at which they began: as points, or where they are too many as a band.

    Args:
        title: of the chart.
        t: (N,) when they began, s.
        seconds: (N,) s; NaN where there is none.
        start, end: of the run, s.
        points: how many to draw, at most.
        group: of charts that zoom together.
        period: what they are held against, s.
    """
    figure = over_time(title, "µs", start, end, group=group)
    kept = thinned(seconds, points)
    # The least and the greatest of each run of samples, as points, would look like two kinds of them.
    band = {"mode": "lines", "line": {"color": color(0), "width": 1}}
    dots = {"mode": "markers", "marker": {"color": color(0), "size": 3, "opacity": 0.6}}
    figure.add_scatter(
        x=t[kept],
        y=short(1e6 * seconds[kept]),
        name=title,
        hovertemplate="%{y:,.0f} µs<extra></extra>",
        **(band if len(kept) < len(t) else dots),
    )
    return _held_against(figure, 1e6 * seconds[~np.isnan(seconds)], period)


def _held_against(figure: go.Figure, microseconds: Array, period: float | None) -> go.Figure:
    """With the period as a line, and an axis for all of the times."""
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
