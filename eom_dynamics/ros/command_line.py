# SPDX-License-Identifier: Apache-2.0
"""Command line of a node: ROS 2 arguments and ``--help``."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from rclpy.parameter import Parameter
from rclpy.utilities import remove_ros_args

from .node_parameters import Table

_WIDTH = 100


class Executable(NamedTuple):
    """Name and help text of an executable.

    Attributes:
        name: name of the executable.
        node: name of its node.
        description: one sentence.
        examples: examples, followed by topics, services and actions.
        parameters: parameters of the node.
    """

    name: str
    node: str
    description: str
    examples: str
    parameters: Table


def read_arguments(program: Executable, arguments: Sequence[str]) -> None:
    """Print ``--help`` or reject non-ROS arguments; both end the process, with exit code 0 or 2.

    Args:
        arguments: arguments of the process, starting with the program name; ROS arguments are left to rclpy.
    """
    parser = argparse.ArgumentParser(
        prog=program.name,
        usage=f"{program.name} [--ros-args [--params-file FILE] [-p NAME:=VALUE] [-r FROM:=TO] …]",
        description=f"{program.description} All arguments follow --ros-args.",
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
