# SPDX-License-Identifier: Apache-2.0
"""Find the fastest motion along a path through waypoints within all limits of a robot, and write it.

DIR gets index.html, trajectory.csv and setpoints.npz for the player, of 1000 samples a second, and
joint_trajectory.json, of 100.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Array
from ...control.trajectories import trajectory_fields
from ...elastic import ElasticArm
from ...elastic.limits import LimitCheck, arm_limits
from ...exceptions import TrajectoryError, require
from ...recordings.number_files import read_waypoints, write_states
from ...recordings.turns import turns_note, without_turns_between
from ...trajectory import FastestMotion, minimum_time, sample
from ...trajectory.fastest.motion import motion_rate
from ...trajectory.quantities import Load, quantities
from ..options import add_output_folder, add_robot_arguments, load, numeric, path
from ..pages import CURVE_POINTS, add_joints, add_line, chart, color, html_page, over_time, short
from ..quantity_text import position_units, together
from ..results import Result, ResultSection, TextTable, progress_bars
from ..writing import check_folder, whole_folder

if TYPE_CHECKING:
    import plotly.graph_objects as go

_RATE, _POINTS = 1000.0, 100.0  # of samples, and of the points of the JointTrajectory, Hz
_MOST_SAMPLES = 1_000_000  # largest number of samples in a file

# Fraction of the largest rate below which the most used limit is not shown: at rest, it is due to gravity.
_SLOW = 0.02
_SHOWN = 40  # maximum number of active limits in the table, longest first


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot_arguments(parser)
    what = (
        "waypoints: a .csv file with a column for each joint, a .json or .yaml file or a bag with a JointTrajectory or "
        "RobotTrajectory, or a .npz file with q; times are ignored"
    )
    parser.add_argument("path", metavar="PATH", type=path, help=what)
    parser.add_argument(
        "--tolerance",
        metavar="X",
        type=numeric("positive"),
        help="largest distance of the path from the waypoints, rad or m; default: by their digits and their noise",
    )
    add_output_folder(parser)


def run(options: argparse.Namespace) -> Result:
    require("retime")  # a bag with waypoints asks for its own
    robot = load(options)
    check_folder(options.output, force=options.force)
    waypoints = read_waypoints(options.path, robot.joint_names)
    waypoints, turns = without_turns_between(robot, waypoints, robot.joint_names)
    arm = ElasticArm(robot)
    with progress_bars("{task.completed:4.0%}") as bars:
        bar = bars.add_task(robot.name, total=1.0)
        motion = minimum_time(
            arm, waypoints, tolerance=options.tolerance, progress=lambda done: bars.update(bar, completed=done)
        )
    if motion.duration * _RATE > _MOST_SAMPLES:
        raise TrajectoryError(
            f"the motion takes {motion.duration:.6g} s, at {_RATE:g} Hz more than {_MOST_SAMPLES} samples; check the "
            "limits"
        )
    about = {"robot": f"{options.robot:.200}", "path": str(options.path), "waypoints": str(len(waypoints))}
    result = _result(arm, motion, waypoints, options.output / "index.html", about)
    result = replace(result, notes=turns_note(turns))
    with whole_folder(options.output, force=options.force) as aside:
        write_states(aside, sample(motion, _RATE), robot.joint_names)
        fields = trajectory_fields(motion, robot.joint_names, _POINTS)
        (aside / "joint_trajectory.json").write_text(f"{json.dumps(fields)}\n", encoding="utf-8")
        (aside / "index.html").write_text(html_page("retime", result), encoding="utf-8")
    return result


def _result(arm: ElasticArm, motion: FastestMotion, waypoints: Array, page: Path, about: Mapping[str, str]) -> Result:
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
                caption="The color is the most used limit at each point. Dashed: points at which a joint reaches its "
                "velocity limit.",
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
    """Path tolerance, and number of stops at reversals of the path."""
    assert motion.waypoints is not None
    least, most = np.min(motion.waypoints.tolerance), np.max(motion.waypoints.tolerance)
    range_ = f"{most:.2g}" if least == most else f"{least:.2g} to {most:.2g}"
    stops = len(motion.waypoints.parts) - 1
    stopped = f", {stops} {'stop' if stops == 1 else 'stops'} at reversals of the path" if stops else ""
    return f"{range_} {together(position_units(arm.robot))}{stopped}"


def _used(arm: ElasticArm, limits: LimitCheck, states: tuple[Array, ...]) -> dict[str, Array]:
    return {
        quantity: np.abs(x) / limits.largest[quantity]
        for quantity, x in quantities(arm, Load(states)).items()
        if limits.limited(quantity)
    }


def _speed(arm: ElasticArm, limits: LimitCheck, motion: FastestMotion) -> go.Figure:
    """Rate of the path parameter over the parameter, colored by the quantity with the most used limit."""
    # At the middle between knots, for accurate differences of the parameter.
    parameter, t = (0.5 * (x[1:] + x[:-1]) for x in (motion.parameters, motion.t))
    rate = np.diff(motion.parameters) / np.diff(motion.t)
    shares = _used(arm, limits, motion.derivatives(t))
    used = np.argmax([np.max(share, axis=1) for share in shares.values()], axis=0)
    moving = rate > _SLOW * np.max(rate)
    figure = chart("Rate of the path's parameter", "parameter of the path", "1/s")
    for k, quantity in enumerate(shares):
        active = used == k
        if np.any(active & moving):
            # Up to the first point of the next color, so that the curve has no gaps.
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
