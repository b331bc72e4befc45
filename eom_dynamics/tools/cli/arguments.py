# SPDX-License-Identifier: Apache-2.0
"""Types of command-line arguments, and arguments shared by several commands."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...robot import Robot, packaged_robots
from ...robot.assembly import UNPHYSICAL
from ...robot.formats import FORMATS, WRITABLE
from ...robot.readers.packages import PACKAGE, located
from ...robot.subtree import BRANCHES
from ..robot_options import RobotOptions

if TYPE_CHECKING:
    from ..recording_options import Conventions

_Value = TypeVar("_Value")

# --- Types ------------------------------------------------------------------------------------


def path(text: str) -> Path:
    """Return the path of a file or folder; an empty one is refused, since it would mean the working directory."""
    if not text:
        raise argparse.ArgumentTypeError("must be a path, is empty")
    return Path(text)


def path_with(*endings: str) -> Callable[[str], Path]:
    """Return a type for output files with a fixed ending, so that a bag is never overwritten."""

    def read(text: str) -> Path:
        if path(text).suffix not in endings:
            raise argparse.ArgumentTypeError(f"must end in {', '.join(endings)}, is {text!r}")
        return Path(text)

    return read


html_path, robot_path = path_with(".html"), path_with(*WRITABLE)


def number(accepts: Callable[[float], bool], wanted: str) -> Callable[[str], float]:
    """Return a type for finite numbers.

    Args:
        accepts: whether a number may be given.
        wanted: the numbers that may be given, in words; part of the error message.
    """

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and accepts(value)):
            raise argparse.ArgumentTypeError(f"must be {wanted}, is {text!r}")
        return value

    return read


positive = number(lambda x: x > 0, "a positive number")

not_negative = number(lambda x: x >= 0, "a number from 0 on")

share = number(lambda x: 0 < x <= 1, "a number above 0, up to 1")

any_number = number(lambda x: True, "a number")

_MOST = 10_000


def whole_number(text: str) -> int:
    """Return a whole number from 1 to 10 000, for processes or repetitions."""
    if len(text) > len(str(_MOST)) or not text.isdecimal() or not 1 <= int(text) <= _MOST:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {_MOST}, is {text!r:.40}")
    return int(text)


def named(what: str, value: Callable[[str], _Value], shown: str = "X") -> Callable[[str], tuple[str, _Value]]:
    """Return a type for ``SHOWN`` or ``WHAT=SHOWN``: a name, empty for all of them, and a value."""

    def read(text: str) -> tuple[str, _Value]:
        name, assigned, rest = text.rpartition("=")
        if assigned and not name:
            raise argparse.ArgumentTypeError(f"must be {shown} or {what}={shown}, is {text!r}")
        return name, value(rest)

    return read


# --- Outputs ----------------------------------------------------------------------------------


def add_output_folder(parser: argparse.ArgumentParser, metavar: str = "DIR", default: Path | None = None) -> None:
    """Add ``--output``, a folder, required without a default, and ``--force``."""
    note = "" if default is None else "; default: %(default)s"
    parser.add_argument(
        "-o",
        "--output",
        metavar=metavar,
        type=path,
        required=default is None,
        default=default,
        help=f"folder to write{note}",
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


# --- Options ----------------------------------------------------------------------------------


def add_number(
    parser: Any, name: str, metavar: str, default: float, what: str, kind: Callable[[str], float] = positive
) -> None:
    """Add a number with a default, which its help names, to a parser or group."""
    parser.add_argument(name, metavar=metavar, type=kind, default=default, help=f"{what}; default: %(default)g")


def add_hz(parser: Any, name: str, default: float, what: str) -> None:
    """Add a positive number of Hz to a parser or group."""
    add_number(parser, name, "HZ", default, what)


def add_choice(parser: Any, name: str, choices: Sequence[str], what: str) -> None:
    """Add a choice, by default the first one, which its help names, to a parser or group."""
    parser.add_argument(name, choices=choices, default=choices[0], help=f"{what}; default: %(default)s")


def add_repeated(parser: Any, name: str, metavar: str, kind: Callable[[str], Any], what: str) -> None:
    """Add an option that may be repeated, with a list of values, to a parser or group."""
    parser.add_argument(name, metavar=metavar, type=kind, action="append", default=[], help=what)


def add_motion_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``cutoff`` and ``rate``, Hz, by which positions are fitted and trajectories sampled."""
    add_hz(parser, "--cutoff", 5.0, "cut-off frequency of the fit to measured positions")
    add_hz(parser, "--rate", 1000.0, "sampling rate of a JointTrajectory")


def add_model_errors(parser: argparse.ArgumentParser, least: float, most: float, errors: dict[str, float]) -> None:
    """Add relative errors of the simulated springs and bodies, None by default.

    Args:
        errors: defaults of ``stiffness`` and ``mass``, for the help.
    """
    for name, what in (("stiffness", "springs"), ("mass", "bodies")):
        parser.add_argument(
            f"--{name}-error",
            metavar="X",
            type=number(lambda x: least <= x <= most, f"a number from {least:g} to {most:g}"),
            help=f"relative error of the simulated {what} against the file, 0.1: 10%% more; default: {errors[name]:g}",
        )


