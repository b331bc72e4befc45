# SPDX-License-Identifier: Apache-2.0
"""Play the paper's motion to the node over ROS 2, from another process, and check and show its answers.

Writes index.html, demo.png, results.json and data.npz.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ...extras import require, require_ros
from ...terminal import printable
from ..writing import check_folder
from .arguments import add_json, add_number, add_output_folder, add_robot_arguments, load, number
from .console import complain, fail, progress_bars

SUMMARY = "play the paper's motion to the node, check its answers, and write an HTML page"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_robot_arguments(parser, "--robot", "; default: %(default)s", default="iiwa")
    rate = number(lambda x: 100 <= x <= 10_000, "a number from 100 to 10000")
    add_number(parser, "--rate", "HZ", 1000.0, "setpoints per second", rate)
    duration = number(lambda x: 0.5 <= x <= 600, "a number from 0.5 to 600")
    add_number(parser, "--duration", "S", 5.0, "of the motion, s", duration)
    add_output_folder(parser, default=Path("demo"))
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Play, check, write and print; returns the exit code, 1 if a check fails."""
    robot = load(options)
    require("demo")
    require_ros()
    check_folder(options.output, force=options.force)
    # After the check for the libraries that these import.
    from ..demo import processes, results
    from ..demo.evaluate import Plan, evaluate
    from ..text_tables import columns

    plan = Plan(robot, rate=options.rate, duration=options.duration)
    with progress_bars("{task.completed:,.0f} of {task.total:,.0f} sent, {task.fields[answered]:,} answered") as bars:
        bar = bars.add_task(f"{printable(robot.name)} at {plan.rate:,.0f} Hz", total=len(plan.t), answered=0)
        try:
            answers = processes.play(plan, lambda sent, got: bars.update(bar, completed=sent, answered=got))
        except processes.RunError as error:
            complain(options.program, str(error))
            return 1
    checks = evaluate(plan, answers)
    page = results.write_results(options.output, plan, answers, checks, force=options.force)
    if options.json:
        print(json.dumps({**results.as_json(checks), "page": str(page)}, indent=2))
    else:
        warning = results.note(plan, checks)
        lines = columns(results.rows(plan, checks), right_from=3)
        print("\n".join(map(printable, [*lines, *([f"note: {warning}"] if warning else []), f"page: {page}"])))
    return fail(options.program, checks.failures)
