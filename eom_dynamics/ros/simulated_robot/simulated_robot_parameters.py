# SPDX-License-Identifier: Apache-2.0
"""Parameters of the node ``simulated_robot``."""

from __future__ import annotations

from rclpy.parameter import Parameter

from ...robot.model import DRIVE_INTERPOLATIONS
from ..node_parameters import COMMON, EXECUTOR, Table, fixed

NOISE = ("position_noise", "velocity_noise", "effort_noise")
"""Standard deviations of sensors, arrays too."""

ARRAYS = ("initial_position", "kp", "kd", *NOISE)
"""Optional arrays with one entry, or one for each joint or motor."""

TABLE: Table = {
    "command": fixed(
        "motor_setpoint",
        "input of the drives: motor motion and effort from the topic motor_setpoint or feedforward, tracked by a PD "
        "controller; or from the topic effort_command the effort of the motors (motor_effort) or of the joints "
        "(joint_effort, drives with ideal torque control)",
        choices=("motor_setpoint", "feedforward", "motor_effort", "joint_effort"),
    ),
    "rate": fixed(1000.0, "simulation steps per second", limits=(10.0, 20000.0)),
    "publish_rate": fixed(500.0, "joint_states and motor_states per second, at most rate", limits=(0.1, 20000.0)),
    "initial_position": fixed(
        Parameter.Type.DOUBLE_ARRAY,
        "initial joint position, rad or m; one entry, such as [0.3], or one for each joint (default: 0)",
    ),
    "natural_frequency": fixed(
        70.0, "natural frequency of motor and PD controller, rad/s; with links at rigid joints", limits=(0.0, 1e4)
    ),
    "damping_ratio": fixed(1.0, "damping ratio of motor and PD controller", limits=(0.0, 100.0)),
    "kp": fixed(
        Parameter.Type.DOUBLE_ARRAY,
        "proportional gain, N m/rad or N/m; one entry, such as [100.0], or one for each motor",
    ),
    "kd": fixed(
        Parameter.Type.DOUBLE_ARRAY,
        "derivative gain, N m s/rad or N s/m; one entry, such as [10.0], or one for each motor",
    ),
    **{
        name: fixed(
            Parameter.Type.DOUBLE_ARRAY,
            f"standard deviation of measured {what}; one entry, or one for each joint, for links and motors alike "
            "(default: 0)",
        )
        for name, what in zip(
            NOISE,
            ("positions, rad or m", "velocities, rad/s or m/s", "efforts of springs and motors, N m or N"),
            strict=True,
        )
    },
    "command_period": fixed(
        -1.0,
        "time after which the drives take the latest command, in s, in whole steps; 0: one step. Negative: the "
        "robot's, rounded to steps",
        limits=(-1.0, 1.0),
    ),
    "drive_delay": fixed(
        -1.0,
        "time from when the drives take a command to its effect, in s, in whole steps. Negative: the robot's, rounded "
        "to steps",
        limits=(-1.0, 0.1),
    ),
    "drive_interpolation": fixed(
        "robot",
        "what the drives do for a command_period: hold a command (none), or move in a straight line from the one "
        "before to it (linear); robot: as its file names it",
        choices=("robot", *DRIVE_INTERPOLATIONS),
    ),
    "limit_effort": fixed(True, "limit motor efforts to the robot's limits of torque, current and voltage"),
    "command_timeout": fixed(
        0.1, "time without commands before on_timeout applies, in s; 0 for never", limits=(0.0, 3600.0)
    ),
    "on_timeout": fixed(
        "hold", "action on a command timeout: hold the position, or apply no effort", choices=("hold", "zero_effort")
    ),
    "executor": EXECUTOR,
    **COMMON,
}
