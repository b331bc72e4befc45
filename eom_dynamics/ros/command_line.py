# SPDX-License-Identifier: Apache-2.0
"""Command line of a node: that of every ROS 2 node, with ``--help``."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from rclpy.parameter import Parameter
from rclpy.utilities import remove_ros_args

from .parameters import Table

_WIDTH = 100


class Program(NamedTuple):
    """What ``--help`` says of an executable.

    Attributes:
        name: of the executable.
        node: of its node.
        description: one sentence.
        examples: of its use, and its topics, services and actions.
        parameters: of the node.
    """

    name: str
    node: str
    description: str
    examples: str
    parameters: Table


def read_arguments(program: Program, arguments: Sequence[str]) -> None:
    """Answer ``--help``, and refuse arguments that are not of ROS 2; both end the process, with exit code 0 or 2.

    Args:
        program: the executable.
        arguments: of the process, the program first. Those of ROS 2 are left to rclpy.
    """
    parser = argparse.ArgumentParser(
        prog=program.name,
        usage=f"{program.name} [--ros-args [--params-file FILE] [-p NAME:=VALUE] [-r FROM:=TO] …]",
        description=f"{program.description} All its arguments follow --ros-args.",
        epilog="\n".join(
            [
                program.examples,
                "parameters (robot.* and urdf.* describe the robot: docs/robots.md, docs/node.md):",
                *_lines(program.parameters),
            ]
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _, unknown = parser.parse_known_args(remove_ros_args(list(arguments))[1:])
    if unknown:
        parser.error(f"unknown arguments: {' '.join(unknown)}; parameters and remappings follow --ros-args")


def _lines(table: Table) -> list[str]:
    lines = []
    for name, definition in table.items():
        default = definition.default
        shown = "" if default == "" or isinstance(default, Parameter.Type) else f" (default: {str(default).lower()})"
        first, *rest = textwrap.wrap(definition.description + shown, _WIDTH - 22)
        lines += [f"  {name:<19} {first}", *(f"{'':22}{line}" for line in rest)]
    return lines
