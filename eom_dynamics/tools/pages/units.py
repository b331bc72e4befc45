# SPDX-License-Identifier: Apache-2.0
"""Units of joint quantities, of revolute and of prismatic joints."""

from __future__ import annotations

from collections.abc import Sequence

from ...robot import Robot
from ...units import unit

_MILLI = {"rad": "mrad", "m": "mm"}


def position_units(robot: Robot) -> tuple[str, ...]:
    """Return the unit of each independent joint variable (n,): rad if revolute, m if prismatic."""
    return tuple(unit("position", joint.type) for joint in robot.independent_joints)


def effort_units(robot: Robot) -> tuple[str, ...]:
    """Return the unit of each independent joint's effort (n,): N m if revolute, N if prismatic."""
    return tuple(unit("effort", joint.type) for joint in robot.independent_joints)


def milli(units: Sequence[str]) -> tuple[str, ...]:
    """Return a thousandth of each unit of position."""
    return tuple(_MILLI[unit] for unit in units)


def together(units: Sequence[str]) -> str:
    """Join the units of quantities on one axis: ``rad``, ``m``, or ``rad or m``."""
    return " or ".join(dict.fromkeys(units))
