# SPDX-License-Identifier: Apache-2.0
"""Find the fastest motion along a path through waypoints within all limits of a robot, and write it.

DIR gets index.html, trajectory.csv and setpoints.npz for the player, of 1000 samples a second, and
joint_trajectory.json, of 100.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

from ...exceptions import TrajectoryError, require
from ..options import add_output_folder, add_robot_arguments, load, numeric, path
from ..results import Result, progress_bars
from ..writing import check_folder, whole_folder

_RATE, _POINTS = 1000.0, 100.0  # of samples, and of the points of the JointTrajectory, Hz
_MOST_SAMPLES = 1_000_000  # largest number of samples in a file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot_arguments(parser)
    what = (
        "waypoints: a .csv file with a column for each joint, a .json file with joint_names and points with "
        "positions, a .npz file with q, or a bag with a JointTrajectory, whose times are ignored"
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
    from ...control.trajectories import trajectory_fields
    from ...elastic import ElasticArm
    from ...recordings.number_files import read_waypoints, write_states
    from ...recordings.turns import turns_note, without_turns_between
    from ...trajectory import minimum_time, sample
    from ..pages import html_page
    from ..retime import fastest_motion_result

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
    result = fastest_motion_result(arm, motion, waypoints, options.output / "index.html", about)
    result = replace(result, notes=turns_note(turns))
    with whole_folder(options.output, force=options.force) as aside:
        write_states(aside, sample(motion, _RATE), robot.joint_names)
        fields = trajectory_fields(motion, robot.joint_names, _POINTS)
        (aside / "joint_trajectory.json").write_text(f"{json.dumps(fields)}\n", encoding="utf-8")
        (aside / "index.html").write_text(html_page("retime", result), encoding="utf-8")
    return result
