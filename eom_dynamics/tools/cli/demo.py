# SPDX-License-Identifier: Apache-2.0
"""Play the paper's motion to the node over ROS 2, from another process, and check and show its answers.

Writes index.html and demo.png.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from ...exceptions import require, require_ros
from ..options import add_number, add_output_folder
from ..results import Result, progress_bars
from ..writing import check_folder, write_folder

_DURATION = 5.0  # of the motion, s

# Every command is recorded, and a busy computer that is late makes no loss of setpoints. In a domain of its own, the
# node waits for no other.
_NODE = (
    "--ros-args -p robot_file:=iiwa -p qos_overrides./feedforward.publisher.depth:=1000 -p setpoint_lifespan:=0.0 "
    "-p jump_check:=ignore "  # no arm moves: what comes in a burst, from a busy machine, is answered, too
    "-p setpoint_timeout:=0.0 -p on_setpoint_loss:=none -p allow_other_publishers:=true"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_number(parser, "--rate", "HZ", 1000.0, "setpoints per second", "[100, 10000]")
    add_output_folder(parser, default=Path("demo"))


def run(options: argparse.Namespace) -> Result:
    """Play, check and write; it fails if a process or a check fails."""
    require("demo")
    require_ros()
    check_folder(options.output, force=options.force)
    from ..demo import Plan, demo_result
    from ..pages import html_page
    from ..processes import Run, RunError

    plan = Plan(options.rate, _DURATION)
    try:
        with (
            progress_bars("{task.completed:,.0f} sent, {task.fields[received]:,} answered") as bars,
            Run() as processes,
        ):
            bar = bars.add_task("setpoints", total=len(plan.t), received=0)
            np.savez(processes.folder / "setpoints.npz", **plan.arrays())
            processes.start("the node", "eom_dynamics.ros.dynamics_node", _NODE)
            # The node may compile before the first answer.
            files = "setpoints.npz answers.npz --timeout 60 --grace 5"
            processes.play(
                lambda sent, received: bars.update(bar, completed=sent, received=received),
                "eom_dynamics.ros.player",
                f"{files} --rate {plan.rate}",
            )
            with np.load(processes.folder / "answers.npz") as file:
                answers = dict(file)
    except RunError as error:
        return Result(failures=[str(error)])
    result = demo_result(plan, answers, options.output / "index.html")
    written = {"index.html": html_page("demo", result).encode(), "demo.png": result.sections[0].picture}
    write_folder(options.output, written, force=options.force)
    return result
