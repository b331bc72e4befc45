# SPDX-License-Identifier: Apache-2.0
"""Find the periodic motion within the limits of a robot that is optimal for identifying its parameters, and write it.

The motion is a finite Fourier series that starts and ends each period at rest. OUT gets the bags setpoint and
joint_trajectory, joint_trajectory.json, trajectory.csv, setpoints.npz for the player, and excitation.json.
"""

from __future__ import annotations

import argparse

from ...exceptions import EomDynamicsError
from ...extras import require
from ...robot import Robot
from ..results import Result
from ..writing import check_folder
from .arguments import (
    add_choice,
    add_hz,
    add_json,
    add_number,
    add_output_folder,
    add_repeated,
    add_robot_arguments,
    load,
    not_negative,
    number,
    path,
    share,
    whole_number,
)
from .console import progress_bars

SUMMARY = "find the motion within limits that is optimal for identifying a robot's parameters"

_LIMITS = {
    "lower": "lower end of the position, rad or m",
    "upper": "upper end of the position, rad or m",
    "velocity": "largest velocity, rad/s or m/s",
    "acceleration": "largest acceleration, rad/s² or m/s²",
    "jerk": "largest jerk, rad/s³ or m/s³",
    "effort": "largest effort, N m or N",
    "effort_rate": "largest effort rate, N m/s or N/s",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_robot_arguments(parser)
    add_output_folder(parser, "OUT")
    motion = parser.add_argument_group("motion")
    add_number(motion, "--period", "S", 10.0, "s")
    add_number(motion, "--harmonics", "L", 8, "of 1/period, from 3", whole_number)
    add_number(motion, "--periods", "N", 1, "number of periods", whole_number)
    add_hz(motion, "--rate", 1000.0, "of setpoints")
    add_hz(motion, "--waypoints", 100.0, "rate of the points of the JointTrajectory")
    add_choice(motion, "--format", ("mcap", "sqlite3"), "of the bag")
    limits = parser.add_argument_group(
        "limits, in place of those in the robot's file",
        "X for all joints, X,X,… for each, or JOINT=X for one; may be repeated. Write negative ones as --lower=-2",
    )
    for name, what in _LIMITS.items():
        add_repeated(limits, f"--{name.replace('_', '-')}", "[JOINT=]X", _values, what)
    add_number(limits, "--share", "X", 0.9, "share of all limits to use", share)
    limits.add_argument(
        "--spheres",
        metavar="FILE",
        type=path,
        help="spheres on links that must not overlap: those of the collision elements of a .urdf file, or a YAML file "
        "with lists LINK: [[x, y, z, radius], …] in m; default: no collision check",
    )
    add_number(limits, "--clearance", "M", 0.0, "between spheres, m", not_negative)
    search = parser.add_argument_group("optimisation")
    terms = "parameter of each joint to identify besides the inertias, such as viscous or rotor_inertia; repeatable"
    add_repeated(search, "--term", "NAME", str, terms)
    noise = "standard deviation of measured efforts, up to a factor; default: proportional to the limits of effort"
    add_repeated(search, "--noise", "[JOINT=]X", _values, noise)
    weight = "weight of the condition number beside the determinant of the information; with 0 the motion is D-optimal"
    add_number(search, "--condition-weight", "C", 2.0, weight, not_negative)
    candidates = "number of random motions, the best of which is the start"
    add_number(search, "--candidates", "N", 100, candidates, whole_number)
    add_number(search, "--iterations", "N", 300, "at most", whole_number)
    seed = number(lambda x: x >= 0 and x == int(x), "a whole number from 0 on")
    add_number(search, "--seed", "N", 0, "of the random motions", seed)
    add_json(parser)


def run(options: argparse.Namespace) -> Result:
    """Optimise, and write the motion; it fails if it exceeds a limit."""
    require("replay")
    # After the check for the libraries that these import.
    from ...bags import Storage
    from ...identification.excitation import Excitation, ExcitationBounds, ExcitationCriterion, ExcitationSeries
    from ..excite.results import excitation_result, write_outputs
    from ..excite.spheres import read_spheres

    robot = load(options)
    check_folder(options.output, force=options.force)
    limits: dict[str, dict[str, float]] = {name: {} for name in robot.joint_names}
    for quantity in _LIMITS:
        for name, value in _by_joint(robot, f"--{quantity.replace('_', '-')}", getattr(options, quantity)).items():
            limits[name][quantity] = value
    noise = _by_joint(robot, "--noise", options.noise)
    if noise and len(noise) != robot.n:
        lacking = ", ".join(name for name in robot.joint_names if name not in noise)
        raise EomDynamicsError(f"--noise: no number for {lacking}; give one for each joint")
    task = Excitation(
        robot,
        series=ExcitationSeries(options.period, options.harmonics, options.periods),
        bounds=ExcitationBounds(
            limits, options.share, read_spheres(options.spheres) if options.spheres else None, options.clearance
        ),
        criterion=ExcitationCriterion(
            options.term, [noise[name] for name in robot.joint_names] if noise else None, options.condition_weight
        ),
    )
    with progress_bars("{task.fields[state]}") as bars:
        bar = bars.add_task(robot.name, total=1.0, state="random motions")
        found = task.optimize(
            candidates=options.candidates,
            iterations=options.iterations,
            seed=int(options.seed),
            progress=lambda done, cost: bars.update(bar, completed=done, state=f"{done:4.0%}, cost {cost:.4f}"),
        )
        bars.update(bar, completed=1.0)
    write_outputs(
        options.output,
        task,
        found,
        rate=options.rate,
        waypoints=options.waypoints,
        storage=Storage(options.format),
        force=options.force,
    )
    return excitation_result(task, found, options.output)


_finite = number(lambda x: True, "numbers, or JOINT=number")

_Values = tuple[str, list[float]]


def _values(text: str) -> _Values:
    """Name of a joint, or an empty text for all joints, and one number or several."""
    name, assigned, rest = text.rpartition("=")
    values = [_finite(each) for each in rest.split(",")]
    if assigned and (not name or len(values) != 1):
        raise argparse.ArgumentTypeError(f"must be numbers, or JOINT=number, is {text!r}")
    return name, values


def _by_joint(robot: Robot, flag: str, given: list[_Values]) -> dict[str, float]:
    """Numbers by joint; later ones take the place of earlier ones."""
    names, result = robot.joint_names, {}
    for name, values in given:
        if name:
            if name not in names:
                raise EomDynamicsError(f"{flag}: {robot.name} has no joint {name!r}; it has {', '.join(names)}")
            result[name] = values[0]
        elif len(values) in (1, robot.n):
            result |= dict(zip(names, values * robot.n if len(values) == 1 else values, strict=True))
        else:
            raise EomDynamicsError(f"{flag}: {len(values)} numbers, must be 1 or {robot.n}: {', '.join(names)}")
    return result
