# SPDX-License-Identifier: Apache-2.0
"""Play the paper's motion to the node over ROS 2, from another process, and check and show its answers.

Writes index.html, demo.png, data.npz and data.csv.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ...extras import require, require_ros
from ...terminal import printable
from ..writing import check_folder
from .arguments import number, path
from .console import complain, progress_bars
from .robot_arguments import add_robot_arguments, load, robot_options

SUMMARY = "play the paper's motion to the node, check its answers, and write an HTML page"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of the command."""
    add_robot_arguments(parser, "--robot", "; default: %(default)s", default="iiwa")
    # Below 100 Hz, numerical differentiation is too coarse to check derivatives.
    parser.add_argument(
        "--rate",
        metavar="HZ",
        type=number(lambda x: 100 <= x <= 10_000, "a number from 100 to 10000"),
        default=1000.0,
        help="setpoints per second; default: %(default)g",
    )
    parser.add_argument(
        "--duration",
        metavar="S",
        type=number(lambda x: 0.5 <= x <= 600, "a number from 0.5 to 600"),
        default=5.0,
        help="of the motion, s; default: %(default)g",
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=path, default=Path("demo"), help="folder; default: %(default)s"
    )
    parser.add_argument("--force", action="store_true", help="write into a folder that is not empty")
    parser.add_argument("--json", action="store_true", help="print the results as JSON instead of a table")


def run(options: argparse.Namespace) -> int:
    """Play, check, write and print; returns the exit code, 1 if a check fails.

    Raises:
        EomDynamicsError: the robot cannot be used, a library is missing, or the folder cannot be written.
        OSError: the folder cannot be read.
    """
    robot = load(options)
    require("demo")
    require_ros()
    check_folder(options.output, force=options.force)

    # After the check for the libraries that these import.
    from ..demo.evaluate import evaluate
    from ..demo.plan import Plan
    from ..demo.results import write_results
    from ..demo.run import RunError, play
    from ..demo.summary import as_json, as_text
    from ..demo.tracking import compare

    plan = Plan(robot, rate=options.rate, duration=options.duration)
    with progress_bars("{task.completed:,.0f} of {task.total:,.0f} sent, {task.fields[answered]:,} answered") as bars:
        name = f"{printable(robot.name)} at {plan.rate:,.0f} Hz"
        bar = bars.add_task(name, total=plan.count, answered=0)
        try:
            recording = play(
                plan,
                options.robot,
                robot_options(options),
                lambda sent, answered: bars.update(bar, completed=sent, answered=answered),
            )
        except RunError as error:
            complain(options.program, str(error))
            return 1
    with progress_bars("") as bars:
        bars.add_task("checking, simulating and drawing", total=None)
        evaluation = evaluate(plan, recording)
        tracking = compare(robot, plan.duration)
        page = write_results(options.output, plan, recording, evaluation, tracking, force=options.force)
    if options.json:
        print(json.dumps({**as_json(recording, evaluation), "page": str(page)}, indent=2))
    else:
        print(f"{as_text(plan, recording, evaluation)}\npage: {printable(str(page))}")
    for failure in evaluation.failures:
        complain(options.program, f"failed: {failure}")
    return 1 if evaluation.failures else 0
