# SPDX-License-Identifier: Apache-2.0
"""Parameters of the nodes ``eom_dynamics``, ``eom_dynamics_planning`` and ``simulated_robot``."""

from __future__ import annotations

from dataclasses import replace

from rclpy.parameter import Parameter

from ..messages.setpoint_to_command import LIMIT_POLICIES
from ..robot.model import DRIVE_INTERPOLATIONS
from ..stream.arm_stop import EFFORTS_ON_DEACTIVATE
from ..stream.doubts import DOUBT_POLICIES
from ..stream.watchdog import DEFAULTS, LOSS_POLICIES
from .node_parameters import COMMON, EXECUTOR, Definition, Table, fixed, while_inactive
from .scheduling import HIGHEST

_TRAJECTORIES: Table = {
    "on_refused_trajectory": Definition(
        "continue",
        "what a trajectory or goal that is refused does to the one under way, or that waits: nothing (continue), or "
        "bring the arm to rest (stop)",
        choices=("continue", "stop"),
    ),
    "start_latency": Definition(
        0.1,
        "time by which the start of a trajectory may be behind the position of a moving joint, in s: start_tolerance "
        "grows by the velocity of the joint times this, as planners start where the arm was measured",
        limits=(0.0, 10.0),
    ),
    "start_tolerance": Definition(
        0.01,
        "largest distance of the start of a trajectory from the position of a joint, in rad or m: of a goal of "
        "follow_joint_trajectory from the measured one, of any that is played from the commanded one",
        limits=(1e-6, 1000.0),
    ),
    "trajectory_limits": Definition(
        "refuse",
        "what to do with a trajectory that exceeds limits of joints or motors: refuse it (refuse), play it and report "
        "it (warn), or play it (ignore)",
        choices=("refuse", "warn", "ignore"),
    ),
}

DYNAMICS: Table = {
    "autostart": fixed(True, "configure and activate at startup; false leaves both to a lifecycle manager"),
    "moving_base": fixed(
        False, "whether setpoints may have a motion of the base; then code for it is compiled when the robot is loaded"
    ),
    "setpoint_lifespan": Definition(
        0.0,
        "largest age of a setpoint by its stamp and the node's clock, in s; an older one is dropped. 0 accepts every "
        "age, as for setpoints without stamps",
        limits=(0.0, 3600.0),
    ),
    "setpoint_timeout": while_inactive(
        0.0,
        "time without a valid setpoint after which setpoints are lost, in s, on the node's clock; 0 for never",
        limits=(0.0, 3600.0),
    ),
    "on_setpoint_loss": while_inactive(
        "none",
        "what to do when setpoints are lost, by setpoint_timeout, a missed deadline, or since no publisher is left: "
        "report it (none), bring the arm to rest and hold it (hold), the same while efforts fade to zero (ramp), or "
        "bring it to rest and deactivate the node (deactivate)",
        choices=LOSS_POLICIES,
    ),
    "stop_duration": while_inactive(
        DEFAULTS.stop_duration,
        "duration of the stop when setpoints are lost or the node is switched off, in s; longer or shorter where "
        "limits require it",
        limits=(0.01, 60.0),
    ),
    "effort_on_deactivate": Definition(
        "zero",
        "efforts that remain commanded when the node is deactivated, shut down or ended, once the arm rests: none "
        "(zero), those of gravity (gravity), or those of the last command (keep). Positions are held",
        choices=EFFORTS_ON_DEACTIVATE,
    ),
    "ramp_duration": while_inactive(
        DEFAULTS.ramp_duration,
        "time in which efforts fade to zero with on_setpoint_loss: ramp, in s",
        limits=(0.01, 600.0),
    ),
    "resume_distance": while_inactive(
        DEFAULTS.resume_distance,
        "after a loss with on_setpoint_loss: hold, largest distance of a setpoint from the commanded position at which "
        "it is followed again, in rad or m",
        limits=(0.0, 1e9),
    ),
    "stamp_check": while_inactive(
        "ignore",
        "what to do with a setpoint whose stamp repeats or goes back: no check (ignore), answer and report it (warn), "
        "or refuse it (refuse)",
        choices=DOUBT_POLICIES,
    ),
    "jump_check": while_inactive(
        "ignore",
        "what to do with a setpoint that no motion within the limits of velocity, acceleration and jerk reaches from "
        "the last answered one in the time between their stamps: ignore, warn or refuse",
        choices=DOUBT_POLICIES,
    ),
    "consistency_check": while_inactive(
        "ignore",
        "what to do with setpoints with a field that is not the time derivative of the one before: ignore, warn or "
        "refuse",
        choices=DOUBT_POLICIES,
    ),
    "consistency_tolerance": while_inactive(
        0.1, "largest relative difference of consistent fields", limits=(1e-6, 1.0)
    ),
    "consistency_window": while_inactive(50, "setpoints over which fields are compared", limits=(5, 1000)),
    "consistency_order": while_inactive(4, "highest derivative compared: 1 for velocity, 4 for snap", limits=(1, 4)),
    "stream_rate": fixed(
        1000.0,
        "rate of commands while a trajectory from the topic spline_trajectory is played, or after setpoints were lost, "
        "in Hz",
        limits=(1.0, 10_000.0),
    ),
    "command_lead": while_inactive(
        -1.0,
        "time by which commands are ahead of setpoints, in s. Negative: half of the robot's command_period (all of it "
        "with drive_interpolation: linear), plus its drive_delay; for a trajectory that is played, without a "
        "command_period, that of stream_rate",
        limits=(-1.0, 0.1),
    ),
    "realtime_priority": fixed(
        0,
        "SCHED_FIFO priority of the stream, 1 to 99, applied when the node is activated; 0 for normal scheduling. "
        "If it is not permitted, the node warns and continues with normal scheduling",
        limits=(0, HIGHEST),
    ),
    "cpu_affinity": fixed(
        "",
        "processors of the stream, such as 2 or 0,2-3, applied when the node is activated; empty for all. If one is "
        "missing, the node warns and continues",
    ),
    "lock_memory": fixed(
        False,
        "keep the memory of the node in place (mlockall), applied when the node is activated. If it is not permitted, "
        "the node warns and continues",
    ),
    "effort_command": while_inactive(
        "motor",
        "content of the topic effort_command: effort of the motors (motor), or effort at the link side of the joints "
        "(joint)",
        choices=("motor", "joint"),
    ),
    "limits": while_inactive(
        "warn",
        "what to do if a setpoint or its command exceeds limits of joints or motors: publish and report it (warn), "
        "refuse it (refuse), clip efforts of joints and motors and report it (clip), or no check (ignore); all "
        "but the last refuse angles more than a turn beyond their range",
        choices=LIMIT_POLICIES,
    ),
    "task_limits": Definition(
        "refuse",
        "what to do with a setpoint on task_setpoint if the motion of the joints or its command exceeds limits, as it "
        "does near singularities: refuse it (refuse), publish and report it (warn), or no check (ignore)",
        choices=("refuse", "warn", "ignore"),
    ),
    **_TRAJECTORIES,
    "hold_last_command": Definition(
        "stiffness",
        "which refused setpoints are answered with the last valid command: those with an invalid stiffness "
        "(stiffness), all (always), or none (never)",
        choices=("stiffness", "always", "never"),
    ),
    "max_start_delay": Definition(
        60.0,
        "largest time until the start of a trajectory from the topic spline_trajectory, in s; one that starts later is "
        "refused, since its time stamp or the clock is wrong",
        limits=(0.0, 1e9),
    ),
    "on_clock_jump": Definition(
        "stop",
        "what a jump forward of the clock does to a trajectory being played: end it (stop), or delay the rest of it by "
        "the jump (hold). After a jump back by more than 0.1 s it always ends, after a smaller one it pauses",
        choices=("stop", "hold"),
    ),
    "executor": EXECUTOR,
    **COMMON,
}

