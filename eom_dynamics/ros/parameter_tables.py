# SPDX-License-Identifier: Apache-2.0
"""Parameters of the nodes ``eom_dynamics``, ``eom_dynamics_planning`` and ``simulated_robot``."""

from __future__ import annotations

from dataclasses import replace

from rclpy.parameter import Parameter

from ..control.external_effort import SENSORS
from ..control.settings import (
    CHECK_POLICIES,
    CONTACT_REACTIONS,
    DEFAULTS,
    EFFORTS_ON_DEACTIVATE,
    LIMIT_POLICIES,
    LOSS_POLICIES,
    MODES,
    SAFETY,
)
from ..robot.model import DRIVE_INTERPOLATIONS
from .node_parameters import COMMON, Definition, Table, fixed, while_inactive
from .scheduling import HIGHEST

_TRAJECTORIES: Table = {
    "on_refused_trajectory": Definition(
        "continue",
        "what a refused trajectory or goal does to the one under way: nothing, or bring the arm to rest",
        choices=("continue", "stop"),
    ),
    "start_tolerance": Definition(
        DEFAULTS.start_tolerance,
        "largest distance of the start of a trajectory from the position of a joint, in rad or m; for a moving joint, "
        "its velocity times 0.1 s more",
        (1e-6, 1000.0),
    ),
    "trajectory_limits": Definition(
        "refuse",
        "what to do with a trajectory beyond limits of joints or motors: refuse, report (warn), or no check (ignore)",
        choices=("refuse", "warn", "ignore"),
    ),
}

_PARAMETERS: Table = {
    "safety": fixed(
        "strict",
        "defaults of other parameters. strict: refuse setpoints beyond limits, jumps, and stamps that are older or "
        "further ahead than setpoint_lifespan; stop when setpoints are lost. permissive: report limits. off: no checks",
        choices=tuple(SAFETY),
    ),
    "autostart": fixed(True, "configure and activate at startup; false leaves both to a lifecycle manager"),
    "allow_other_publishers": Definition(
        False, "whether the node activates although others publish on its command topics; both would command the motors"
    ),
    "moving_base": fixed(False, "whether setpoints may have a motion of the base, for which code is compiled then"),
    "setpoint_lifespan": Definition(
        0.0,
        "largest age of a setpoint by its stamp, in s, and how far that may be ahead; others are dropped. 0 for any",
        (0.0, 3600.0),
    ),
    "setpoint_timeout": while_inactive(
        0.0, "time without a valid setpoint after which setpoints are lost, in s; 0 for never", (0.0, 3600.0)
    ),
    "on_setpoint_loss": while_inactive(
        "none",
        "response to lost setpoints: report it (none), bring the arm to rest (hold), the same while efforts fade to "
        "zero (ramp), or bring it to rest and deactivate the node (deactivate)",
        choices=LOSS_POLICIES,
    ),
    "mode": Definition(
        "position",
        "who leads the arm: setpoints (position), setpoints to which it is on springs (impedance), or hands, while it "
        "carries its weight (gravity_compensation), by motor_states, of rigid arms by joint_states",
        choices=MODES,
    ),
    "stiffness": while_inactive(
        [0.0],
        "of joints in the mode impedance, in N m/rad or N/m: one entry, or one for each joint; with tool_stiffness "
        "where it moves no tool",
    ),
    "tool_stiffness": while_inactive(
        [0.0] * 6, "of tools in the mode impedance, along x, y, z of the base in N/m, and about them in N m/rad"
    ),
    "damping_ratio": while_inactive(0.7, "of joints on these springs", (0.0, 10.0)),
    "stop_duration": while_inactive(
        DEFAULTS.stop_duration,
        "duration of the stop when setpoints are lost or the node is switched off, in s, unless limits need another",
        (0.01, 60.0),
    ),
    "effort_on_deactivate": Definition(
        "zero",
        "efforts that remain, with held positions, when the node is deactivated or ends, once the arm rests: none "
        "(zero), those of gravity (gravity), or those of the last command (keep)",
        choices=EFFORTS_ON_DEACTIVATE,
    ),
    "ramp_duration": while_inactive(
        DEFAULTS.ramp_duration, "time in which efforts fade to zero with on_setpoint_loss: ramp, in s", (0.01, 600.0)
    ),
    "resume_distance": while_inactive(
        DEFAULTS.resume_distance,
        "largest distance from the held position at which setpoints are followed again after a loss, in rad or m",
        (0.0, 1e9),
    ),
    "stamp_check": while_inactive(
        "ignore", "what to do if the stamp of a setpoint repeats or goes back", choices=CHECK_POLICIES
    ),
    "jump_check": while_inactive(
        "ignore",
        "what to do with a setpoint that limits of velocity, acceleration and jerk do not allow so soon after the last",
        choices=CHECK_POLICIES,
    ),
    "external_effort.sensors": fixed(
        "none",
        "sensors of external efforts on joint_states and motor_states: joint torques (torque), motor and link encoders "
        "(springs), or motor encoders and efforts (motor); none observes nothing",
        choices=("none", *SENSORS),
    ),
    "external_effort.bandwidth": while_inactive(30.0, "bandwidth of external efforts, in rad/s", (0.1, 1000.0)),
    "external_effort.false_alarms": while_inactive(
        1.0, "false alarms of contact per hour, by which the robot's effort_spread tells thresholds", (1e-6, 1e6)
    ),
    "on_contact": while_inactive(
        DEFAULTS.on_contact,
        "response to contact: report it (ignore), pause what is played on its path (hold), bring the arm to rest "
        "(stop), go back to where it was 0.2 s before (retract), or stop and deactivate the node (deactivate)",
        choices=CONTACT_REACTIONS,
    ),
    "stream_rate": fixed(
        1000.0, "commands per second while a trajectory is played, or after setpoints were lost", (1.0, 10_000.0)
    ),
    "target_delay": Definition(
        0.0, "time by which chunks on target_trajectory are followed after their stamps, or arrival, in s", (0.0, 60.0)
    ),
    "synchronised": while_inactive(False, "whether all joints arrive together at targets at rest"),
    "command_lead": while_inactive(
        -1.0,
        "time by which commands are ahead of setpoints, in s. Negative: half of the robot's command_period (all of it "
        "with drive_interpolation: linear; that of stream_rate if a trajectory is played without one), plus its "
        "drive_delay",
        (-1.0, 0.1),
    ),
    "realtime_priority": fixed(
        0, "SCHED_FIFO priority of the stream, 1 to 99, from activation on, if permitted; 0 for none", (0, HIGHEST)
    ),
    "lock_memory": fixed(False, "keep the memory of the node in place (mlockall), from activation on, if permitted"),
    "limits": while_inactive(
        "warn",
        "what to do if a setpoint or its command exceeds limits of joints or motors: report it (warn), refuse it "
        "(refuse), clip efforts and report it (clip), or no check (ignore); all but ignore refuse angles a turn beyond",
        choices=LIMIT_POLICIES,
    ),
    **_TRAJECTORIES,
    **COMMON,
}


