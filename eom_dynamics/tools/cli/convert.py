# SPDX-License-Identifier: Apache-2.0
"""Write a robot as a parameter file (.yaml) or a URDF (.urdf); what the format cannot say is listed."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

from ...exceptions import RobotDescriptionError, RobotDescriptionWarning
from ...robot import load_robot
from ...robot.readers.loading import MAX_BYTES
from ...robot.readers.xml import MAX_CHARACTERS
from ...robot.writers.parameters import robot_as_yaml
from ...robot.writers.urdf import robot_as_urdf
from ..writing import whole_file
from .arguments import path
from .console import complain
from .robot_arguments import add_robot_arguments, load

SUMMARY = "write a robot as a parameter file or a URDF"

_WRITERS = {".yaml": robot_as_yaml, ".yml": robot_as_yaml, ".urdf": robot_as_urdf}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of the command."""
    add_robot_arguments(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=_output, required=True, help="file to write, .yaml or .urdf"
    )
    parser.add_argument("--force", action="store_true", help="overwrite the file if it exists")


def run(options: argparse.Namespace) -> int:
    """Write the file; returns the exit code.

    Raises:
        EomDynamicsError: the robot cannot be used, or not be written in this format, or the file cannot be written.
    """
    written = _WRITERS[options.output.suffix](load(options))
    largest = MAX_CHARACTERS if options.output.suffix == ".urdf" else MAX_BYTES
    size = len(written.text.encode())
    if size > largest:
        remedy = "leave out a part of the robot by --tip" + ("" if largest == MAX_CHARACTERS else ", or write a .urdf")
        raise RobotDescriptionError(
            f"{options.output}: not written: it would have {size} bytes, and at most {largest} can be read; {remedy}"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotDescriptionWarning)  # those of the robot have been shown
        load_robot(written.text, unphysical="warn")
    with whole_file(options.output, force=options.force) as temporary:
        temporary.write_text(written.text, encoding="utf-8")
    for line in written.lost:
        complain(options.program, f"warning: {line}")
    return 0


def _output(text: str) -> Path:
    if path(text).suffix not in _WRITERS:
        raise argparse.ArgumentTypeError(f"must end in {', '.join(_WRITERS)}, is {text!r}")
    return Path(text)
