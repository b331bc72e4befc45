# SPDX-License-Identifier: Apache-2.0
"""Play the paper's motion to the node over ROS 2, from another process, and check and show its answers.

Writes index.html, demo.png, data.npz and data.csv. With --identify, a simulated robot that differs from its file is
excited, recorded, identified, and tracks another motion with the robot found; the folder identification has the bags
and robot files.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...exceptions import EomDynamicsError
from ...extras import require, require_ros
from ...robot import Robot
from ...scratch import scratch_folder
from ...terminal import printable
from ..writing import check_folder
from .arguments import number, path
from .console import complain, progress_bars
from .robot_arguments import add_robot_arguments, load, robot_options

# The signs that add up: softer springs bend further under heavier bodies.
_MODEL_ERRORS = {"stiffness": -0.2, "mass": 0.2}

if TYPE_CHECKING:
    from rich.progress import TaskID

    from ..demo.circle.result import IdentificationResult

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
    parser.add_argument(
        "--identify",
        action="store_true",
        help="identify a simulated robot that differs from its file, and compare tracking errors; takes some minutes",
    )
    for name, what in (("stiffness", "springs"), ("mass", "bodies")):
        parser.add_argument(
            f"--{name}-error",
            metavar="X",
            type=number(lambda x: -0.5 <= x <= 1, "a number from -0.5 to 1"),
            help=f"with --identify, relative error of the simulated {what} against the file; default: "
            f"{_MODEL_ERRORS[name]:g}",
        )
    parser.add_argument("--json", action="store_true", help="print the results as JSON instead of a table")


def run(options: argparse.Namespace) -> int:
    """Play, check, write and print; returns the exit code, 1 if a check fails.

    Raises:
        EomDynamicsError: the robot cannot be used, a library is missing, or the folder cannot be written.
        OSError: the folder cannot be read.
    """
    errors = {name: getattr(options, f"{name}_error") for name in _MODEL_ERRORS}
    if not options.identify and any(error is not None for error in errors.values()):
        raise EomDynamicsError("--stiffness-error and --mass-error need --identify")
    robot = load(options)
    require("demo")
    require_ros()
    check_folder(options.output, force=options.force)
    if options.identify:
        require("replay")
        from ...identification.elastic_options import check_elastic

        check_elastic(robot)

    # After the check for the libraries that these import.
    from ..demo.evaluate import evaluate
    from ..demo.plan import Plan
    from ..demo.processes import RunError
    from ..demo.results import write_results
    from ..demo.run import play
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
    with contextlib.ExitStack() as stack:
        circle = None
        if options.identify:
            bags = stack.enter_context(scratch_folder()) / "bags"
            given = {name: _MODEL_ERRORS[name] if error is None else error for name, error in errors.items()}
            try:
                circle = _identify(robot, given, bags), bags
            except RunError as error:
                complain(options.program, str(error))
                return 1
        with progress_bars("") as bars:
            bars.add_task("checking, simulating and drawing", total=None)
            evaluation = evaluate(plan, recording)
            tracking = compare(robot, plan.duration)
            page = write_results(
                options.output, plan, recording, evaluation, tracking, circle=circle, force=options.force
            )
    failures, verdict = evaluation.failures, ""
    results = {**as_json(recording, evaluation), "page": str(page)}
    text = as_text(plan, recording, evaluation)
    if circle is not None:
        from ..demo.circle import summary

        missed = summary.failures(circle[0])
        if failures and not missed:
            verdict = "identification succeeded: it runs in lock step, which no busy machine disturbs"
        failures = [*failures, *missed]
        results["identification"] = summary.as_json(circle[0])
        text += f"\n\n{summary.as_text(circle[0])}\n"
    if options.json:
        print(json.dumps(results, indent=2))
    else:
        print(f"{text}\npage: {printable(str(page))}")
    for failure in failures:
        complain(options.program, f"failed: {failure}")
    if verdict:
        complain(options.program, verdict)
    return 1 if failures else 0


def _identify(robot: Robot, errors: Mapping[str, float], bags: Path) -> IdentificationResult:
    """Identify a simulated robot and track again, with a progress bar for each step.

    Args:
        robot: as its file describes it.
        errors: relative, of stiffness and mass.
        bags: folder for the bags of the runs.

    Raises:
        EomDynamicsError: a run fails, or a joint is not identifiable from its recording.
    """
    from ..demo.circle.over_ros import over_ros
    from ..demo.circle.result import close_circle
    from ..demo.circle.task import IdentificationTask, plan

    said = {
        "excite": "record the excitation",
        "before": "track another motion with the file",
        "after": "track it with the robot found",
    }
    with progress_bars() as bars:
        tasks: dict[str, TaskID] = {}

        def show(step: str, done: float) -> None:
            if step not in tasks:
                for task in tasks.values():
                    bars.update(task, completed=1.0)
                tasks[step] = bars.add_task(step, total=1.0)
            bars.update(tasks[step], completed=done)

        show("optimise the excitation", 0.0)
        task = IdentificationTask(
            plan(robot, progress=lambda done: show("optimise the excitation", done)),
            stiffness_error=errors["stiffness"],
            mass_error=errors["mass"],
        )

        def report(step: str, sent: int, received: int) -> None:
            motion = task.plan.excitation if step == "excite" else task.plan.judged
            show(said[step], received / len(task.times(motion).setpoints))

        return close_circle(task, over_ros(task, bags, report), lambda step, done: show(f"identify: {step}", done))
