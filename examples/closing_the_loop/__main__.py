# SPDX-License-Identifier: Apache-2.0
"""Identify a simulated robot that differs from its file over ROS 2, and compare tracking errors before and after.

    cd examples && python -m closing_the_loop --robot sea_planar_2r -o identification

Writes index.html, results.json, the bags of the three runs, and the given, true and identified robots.
Exit code 0, 1 if a run fails or the error of the links falls by less than a factor of five, 2 for wrong use.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from eom_dynamics import load_robot
from eom_dynamics.exceptions import EomDynamicsError
from eom_dynamics.robot import Robot
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.tools.options import path
from eom_dynamics.tools.pages import html_page
from eom_dynamics.tools.processes import RunError
from eom_dynamics.tools.results import Result, complain, progress_bars, show

from .experiment import IdentificationResult, IdentificationTask, close_circle, plan
from .over_ros import over_ros
from .results import circle_result

if TYPE_CHECKING:
    from rich.progress import TaskID

_STEPS = {
    "excite": "record the excitation",
    "before": "track another motion with the file",
    "after": "track it with the robot found",
}


def main() -> int:
    """Identify and write; returns the exit code."""
    parser = argparse.ArgumentParser(prog="closing_the_loop", description=__doc__)
    parser.add_argument("--robot", default="sea_planar_2r", help="packaged robot or file; default: %(default)s")
    parser.add_argument("-o", "--output", metavar="DIR", type=path, required=True, help="new folder to write")
    # The signs that add up: softer springs bend further under heavier bodies.
    for name, default in (("stiffness", -0.2), ("mass", 0.2)):
        parser.add_argument(
            f"--{name}-error", type=float, default=default, help="of the true robot, relative; default: %(default)g"
        )
    options = parser.parse_args()
    try:
        result = _identified(load_robot(options.robot), options.output, options.stiffness_error, options.mass_error)
    except RunError as error:
        complain(parser.prog, str(error))
        return 1
    except (EomDynamicsError, OSError) as error:
        complain(parser.prog, str(error))
        return 2
    return show(parser.prog, _written(options.output, result))


def _identified(robot: Robot, bags: Path, stiffness_error: float, mass_error: float) -> IdentificationResult:
    """Excite, record, identify and track, with a progress bar for each step; bags go to a folder."""
    with progress_bars() as bars:
        tasks: dict[str, TaskID] = {}

        def show(step: str, done: float) -> None:
            if step not in tasks:
                for task in tasks.values():
                    bars.update(task, completed=1.0)
                tasks[step] = bars.add_task(step, total=1.0)
            bars.update(tasks[step], completed=done)

        motions = plan(robot, progress=lambda done: show("optimize the excitation", done))
        task = IdentificationTask(motions, stiffness_error, mass_error)

        def report(step: str, sent: int, received: int) -> None:
            motion = motions.excitation if step == "excite" else motions.judged
            show(_STEPS[step], received / len(task.times(motion).setpoints))

        return close_circle(task, over_ros(task, bags, report), lambda step, done: show(f"identify: {step}", done))


def _written(folder: Path, result: IdentificationResult) -> Result:
    """Write page, results, and the robots next to the bags; returns the result to show."""
    robots = {"described": result.task.robot, "true": result.task.true_robot, "identified": result.fit.robot}
    for name, robot in robots.items():
        (folder / f"{name}.yaml").write_text(robot_as_yaml(robot).text, encoding="utf-8")
    shown = circle_result(result, folder / "index.html")
    found = shown.json | {"text": shown.as_text()}
    (folder / "results.json").write_text(json.dumps(found, indent=2), encoding="utf-8")
    (folder / "index.html").write_text(html_page("closing_the_loop", shown), encoding="utf-8")
    return shown


if __name__ == "__main__":
    sys.exit(main())
