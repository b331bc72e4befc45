# SPDX-License-Identifier: Apache-2.0
"""Identify masses, inertias, friction, rotors and springs of a robot from recordings, and write a robot file.

A recording is a bag with JointState messages (positions and efforts), or a .csv or .parquet table. The robot's file
gives the geometry, and inertias as the prior. Where motors were recorded, too, springs, rotors and motor friction are
identified; where only motors were recorded, from their resonance.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from ...exceptions import require
from ...terminal import printable
from ..options import (
    RobotOptions,
    add_json,
    add_options,
    add_output_file,
    add_robot_arguments,
    html_path,
    load,
    options_of,
    robot_path,
)
from ..pages import html_page
from ..results import Result, progress_bars
from ..writing import check_file, whole_file, write_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from ..identify import Request

    add_robot_arguments(parser, "--robot", required=True)
    add_output_file(parser, "FILE", robot_path, "robot file to write, .yaml or .urdf")
    parser.add_argument("--page", metavar="PAGE.html", type=html_path, help="write a page with charts of the results")
    parser.add_argument("--verbose", action="store_true", help="print all notes, and tables of the results")
    add_json(parser)
    add_options(parser, Request)


def run(options: argparse.Namespace) -> Result:
    """Identify and write.

    A check fails if a residual exceeds the tolerance, or the given robot or plain least squares predict the efforts of
    a joint better; with the latter, nothing is written.
    """
    require("replay")
    if options.page:
        require("report")
    from ..identify import Request
    from ..identify.outputs import write_and_verify
    from ..identify.run import identify
    from ..identify.summary import identification_result

    for output in (options.output, *((options.page,) if options.page else ())):
        check_file(output, force=options.force)
    robot = load(options)
    request = options_of(Request, options)
    with progress_bars() as bars:
        bar = bars.add_task("read", total=1.0)

        def progress(step: str, fraction: float) -> None:
            bars.update(bar, description=printable(step), completed=fraction)

        identified = identify(robot, request, progress)
        about = {
            "recordings": ", ".join(str(file) for file in options.bags),
            "validation": ", ".join(map(str, options.validate))
            or (f"{identified.held_out:g} of each, in blocks" if identified.held_out else "none"),
            "robot": f"{robot.name}, from {options.robot:.200}",
        }
        progress("write and verify the file", 0.0)
        with whole_file(options.output, force=options.force) as temporary:
            part = options_of(RobotOptions, options)
            identified, not_in_file = write_and_verify(temporary, options.robot, part, identified, about)
            if identified.unwritten:
                temporary.unlink()
        if options.page:
            progress("draw the page", 0.0)
        result = replace(identification_result(identified, about, options.page), warnings=not_in_file)
        if options.page:
            write_file(options.page, html_page("identify", result).encode(), force=options.force)
    return result