PLANNING: Table = {
    "allow_nonzero_velocity_at_trajectory_end": Definition(
        False,
        "whether the last point of a trajectory may have a velocity, with which the arm then stops in a step unless "
        "another trajectory takes over",
    ),
    "goal_time_tolerance": Definition(
        1.0,
        "time after the end of a trajectory within which a goal of follow_joint_trajectory must be within its "
        "goal_tolerance, unless the goal gives one, in s",
        limits=(0.0, 3600.0),
    ),
    "niceness": fixed(
        10,
        "nice value of all threads of the process, so that the stream has priority; 0 leaves it unchanged",
        limits=(0, 19),
    ),
    "reserved_cores": fixed(1, "CPU cores left to other processes; the process uses at least one", limits=(0, 1024)),
    "kept_memory": fixed(
        256,
        "freed memory that the process keeps for later answers, in MiB; 0 for the default of the C library",
        limits=(0, 2047),
    ),
    "limits": Definition(
        "warn",
        "what to do with a request that exceeds limits of joints or motors: answer and report it (warn), refuse it "
        "(refuse), or no check (ignore)",
        choices=("warn", "refuse", "ignore"),
    ),
    **_TRAJECTORIES,
    "trajectory_limits": replace(
        _TRAJECTORIES["trajectory_limits"],
        description="what to do with a trajectory that exceeds limits of joints or motors: refuse it (refuse), slow it "
        "down until it meets them, or refuse it where that does not help (slow_down), publish it and report it (warn), "
        "or publish it (ignore); or play each trajectory as fast along its path as limits allow, from rest to rest "
        "(fastest)",
        choices=("refuse", "slow_down", "fastest", "warn", "ignore"),
    ),
    **COMMON,
}

_MEASURED = {
    "position_noise": "positions, rad or m",
    "velocity_noise": "velocities, rad/s or m/s",
    "effort_noise": "efforts of springs and motors, N m or N",
}
NOISE = tuple(_MEASURED)
"""Standard deviations of sensors, arrays too."""

ARRAYS = ("initial_position", "kp", "kd", *NOISE)
"""Optional arrays with one entry, or one for each joint or motor."""

SIMULATED_ROBOT: Table = {
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
        for name, what in _MEASURED.items()
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
