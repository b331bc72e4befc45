# SPDX-License-Identifier: Apache-2.0
"""Programs that convert commands to drive commands, and drive reports to SI units.

A robot that compensates gravity, or other efforts, adds them at its measured state on the link side of the gears. These
efforts are subtracted from the drive command, at the state of the command. They reach the motors through a transmission
without gear loss; the loss remains in the drive command. Two motors of a joint share equally.

A drive compares its references with measurements of age a. References are therefore sent for the motion of that age,

    theta(t - a) = theta - a thetad + a²/2 thetadd,    thetad(t - a) = thetad - a thetadd.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .. import recursion
from ..actuators.drive_units import SIDES, DriveScales
from ..actuators.parameters import ParameterError
from ..arrays import EFFORT_NAMES, PAYLOAD_NAMES, STATE_NAMES, Array
from ..codegen.expressions import Partials, Scalar
from ..codegen.program import Program, Sizes, trace
from ..codegen.programs import WITH_PAYLOAD, carrying_jets
from ..exceptions import RobotDescriptionError
from ..jet import Jet
from ..recursion import PARAMETERS
from ..robot import Robot
from ..vectors import FAMILIES
from .limit_violations import LimitViolation
from .motor_programs import MOTOR_NAMES, Vectors
from .motor_side import MotorSide


class Drive(NamedTuple):
    """Motion, torque, current and voltage of m motors before their gears, each (m,) or (N, m).

    Attributes:
        position, velocity, acceleration: shaft motion, rad, and per s, s².
        torque: shaft torque, N m.
        current, voltage: motor current, A, and voltage, V; NaN if the motor constants are unknown.
        exceeded: limits that the command violates, before any clipping.
    """

    position: Array
    velocity: Array
    acceleration: Array
    torque: Array
    current: Array
    voltage: Array
    exceeded: tuple[LimitViolation, ...]


DRIVE_NAMES, SENT_NAMES = (FAMILIES[name].names for name in ("drive_position", "sent_effort"))
"""Names of drive numbers, and of sent joint efforts with their time derivative."""

SHARE = "share"
"""Name of the subtracted or added share of the robot's own efforts and its rate: (1, 0) except while efforts fade."""

OWN_MOTORS = (*MOTOR_NAMES[:2], MOTOR_NAMES[3])
"""Motor position, velocity and effort, in SI units."""


class DriveCommand(NamedTuple):
    """Drive command: motor quantities in drive units, joint efforts in SI units.

    Attributes:
        position, velocity, effort: references of the m drives, each (m,) or (N, m).
        joint_effort, joint_effort_rate: joint efforts (n,) or (N, n), N m or N, and per s.
    """

    position: Array
    velocity: Array
    effort: Array
    joint_effort: Array
    joint_effort_rate: Array


class DriveState(NamedTuple):
    """Motors in SI units on the link side of their gears, each (m,) or (N, m), as :class:`.Feedforward`."""

    motor_position: Array
    motor_velocity: Array
    motor_effort: Array


def drive_command(robot: Robot, side: MotorSide, *, payload: bool = False) -> Program:
    """Drive command for a feedforward command; on request with payloads that the robot compensates."""
    n, m = robot.n, len(side.motor_joint)
    inputs: dict[str, int] = dict.fromkeys((*STATE_NAMES[:3], *EFFORT_NAMES[:2]), n) | dict.fromkeys(MOTOR_NAMES, m)
    inputs |= {SHARE: 2} | (dict.fromkeys(PAYLOAD_NAMES[:2], PARAMETERS * len(robot.tools)) if payload else {})

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        share, share_rate = x[SHARE]
        joints, motors = _own_efforts(robot, side, x)
        changing = [(STATE_NAMES[0], STATE_NAMES[1]), (STATE_NAMES[1], STATE_NAMES[2])]
        changing += [(PAYLOAD_NAMES[0], PAYLOAD_NAMES[1])] if payload else []
        pairs = [pair for name, rate in changing for pair in zip(x[name], x[rate], strict=True)]
        along = Partials(pairs[0][0], along=pairs)
        position, velocity = _aged(robot, *(x[name] for name in MOTOR_NAMES[:3]))
        rows = zip(scales(robot, side), position, velocity, x[MOTOR_NAMES[3]], motors, strict=True)
        drives = [
            [scale.position * a + scale.offset, scale.velocity * b, scale.effort * (c - share * by_robot)]
            for scale, a, b, c, by_robot in rows
        ]
        tau, taud = (zip(x[name], joints, strict=True) for name in EFFORT_NAMES[:2])
        sent = [effort - share * added for effort, added in tau]
        sent_rate = [rate - (share * along(added) + share_rate * added) for rate, added in taud]
        return dict(zip((*DRIVE_NAMES, *SENT_NAMES), (*zip(*drives, strict=True), sent, sent_rate), strict=True))

    return trace("drive_command" + payload * WITH_PAYLOAD, inputs, compute)


