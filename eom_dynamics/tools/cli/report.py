# SPDX-License-Identifier: Apache-2.0
"""Show recordings on one HTML page that needs no other file: motion, efforts, motors, limits and timing.

A bag is a folder with metadata.yaml, or a .db3 or .mcap file. Commands that it lacks are computed as by replay, if its
robot is known.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ...extras import require
from ...terminal import printable
from ..writing import whole_file
from .arguments import path
from .console import progress_bars
from .convention_arguments import add_convention_arguments, conventions
from .motion_arguments import add_motion_arguments
from .robot_arguments import add_robot_arguments, load, robot_options

SUMMARY = "show recordings on one HTML page: motion, efforts, motors, deviations, limits, timing"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of the command."""
    parser.add_argument("bags", metavar="BAG", nargs="+", type=path, help="bag, or folder of bags")
    parser.add_argument("-o", "--output", metavar="PAGE.html", type=_page, required=True, help="page to write")
    add_robot_arguments(parser, "--robot", "; default: the URDF that a bag has on the topic robot_description")
    add_motion_arguments(parser)
    add_convention_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Read, compute missing commands, and write the page; returns the exit code.

    Raises:
        EomDynamicsError: a bag cannot be read or shown, the robot cannot be used, or a library is missing.
        OSError: a file cannot be read.
    """
    require("report")
    robot = None if options.robot is None else load(options)

    # After the check for the libraries that these import.
    from .. import provenance
    from ..replay import find_bags
    from ..report.compute import Settings
    from ..report.read import read_records
    from ..report.report_page import report_page

    settings = Settings(options.cutoff, options.rate, robot_options(options), conventions(options))
    bags = [bag for given in options.bags for bag in find_bags(given)]
    about = {
        "date": provenance.date(),
        "software": provenance.software(),
        "recordings": ", ".join(map(str, bags)),
        "robot": "from robot_description in each bag" if robot is None else f"{options.robot:.200}",
    }
    records = []
    with progress_bars() as bars:
        for bag in bags:
            task = bars.add_task(printable(bag.name), total=1.0)
            records += read_records(
                bag,
                robot,
                settings,
                lambda share, task=task: bars.update(task, completed=share),  # type: ignore[misc]
            )
            bars.update(task, completed=1.0)
        task = bars.add_task("drawing", total=1.0)
        page = report_page(records, about)
        bars.update(task, completed=1.0)
    with whole_file(options.output, force=True) as aside:
        aside.write_text(page, encoding="utf-8")
    for record in records:
        for note in filter(None, (record.about, *record.notes)):
            print(f"{printable(record.name)}: {printable(note)}")
    print(f"page: {printable(str(options.output))}")
    return 0


def _page(text: str) -> Path:
    """Return the path of a page; with another ending it could be that of a bag, which must not be overwritten."""
    page = Path(text)
    if page.suffix.lower() != ".html":
        raise argparse.ArgumentTypeError(f"must end in .html, is {text!r}")
    return page
