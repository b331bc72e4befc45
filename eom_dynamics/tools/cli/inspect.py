# SPDX-License-Identifier: Apache-2.0
"""Show a robot as it was read: tree, joints, limits, mass, reach, merged links, assumptions, and operation counts.

With a configuration, show where its tools are; or print feedback gains for a bandwidth.
"""

from __future__ import annotations

import argparse
import os
import warnings
from dataclasses import dataclass, replace

import numpy as np

from ...arguments import option
from ...elastic import ElasticArm
from ...elastic.bounds import LimitCheck
from ...elastic.limit_violations import IN_DEGREES
from ...exceptions import RobotDescriptionWarning
from ...robot import Robot
from ...robot.formats import PARAMETER_FILE, format_of
from ...robot.model import ModelUncertainty
from ..inspect.facts import facts_result, pose_result, robot_facts, tool_poses
from ..inspect.gains import gain_facts, gain_result
from ..inspect.template import TEMPLATE, completion
from ..results import Result
from ..robot_options import RobotOptions
from .arguments import add_robot_arguments, load
from .options import add_options, options_of


@dataclass(frozen=True)
class _Options:
    """What to print in place of all of the robot.

    Attributes:
        template: print the template of a parameter file; for a robot of another format, one that adds springs and
            motors to it.
        pose: print the poses of the tools for these joint variables, rad or m, in the order of the joints.
        gains: print feedback gains of this bandwidth in Hz, and the margins of the loops, at rest at zero or --pose.
        uncertainty: standard deviation of stiffness, masses and rotor inertias in percent, in place of those in the
            file, for the expected errors with rigid, tau/K and flatness feedforward.
    """

    template: bool = option(False)
    pose: tuple[float, ...] | None = option(metavar="Q", nargs="+")
    gains: float | None = option(rule="positive", metavar="HZ")
    uncertainty: float | None = option(rule="[0, 100)", metavar="PERCENT")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot_arguments(parser, nargs="?")
    parser.add_argument("--json", action="store_true", help="print JSON, with null for infinite values")
    add_options(parser, _Options)


def run(options: argparse.Namespace) -> Result:
    if not options.template and options.robot is None:
        options.refuse("give ROBOT or --template")
    if options.template and options.robot is not None and format_of(options.robot) in (None, PARAMETER_FILE):
        options.refuse("--template goes with a .urdf or another file; parameter files have their springs and motors")
    if options.uncertainty is not None and (options.template or options.pose or options.gains):
        options.refuse("--uncertainty goes with none of --template, --pose and --gains")
    if options.template:
        if options.robot is None:
            return Result(verbatim=TEMPLATE)
        # Absolute, since the template may be written to any folder.
        path, part = os.path.abspath(options.robot), options_of(RobotOptions, options)
        return Result(verbatim=completion(load(options), path, part.as_json()))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RobotDescriptionWarning)
        robot = load(options)
    if options.pose is not None and len(options.pose) != robot.n:
        names = ", ".join(robot.joint_names)
        options.refuse(f"--pose requires {robot.n} joint variables, has {len(options.pose)}: {names}")
    texts = [str(warning.message) for warning in caught]
    texts += [] if options.pose is None else _out_of_range(robot, options)
    result = _facts(robot, options)
    return replace(result, warnings=texts, json={**result.json, "warnings": texts})


def _out_of_range(robot: Robot, options: argparse.Namespace) -> list[str]:
    """Warnings about joint variables beyond their ranges; those more than a turn beyond are refused."""
    q, check = np.array(options.pose), LimitCheck(ElasticArm(robot))
    texts = []
    for i, (joint, far) in enumerate(zip(robot.independent_joints, check.far(q).tolist(), strict=True)):
        x, lower, upper = q[i], check.lower[i], check.upper[i]
        unit = "m" if joint.type == "prismatic" else "rad"
        text = f"--pose: {joint.name} is {x:.4g} {unit}, its range {lower:.4g} to {upper:.4g} {unit}"
        if far:
            options.refuse(f"{text}, {IN_DEGREES}")
        if not lower <= x <= upper:
            texts.append(f"{text}, which it exceeds")
    return texts


def _facts(robot: Robot, options: argparse.Namespace) -> Result:
    q = np.zeros(robot.n) if options.pose is None else np.array(options.pose)
    if options.gains is not None:
        return gain_result(gain_facts(robot, q, options.gains))
    if options.pose is not None:
        return pose_result(tool_poses(robot, q))
    if options.uncertainty is not None:
        share = options.uncertainty / 100
        robot = replace(robot, uncertainty=ModelUncertainty(share, share, share))
    return facts_result(robot_facts(robot))
