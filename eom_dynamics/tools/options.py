# SPDX-License-Identifier: Apache-2.0
"""Options of :func:`eom_dynamics.load_robot`, and parameters of the node, as values to compare, store or send."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..arguments import option
from ..control.settings import DEFAULTS, LEVELS, LIMIT_POLICIES, SETTINGS
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


def node_parameter(text: str) -> tuple[str, Any]:
    """Name and value of ``NAME=VALUE``, of a parameter of the node; raises ValueError for another text."""
    name, _, value = text.partition("=")
    known = [key for key in DEFAULTS if key not in _OTHERS]
    if name not in known:
        raise ValueError(f"must be NAME=VALUE of {', '.join(known)}, is {text!r}")
    if choices := SETTINGS[name].choices:
        if value not in choices:
            raise ValueError(f"{name} must be one of {', '.join(choices)}, is {value!r}")
        return name, value
    try:
        return name, float(value)
    except ValueError:
        raise ValueError(f"{name} must be a number, is {value!r}") from None


# An option of its own; and when setpoints are lost, which the recorded commands say.
_OTHERS = ("limits", "on_setpoint_loss", "setpoint_timeout")


@dataclass(frozen=True)
class CommandOptions:
    """Parameters of the node, by their names there.

    Attributes:
        safety: level of safety by which setpoints are answered or refused, as by the node; measured and planned motions
            are all answered.
        limits: what to do with setpoints that exceed limits of joints or motors: do not check, report them, refuse
            them, clip efforts and report it, or (not in the node) report them and exit with code 1; default: set
            by safety.
        command_lead: time by which commands are ahead of setpoints, s; default: the recording's, else the value of
            the robot's file; measured and planned motions: 0.
        parameters: another parameter of the node on which commands depend, such as stop_duration; an unknown
            name lists them.
    """

    safety: str = option("strict", choices=LEVELS)
    limits: str | None = option(None, choices=(*LIMIT_POLICIES, "fail"))
    command_lead: float | None = option(rule="not negative", metavar="S")
    parameters: tuple[tuple[str, Any], ...] = option((), flag="--parameter", metavar="NAME=VALUE", parse=node_parameter)
