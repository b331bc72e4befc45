# SPDX-License-Identifier: Apache-2.0
"""Units of joint quantities: joints that turn have others than joints that slide."""

from __future__ import annotations

from collections.abc import Sequence

from ..robot import Robot

_MILLI = {"rad": "mrad", "m": "mm"}


def position_units(robot: Robot) -> tuple[str, ...]:
    """Unit of each independent joint variable (n,): rad of joints that turn, m of those that slide."""
    return _units(robot, "rad", "m")


def effort_units(robot: Robot) -> tuple[str, ...]:
    """Unit of each independent joint's effort (n,): N m of joints that turn, N of those that slide."""
    return _units(robot, "N m", "N")


def milli(units: Sequence[str]) -> tuple[str, ...]:
    """A thousandth of each unit of a position."""
    return tuple(_MILLI[unit] for unit in units)


def together(units: Sequence[str]) -> str:
    """The unit of an axis on which quantities of these units are drawn: ``rad``, ``m``, or ``rad or m``."""
    return " or ".join(dict.fromkeys(units))


def position_unit(robot: Robot) -> str:
    """Unit of an axis for all joint variables of a robot."""
    return together(position_units(robot))


def _units(robot: Robot, turning: str, sliding: str) -> tuple[str, ...]:
    return tuple(sliding if joint.type == "prismatic" else turning for joint in robot.independent_joints)
