# SPDX-License-Identifier: Apache-2.0
"""Arms that are not quite as their file says."""

from __future__ import annotations

from dataclasses import replace

from ..robot import Robot


def with_model_error(robot: Robot, *, stiffness: float = 0.0, mass: float = 0.0) -> Robot:
    """The robot with other springs and bodies; rotors stay.

    Args:
        robot: as its file says.
        stiffness: relative change of all spring stiffnesses: 0.1 is 10 % stiffer.
        mass: relative change of all masses and with them of all inertias, at the same centres of mass.

    Returns:
        The changed robot.
    """
    joints = tuple(
        replace(
            joint,
            mass=joint.mass * (1 + mass),
            inertia_about_origin=joint.inertia_about_origin * (1 + mass),
            stiffness=joint.stiffness * (1 + stiffness),
        )
        for joint in robot.joints
    )
    return replace(robot, joints=joints)
