# SPDX-License-Identifier: Apache-2.0
"""Units of the joints of a record."""

from __future__ import annotations

from collections.abc import Sequence

from ...units import unit
from ..pages.units import effort_units, milli, position_units
from .record import Record

_PAIR = ("_agonist", "_antagonist")


class Units:
    """Units by joint; those of revolute joints if the robot is unknown."""

    def __init__(self, record: Record) -> None:
        robot = record.robot
        names = () if robot is None else robot.joint_names
        self._position = {} if robot is None else dict(zip(names, position_units(robot), strict=True))
        self._effort = {} if robot is None else dict(zip(names, effort_units(robot), strict=True))

    def position(self, joints: Sequence[str], suffix: str = "") -> tuple[str, ...]:
        """Return rad or m for each joint or motor, with a suffix such as ``/s``."""
        return tuple(self._position.get(_joint(name), unit("position")) + suffix for name in joints)

    def milli(self, joints: Sequence[str]) -> tuple[str, ...]:
        """Return mrad or mm for each joint."""
        return milli(self.position(joints))

    def effort(self, joints: Sequence[str], suffix: str = "") -> tuple[str, ...]:
        """Return N m or N for each joint or motor, with a suffix."""
        return tuple(self._effort.get(_joint(name), unit("effort")) + suffix for name in joints)


def _joint(motor: str) -> str:
    """Return the joint of a motor: of the same name, or without the suffix of an antagonistic pair."""
    return next((motor[: -len(end)] for end in _PAIR if motor.endswith(end)), motor)
