# SPDX-License-Identifier: Apache-2.0
"""Fastest motion along a path: charts over time, and the active limits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from ..arrays import Array
from ..elastic import ElasticArm
from ..elastic.limits import LimitCheck, arm_limits
from ..trajectory import FastestMotion, sample
from ..trajectory.fastest.motion import motion_rate
from ..trajectory.quantities import Load, quantities
from .pages.charts import CURVE_POINTS, add_joints, add_line, chart, color, over_time, short
from .quantity_text import position_units, together
from .results import Result, ResultSection, TextTable

_RATE = 1000.0

# Share of the largest rate below which the limit that is used most is not shown: at rest it is gravity's.
_SLOW = 0.02
_SHOWN = 40  # active limits in the table, the longest ones


def fastest_motion_result(
    arm: ElasticArm, motion: FastestMotion, waypoints: Array, page: Path, about: Mapping[str, str]
) -> Result:
    """Make the result of a fastest motion along waypoints (K, n), within the limits of an arm."""
    limits = arm_limits(arm)
    samples = sample(motion, motion_rate(motion, _RATE))
    charts = {
        quantity: _shares(quantity.replace("_", " "), limits.names[quantity], samples.t, share)
        for quantity, share in _used(arm, limits, samples[1:]).items()
    }
    path = _path(arm, samples.t, samples.q, waypoints)
    longest = sorted(motion.active, key=lambda limit: limit.start - limit.end)[:_SHOWN]
    rows = [[x.name, x.quantity.replace("_", " "), f"{x.start:.3f}", f"{x.end:.3f}"] for x in sorted(longest)]
    used = sorted({f"{limit.quantity} of {limit.name}" for limit in motion.active})
    active = TextTable(("joint or motor", "limit", "from [s]", "to [s]"), rows, text_columns=2, page_only=True)
    return Result(
        title=f"The fastest motion of {arm.robot.name} along a path",
        lead=["From rest to rest, continuous from position to snap, within all limits."],
        facts={
            "duration": f"{motion.duration:.4f} s",
            "path tolerance": f"{_tolerance(arm, motion)}",
            "time to compute": f"{motion.computing_time:.3f} s",
        },
        sections=[
            ResultSection(
                "Speed along the path",
                caption="Colours are those of the limit that is used most at each point. Dashed: where a joint reaches "
                "its velocity limit.",
                charts={"speed": _speed(arm, limits, motion)},
            ),
            ResultSection("Joints", caption="Circles are the waypoints.", charts={"path": path}),
            ResultSection("Shares of limits", charts=charts),
            ResultSection("Active limits", lines=[", ".join(used) or "none"], tables=[active]),
        ],
        files={"page": page},
        about=about,
    )


def _tolerance(arm: ElasticArm, motion: FastestMotion) -> str:
    """Path tolerance, and stops where the path turns back on the spot."""
    assert motion.waypoints is not None
    least, most = np.min(motion.waypoints.tolerance), np.max(motion.waypoints.tolerance)
    range_ = f"{most:.2g}" if least == most else f"{least:.2g} to {most:.2g}"
    stops = len(motion.waypoints.parts) - 1
    stopped = f", {stops} {'stop' if stops == 1 else 'stops'} where it turns back on the spot" if stops else ""
    return f"{range_} {together(position_units(arm.robot))}{stopped}"


def _used(arm: ElasticArm, limits: LimitCheck, states: tuple[Array, ...]) -> dict[str, Array]:
    return {
        quantity: np.abs(x) / limits.largest[quantity]
        for quantity, x in quantities(arm, Load(states)).items()
        if limits.limited(quantity)
    }


def _speed(arm: ElasticArm, limits: LimitCheck, motion: FastestMotion) -> go.Figure:
    """Rate of the path's parameter over the parameter, coloured by the quantity with the most used limit."""
    # Between knots, where differences of the parameter are accurate.
    parameter, t = (0.5 * (x[1:] + x[:-1]) for x in (motion.parameters, motion.t))
    rate = np.diff(motion.parameters) / np.diff(motion.t)
    shares = _used(arm, limits, motion.derivatives(t))
    used = np.argmax([np.max(share, axis=1) for share in shares.values()], axis=0)
    moving = rate > _SLOW * np.max(rate)
    figure = chart("Rate of the path's parameter", "parameter of the path", "1/s")
    for k, quantity in enumerate(shares):
        active = used == k
        if np.any(active & moving):
            # Up to the first point of the next colour, so that the curve has no gaps.
            active[1:] |= active[:-1]
            label = quantity.replace("_", " ")
            add_line(figure, short(parameter), np.where(active, rate, np.nan), label, {"color": color(k), "width": 3})
    if "velocity" in shares:
        most = np.where(moving, rate / np.max(shares["velocity"], axis=1), np.nan)
        style = {"color": color(list(shares).index("velocity")), "width": 1, "dash": "dash"}
        add_line(figure, short(parameter), most, "limit of velocity", style)
    return figure.update_layout(showlegend=True).update_yaxes(range=[0.0, 1.5 * float(np.max(rate))])


def _path(arm: ElasticArm, t: Array, q: Array, waypoints: Array) -> go.Figure:
    names, units = arm.robot.joint_names, position_units(arm.robot)
    figure = over_time("Positions", together(units), t[0], t[-1])
    nearest = [int(np.argmin(np.sum((q - waypoint) ** 2, axis=1))) for waypoint in waypoints]
    add_joints(figure, names, units, t, q, points=CURVE_POINTS)
    add_joints(figure, names, units, t[nearest], waypoints, points=len(nearest), kind="waypoint", markers=True)
    return figure


def _shares(title: str, names: tuple[str, ...], t: Array, share: Array) -> go.Figure:
    figure = over_time(f"{title[0].upper()}{title[1:]}", "share of the limit", t[0], t[-1])
    used = np.flatnonzero(np.any(share > 0, axis=0)).tolist()
    colors = [color(i) for i in used]
    shown = [names[i] for i in used]
    add_joints(figure, shown, [""] * len(used), t, share[:, used], points=CURVE_POINTS, colors=colors)
    return figure
