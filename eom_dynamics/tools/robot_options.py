# SPDX-License-Identifier: Apache-2.0
"""Options of :func:`eom_dynamics.load_robot` as a value to compare, store or send to another process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..arguments import option
from ..robot import Robot, load_robot
from ..robot.assembly import UNPHYSICAL
from ..robot.tree import BRANCHES


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
        root: link to use as the base; default: the root of the description.
        tip: link where the robot ends; default: all links below the root.
        tools: link or frame where an external wrench acts; default: the tips, else the last body.
        branches: how to treat branches without a tip: lock at zero and keep their inertia, or leave out; default: that
            of the file, else lump.
        unphysical: how to treat physically inconsistent inertia; default: refuse for .yaml, warn for others.
        xacro_arguments: argument of a xacro file.
    """

    root: str | None = option(metavar="LINK")
    tip: tuple[str, ...] = option((), metavar="LINK")
    tools: tuple[str, ...] = option((), flag="--tool", metavar="LINK")
    branches: str | None = option(choices=BRANCHES)
    unphysical: str | None = option(choices=UNPHYSICAL)
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
