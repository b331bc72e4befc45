# SPDX-License-Identifier: Apache-2.0
"""Simulate an arm with elastic joints on a trajectory without feedforward, with one for rigid joints, by flatness.

All three under the same PD on the motors. Writes data.npz, tracking.png and index.html.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import __version__
from ..exceptions import EomDynamicsError
from ..robot import load_robot, packaged_robots
from ..trajectory import paper_motion
from ..writing import check_folder, whole_folder
from .arguments import folder
from .messages import complain
from .tables import columns

if TYPE_CHECKING:
    from ..simulate import Comparison

SUMMARY = "simulate an arm on a trajectory with and without feedforward, and show how far its links are off"

_PROGRAM = "eom_dynamics simulate"
_PAPER = "cosine"
_NEEDED = ("matplotlib", "plotly", "rich")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of the command."""
    parser.add_argument(
        "robot", metavar="ROBOT", help=f"a packaged robot ({', '.join(packaged_robots())}) or a robot's file"
    )
    parser.add_argument(
        "trajectory",
        metavar="TRAJECTORY",
        help=f"{_PAPER}: the motion of the paper's example; or a .npz file with arrays t, q, qd, qdd, qddd, qdddd "
        "and maybe joint_names; or a .csv file with columns t, q.JOINT … qdddd.JOINT",
    )
    parser.add_argument("-o", "--output", metavar="DIR", type=folder, required=True, help="folder for page and data")
    parser.add_argument(
        "--gains",
        type=_gains,
        default=[10.0, 20.0, 32.0, 50.0, 70.0, 100.0],
        metavar="W,…",
        help="natural frequencies of the motors' PD, rad/s, 0: no feedback; default: 10,20,32,50,70,100",
    )
    parser.add_argument(
        "--stiffness-error", type=_share, default=0.0, metavar="X", help="of the real springs, 0.1: 10%% stiffer"
    )
    parser.add_argument(
        "--mass-error", type=_share, default=0.0, metavar="X", help="of the real bodies, 0.05: 5%% heavier"
    )
    parser.add_argument("--duration", type=_positive, help="s; default: all of a file, 5 s of the paper's motion")
    parser.add_argument("--json", action="store_true", help="print the results as JSON instead of a table")


def run(options: argparse.Namespace) -> int:
    """Simulate, write and show; returns the exit code, 1 if no arm comes to the end or energy does not balance.

    Raises:
        EomDynamicsError: the robot or the trajectory cannot be loaded or simulated, or a package is missing.
        OSError: a file cannot be read, or the folder not be written.
    """
    for module in _NEEDED:
        if importlib.util.find_spec(module) is None:
            raise EomDynamicsError(f"{module} is missing: make build, or pip install 'eom_dynamics[demo]'")
    robot = load_robot(options.robot)

    # Not before: these need packages that are checked above, and take a second to import.
    from ..simulate import SimulationError, compare_feedforward
    from ..simulate.page import write_page
    from ..simulate.picture import write_picture
    from ..simulate.reference import read_motion
    from ..simulate.summary import endings, failures

    if options.trajectory == _PAPER:
        motion: Any = paper_motion(robot.n)
        start, end = 0.0, options.duration or 5.0
    else:
        motion = read_motion(Path(options.trajectory), robot)
        start, end = motion.t[0], motion.t[-1]
        end = min(end, start + (options.duration or math.inf))
    check_folder(options.output, force=True)
    times = np.linspace(start, end, max(2, round(500 * (end - start)) + 1))
    try:
        comparison = _with_progress(
            robot.name,
            start,
            end,
            lambda report: compare_feedforward(
                robot,
                motion,
                times,
                options.gains,
                stiffness_error=options.stiffness_error,
                mass_error=options.mass_error,
                progress=report,
            ),
        )
    except SimulationError as error:
        complain(_PROGRAM, str(error))
        return 1
    page = options.output / "index.html"
    with whole_folder(options.output, force=True) as aside:
        np.savez_compressed(
            aside / "data.npz",
            t=comparison.t,
            q=comparison.q,
            natural_frequency=comparison.natural_frequency,
            error=comparison.error,
            joint_names=np.array(robot.joint_names),
        )
        write_picture(aside / "tracking.png", comparison)
        write_page(aside / page.name, comparison, _about(options))
    _show(comparison, page, options.json)
    for ending in endings(comparison):
        complain(_PROGRAM, f"note: {ending}")
    failed = failures(comparison)
    for failure in failed:
        complain(_PROGRAM, f"failed: {failure}")
    return 1 if failed else 0


def _about(options: argparse.Namespace) -> dict[str, str]:
    return {
        "date": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        "software": f"eom_dynamics {__version__}, NumPy {np.__version__}",
        "robot": options.robot,
        "trajectory": options.trajectory,
        "springs and rotors": "of packaged robots example values: the sources give none",
    }


def _show(comparison: Comparison, page: Path, json_wanted: bool) -> None:
    from ..simulate.summary import HEADER, as_json, rows

    if json_wanted:
        print(json.dumps({**as_json(comparison), "page": str(page)}, indent=2))
        return
    print("\n".join([*columns([HEADER, *rows(comparison)], right_from=2), "", f"page: {page}"]))


def _with_progress(
    name: str, start: float, end: float, work: Callable[[Callable[[float], None]], Comparison]
) -> Comparison:
    """Call ``work`` with a function that takes the time that is reached, and shows it as a bar."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.completed:.2f} of {task.total:.2f} s")
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        text,
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task(name, total=end - start)
        return work(lambda now: progress.update(task, completed=now - start))


def _gains(text: str) -> list[float]:
    values = [_number(word, "gains must be numbers from 0 on") for word in text.split(",")]
    if min(values) < 0:
        raise argparse.ArgumentTypeError(f"gains must be numbers from 0 on, are {text!r}")
    return sorted(values)


def _share(text: str) -> float:
    value = _number(text, "must be a number above -1")
    if value <= -1:
        raise argparse.ArgumentTypeError(f"must be a number above -1, is {text!r}")
    return value


def _positive(text: str) -> float:
    value = _number(text, "must be a positive number")
    if value <= 0:
        raise argparse.ArgumentTypeError(f"must be a positive number, is {text!r}")
    return value


def _number(text: str, wanted: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{wanted}, is {text!r}")
    return value
