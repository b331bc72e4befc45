# SPDX-License-Identifier: Apache-2.0
"""Writers of robot descriptions, with their common result, list of losses, and exact number format."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ...actuators.actuator import Actuator
from ...actuators.drive_units import SI_UNITS
from ...actuators.friction import FRICTIONLESS, Friction
from ...arrays import Array
from ..inertia import Inertial
from ..model import ENDS, Joint, Robot

# Rounding error of the shift to the center of mass, relative to the inertia about the origin.
_ROUNDING = 1e-15


@dataclass(frozen=True)
class Written:
    """Robot as text, with a line for each property, by name, that the format cannot express."""

    text: str
    lost: tuple[str, ...]


def moments(body: Inertial) -> list[float]:
    """Return inertia xx xy xz yy yz zz about a body's center of mass, kg m², with rounding of zeros removed."""
    scale = float(np.max(np.abs(body.about_origin)))
    about_center = np.where(np.abs(body.about_center_of_mass) <= _ROUNDING * scale, 0.0, body.about_center_of_mass)
    return [float(about_center[i, j]) for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))]


def rpy(rotation: Array) -> list[float]:
    """Return roll, pitch and yaw, rad, of a rotation matrix (3, 3); accurate even at a pitch of ±pi/2."""
    R = rotation
    yaw = math.atan2(R[1, 0], R[0, 0])
    s, c = math.sin(yaw), math.cos(yaw)
    roll = math.atan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return [roll, math.atan2(-R[2, 0], c * R[0, 0] + s * R[1, 0]), yaw]


def losses_of_rigid(joint: Joint) -> tuple[float, float]:
    """Damping and dry friction of a rigid joint: friction of the joint and of its motor."""
    friction = joint.actuator.friction
    return joint.damping + float(friction.viscous), joint.friction + float(friction.coulomb)


def has_more(actuator: Actuator, *, limit: bool = False) -> bool:
    """True if an actuator has properties beyond viscous and dry friction and, with ``limit``, a torque limit."""
    friction, motor = actuator.friction, actuator.motor
    written = Friction(viscous=friction.viscous, coulomb=friction.coulomb, static=friction.coulomb)
    others = replace(actuator, friction=FRICTIONLESS, motor=replace(motor, torque_limit=np.inf) if limit else motor)
    constants = [x for x in astuple(others.motor) if np.isfinite(x)]
    ideal = actuator.gear.is_lossless and not constants
    return not ideal or not np.array_equal(astuple(friction), astuple(written), equal_nan=True)


LOST: Mapping[str, Callable[[Joint], object]] = {
    "springs (elasticity)": lambda joint: joint.mimic is None and not joint.spring.is_rigid,
    "losses and constants of actuators": lambda joint: joint.mimic is None and has_more(joint.actuator),
    "constant efforts": lambda joint: joint.constant_effort,
    "parallel springs": lambda joint: joint.parallel_spring,
    "units of drives": lambda joint: joint.mimic is None and joint.drive != SI_UNITS,
    "deviations of efforts (effort_spread)": lambda joint: joint.effort_spread is not None,
    "rotor mounts": lambda joint: joint.mimic is None and joint.rotor_mount is not None,
    "limits of acceleration, jerk and effort rate": lambda joint: (
        joint.limits.known.keys() - {*ENDS, "velocity", "effort"}
    ),
}
"""Properties that formats for rigid robots cannot express, with a test for joints."""


def left_out(robot: Robot, lost: Mapping[str, Callable[[Joint], object]] = LOST) -> list[str]:
    """Return a line for each property that a format cannot express: properties ``lost`` of joints, and of the robot."""
    joints_by_loss = {what: [joint.name for joint in robot.joints if is_lost(joint)] for what, is_lost in lost.items()}
    lines = [f"{what} are omitted: {', '.join(names)}" for what, names in joints_by_loss.items() if names]
    for what, shared in (("coupled_stiffness", robot.coupled_stiffness), ("transmission", robot.transmission)):
        if shared is not None:
            lines.append(f"{what} is omitted: {', '.join(robot.joint_names[i] for i in shared[0])}")
    if robot.compensated_by_robot:
        lines.append(f"compensated_by_robot {', '.join(robot.compensated_by_robot)} is omitted")
    lines += [f"{name} is omitted" for name in ("drive_feedback_delay", "uncertainty") if any(getattr(robot, name))]
    if robot.rotor_model != "reduced":
        lines.append(f"rotor_model {robot.rotor_model} is omitted")
    if robot.implausible != "refuse":
        lines.append(f"implausible: {robot.implausible} is omitted")
    if robot.moving_base:
        lines.append("moving_base is omitted")
    if robot.command_lead or robot.drive_interpolation != type(robot).drive_interpolation:
        lines.append(
            f"command_period {robot.command_period:g} s, drive_delay {robot.drive_delay:g} s and drive_interpolation "
            f"{robot.drive_interpolation} are omitted"
        )
    return lines


def attributes(**values: float) -> dict[str, str]:
    """Return XML attributes for the numbers that are not zero."""
    return {name: word(value) for name, value in values.items() if value}


def words(values: ArrayLike) -> str:
    """Return numbers as text that reads back exactly, separated by blanks."""
    return " ".join(map(word, np.asarray(values, dtype=float).tolist()))


def word(value: float) -> str:
    """Return a number as text that reads back exactly."""
    return repr(float(value))
