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

# A spring that its own arm deflects by more, rad, is softer than any.
_LARGEST_SAG = 0.5

# A rotor that is lighter than this share of the links, with a gear, lacks the square of the ratio, if with it is not.
_LIGHT, _GEARED = 1e-3, 10.0

# No motor has a larger torque constant, N m/A.
_LARGEST_CONSTANT = 5.0

USUAL_PERIOD = 1e-3
"""Of commands, s, where the robot's file names none."""


def elastic_joints(robot: Robot) -> list[dict[str, Any]]:
    """Frequencies and static deflection of each elastic joint with a spring and a motor of its own.

    Returns:
        Dictionaries with ``joint``; ``link_frequency``, of the links on the spring with the motor at rest, and
        ``motor_frequency``, of the motor against the links, Hz, each alone, at q = 0 and unloaded stiffness; and
        ``sag``, the largest deflection under the arm's own weight within its limits, rad or m.
    """
    arm = ElasticArm(robot)
    elastic = np.flatnonzero(np.isfinite(arm.stiffness) & ~arm.paired & (arm.rotor_inertia > 0)).tolist()
    if not elastic:
        return []
    links = np.diagonal(arm.dynamics.mass_matrix(np.zeros(robot.n)))
    weight = np.abs(arm.dynamics.gravity(_poses(robot))).max(axis=0)
    return [
        {
            "joint": robot.joint_names[i],
            "link_frequency": float(np.sqrt(arm.stiffness[i] / links[i]) / (2 * np.pi)),
            "motor_frequency": float(
                np.sqrt(arm.stiffness[i] * (1 / links[i] + 1 / arm.rotor_inertia[i])) / (2 * np.pi)
            ),
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
        if row["sag"] > _LARGEST_SAG and joint.type != "prismatic":
            lines.append(
                f"{joint.name}: the arm's own weight deflects the spring by {row['sag']:.3g} rad; stiffness "
                f"{joint.stiffness:g} may be per degree: in N m/rad that is {joint.stiffness * 180 / np.pi:.4g}"
            )
        if row["motor_frequency"] > rate:
            lines.append(
                f"{joint.name}: the motor swings against the link at {row['motor_frequency']:.4g} Hz, above the "
                f"{rate:g} commands a second; check stiffness and rotor inertia"
            )
    for i, joint in enumerate(robot.independent_joints):
        ratio = abs(joint.gear_ratio)
        inertia, reflected = joint.rotor_inertia, joint.rotor_inertia * ratio**2
        if ratio >= _GEARED and 0 < inertia < _LIGHT * links[i] <= _LIGHT * reflected / 0.01:
            lines.append(
                f"{joint.name}: rotor inertia {inertia:g} is tiny beside the links' {links[i]:.3g}; behind the gear of "
                f"{joint.gear_ratio:g} it must have the square of the ratio: {reflected:.4g}"
            )
        constant = float(np.max(joint.actuator.motor.torque_constant))
        if constant > _LARGEST_CONSTANT:
            lines.append(
                f"{joint.name}: torque constant {constant:g} N m/A is larger than of any motor; in mN m/A it is "
                f"{constant / 1000:g} N m/A"
            )
        speed = float(np.min(joint.actuator.motor.speed_limit)) / ratio
        if speed < joint.limits.velocity < np.inf:
            lines.append(
                f"{joint.name}: the motor's speed limit is {speed:.4g} behind the gear, below the joint's velocity "
                f"limit {joint.limits.velocity:g}"
            )
    return lines


def _poses(robot: Robot) -> Array:
    """Zero, and poses within the limits, up to half a turn or a metre from zero."""
    lower, upper = (
        np.array([np.clip(getattr(joint.limits, side), -np.pi, np.pi) for joint in robot.independent_joints])
        for side in ("lower", "upper")
    )
    drawn = np.random.default_rng(0).uniform(lower, np.maximum(upper, lower), (_POSES, robot.n))
    return np.concatenate([np.zeros((1, robot.n)), drawn])