def _aged(
    robot: Robot, position: Sequence[Any], velocity: Sequence[Any], acceleration: Sequence[Any]
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Motor positions and velocities at the measurement times of the drives."""
    age, rate_age = robot.drive_feedback_delay
    if age:
        rows = zip(position, velocity, acceleration, strict=True)
        position = [theta - (thetad - thetadd * (0.5 * age)) * age for theta, thetad, thetadd in rows]
    if rate_age:
        velocity = [thetad - thetadd * rate_age for thetad, thetadd in zip(velocity, acceleration, strict=True)]
    return position, velocity


def drive_state(robot: Robot, side: MotorSide) -> Program:
    """Motors in SI units from drive reports, with a share of the efforts that the robot adds at q and qd."""
    n, m = robot.n, len(side.motor_joint)
    inputs: Sizes = dict.fromkeys(STATE_NAMES[:2], n) | dict.fromkeys(DRIVE_NAMES, m) | {SHARE: 2}

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        share, _ = x[SHARE]
        rows = list(zip(scales(robot, side), *(x[name] for name in DRIVE_NAMES), strict=True))
        velocity = [b * (1 / scale.velocity) for scale, _, b, _ in rows]
        _, motors = _own_efforts(robot, side, {**x, MOTOR_NAMES[1]: velocity})
        position = [(a - scale.offset) * (1 / scale.position) for scale, a, _, _ in rows]
        effort = [c * (1 / scale.effort) + share * added for (scale, *_, c), added in zip(rows, motors, strict=True)]
        return dict(zip(OWN_MOTORS, (position, velocity, effort), strict=True))

    return trace("drive_state", inputs, compute)


def scales(robot: Robot, side: MotorSide) -> list[DriveScales]:
    """Drive units of each motor; RobotDescriptionError if a joint lacks an entry that they need."""
    rows = []
    for joint in (robot.independent_joints[i] for i in side.motor_joint):
        try:
            rows.append(joint.drive.scales(joint.gear_ratio, float(joint.actuator.motor.torque_constant)))
        except ParameterError as error:
            raise RobotDescriptionError(f"{robot.name}: {joint.name}: drive.{error.name}: {error.reason}") from None
    return rows


def drive_sides(robot: Robot, side: MotorSide) -> tuple[str, ...]:
    """Side of the gear on which the drive of each motor counts, one of SIDES."""
    return tuple(robot.independent_joints[joint].drive.side or SIDES[0] for joint in side.motor_joint)


def sides_text(names: Sequence[str], sides: Sequence[str]) -> str:
    """Sides of motors in words: ``joint``, or ``joint (shoulder), motor (elbow)`` if they differ."""
    motors = {
        side: [name for name, x in zip(names, sides, strict=True) if x == side] for side in SIDES if side in sides
    }
    return next(iter(motors)) if len(motors) == 1 else ", ".join(f"{x} ({', '.join(y)})" for x, y in motors.items())


def _own_efforts(robot: Robot, side: MotorSide, x: Mapping[str, Sequence[Any]]) -> tuple[list[Scalar], list[Scalar]]:
    """Efforts that the robot adds, at the joints and at the motors on the link side of the gears."""
    compensated, n = robot.compensated_by_robot, robot.n
    tree, rest, zero = recursion.link_tree(robot), [0.0] * n, np.zeros(3)
    at_joints: list[Scalar] = [0.0] * n
    if "gravity" in compensated or "coriolis" in compensated:
        loaded = carrying_jets(tree, [x[name] for name in PAYLOAD_NAMES[:1] if name in x])
        moved = replace(loaded, friction=())
        if "gravity" not in compensated:
            moved = replace(moved, gravity=zero, passive=())
        rates = x[STATE_NAMES[1]] if "coriolis" in compensated else rest
        (at_joints,) = recursion.inverse_dynamics(moved, [x[STATE_NAMES[0]], rates, rest])
    if "friction" in compensated:
        friction_efforts = tree.joint_friction([x[STATE_NAMES[1]]])
        at_joints = [effort + jet[0] for effort, jet in zip(at_joints, friction_efforts, strict=True)]
    at_motors = side.motor_shares(at_joints)
    if "friction" in compensated:
        laws = [side.actuators[joint].friction for joint in side.motor_joint]
        rows = zip(at_motors, laws, x[MOTOR_NAMES[1]], strict=True)
        at_motors = [effort + law.effort_jet(Jet([velocity]))[0] for effort, law, velocity in rows]
    return at_joints, at_motors
