# SPDX-License-Identifier: Apache-2.0
"""Show a robot as it was read: tree, joints, limits, mass, reach, merged links, assumptions, and operation counts."""

from __future__ import annotations

import argparse
import json
import warnings

from ...exceptions import RobotDescriptionWarning
from ..inspect.facts import robot_facts
from ..inspect.template import TEMPLATE
from ..inspect.text import as_text
from .console import complain
from .robot_arguments import add_robot_arguments, load

SUMMARY = "show a robot as it was read from its description"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of the command."""
    add_robot_arguments(parser, nargs="?")
    parser.add_argument("--template", action="store_true", help="print the template of a parameter file, and no robot")
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
    texts = [str(warning.message) for warning in caught]
    facts = robot_facts(robot)
    print(json.dumps({**facts, "warnings": texts}, indent=2) if options.json else as_text(facts))
    for text in texts:
        complain(options.program, f"warning: {text}")
    return 0
