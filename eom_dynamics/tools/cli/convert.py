# SPDX-License-Identifier: Apache-2.0
"""Write a robot as a parameter file, a URDF or an MJCF model; properties that the format cannot express are listed."""

from __future__ import annotations

import argparse
import warnings

from ...exceptions import RobotDescriptionError, RobotDescriptionWarning, missing
from ...robot import formats, load_robot
from ...robot.formats import MJCF
from ..options import add_output_file, add_robot_arguments, load, robot_path
from ..results import Result
from ..writing import write_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot_arguments(parser)
    add_output_file(parser, "FILE", robot_path, "file to write, .yaml, .urdf, or .xml or .mjcf for MuJoCo")


def run(options: argparse.Namespace) -> Result:
    chosen = formats.written_format(options.output.name)
    assert chosen is not None and chosen.write is not None  # by its type
    written = chosen.write(load(options))
    content = written.text.encode()
    if len(content) > chosen.largest:
        larger = [ending for kind in formats.FORMATS for ending in kind.writes[:1] if kind.largest > chosen.largest]
        remedy = "leave out a part of the robot by --tip" + "".join(f", or write a {ending}" for ending in larger)
        reason = f"it would have {len(content)} bytes, and at most {chosen.largest} can be read"
        raise RobotDescriptionError(f"{options.output}: not written: {reason}; {remedy}")
    if chosen is not MJCF or missing("mjcf") is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RobotDescriptionWarning)  # warnings of the robot have been shown
            load_robot(written.text, unphysical="warn")
    write_file(options.output, content, force=options.force)
    return Result(warnings=written.lost)
