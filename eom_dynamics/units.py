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
    """The unit of a quantity of UNITS: m and N stand for rad and N m at prismatic joints."""
    turning = UNITS[quantity]
    return turning.replace("N m", "N").replace("rad", "m") if joint_type == "prismatic" else turning
