# SPDX-License-Identifier: Apache-2.0
"""Parameters of the node ``simulated_robot``."""

from __future__ import annotations

from functools import partial

from rclpy.parameter import Parameter

from ..parameters import COMMON, EXECUTOR, Definition, Table

_fixed = partial(Definition, read_only=True)

ARRAYS = ("initial_position", "kp", "kd")
"""Those that may be left out, and have one entry, or one for each joint or motor."""

TABLE: Table = {
    "command": _fixed(
        "motor_setpoint",
        "input of the drives: motor motion and effort from the topic motor_setpoint or feedforward, followed by a PD; "
        "or from the topic effort_command the motors' effort (motor_effort), or that at the link side of the joints "
        "(joint_effort), as of drives with ideal torque control",
        choices=("motor_setpoint", "feedforward", "motor_effort", "joint_effort"),
    ),
    "rate": _fixed(1000.0, "simulation steps per second", limits=(10.0, 20000.0)),
    "publish_rate": _fixed(500.0, "joint_states and motor_states per second, at most rate", limits=(0.1, 20000.0)),
    "initial_position": _fixed(
        Parameter.Type.DOUBLE_ARRAY, "of the joints, rad or m; one entry, or one for each (default: 0)"
    ),
    "natural_frequency": _fixed(
        70.0, "of a motor alone under its PD, rad/s; of a rigid joint with its links", limits=(0.0, 1e4)
    ),
    "damping_ratio": _fixed(1.0, "of the same", limits=(0.0, 100.0)),
    "kp": _fixed(Parameter.Type.DOUBLE_ARRAY, "PD gains instead, N m/rad or N/m; one entry, or one for each motor"),
    "kd": _fixed(Parameter.Type.DOUBLE_ARRAY, "PD gains instead, N m s/rad or N s/m; one entry, or one for each motor"),
    "limit_effort": _fixed(
        True, "whether motors are limited to the torque, current and voltage limits in the robot's file"
    ),
    "command_timeout": _fixed(0.1, "how long commands may be missing, in s; 0: for ever", limits=(0.0, 3600.0)),
    "on_timeout": _fixed(
        "hold", "what drives do then: hold the position, or give no effort", choices=("hold", "zero_effort")
    ),
    "executor": EXECUTOR,
    **COMMON,
}
