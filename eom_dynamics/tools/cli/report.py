# SPDX-License-Identifier: Apache-2.0
"""Show recordings on one HTML page that needs no other file: positions, efforts, their errors and limits.

A bag is a folder with metadata.yaml, or a .db3 or .mcap file. Commands that it lacks are computed as by replay, if its
robot is known.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from ...exceptions import EomDynamicsError, require
from ...recordings import Conventions
from ..options import RobotOptions, add_options, add_output_file, add_robot_arguments, html_path, load, options_of, path
from ..pages import html_page
from ..results import Result, complain
from ..writing import check_file, write_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bags", metavar="BAG", nargs="+", type=path, help="bag, or folder of bags")
    add_output_file(parser, "PAGE.html", html_path, "page to write")
    add_robot_arguments(parser, "--robot", "; default: the URDF that a bag has on the topic robot_description")
    add_options(parser, Conventions)


def run(options: argparse.Namespace) -> Result:
    """Read, compute missing commands, and write the page.

    It fails if one of several bags cannot be shown, if messages cannot be read, or if a named robot does not have the
    joints of a bag.
    """
    require("report")
    check_file(options.output, force=options.force)
    robot = None if options.robot is None else load(options)

    from ...recordings.bags import find_bags
    from ..report import Record, read_records, report_result

    conventions, part = options_of(Conventions, options), options_of(RobotOptions, options)
    records: list[Record] = []
    complaints: list[str] = []
    for place in options.bags:
        try:
            for bag in find_bags(place):
                try:
                    of_bag = read_records(bag, robot, conventions, part)
                except EomDynamicsError as error:
                    complaints += error.errors
                    continue
                records += of_bag
                complaints += [f"{bag}: {line}" for line in of_bag[0].unread]
                if robot is not None and all(record.robot is None for record in of_bag):
                    complaints.append(f"{bag}: {of_bag[0].notes[-1]}; name another, --robot ROBOT")
        except EomDynamicsError as error:
            complaints += error.errors
        except OSError as error:
            complaints.append(f"{error.filename or place}: {error.strerror or error}")
    if not records:
        *others, last = complaints
        for line in others:
            complain(options.program, line)
        raise EomDynamicsError(last)
    known = ", ".join(dict.fromkeys(record.robot.name for record in records if record.robot is not None))
    about = {"recordings": ", ".join(map(str, options.bags)), "robot": known or "unknown; name it, --robot ROBOT"}
    result = report_result(records, about, options.output)
    write_file(options.output, html_page("report", result).encode(), force=options.force)
    return replace(result, failures=complaints)
