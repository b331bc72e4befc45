# SPDX-License-Identifier: Apache-2.0
"""Show a robot as it was read: tree, joints, limits, mass, reach, merged links, assumptions, and operation counts.

With a configuration, show where its tools are.
"""

from __future__ import annotations

import argparse
import json
import warnings

import numpy as np

from ...exceptions import RobotDescriptionWarning
from ..inspect.facts import robot_facts
from ..inspect.poses import as_table, tool_poses
from ..inspect.template import TEMPLATE
from ..inspect.text import as_text
from .console import complain
from .robot_arguments import add_robot_arguments, load

SUMMARY = "show a robot as it was read from its description"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of the command."""
    add_robot_arguments(parser, nargs="?")
    parser.add_argument("--template", action="store_true", help="print the template of a parameter file, and no robot")
    parser.add_argument(
        "--pose",
        nargs="+",
        type=float,
        metavar="Q",
        help="print the poses of the tools for these joint variables, rad or m, in the order of the joints",
    )
    parser.set_defaults(refuse=parser.error)
    parser.add_argument("--json", action="store_true", help="print JSON, with null for infinite values")


def run(options: argparse.Namespace) -> int:
    """Print the robot; returns the exit code.

    Raises:
        RobotDescriptionError: the robot cannot be used as described.
    """
    if options.template == (options.robot is not None):
        options.refuse("give ROBOT or --template")
    if options.template:
        print(TEMPLATE, end="")
        return 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RobotDescriptionWarning)
        robot = load(options)
    if options.pose is not None and len(options.pose) != robot.n:
        names = ", ".join(robot.joint_names)
        options.refuse(f"--pose requires {robot.n} joint variables, has {len(options.pose)}: {names}")
    texts = [str(warning.message) for warning in caught]
    facts = robot_facts(robot) if options.pose is None else tool_poses(robot, np.array(options.pose))
    show = as_text if options.pose is None else as_table
    print(json.dumps({**facts, "warnings": texts}, indent=2) if options.json else show(facts))
    for text in texts:
        complain(options.program, f"warning: {text}")
    return 0
