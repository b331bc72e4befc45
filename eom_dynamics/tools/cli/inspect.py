# SPDX-License-Identifier: Apache-2.0
"""Show a robot as it was read: joints, limits, mass, reach, resonances, motors, merged links and assumptions.

Numbers that look as if in another unit are failures, unless the file has implausible: accept. With --template, print a
parameter file to fill in.
"""

from __future__ import annotations

import argparse
import os

from ...robot.formats import PARAMETER_FILE, format_of
from ..inspect.facts import facts_result
from ..inspect.template import TEMPLATE, completion
from ..results import Result
from ..robot_options import RobotOptions
from .arguments import add_json, add_robot_arguments, load
from .options import options_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot_arguments(parser, nargs="?")
    what = "print a parameter file to fill in; for a robot of another format, one that adds springs and motors to it"
    add_json(parser)
    parser.add_argument("--template", action="store_true", help=what)


def run(options: argparse.Namespace) -> Result:
    if options.robot is None:
        if not options.template:
            options.refuse("give ROBOT or --template")
        return Result(verbatim=TEMPLATE)
    if not options.template:
        return facts_result(load(options, warn=False))
    if format_of(options.robot) in (None, PARAMETER_FILE):
        options.refuse("--template goes with a .urdf or another file; parameter files have their springs and motors")
    # Absolute, since the template may be written to any folder.
    path, part = os.path.abspath(options.robot), options_of(RobotOptions, options)
    return Result(verbatim=completion(load(options), path, part.as_json()))