def dynamics_parameters(safety: object) -> Table:
    """Parameters of the dynamics node, with the defaults of a level of safety; of an unknown one those of strict."""
    defaults = SAFETY.get("off" if safety is False else str(safety), SAFETY["strict"])  # YAML reads off as false
    return {name: replace(x, default=defaults.get(name, x.default)) for name, x in _PARAMETERS.items()}


DYNAMICS = dynamics_parameters("strict")

PLANNING: Table = {
    "allow_nonzero_velocity_at_trajectory_end": Definition(
        False, "whether the last point of a trajectory may have a velocity, of which the arm then stops in a step"
    ),
    "goal_time_tolerance": Definition(
        1.0,
        "time after the end of a goal of follow_joint_trajectory to meet its goal_tolerance, unless it gives one, in s",
        (0.0, 3600.0),
    ),
    "limits": Definition(
        "warn",
        "what to do with a request beyond limits of joints or motors: report (warn), refuse, or no check (ignore)",
        choices=("warn", "refuse", "ignore"),
    ),
    **_TRAJECTORIES,
    "trajectory_limits": replace(
        _TRAJECTORIES["trajectory_limits"],
        description="what to do with a trajectory beyond limits of joints or motors: refuse, slow down until it meets "
        "them (slow_down), report (warn), or nothing (ignore); or play each as fast as limits allow (fastest)",
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
        "input of the drives: motor_setpoint or feedforward, tracked by a PD controller; or the effort of the motors "
        "from the topic effort_command (motor_effort)",
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
        "what the drives do for a command_period: hold a command (none), or interpolate to it; robot: as its file says",
        choices=("robot", *DRIVE_INTERPOLATIONS),
    ),
    "limit_effort": fixed(True, "limit motor efforts to the robot's limits of torque, current and voltage"),
    "command_timeout": fixed(0.1, "time without commands before on_timeout applies, in s; 0 for never", (0.0, 3600.0)),
    "on_timeout": fixed(
        "hold", "action on a command timeout: hold the position, or apply no effort", choices=("hold", "zero_effort")
    ),
    **COMMON,
}
