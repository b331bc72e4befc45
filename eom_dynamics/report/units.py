# SPDX-License-Identifier: Apache-2.0
"""Units of the joints that a record names."""

from __future__ import annotations

from collections.abc import Sequence

from ..pages.units import effort_units, milli, position_units
from .record import Record

_PAIR = ("_agonist", "_antagonist")


class Units:
    """Units by joint; where the robot is not known those of joints that turn, which most do."""

    def __init__(self, record: Record) -> None:
        robot = record.robot
        names = () if robot is None else robot.joint_names
        self._position = {} if robot is None else dict(zip(names, position_units(robot), strict=True))
        self._effort = {} if robot is None else dict(zip(names, effort_units(robot), strict=True))

    def position(self, joints: Sequence[str], suffix: str = "") -> tuple[str, ...]:
        """rad or m of joints or their motors, with a suffix such as ``/s``."""
        return tuple(self._position.get(_joint(name), "rad") + suffix for name in joints)

    def velocity(self, joints: Sequence[str]) -> tuple[str, ...]:
        """rad/s or m/s."""
        return self.position(joints, "/s")

    def milli(self, joints: Sequence[str]) -> tuple[str, ...]:
        """mrad or mm."""
        return milli(self.position(joints))

    def effort(self, joints: Sequence[str], suffix: str = "") -> tuple[str, ...]:
        """N m or N, with a suffix."""
        return tuple(self._effort.get(_joint(name), "N m") + suffix for name in joints)


def _joint(motor: str) -> str:
    """The joint of a motor: its own name, or of one of a pair the name without what tells them apart."""
    return next((motor[: -len(end)] for end in _PAIR if motor.endswith(end)), motor)
