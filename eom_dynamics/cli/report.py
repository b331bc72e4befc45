# SPDX-License-Identifier: Apache-2.0
"""Show recordings on one page to look at in a browser, with nothing beside it: motion, efforts, motors, limits, timing.

A bag is a folder with metadata.yaml, or a .db3 or .mcap file, of what the node took and sent, or was replayed. Where it
has no commands, as one of JointState alone, and its robot is known, they are computed as by replay.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import platform
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .. import __version__
from ..exceptions import EomDynamicsError
from ..robot import load_robot, packaged_robots
from ..terminal import printable
from ..writing import whole_file

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SUMMARY = "show recordings on one HTML page: motion, efforts, motors, deviations, limits, timing"

_NEEDED = {"mcap": "bags", "rosbags": "bags", "plotly": "demo", "rich": "demo"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of the command."""
    parser.add_argument("bags", metavar="BAG", nargs="+", type=_path, help="bags, or folders of bags")
    parser.add_argument("-o", "--output", metavar="PAGE.html", type=_page, required=True, help="the page to write")
    parser.add_argument(
        "--robot",
        metavar="ROBOT",
        help=f"a packaged robot ({', '.join(packaged_robots())}) or a robot's file, for limits, units, and to compute "
        "what was not recorded; default: the URDF that a bag has on the topic robot_description",
    )
    parser.add_argument(
        "--cutoff", metavar="HZ", type=_positive, default=5.0, help="of the fit of measured positions; default: 5"
    )
    parser.add_argument(
        "--rate", metavar="HZ", type=_positive, default=1000.0, help="of states on a JointTrajectory; default: 1000"
    )


def run(options: argparse.Namespace) -> int:
    """Read, compute where that is wanted, and write the page; returns the exit code.

    Raises:
        EomDynamicsError: a bag cannot be read, has nothing to show, or a package is missing.
        OSError: a file cannot be read.
    """
    for module, extra in _NEEDED.items():
        if importlib.util.find_spec(module) is None:
            raise EomDynamicsError(f"{module} is missing: make build, or pip install 'eom_dynamics[{extra}]'")
    robot = None if options.robot is None else load_robot(options.robot)

    # Not before: these need packages that are checked above.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    from ..replay import find_bags
    from ..report.compute import Settings
    from ..report.page import report_page
    from ..report.read import read_records

    settings = Settings(options.cutoff, options.rate)
    bags = [bag for path in options.bags for bag in find_bags(path)]
    records = []
    console = Console(stderr=True)
    text = TextColumn("{task.description}", markup=False)
    with Progress(
        text, BarColumn(bar_width=None), TaskProgressColumn(), console=console, disable=not console.is_terminal
    ) as bars:
        for bag in bags:
            task = bars.add_task(printable(bag.name), total=1.0)
            records += read_records(bag, robot, settings, _progress(bars, task))
            bars.update(task, completed=1.0)
        task = bars.add_task("drawing", total=1.0)
        page = report_page(records, _about(options, bags))
        bars.update(task, completed=1.0)
    with whole_file(options.output, force=True) as aside:
        aside.write_text(page, encoding="utf-8")
    for record in records:
        for note in filter(None, (record.about, *record.notes)):
            print(f"{printable(record.name)}: {printable(note)}")
    print(f"page: {printable(str(options.output))}")
    return 0


def _progress(bars: Progress, task: TaskID) -> Callable[[float], None]:
    return lambda share: bars.update(task, completed=share)


def _about(options: argparse.Namespace, bags: list[Path]) -> dict[str, str]:
    return {
        "date": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        "software": f"eom_dynamics {__version__}, Python {platform.python_version()}, NumPy {np.__version__}",
        "recordings": ", ".join(map(str, bags)),
        "robot": options.robot or "as a bag says on robot_description",
    }


def _path(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("must name a bag, is empty")
    return Path(text)


def _page(text: str) -> Path:
    """The path of a page; with any other ending it may be that of a bag, which must not be written over."""
    path = Path(text)
    if path.suffix.lower() != ".html":
        raise argparse.ArgumentTypeError(f"must end in .html, is {text!r}")
    return path


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"must be a positive number, is {text!r}")
    return value
