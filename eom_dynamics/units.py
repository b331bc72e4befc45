# SPDX-License-Identifier: Apache-2.0
"""Units of the quantities of joints and motors, as text."""

from __future__ import annotations

UNITS = {
    "position": "rad",
    "velocity": "rad/s",
    "acceleration": "rad/s²",
    "jerk": "rad/s³",
    "snap": "rad/s⁴",
    "effort": "N m",
    "effort_rate": "N m/s",
    "effort_acceleration": "N m/s²",
    "motor_position": "rad",
    "motor_velocity": "rad/s",
    "motor_acceleration": "rad/s²",
    "motor_effort": "N m",
}
"""Of joints, and of motors reflected to the link side of their gears; for revolute and helical joints."""

SHAFT_UNITS = {"speed": "rad/s", "torque": "N m", "current": "A", "voltage": "V"}
"""Of motor shafts, before the gear."""


def unit(quantity: str, joint_type: str = "revolute") -> str:
    """The unit of a quantity of UNITS at a joint."""
    return at_joint(UNITS[quantity], joint_type)


def at_joint(turning: str, joint_type: str) -> str:
    """A unit of revolute joints, or that in its place at prismatic joints: m, N and kg for rad, N m and kg m²."""
    if joint_type != "prismatic":
        return turning
    return turning.replace("N m", "N").replace("kg m²", "kg").replace("rad", "m")
