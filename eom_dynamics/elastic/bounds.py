# SPDX-License-Identifier: Apache-2.0
"""Limits of an arm's joints and motors, by quantity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..exceptions import TrajectoryError
from ..robot import Robot
from ..robot.model import NO_LIMITS, Limits
from ..spelling import hint
from ..units import SHAFT_UNITS, unit
from .elastic_arm import ElasticArm

_OF_JOINTS = ("position", "velocity", "acceleration", "jerk", "effort", "effort_rate")

UNITS = {name: unit(name) for name in _OF_JOINTS} | {f"motor_{name}": text for name, text in SHAFT_UNITS.items()}
"""Units of the limited quantities; for prismatic joints, read m and N in place of rad and N m."""

GivenLimits = Mapping[str, Limits | Mapping[str, float]]
"""Limits by name of joint, in place of those in the robot's file: all of a joint's, or single ones by name."""

TOLERANCE = 1e-9
"""Relative violation of a limit up to which it is rounding."""


class Bounds(NamedTuple):
    """Limits of an arm.

    Attributes:
        names: by quantity, names of its joints or motors.
        units: by quantity, a unit for each name.
        largest: by quantity except the position, largest magnitude for each name; infinite without a limit.
        lower, upper: range of the position for each joint.
        effort_rms: largest root mean square of the effort of each motor over a motion, on the link side of its gear.
    """

    names: dict[str, tuple[str, ...]]
    units: dict[str, tuple[str, ...]]
    largest: dict[str, Array]
    lower: Array
    upper: Array
    effort_rms: Array

    def limited(self, *quantities: str) -> bool:
        """Whether any of these quantities has a limit."""
        return any(bool((self.largest[quantity] < np.inf).any()) for quantity in quantities)

    @property
    def quantities(self) -> list[str]:
        """Those with a limit, except the position."""
        return [quantity for quantity in self.largest if self.limited(quantity)]

    @property
    def of_motors(self) -> bool:
        """Whether any motor has limits."""
        return self.limited(*(f"motor_{name}" for name in SHAFT_UNITS))


def joint_limits(robot: Robot, limits: GivenLimits | None) -> dict[str, Limits]:
    """Limits of all joints by name, in the order of the robot.

    Args:
        robot: the robot, with those of its file.
        limits: by name of joint, in place of these: numbers by name of attribute of :class:`.Limits`, such as
            ``{"velocity": 1.0}``, or ``Limits`` in place of all of the joint's.

    Raises:
        TrajectoryError: a joint or a limit is unknown.
    """
    own = {joint.name: joint.limits for joint in robot.joints}
    for name, given in (limits or {}).items():
        if name not in own:
            raise TrajectoryError(f"limits of unknown joint {name!r}; {robot.name} has {', '.join(own)}")
        if isinstance(given, Limits):
            own[name] = given
            continue
        if not isinstance(given, Mapping):
            raise TrajectoryError(
                f"limits of {name!r} must be Limits or numbers by name, such as {{'velocity': 1.0}}, not "
                f"{type(given).__name__}"
            )
        if unknown := [quantity for quantity in given if quantity not in vars(NO_LIMITS)]:
            raise TrajectoryError(f"{name}: no limit is named {unknown[0]!r}; {hint(unknown[0], vars(NO_LIMITS))}")
        own[name] = replace(own[name], **given)
    return own


def bounds(arm: ElasticArm, limits: GivenLimits | None = None) -> Bounds:
    """Limits of an arm, including those of mimic joints.

    Args:
        arm: the arm.
        limits: as of :func:`joint_limits`, whose errors it raises.
    """
    joints, own = arm.robot.joints, joint_limits(arm.robot, limits)
    every = tuple(own)
    names, largest = {"position": every}, {}
    for quantity in ("velocity", "acceleration", "jerk"):
        names[quantity] = every
        largest[quantity] = np.array([getattr(own[name], quantity) for name in every])
    for quantity in ("effort", "effort_rate"):
        names[quantity] = arm.robot.joint_names
        largest[quantity] = np.array([getattr(own[name], quantity) for name in arm.robot.joint_names])
    for quantity in ("speed", "torque", "current", "voltage"):
        names[f"motor_{quantity}"] = arm.motor_names
        limit = getattr(arm.motor, f"{quantity}_limit")
        largest[f"motor_{quantity}"] = np.broadcast_to(np.asarray(limit, dtype=float), (len(arm.motor_names),))
    lower, upper = (np.array([getattr(own[name], side) for name in every]) for side in ("lower", "upper"))
    types = {joint.name: joint.type for joint in joints}
    units = {
        quantity: tuple(unit(quantity, types[name]) if quantity in _OF_JOINTS else text for name in names[quantity])
        for quantity, text in UNITS.items()
    }
    owners = [arm.robot.joint_names[i] for i in arm.motor_joint]
    names["effort_rms"], units["effort_rms"] = arm.motor_names, tuple(unit("effort", types[name]) for name in owners)
    return Bounds(names, units, largest, lower, upper, np.array([own[name].effort_rms for name in owners]))
