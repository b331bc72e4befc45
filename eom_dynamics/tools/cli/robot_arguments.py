# SPDX-License-Identifier: Apache-2.0
"""Arguments that name a robot and the part of it to use, the same in every command that takes a robot."""

from __future__ import annotations

import argparse
from typing import Any

from ...robot import Robot, packaged_robots
from ...robot.assembly import UNPHYSICAL
from ...robot.subtree import BRANCHES
from ..robot_options import RobotOptions

_ENDINGS = ("yaml", "yml", "urdf", "xacro")


def add_robot_arguments(parser: argparse.ArgumentParser, name: str = "robot", note: str = "", **keywords: Any) -> None:
    """Add ROBOT and the options that select a part of it.

    Args:
        parser: of the command.
        name: ``robot`` for a positional argument, ``--robot`` for an option.
        note: end of the help text, such as the default.
        keywords: further settings of the argument, as for ``add_argument``.
    """
    sources = f"packaged robot ({', '.join(packaged_robots())}), or .yaml, .urdf or .xacro file"
    robot: Any = parser.add_argument(name, metavar="ROBOT", help=f"{sources}{note}", **keywords)
    robot.completer = _completions  # read by argcomplete
    part = parser.add_argument_group("part of the robot")
    part.add_argument("--root", metavar="LINK", help="link to use as the base; default: the root of the description")
    part.add_argument(
        "--tip",
        metavar="LINK",
        action="append",
        default=[],
        help="link where the robot ends; may be repeated; default: all links below the root",
    )
    part.add_argument(
        "--tool",
        metavar="LINK",
        action="append",
        default=[],
        help="link or frame where an external wrench acts; may be repeated; default: the tips, else the last body",
    )
    part.add_argument(
        "--branches",
        choices=BRANCHES,
        help="how to treat joints that lead to no tip: freeze at zero and keep their inertia, or leave out; "
        f"default: that of the file, else {BRANCHES[0]}",
    )
    part.add_argument(
        "--unphysical",
        choices=UNPHYSICAL,
        help="how to treat inertia that no body can have; default: warn for URDF and xacro, refuse for .yaml",
    )
    part.add_argument(
        "--xacro",
        metavar="NAME:=VALUE",
        type=_assignment,
        action="append",
        default=[],
        help="argument of a xacro file; may be repeated",
    )


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
    """Load the robot that the arguments name.

    Raises:
        RobotDescriptionError: it cannot be used as described.
    """
    return robot_options(arguments).load(arguments.robot)


def _completions(prefix: str, **_: Any) -> list[str]:
    """Complete a packaged robot's name, or the path of a file that may describe a robot."""
    from argcomplete.completers import FilesCompleter

    return [*packaged_robots(), *FilesCompleter(_ENDINGS)(prefix)]


def _assignment(text: str) -> tuple[str, str]:
    name, assigned, value = text.partition(":=")
    if not (name and assigned):
        raise argparse.ArgumentTypeError(f"must be NAME:=VALUE, is {text!r}")
    return name, value
