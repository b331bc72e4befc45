# SPDX-License-Identifier: Apache-2.0
"""Run the node as a process of its own, play the paper's motion to it over ROS 2, check and show what comes back."""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..exceptions import EomDynamicsError
from ..robot import load_robot, packaged_robots
from ..terminal import printable
from ..writing import check_folder, whole_folder
from .arguments import folder
from .messages import complain

if TYPE_CHECKING:
    from ..demo.evaluate import Evaluation, Recording
    from ..demo.plan import Plan

SUMMARY = "run the node on the paper's motion, check what it does, and write a page to look at"

# What the command needs and the library does without, and where it comes from.
_NEEDED = {
    "rclpy": "make build, or source a ROS 2 installation",
    "eom_dynamics.msg": "make build, or colcon build and source install/setup.bash",
    "matplotlib": "make build, or pip install 'eom_dynamics[demo]'",
    "plotly": "make build, or pip install 'eom_dynamics[demo]'",
    "rich": "make build, or pip install 'eom_dynamics[demo]'",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of the command."""
    parser.add_argument(
        "--robot",
        default="iiwa",
        help=f"a packaged robot ({', '.join(packaged_robots())}) or a parameter file (.yaml); default: %(default)s",
    )
    # Below 100 Hz the motion has so few points that differences of them say nothing about derivatives.
    parser.add_argument(
        "--rate", type=_number(100, 10_000), default=1000.0, help="setpoints a second; default: %(default)g"
    )
    parser.add_argument(
        "--duration", type=_number(0.5, 600), default=5.0, help="of the motion, in s; default: %(default)g"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=folder,
        default=Path("demo"),
        help="folder for page, picture and data; default: %(default)s",
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON instead of a table")


def run(options: argparse.Namespace) -> int:
    """Play, evaluate and show; returns the exit code.

    Raises:
        EomDynamicsError: the robot cannot be loaded, a package is missing, or the folder cannot be written.
        OSError: the folder cannot be read.
    """
    robot = load_robot(options.robot)
    _check_installation()
    check_folder(options.output, force=True)

    # Not before: these need packages that are checked above, and take a second to import.
    from rich.console import Console

    from ..demo.data import write_csv, write_npz
    from ..demo.evaluate import evaluate
    from ..demo.page import write_page
    from ..demo.picture import write_picture
    from ..demo.plan import Plan
    from ..demo.run import RunError, play
    from ..demo.summary import as_json
    from ..demo.tracking import compare

    plan = Plan(robot, rate=options.rate, duration=options.duration)
    try:
        recording = _with_progress(plan, lambda report: play(plan, options.robot, report))
    except RunError as error:
        complain("eom_dynamics demo", str(error))
        return 1
    page = options.output / "index.html"
    with Console(stderr=True).status("evaluating, simulating and drawing"):
        evaluation = evaluate(plan, recording)
        tracking = compare(robot, plan.duration)
        with whole_folder(options.output, force=True) as aside:
            write_npz(aside / "data.npz", plan, recording)
            write_csv(aside / "data.csv", plan, recording)
            write_picture(aside / "demo.png", plan, recording, evaluation)
            write_page(aside / page.name, plan, recording, evaluation, tracking)
    if options.json:
        print(json.dumps({**as_json(recording, evaluation), "page": str(page)}, indent=2))
    else:
        _print_table(plan, recording, evaluation, page)
    for failure in evaluation.failures:
        complain("eom_dynamics demo", f"failed: {failure}")
    return 1 if evaluation.failures else 0


def _number(lowest: float, highest: float) -> Callable[[str], float]:
    """A reader of numbers from a range, for argparse."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not lowest <= value <= highest:
            raise argparse.ArgumentTypeError(f"must be a number from {lowest:g} to {highest:g}, is {text!r}")
        return value

    return read


def _check_installation() -> None:
    for module, remedy in _NEEDED.items():
        if importlib.util.find_spec(module) is None:
            raise EomDynamicsError(f"{module} is missing: {remedy}")


def _with_progress(plan: Plan, play: Callable[[Callable[[int, int], None]], Recording]) -> Recording:
    """Call ``play`` with a function that takes the numbers of setpoints sent and answered, and shows them as a bar."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        TextColumn("{task.completed:,} of {task.total:,} sent, {task.fields[answered]:,} answered"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("starting the node", total=plan.count, answered=0)

        def report(sent: int, answered: int) -> None:
            progress.update(
                task,
                description=f"{printable(plan.robot.name)} at {plan.rate:,.0f} Hz",
                completed=sent,
                answered=answered,
            )

        return play(report)


def _print_table(plan: Plan, recording: Recording, evaluation: Evaluation, page: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from ..demo.summary import keeps_up, table

    grid = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    grid.add_column()
    grid.add_column(justify="right")
    grid.add_column(style="dim")
    for row in table(plan, recording, evaluation):
        grid.add_row(*map(printable, (row.name, row.value, row.note)), style=None if row.passed else "bold red")
    # Soft wrapping, so that a path stays one word.
    console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
    console.print(grid)
    if warning := keeps_up(plan, evaluation):
        console.print(f"note: {warning}", style="yellow")
    console.print(f"page: {printable(str(page))}")
