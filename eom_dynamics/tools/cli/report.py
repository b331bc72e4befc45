# SPDX-License-Identifier: Apache-2.0
"""Show recordings on one HTML page that needs no other file: motion, efforts, motors, limits and timing.

A bag is a folder with metadata.yaml, or a .db3 or .mcap file. Commands that it lacks are computed as by replay, if its
robot is known.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...exceptions import EomDynamicsError
from ...extras import require
from ...terminal import printable
from ..recording_options import Sampling
from ..robot_options import RobotOptions
from ..writing import check_file, whole_file
from .arguments import add_output_file, add_robot_arguments, html_path, load
from .console import complain, progress_bars
from .options import add_options, options_of
from .types import path

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from ...robot import Robot
    from ..report.record import Record

SUMMARY = "show recordings on one HTML page: motion, efforts, motors, deviations, limits, timing"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("bags", metavar="BAG", nargs="+", type=path, help="bag, or folder of bags")
    add_output_file(parser, "PAGE.html", html_path, "page to write")
    add_robot_arguments(parser, "--robot", "; default: the URDF that a bag has on the topic robot_description")
    add_options(parser, Sampling)


def run(options: argparse.Namespace) -> int:
    """Read, compute missing commands, and write the page; returns the exit code.

    It is 1 if a bag of several cannot be shown, if messages cannot be read, or if a named robot has none of the joints
    of a bag; 2 without a page.
    """
    require("report")
    check_file(options.output, force=options.force)
    robot = None if options.robot is None else load(options)

    # After the check for the libraries that these import.
    from .. import provenance
    from ..replay import find_bags
    from ..report.read import read_records
    from ..report.report_page import report_page

    sampling = options_of(Sampling, options)
    records: list[Record] = []
    shown: list[Path] = []
    complaints: list[str] = []
    with progress_bars() as bars:
        bags = list(_bags_at(options.bags, find_bags, complaints))
        for bag in bags:
            task = bars.add_task(printable(bag.name), total=1.0)
            with _collecting_errors(bag, complaints):
                found = read_records(
                    bag, robot, sampling, options_of(RobotOptions, options), partial(_advance, bars, task)
                )
                records += found
                shown.append(bag)
                complaints += [f"{bag}: {line}" for line in found[0].unread]
                if robot is not None and all(record.robot is None for record in found):
                    joints = ", ".join(found[0].joints) or "no joints"
                    complaints.append(
                        f"{bag}: robot {robot.name} has none of the joints of this recording, which has {joints}; name "
                        "another, --robot ROBOT"
                    )
            bars.update(task, completed=1.0)
        if records:
            task = bars.add_task("drawing", total=1.0)
            known = _described([record.robot for record in records]) if robot is None else f"{options.robot:.200}"
            about = provenance.about(recordings=", ".join(map(str, shown)), robot=known)
            page = report_page(records, about)
            bars.update(task, completed=1.0)
    for complaint in complaints:
        complain(options.program, complaint)
    if not records:
        return 2
    with whole_file(options.output, force=options.force) as aside:
        aside.write_text(page, encoding="utf-8")
    for record in records:
        for note in filter(None, (record.computed_note, *record.notes)):
            print(f"{printable(record.name)}: {printable(note)}")
    print(f"page: {printable(str(options.output))}")
    return 1 if complaints else 0


def _described(robots: Sequence[Robot | None]) -> str:
    """Say where the robots of records come from if none is named."""
    names = ", ".join(dict.fromkeys(robot.name for robot in robots if robot is not None))
    unknown = sum(robot is None for robot in robots)
    if not names:
        return "unknown: no recording has its robot_description; name the robot, --robot ROBOT"
    return f"{names}, from robot_description" + (
        f"; unknown in {unknown} of {len(robots)} recordings" if unknown else ""
    )


def _bags_at(given: Sequence[Path], find: Callable[[Path], list[Path]], complaints: list[str]) -> Iterator[Path]:
    """Find the bags at each path; a path without any is a complaint."""
    for each in given:
        with _collecting_errors(each, complaints):
            yield from find(each)


@contextmanager
def _collecting_errors(bag: Path, complaints: list[str]) -> Iterator[None]:
    """Take down why a bag cannot be shown, and go on with the next one."""
    try:
        yield
    except EomDynamicsError as error:
        complaints.extend(error.errors)
    except OSError as error:
        complaints.append(f"{error.filename or bag}: {error.strerror or error}")


def _advance(bars: Progress, task: TaskID, share: float) -> None:
    bars.update(task, completed=share)
