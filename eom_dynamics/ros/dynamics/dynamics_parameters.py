# SPDX-License-Identifier: Apache-2.0
"""Parameters of the node ``eom_dynamics``."""

from __future__ import annotations

from ...messages.setpoint_to_command import LIMIT_POLICIES
from ...stream.arm_stop import EFFORTS_ON_DEACTIVATE
from ...stream.doubts import DOUBT_POLICIES
from ...stream.watchdog import DEFAULTS, LOSS_POLICIES
from ..node_parameters import COMMON, EXECUTOR, Definition, Table, fixed, while_inactive
from ..trajectory_limits import ON_REFUSED_TRAJECTORY, START_LATENCY, START_TOLERANCE, TRAJECTORY_LIMITS
from .realtime import HIGHEST

TABLE: Table = {
    "autostart": fixed(True, "configure and activate at startup; false leaves both to a lifecycle manager"),
    "moving_base": fixed(
        False,
        "whether setpoints may have a motion of the base; then code for it is compiled when the robot is loaded",
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
        0.1,
        "largest relative difference of consistent fields",
        limits=(1e-6, 1.0),
    ),
    "consistency_window": while_inactive(
        50,
        "setpoints over which fields are compared",
        limits=(5, 1000),
    ),
    "consistency_order": while_inactive(
        4,
        "highest derivative compared: 1 for velocity, 4 for snap",
        limits=(1, 4),
    ),
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
    "on_refused_trajectory": ON_REFUSED_TRAJECTORY,
    "start_latency": START_LATENCY,
    "start_tolerance": START_TOLERANCE,
    "trajectory_limits": TRAJECTORY_LIMITS,
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
