# SPDX-License-Identifier: Apache-2.0
"""HTML page of a fastest motion: speed along the path with its limits, and shares of all limits over time."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from ...arrays import Array
from ...elastic import ElasticArm
from ...elastic.bounds import Bounds
from ...trajectory import FastestMotion, sample
from ...trajectory.quantities import Load, quantities
from ..pages.charts import chart, over_time, place, plain, short
from ..pages.html_page import definitions, page, table
from ..pages.style import CURVE_POINTS, color
from ..pages.thinning import thinned

_RATE = 1000.0

# Active limits in the table, the longest ones.
_SHOWN = 40


def write_page(
    path: Path, arm: ElasticArm, limits: Bounds, motion: FastestMotion, waypoints: Array, about: Mapping[str, str]
) -> None:
    """Write the page.

    Args:
        path: of the file.
        arm: the arm.
        limits: that the motion meets.
        motion: the motion.
        waypoints: of the path (K, n).
        about: names and values for the foot of the page.
    """
    samples = sample(motion, _RATE)
    values = quantities(arm, Load(samples[1:]))
    shares = {
        quantity: np.abs(x) / limits.largest[quantity]
        for quantity, x in values.items()
        if np.any(limits.largest[quantity] < np.inf)
    }
    names = arm.robot.joint_names
    figures = {
        "speed": _speed(motion, samples.t, shares),
        "path": _path(names, samples.t, samples.q, motion, waypoints),
    }
    for quantity, share in shares.items():
        figures[quantity] = _shares(quantity.replace("_", " "), limits.names[quantity], samples.t, share)
    longest = sorted(motion.active, key=lambda each: each.start - each.end)[:_SHOWN]
    rows = [
        [each.name, each.quantity.replace("_", " "), f"{each.start:.3f}", f"{each.end:.3f}"] for each in sorted(longest)
    ]
    body = f"""<header>
<div class="soft">eom_dynamics retime</div>
<h1>The fastest motion of {escape(arm.robot.name)} along a path: {motion.duration:.4f} s</h1>
<p class="lead">From rest to rest, continuous from position to snap, within all limits.</p>
</header>
<section><h2>Speed along the path</h2>
<p class="soft">Colours are those of the limit that is used most at each point.</p>{place("speed", tall=True)}</section>
<section><h2>Joints</h2><p class="soft">Circles are the waypoints.</p>{place("path", tall=True)}</section>
<section><h2>Shares of limits</h2>{"".join(place(name) for name in shares)}</section>
<section><h2>Active limits</h2>
{table([["joint or motor", "limit", "from [s]", "to [s]"], *rows], text_columns=2)}</section>
<section><h2>About this run</h2>{definitions(about)}</section>
"""
    path.write_text(page(f"{arm.robot.name}: eom_dynamics retime", body, figures), encoding="utf-8")


def _speed(motion: FastestMotion, t: Array, shares: Mapping[str, Array]) -> go.Figure:
    """Rate of the path's parameter over the parameter, coloured by the quantity whose limit is used most."""
    parameter = np.interp(t, motion.t, motion.parameters)
    rate = np.gradient(parameter, t)
    used = np.argmax([np.max(share, axis=1) for share in shares.values()], axis=0)
    figure = chart("Rate of the path's parameter", "parameter of the path", "1/s")
    for k, quantity in enumerate(shares):
        own = used == k
        if np.any(own):
            shown = np.where(own, rate, np.nan)
            figure.add_scatter(
                x=short(parameter),
                y=short(shown),
                name=quantity.replace("_", " "),
                line={"color": color(k), "width": 3},
            )
    return figure.update_layout(showlegend=True)


def _path(names: tuple[str, ...], t: Array, q: Array, motion: FastestMotion, waypoints: Array) -> go.Figure:
    figure = over_time("Positions", "rad or m", t[0], t[-1])
    # A blended corner has no knot at its waypoint: the nearest sample is shown.
    nearest = [int(np.argmin(np.sum((q - each) ** 2, axis=1))) for each in waypoints]
    for i, name in enumerate(names):
        kept = thinned(q[:, i], CURVE_POINTS)
        figure.add_scatter(x=t[kept], y=short(q[kept, i]), name=plain(name), line={"color": color(i), "width": 2})
        figure.add_scatter(
            x=t[nearest],
            y=short(waypoints[:, i]),
            mode="markers",
            marker={"symbol": "circle-open", "color": color(i), "size": 7},
            showlegend=False,
            hoverinfo="skip",
        )
    return figure.update_layout(showlegend=True)


def _shares(title: str, names: tuple[str, ...], t: Array, share: Array) -> go.Figure:
    figure = over_time(f"{title[0].upper()}{title[1:]}", "share of the limit", t[0], t[-1])
    for i, name in enumerate(names):
        if np.any(share[:, i] > 0):
            kept = thinned(share[:, i], CURVE_POINTS)
            figure.add_scatter(
                x=t[kept], y=short(share[kept, i]), name=plain(name), line={"color": color(i), "width": 2}
            )
    return figure.update_layout(showlegend=True)
