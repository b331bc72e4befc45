# SPDX-License-Identifier: Apache-2.0
"""Fields of messages, by the streams of a record that they belong to."""

from __future__ import annotations

MOTION = ("position", "velocity", "acceleration", "jerk", "snap")
EFFORTS = ("effort", "effort_rate", "effort_acceleration")
MOTORS = ("motor_position", "motor_velocity", "motor_acceleration", "motor_effort")
MEASURED = ("position", "velocity", "effort")

MOTOR_SETPOINT = {"motor_position": "position", "motor_velocity": "velocity", "motor_effort": "effort"}
"""Fields of motors, by those of the JointState on the topic motor_setpoint."""
