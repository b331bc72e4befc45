# SPDX-License-Identifier: Apache-2.0
"""Show recordings on one HTML page that needs no other file: motion, efforts, motors, limits and timing.

A bag is a folder with metadata.yaml, or a .db3 or .mcap file. Commands that it lacks are computed as by replay, if its
robot is known.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...exceptions import EomDynamicsError
from ...extras import require
from ...terminal import printable
from ..recording_options import Sampling
from ..results import Result
from ..robot_options import RobotOptions
from ..writing import check_file, write_file
from .arguments import add_output_file, add_robot_arguments, html_path, load
from .console import complain, progress_bars
from .options import add_options, options_of, path

if TYPE_CHECKING:
    from ...robot import Robot
    from ..report.record import Record


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bags", metavar="BAG", nargs="+", type=path, help="bag, or folder of bags")
    add_output_file(parser, "PAGE.html", html_path, "page to write")
    add_robot_arguments(parser, "--robot", "; default: the URDF that a bag has on the topic robot_description")
    add_options(parser, Sampling)


def run(options: argparse.Namespace) -> Result:
    """Read, compute missing commands, and write the page.

    It fails if a bag of several cannot be shown, if messages cannot be read, or if a named robot has none of the joints
    of a bag.
    """
    require("report")
    check_file(options.output, force=options.force)
    robot = None if options.robot is None else load(options)

    from ...bags import find_bags
    from ..pages.page import html_page
    from ..report.read import read_records
    from ..report.results import report_result

    sampling = options_of(Sampling, options)
    records: list[Record] = []
    shown: list[Path] = []
    complaints: list[str] = []
    with progress_bars() as bars:
        bags: list[Path] = []
        for place in options.bags:
            with _collecting_errors(place, complaints):
                bags += find_bags(place)
        for bag in bags:
            task = bars.add_task(printable(bag.name), total=1.0)
            with _collecting_errors(bag, complaints):
                advance = partial(lambda task, share: bars.update(task, completed=share), task)
                of_bag = read_records(bag, robot, sampling, options_of(RobotOptions, options), advance)
                records += of_bag
                shown.append(bag)
                complaints += [f"{bag}: {line}" for line in of_bag[0].unread]
                if robot is not None and all(record.robot is None for record in of_bag):
                    joints = ", ".join(of_bag[0].joints) or "no joints"
                    complaints.append(
                        f"{bag}: robot {robot.name} has none of the joints of this recording, which has {joints}; name "
                        "another, --robot ROBOT"
                    )
            bars.update(task, completed=1.0)
        if not records:
            *others, last = complaints
            for line in others:
                complain(options.program, line)
            raise EomDynamicsError(last)
        task = bars.add_task("drawing", total=1.0)
        known = _described([record.robot for record in records]) if robot is None else f"{options.robot:.200}"
        about = {"recordings": ", ".join(map(str, shown)), "robot": known}
        result = report_result(records, about, options.output)
        write_file(options.output, html_page("report", result).encode(), force=options.force)
        bars.update(task, completed=1.0)
    return replace(result, failures=complaints)


def _described(robots: Sequence[Robot | None]) -> str:
    names = ", ".join(dict.fromkeys(robot.name for robot in robots if robot is not None))
    unknown = sum(robot is None for robot in robots)
    if not names:
        return "unknown: no recording has its robot_description; name the robot, --robot ROBOT"
    part = f"; unknown in {unknown} of {len(robots)} recordings" if unknown else ""
    return f"{names}, from robot_description{part}"


@contextmanager
def _collecting_errors(bag: Path, complaints: list[str]) -> Iterator[None]:
    """Take down why a bag cannot be shown, and go on with the next one."""
    try:
        yield
    except EomDynamicsError as error:
        complaints.extend(error.errors)
    except OSError as error:
        complaints.append(f"{error.filename or bag}: {error.strerror or error}")
