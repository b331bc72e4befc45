# SPDX-License-Identifier: Apache-2.0
"""Resonances and static deflection of elastic joints, and robot parameters that suggest unit errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays import Array
from ...elastic import ElasticArm
from ...robot import Robot

# Poses at which gravity is evaluated, besides zero.
_POSES = 200

# A spring that its own arm, or the joint's effort limit, deflects by more, rad, is softer than any.
_LARGEST_DEFLECTION = 0.3

# A rotor lighter than this share of the links, or than this before its gear, kg m², lacks the square of the ratio, if
# with it is not.
_LIGHT, _GEARED, _LIGHTEST = 1e-3, 10.0, 1e-8

# No motor has a larger torque constant, N m/A, and none so much more torque at its current limit than its torque limit.
_LARGEST_CONSTANT, _LARGEST_EXCESS = 5.0, 100.0

# No joint turns further, rad, without being continuous, or faster, rad/s.
_LARGEST_ANGLE, _LARGEST_VELOCITY = 20.0, 30.0

USUAL_PERIOD = 1e-3
"""Of commands, s, where the robot's file names none."""


def elastic_joints(robot: Robot) -> list[dict[str, Any]]:
    """Frequencies and static deflection of each elastic joint with springs and motors of its own.

    Returns:
        Dictionaries with ``joint``; ``link_frequency``, of the links on the spring with the motor at rest, and
        ``motor_frequency``, of the motor against the links, Hz, each alone, at q = 0 and unloaded stiffness; and
        ``sag``, the largest deflection under the arm's own weight within its limits, rad or m.
    """
    arm = ElasticArm(robot)
    # Of a pair, both motors turn against the link.
    rotors = np.where(arm.paired, 2.0, 1.0) * arm.rotor_inertia
    elastic = np.flatnonzero(np.isfinite(arm.stiffness) & (rotors > 0)).tolist()
    if not elastic:
        return []
    links = np.diagonal(arm.dynamics.mass_matrix(np.zeros(robot.n)))
    weight = np.abs(arm.dynamics.gravity(poses(robot))).max(axis=0)
    return [
        {
            "joint": robot.joint_names[i],
            "link_frequency": float(np.sqrt(arm.stiffness[i] / links[i]) / (2 * np.pi)),
            "motor_frequency": float(np.sqrt(arm.stiffness[i] * (1 / links[i] + 1 / rotors[i])) / (2 * np.pi)),
            "sag": float(weight[i] / arm.stiffness[i]),
        }
        for i in elastic
    ]


def warnings(robot: Robot, elastic: list[dict[str, Any]]) -> list[str]:
    """Warnings about implausible numbers, one sentence each.

    Args:
        robot: the robot.
        elastic: of :func:`elastic_joints`.
    """
    arm, lines = ElasticArm(robot), []
    links = np.diagonal(arm.dynamics.mass_matrix(np.zeros(robot.n)))
    names = robot.joint_names
    rate = 1 / (robot.command_period or USUAL_PERIOD)
    for row in elastic:
        joint = robot.independent_joints[names.index(row["joint"])]
        K = float(arm.stiffness[names.index(joint.name)])
        for effort, what in ((row["sag"] * K, "the arm's own weight"), (joint.limits.effort, "the effort limit")):
            if joint.type != "prismatic" and _LARGEST_DEFLECTION < effort / K < np.inf:
                lines.append(
                    f"{joint.name}: {what} deflects the spring by {effort / K:.3g} rad; stiffness {K:g} may be per "
                    f"degree: in N m/rad that is {K * 180 / np.pi:.4g}"
                )
                break
        if row["motor_frequency"] > rate:
            lines.append(
                f"{joint.name}: the motor swings against the link at {row['motor_frequency']:.4g} Hz, above the "
                f"{rate:g} commands a second; check stiffness and rotor inertia"
            )
    for i, joint in enumerate(robot.independent_joints):
        ratio = abs(joint.gear_ratio)
        inertia, reflected = joint.rotor_inertia, joint.rotor_inertia * ratio**2
        tiny = inertia < _LIGHT * links[i] or (joint.type != "prismatic" and inertia / ratio**2 < _LIGHTEST)
        if ratio >= _GEARED and inertia > 0 and tiny and links[i] <= reflected / 0.01:
            lines.append(
                f"{joint.name}: rotor inertia {inertia:g} is tiny beside the links' {links[i]:.3g} or for a motor; "
                f"behind the gear of {joint.gear_ratio:g} it must have the square of the ratio: {reflected:.4g}"
            )
        motor = joint.actuator.motor
        constant = float(np.max(motor.torque_constant))
        most = _LARGEST_EXCESS * float(np.min(motor.torque_limit / motor.current_limit))
        if constant > _LARGEST_CONSTANT or 0 < most < constant:
            lines.append(
                f"{joint.name}: torque constant {constant:g} N m/A is larger than of any motor, or than torque and "
                f"current limits allow; if it is in mN m/A, it is {constant / 1000:g} N m/A"
            )
        for name, value, largest in (
            ("lower", joint.limits.lower, _LARGEST_ANGLE),
            ("upper", joint.limits.upper, _LARGEST_ANGLE),
            ("velocity", joint.limits.velocity, _LARGEST_VELOCITY),
        ):
            if joint.type != "prismatic" and largest < abs(value) < np.inf:
                lines.append(
                    f"{joint.name}: limit {name} is {value:g} rad{'/s' if name == 'velocity' else ''}; if it is in "
                    f"degrees, it is {np.deg2rad(value):.4g}"
                )
        speed = float(np.min(motor.speed_limit)) / ratio
        if speed < joint.limits.velocity < np.inf:
            lines.append(
                f"{joint.name}: the motor's speed limit is {speed:.4g} behind the gear, below the joint's velocity "
                f"limit {joint.limits.velocity:g}"
            )
    return lines


def poses(robot: Robot) -> Array:
    """Zero, and poses within the limits, up to half a turn or a metre from zero."""
    lower, upper = (
        np.array([np.clip(getattr(joint.limits, side), -np.pi, np.pi) for joint in robot.independent_joints])
        for side in ("lower", "upper")
    )
    drawn = np.random.default_rng(0).uniform(lower, np.maximum(upper, lower), (_POSES, robot.n))
    return np.concatenate([np.zeros((1, robot.n)), drawn])
