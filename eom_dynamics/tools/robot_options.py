# SPDX-License-Identifier: Apache-2.0
"""Options of :func:`eom_dynamics.load_robot` as a value to compare, store or send to another process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..robot import Robot, load_robot


@dataclass(frozen=True)
class RobotOptions:
    """Part of a robot to load, and how to read its description; by default all of it.

    Attributes:
        root: link to use as the base, or None for the robot's own.
        tip: links where the robot ends.
        tools: links or frames where external wrenches act.
        branches: how to treat joints that lead to no tip, ``lump`` or ``drop``; None for the default of the source.
        unphysical: how to treat physically inconsistent inertia, ``refuse`` or ``warn``; None for the default of the
            source.
        xacro_arguments: names and values of the arguments of a xacro file.
    """

    root: str | None = None
    tip: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    branches: str | None = None
    unphysical: str | None = None
    xacro_arguments: tuple[tuple[str, str], ...] = ()

    def load(self, source: str) -> Robot:
        """Load a robot."""
        return load_robot(source, **{**vars(self), "xacro_arguments": dict(self.xacro_arguments)})

    def as_json(self) -> dict[str, Any]:
        """Return the options that are not the defaults, ready for JSON."""
        xacro = {"xacro_arguments": dict(self.xacro_arguments)} if self.xacro_arguments else {}
        return self.urdf_section() | xacro

    def urdf_section(self) -> dict[str, Any]:
        """Return these options as the ``urdf`` section of a parameter file, without the xacro arguments."""
        section = {
            "root": self.root,
            "tip": list(self.tip),
            "tools": list(self.tools),
            "branches": self.branches,
            "unphysical": self.unphysical,
        }
        return {name: value for name, value in section.items() if value}
