# SPDX-License-Identifier: Apache-2.0
"""Options of :func:`eom_dynamics.load_robot` as a value to compare, store or send to another process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..arguments import option
from ..robot import Robot, load_robot


def xacro_argument(text: str) -> tuple[str, str]:
    """Name and value of ``NAME:=VALUE``; raises ValueError for another text."""
    name, assigned, value = text.partition(":=")
    if not (name and assigned):
        raise ValueError(f"must be NAME:=VALUE, is {text!r}")
    return name, value


@dataclass(frozen=True)
class RobotOptions:
    """Part of the robot.

    Attributes:
        tip: link where the robot ends; default: all links below the root.
        tools: link or frame where an external wrench acts; default: the tips, else the last body.
        xacro_arguments: argument of a xacro file.
    """

    tip: tuple[str, ...] = option((), metavar="LINK")
    tools: tuple[str, ...] = option((), flag="--tool", metavar="LINK")
    xacro_arguments: tuple[tuple[str, str], ...] = option(
        (), flag="--xacro", metavar="NAME:=VALUE", parse=xacro_argument
    )

    def load(self, source: str) -> Robot:
        """Load a robot."""
        return load_robot(source, **{**vars(self), "xacro_arguments": dict(self.xacro_arguments)})

    def as_json(self) -> dict[str, Any]:
        """Return the options that are not the defaults, ready for JSON."""
        xacro = {"xacro_arguments": dict(self.xacro_arguments)} if self.xacro_arguments else {}
        return self.urdf_section() | xacro

    def urdf_section(self) -> dict[str, Any]:
        """Return these options as the ``urdf`` section of a parameter file, without the xacro arguments."""
        chosen = {name: x for name, x in vars(self).items() if x and name != "xacro_arguments"}
        return {name: list(x) if isinstance(x, tuple) else x for name, x in chosen.items()}
