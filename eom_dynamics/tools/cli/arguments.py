# SPDX-License-Identifier: Apache-2.0
"""Arguments shared by several commands."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...elastic.plausibility import objections
from ...exceptions import RobotDescriptionWarning
from ...robot import Robot, packaged_robots
from ...robot.formats import FORMATS, WRITABLE
from ...robot.readers.files import PACKAGE, located
from ..robot_options import RobotOptions
from .options import add_options, numeric, options_of, path, path_with

html_path, robot_path = path_with(".html"), path_with(*WRITABLE)


def add_output_folder(parser: argparse.ArgumentParser, metavar: str = "DIR", default: Path | None = None) -> None:
    """Add ``--output``, a folder, required without a default, and ``--force``."""
    what = "folder to write" if default is None else "folder to write; default: %(default)s"
    parser.add_argument(
        "-o", "--output", metavar=metavar, type=path, required=default is None, default=default, help=what
    )
    parser.add_argument("--force", action="store_true", help="write into a folder that is not empty")


def add_output_file(
    parser: argparse.ArgumentParser, metavar: str, kind: Callable[[str], Path], what: str, *, required: bool = True
) -> None:
    """Add ``--output``, a path of a kind, and ``--force``."""
    parser.add_argument("-o", "--output", metavar=metavar, type=kind, required=required, help=what)
    parser.add_argument("--force", action="store_true", help="overwrite an output that exists")


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print the results as JSON instead of text")


def add_number(parser: Any, name: str, metavar: str, default: float, what: str, rule: str = "positive") -> None:
    """Add a number with a default, which its help names, to a parser or group; the rule is as for :func:`numeric`."""
    what += "; default: %(default)g"
    parser.add_argument(name, metavar=metavar, type=numeric(rule), default=default, help=what)


def add_robot_arguments(parser: argparse.ArgumentParser, name: str = "robot", note: str = "", **keywords: Any) -> None:
    """Add ROBOT, positional or as ``--robot``, and the options that select a part of it."""
    endings = ", ".join(ending for kind in FORMATS for ending in kind.endings[:2])
    sources = (
        f"packaged robot ({', '.join(packaged_robots())}), file ({endings}), also as {PACKAGE}…, or a name of "
        "robot_descriptions"
    )
    robot: Any = parser.add_argument(name, metavar="ROBOT", type=_located, help=f"{sources}{note}", **keywords)
    robot.completer = _completions  # read by argcomplete
    add_options(parser, RobotOptions)


def load(arguments: argparse.Namespace, *, warn: bool = True) -> Robot:
    """Load the robot that the arguments name, with warnings about implausible parameters."""
    robot = options_of(RobotOptions, arguments).load(arguments.robot)
    for line in objections(robot) if warn else ():
        warnings.warn(f"{robot.name}: not plausible: {line}", RobotDescriptionWarning, stacklevel=2)
    return robot


def _located(text: str) -> str:
    try:
        return located(text)
    except LookupError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}") from None


def _completions(prefix: str, **_: Any) -> list[str]:
    """Complete a packaged robot's name, or the path of a file that may describe a robot."""
    from argcomplete.completers import FilesCompleter

    return [*packaged_robots(), *FilesCompleter([ending[1:] for kind in FORMATS for ending in kind.endings])(prefix)]
