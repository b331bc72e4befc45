# SPDX-License-Identifier: Apache-2.0
"""Parameters of the nodes ``eom_dynamics``, ``eom_dynamics_planning`` and ``simulated_robot``."""

from __future__ import annotations

from dataclasses import replace

from rclpy.parameter import Parameter

from ..control.settings import SAFETY, SETTINGS, Setting, fixed
from ..robot.model import DRIVE_INTERPOLATIONS
from .node_parameters import COMMON, Table


def dynamics_parameters(safety: object) -> Table:
    """Parameters of the dynamics node, with the defaults of a safety level; an unknown level counts as strict."""
    defaults = SAFETY.get("off" if safety is False else str(safety), SAFETY["strict"])  # YAML reads off as false
    return {name: replace(x, default=defaults.get(name, x.default)) for name, x in {**SETTINGS, **COMMON}.items()}


DYNAMICS = dynamics_parameters("strict")

PLANNING: Table = {
    "allow_nonzero_velocity_at_trajectory_end": Setting(
        False, "accept a nonzero final velocity; the arm then stops abruptly"
    ),
    **{
        name: Setting(
            0.0,
            f"largest deviation of measured joints {when} of a goal of follow_joint_trajectory without a tolerance, in "
            "rad or m; 0: unlimited",
            (0.0, 1e3),
        )
        for name, when in (("path_tolerance", "during the motion"), ("goal_tolerance", "at the end"))
    },
    "goal_time_tolerance": Setting(
        1.0,
        "time after the end of a goal of follow_joint_trajectory to meet its goal_tolerance, if it has none, in s",
        (0.0, 3600.0),
    ),
    "trajectory_limits": Setting(
        "refuse",
        "response to a trajectory that exceeds limits of joints or motors: refuse it (refuse), slow it down until it "
        "meets them (slow_down), report it (warn), or no check (ignore); fastest retimes every trajectory",
        choices=("refuse", "slow_down", "fastest", "warn", "ignore"),
    ),
    **COMMON,
}

# Standard deviations of sensors; and all optional arrays, with one entry, or one for each joint or motor.
NOISE = ("position_noise", "velocity_noise", "effort_noise")
ARRAYS = ("initial_position", "kp", "kd", *NOISE)

_NOISE = "standard deviation of measured values, SI units, links and motors alike; one entry, or one for each joint"
_GAIN = "gain of the drives, SI units of the joint; one entry, such as [100.0], or one for each motor"

SIMULATED_ROBOT: Table = {
    "command": fixed(
        "motor_setpoint",
        "input of the drives: motor_setpoint or feedforward, tracked by a PD controller; or motor efforts of the topic "
        "effort_command (motor_effort)",
        choices=("motor_setpoint", "feedforward", "motor_effort"),
    ),
    "rate": fixed(1000.0, "simulation steps per second", (10.0, 20000.0)),
    "publish_rate": fixed(500.0, "joint_states and motor_states per second, at most rate", (0.1, 20000.0)),
    "initial_position": fixed(
        Parameter.Type.DOUBLE_ARRAY, "initial joint position, rad or m; one entry, or one for each joint (default: 0)"
    ),
    "natural_frequency": fixed(
        70.0, "natural frequency of motor and PD controller, rad/s; with links at rigid joints", (0.0, 1e4)
    ),
    "damping_ratio": fixed(1.0, "damping ratio of motor and PD controller", (0.0, 100.0)),
    "kp": fixed(Parameter.Type.DOUBLE_ARRAY, f"proportional {_GAIN}"),
    "kd": fixed(Parameter.Type.DOUBLE_ARRAY, f"derivative {_GAIN}"),
    **{name: fixed(Parameter.Type.DOUBLE_ARRAY, _NOISE) for name in NOISE},
    "command_period": fixed(
        -1.0,
        "time after which drives take the latest command, in s, in whole steps; 0: one step; negative: the robot's",
        (-1.0, 1.0),
    ),
    "drive_delay": fixed(
        -1.0, "time from a command to its effect, in s, in whole steps; negative: the robot's", (-1.0, 0.1)
    ),
    "drive_interpolation": fixed(
        "robot",
        "interpolation by the drives: hold a command for a command_period (none), or linear; robot: as in its file",
        choices=("robot", *DRIVE_INTERPOLATIONS),
    ),
    "limit_effort": fixed(True, "limit motor efforts to the robot's limits of torque, current and voltage"),
    "command_timeout": fixed(0.1, "time without commands before on_timeout applies, in s; 0 for never", (0.0, 3600.0)),
    "on_timeout": fixed(
        "hold", "action on a command timeout: hold the position, or apply no effort", choices=("hold", "zero_effort")
    ),
    **COMMON,
}
