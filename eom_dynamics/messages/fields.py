# SPDX-License-Identifier: Apache-2.0
"""Names of the fields of messages."""

STATE_FIELDS = ("position", "velocity", "acceleration", "jerk", "snap")
"""q to qdddd, in setpoints and requests."""

WRENCH_FIELDS = ("wrench", "wrench_rate", "wrench_acceleration")
"""Wrenches at the tools and their time derivatives, in setpoints and requests."""

STIFFNESS_FIELDS = ("stiffness", "stiffness_rate", "stiffness_acceleration")
"""Commanded stiffness and its time derivatives, in setpoints and requests."""

BASE_FIELD = "base"
"""Motion of the base, in setpoints and requests."""

ANGULAR_FIELDS = ("angular_velocity", "angular_acceleration", "angular_jerk", "angular_snap")
"""Angular velocity of a moving base and its time derivatives, in BaseMotion."""

FORCE_FIELDS = ("specific_force", "specific_force_rate", "specific_force_acceleration")
"""Specific force of a moving base and its time derivatives, in BaseMotion."""

BASE_SHAPE = (len(ANGULAR_FIELDS + FORCE_FIELDS), 3)
"""Shape of the numbers of a BaseMotion."""

EFFORT_FIELDS = ("effort", "effort_rate", "effort_acceleration")
"""Fields of commands and responses with one entry for each joint."""

MOTOR_FIELDS = ("motor_position", "motor_velocity", "motor_acceleration", "motor_effort")
"""Fields of commands and responses with one entry for each motor."""

COMMAND_FIELDS = EFFORT_FIELDS + MOTOR_FIELDS
"""Fields of commands and responses, in the order of :class:`eom_dynamics.Feedforward`."""

MEASURED_FIELDS = ("position", "velocity", "effort")
"""Fields of a JointState."""

MOTOR_SETPOINT_FIELDS = {"position": "motor_position", "velocity": "motor_velocity", "effort": "motor_effort"}
"""Fields of the JointState on the topic motor_setpoint, with the fields of the command that they repeat."""
