# SPDX-License-Identifier: Apache-2.0
"""Find the periodic motion within the limits of a robot that is optimal for identifying its parameters, and write it.

The motion is a finite Fourier series that starts and ends each period at rest. OUT gets the bags setpoint and
joint_trajectory, joint_trajectory.json, trajectory.csv, setpoints.npz for the player, and excitation.json.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from ...arguments import option
from ...elastic.plausibility import objections
from ...exceptions import EomDynamicsError, RobotDescriptionError, require
from ...robot import Robot
from ..options import add_json, add_options, add_output_folder, add_robot_arguments, load, options_of
from ..results import Result, progress_bars
from ..writing import check_folder

# For a joint, or for all: one number, or one for each.
_Values = tuple[tuple[str | None, tuple[float, ...]], ...]


@dataclass(frozen=True)
class _Limits:
    """Limits that replace the robot file's: X for all joints, X,X,… for each, or JOINT=X for one.

    Attributes:
        lower: lower end of the position, rad or m; a negative one as --lower=-2.
        upper: upper end of the position, rad or m.
        velocity: largest velocity, rad/s or m/s.
        acceleration: largest acceleration, rad/s² or m/s².
        jerk: largest jerk, rad/s³ or m/s³.
        effort: largest effort, N m or N.
        effort_rate: largest effort rate, N m/s or N/s.
    """

    lower: _Values = option((), metavar="[JOINT=]X,…")
    upper: _Values = option((), metavar="[JOINT=]X,…")
    velocity: _Values = option((), metavar="[JOINT=]X,…")
    acceleration: _Values = option((), metavar="[JOINT=]X,…")
    jerk: _Values = option((), metavar="[JOINT=]X,…")
    effort: _Values = option((), metavar="[JOINT=]X,…")
    effort_rate: _Values = option((), metavar="[JOINT=]X,…")


@dataclass(frozen=True)
class _Options:
    """Optimisation and files.

    Attributes:
        spheres: spheres on links that must not overlap: a .urdf file with collision elements, or a YAML file
            with lists LINK: [[x, y, z, radius], …] in m; default: no collision check.
        candidates: number of random motions; the search starts from the best one.
        rate: rate of setpoints, Hz.
    """

    spheres: Path | None = option(metavar="FILE")
    candidates: int = option(100, rule="[1, 10000]", metavar="N")
    rate: float = option(1000.0, rule="positive", metavar="HZ")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from ...identification import ExcitationOptions

    add_robot_arguments(parser)
    add_output_folder(parser, "OUT")
    add_json(parser)
    for options in (ExcitationOptions, _Limits, _Options):
        add_options(parser, options)


def run(options: argparse.Namespace) -> Result:
    """Optimise, and write the motion; it fails if it exceeds a limit."""
    require("replay")
    from ...identification import Excitation, ExcitationOptions
    from ..excite import excitation_result, read_spheres, write_outputs

    robot = load(options, warn=False)
    if doubts := objections(robot):
        consequence = "correct it, or write implausible: accept into the robot's file if it is meant"
        raise RobotDescriptionError(f"{robot.name}: not plausible: {'; '.join(doubts)}; {consequence}")
    check_folder(options.output, force=options.force)
    limits: dict[str, dict[str, float]] = {name: {} for name in robot.joint_names}
    for quantity, values in vars(options_of(_Limits, options)).items():
        for name, value in _by_joint(robot, f"--{quantity.replace('_', '-')}", values).items():
            limits[name][quantity] = value
    spheres = read_spheres(options.spheres) if options.spheres else None
    settings = options_of(ExcitationOptions, options, limits=limits, spheres=spheres)
    with progress_bars("{task.fields[state]}") as bars:
        bar = bars.add_task(robot.name, total=1.0, state="code of the robot")
        task = Excitation(robot, settings)
        optimum = task.optimize(
            candidates=options.candidates,
            progress=lambda done, cost: bars.update(bar, completed=done, state=f"{done:4.0%}, cost {cost:.4f}"),
        )
        bars.update(bar, completed=1.0)
    write_outputs(options.output, task, optimum, rate=options.rate, force=options.force)
    return excitation_result(task, optimum, options.output)


def _by_joint(robot: Robot, flag: str, arguments: _Values) -> dict[str, float]:
    names = robot.joint_names
    result: dict[str, float] = {}
    for name, values in arguments:
        if name not in (None, *names):
            raise EomDynamicsError(f"{flag}: {robot.name} has no joint {name!r}; it has {', '.join(names)}")
        joints = names if name is None else (name,)
        if len(values) not in (1, len(joints)):
            raise EomDynamicsError(f"{flag}: {len(values)} numbers, must be 1 or {len(joints)}: {', '.join(joints)}")
        result |= dict(zip(joints, values * len(joints) if len(values) == 1 else values, strict=True))
    return result