def given_errors(options: argparse.Namespace, errors: dict[str, float]) -> dict[str, float] | None:
    """Return the errors of ``stiffness`` and ``mass``, defaults for a missing one; None if both are missing."""
    given = {name: getattr(options, f"{name}_error") for name in errors}
    if all(error is None for error in given.values()):
        return None
    return {name: errors[name] if error is None else error for name, error in given.items()}


# --- Robots -----------------------------------------------------------------------------------


def add_robot_arguments(parser: argparse.ArgumentParser, name: str = "robot", note: str = "", **keywords: Any) -> None:
    """Add ROBOT and the options that select a part of it.

    Args:
        name: ``robot`` for a positional argument, ``--robot`` for an option.
    """
    endings = ", ".join(ending for each in FORMATS for ending in each.endings[:2])
    sources = (
        f"packaged robot ({', '.join(packaged_robots())}), file ({endings}), also as {PACKAGE}…, or a name of "
        "robot_descriptions"
    )
    robot: Any = parser.add_argument(name, metavar="ROBOT", type=_located, help=f"{sources}{note}", **keywords)
    robot.completer = _completions  # read by argcomplete
    part = parser.add_argument_group("part of the robot")
    part.add_argument("--root", metavar="LINK", help="link to use as the base; default: the root of the description")
    tips = "link where the robot ends; may be repeated; default: all links below the root"
    add_repeated(part, "--tip", "LINK", str, tips)
    wrenches = "link or frame where an external wrench acts; may be repeated; default: the tips, else the last body"
    add_repeated(part, "--tool", "LINK", str, wrenches)
    part.add_argument(
        "--branches",
        choices=BRANCHES,
        help="how to treat branches without a tip: lock at zero and keep their inertia, or leave out; "
        f"default: that of the file, else {BRANCHES[0]}",
    )
    part.add_argument(
        "--unphysical",
        choices=UNPHYSICAL,
        help="how to treat physically inconsistent inertia; default: refuse for .yaml, warn for others",
    )
    add_repeated(part, "--xacro", "NAME:=VALUE", _assignment, "argument of a xacro file; may be repeated")


def robot_options(arguments: argparse.Namespace) -> RobotOptions:
    """Return the part of the robot that the arguments select."""
    return RobotOptions(
        root=arguments.root,
        tip=tuple(arguments.tip),
        tools=tuple(arguments.tool),
        branches=arguments.branches,
        unphysical=arguments.unphysical,
        xacro_arguments=tuple(arguments.xacro),
    )


def load(arguments: argparse.Namespace) -> Robot:
    """Load the robot that the arguments name."""
    return robot_options(arguments).load(arguments.robot)


def _located(text: str) -> str:
    try:
        return located(text)
    except LookupError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}") from None


def _completions(prefix: str, **_: Any) -> list[str]:
    """Complete a packaged robot's name, or the path of a file that may describe a robot."""
    from argcomplete.completers import FilesCompleter

    return [*packaged_robots(), *FilesCompleter([ending[1:] for each in FORMATS for ending in each.endings])(prefix)]


def _assignment(text: str) -> tuple[str, str]:
    name, assigned, value = text.partition(":=")
    if not (name and assigned):
        raise argparse.ArgumentTypeError(f"must be NAME:=VALUE, is {text!r}")
    return name, value


# --- Conventions of recordings ----------------------------------------------------------------


def add_convention_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the conventions that map names and efforts of a recording to the robot's."""
    group = parser.add_argument_group("conventions of the recording, each option may be repeated")
    renaming = "replace a regular expression in the names of joints, such as ^left_= to remove a prefix"
    add_repeated(group, "--rename", "PATTERN=REPLACEMENT", _renaming, renaming)
    for name, what in (("scale", "effort for a recorded 1, such as N m/A"), ("offset", "added to efforts, N m or N")):
        of_joints = f"{what}, of all joints or of one of the robot"
        add_repeated(group, f"--effort-{name}", "[JOINT=]X", named("JOINT", any_number), of_joints)


def conventions(options: argparse.Namespace) -> Conventions:
    """Return the conventions that the arguments describe."""
    from ..recording_options import Conventions  # needs the libraries for bags

    scale, offset = (
        tuple((joint or None, x) for joint, x in given) for given in (options.effort_scale, options.effort_offset)
    )
    return Conventions(tuple(options.rename), scale, offset)


def _renaming(text: str) -> tuple[str, str]:
    pattern, assigned, replacement = text.rpartition("=")
    if not (pattern and assigned):
        raise argparse.ArgumentTypeError(f"must be PATTERN=REPLACEMENT, is {text!r}")
    try:
        # A template is checked where it is used: a group that does not exist is found by a match only.
        re.sub(f"{pattern}|", replacement, "")
    except (re.error, IndexError) as error:
        raise argparse.ArgumentTypeError(
            f"must be a regular expression and its replacement, is {text!r}: {error}"
        ) from None
    return pattern, replacement
