# SPDX-License-Identifier: Apache-2.0
"""Play the paper's motion to the node over ROS 2, from another process, and check and show its answers.

Writes index.html, demo.png, results.json and data.npz.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ...extras import require, require_ros
from ...terminal import printable
from ..results import Result
from ..writing import check_folder
from .arguments import add_json, add_number, add_output_folder, add_robot_arguments, load
from .console import progress_bars


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot_arguments(parser, "--robot", "; default: %(default)s", default="iiwa")
    add_number(parser, "--rate", "HZ", 1000.0, "setpoints per second", "[100, 10000]")
    add_number(parser, "--duration", "S", 5.0, "duration of the motion, s", "[0.5, 600]")
    add_output_folder(parser, default=Path("demo"))
    add_json(parser)


def run(options: argparse.Namespace) -> Result:
    """Play, check and write; it fails if a check fails."""
    robot = load(options)
    require("demo")
    require_ros()
    check_folder(options.output, force=options.force)
    from ..demo import processes, results
    from ..demo.evaluate import Plan, evaluate

    plan = Plan(robot, rate=options.rate, duration=options.duration)
    with progress_bars(
        "{task.percentage:>3.0f}% of {task.total:,.0f} sent, {task.fields[answered]:,} answered"
    ) as bars:
        bar = bars.add_task(f"{printable(robot.name)} at {plan.rate:,.0f} Hz", total=len(plan.t), answered=0)
        try:
            answers = processes.play(plan, lambda sent, got: bars.update(bar, completed=sent, answered=got))
        except processes.RunError as error:
            return Result(failures=[str(error)])
    return results.write_demo(options.output, plan, answers, evaluate(plan, answers), force=options.force)
