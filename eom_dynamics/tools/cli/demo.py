# SPDX-License-Identifier: Apache-2.0
"""Play the paper's motion to the node over ROS 2, from another process, and check and show its answers.

Writes index.html, demo.png, data.npz and data.csv. With --identify, a simulated robot that differs from its file is
excited, recorded, identified, and tracks another motion with the robot found; the folder identification has a page,
the bags and robot files.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...exceptions import EomDynamicsError
from ...extras import require, require_ros
from ...robot import Robot
from ...terminal import printable
from ..writing import check_folder
from .arguments import (
    add_json,
    add_model_errors,
    add_number,
    add_output_folder,
    add_robot_arguments,
    given_errors,
    load,
    number,
    robot_options,
)
from .console import complain, fail, progress_bars

# The signs that add up: softer springs bend further under heavier bodies.
_MODEL_ERRORS = {"stiffness": -0.2, "mass": 0.2}

# The example that identifies, and what of its results is printed elsewhere.
_EXAMPLE, _SHOWN = "closing_the_loop", ("failures", "text")

_HERE = Path(__file__)

if TYPE_CHECKING:
    from ..demo.evaluate import Answers, RunChecks
    from ..demo.plan import Plan

SUMMARY = "play the paper's motion to the node, check its answers, and write an HTML page"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_robot_arguments(parser, "--robot", "; default: %(default)s", default="iiwa")
    # Below 100 Hz, numerical differentiation is too coarse to check derivatives.
    rate = number(lambda x: 100 <= x <= 10_000, "a number from 100 to 10000")
    add_number(parser, "--rate", "HZ", 1000.0, "setpoints per second", rate)
    duration = number(lambda x: 0.5 <= x <= 600, "a number from 0.5 to 600")
    add_number(parser, "--duration", "S", 5.0, "of the motion, s", duration)
    add_output_folder(parser, default=Path("demo"))
    parser.add_argument(
        "--identify",
        action="store_true",
        help="identify a simulated robot that differs from its file, and compare tracking errors; takes minutes",
    )
    add_model_errors(parser, -0.5, 1.0, _MODEL_ERRORS, "with --identify, ")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Play, check, write and print; returns the exit code, 1 if a check fails."""
    errors = given_errors(options, _MODEL_ERRORS)
    if errors and not options.identify:
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
    from ..demo.tracking import compare

    plan = Plan(robot, rate=options.rate, duration=options.duration)
    with contextlib.ExitStack() as stack:
        identified: dict[str, Any] = {}
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="eom_dynamics-")))
        try:
            recording = _played(plan, options)
        except RunError as error:
            complain(options.program, str(error))
            return 1
        if options.identify:
            identified = _identify(robot, errors or _MODEL_ERRORS, scratch)
        with progress_bars("") as bars:
            bars.add_task("checking, simulating and drawing", total=None)
            checks = evaluate(plan, recording)
            tracking = compare(robot, plan.duration)
            found = scratch / "identification" if identified else None
            page = write_results(options.output, plan, recording, checks, tracking, found, force=options.force)
    return _shown(options, plan, recording, checks, identified, page)


def _played(plan: Plan, options: argparse.Namespace) -> Answers:
    """Play the setpoints to a node, with a progress bar; raises RunError if that fails."""
    from ..demo.run import play

    with progress_bars("{task.completed:,.0f} of {task.total:,.0f} sent, {task.fields[answered]:,} answered") as bars:
        name = f"{printable(plan.robot.name)} at {plan.rate:,.0f} Hz"
        bar = bars.add_task(name, total=plan.count, answered=0)
        return play(
            plan,
            options.robot,
            robot_options(options),
            lambda sent, answered: bars.update(bar, completed=sent, answered=answered),
        )


def _shown(
    options: argparse.Namespace,
    plan: Plan,
    recording: Answers,
    checks: RunChecks,
    identified: Mapping[str, Any],
    page: Path,
) -> int:
    """Print results and failures; returns the exit code."""
    from ..demo.summary import as_json, as_text

    failures, missed = checks.failures, identified.get("failures", [])
    results = {**as_json(recording, checks), "page": str(page)}
    text = as_text(plan, recording, checks)
    if identified:
        results["identification"] = {name: value for name, value in identified.items() if name not in _SHOWN}
        text += f"\n\n{identified['text']}\n"
    print(json.dumps(results, indent=2) if options.json else f"{text}\npage: {printable(str(page))}")
    code = fail(options.program, [*failures, *missed])
    if identified and failures and not missed:
        complain(options.program, "identification succeeded: it runs in lock step, which no busy machine disturbs")
    return code


def _identify(robot: Robot, errors: Mapping[str, float], folder: Path) -> dict[str, Any]:
    """Run the example that identifies a simulated robot, and return its results."""
    from ...robot.writers.parameters import robot_as_yaml
    from ..demo.processes import child_command, exit_by_signals

    # In the sources, or where a package has its data: beside lib/python3.X/site-packages, so many folders up, if any.
    places = [
        _HERE.resolve().parents[3] / "examples",
        *(up / "share/eom_dynamics/examples" for up in _HERE.parents[6:7]),
    ]
    examples = next((place for place in places if (place / _EXAMPLE).is_dir()), None)
    if examples is None:
        raise EomDynamicsError(f"--identify runs examples/{_EXAMPLE} of the sources, which is not installed here")
    (folder / "robot.yaml").write_text(robot_as_yaml(robot).text, encoding="utf-8")
    command = child_command(f"{_EXAMPLE}.__main__", "--robot", "robot.yaml", "-o", "identification")
    command += [f"--{name}-error={error!r}" for name, error in errors.items()]
    python_path = os.pathsep.join(filter(None, [str(examples), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": python_path}
    # It ends when the pipe to its stdin closes: with this context, or this process.
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    with exit_by_signals(), subprocess.Popen(command, cwd=folder, env=environment, stdin=pipe, stdout=null) as child:
        code = child.wait()
    results = folder / "identification" / "results.json"
    if not results.is_file():
        raise SystemExit(code)
    found: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
    return found
