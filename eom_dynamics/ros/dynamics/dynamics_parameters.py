# SPDX-License-Identifier: Apache-2.0
"""Parameters of the node ``eom_dynamics``."""

from __future__ import annotations

from ...messages.setpoint_to_command import LIMIT_POLICIES
from ...stream.doubts import DOUBT_POLICIES
from ...stream.watchdog import DEFAULTS, LOSS_POLICIES
from ..node_parameters import COMMON, EXECUTOR, Definition, Table
from ..trajectory_limits import TRAJECTORY_LIMITS
from .realtime import HIGHEST

_WHILE_INACTIVE = "; read-only while the node is active"

TABLE: Table = {
    "autostart": Definition(
        True, "configure and activate at startup; false leaves both to a lifecycle manager", read_only=True
    ),
    "moving_base": Definition(
        False,
        "whether setpoints may have a motion of the base; then code for it is compiled when the robot is loaded",
        read_only=True,
    ),
    "setpoint_lifespan": Definition(
        0.0,
        "largest age of a setpoint by its stamp and the node's clock, in s; an older one is dropped. 0 accepts every "
        "age, as for setpoints without stamps",
        limits=(0.0, 3600.0),
    ),
    "setpoint_timeout": Definition(
        0.0,
        "time without a valid setpoint after which setpoints are lost, in s, on the node's clock; 0 for never"
        + _WHILE_INACTIVE,
        limits=(0.0, 3600.0),
        while_inactive=True,
    ),
    "on_setpoint_loss": Definition(
        "none",
        "what to do when setpoints are lost, by setpoint_timeout, a missed deadline, or since no publisher is left: "
        "report it (none), bring the arm to rest and hold it (hold), the same while efforts fade to zero (ramp), or "
        "deactivate the node (deactivate)" + _WHILE_INACTIVE,
        choices=LOSS_POLICIES,
        while_inactive=True,
    ),
    "stop_duration": Definition(
        DEFAULTS.stop_duration,
        "duration of the stop when setpoints are lost, in s; longer or shorter where limits require it"
        + _WHILE_INACTIVE,
        limits=(0.01, 60.0),
        while_inactive=True,
    ),
    "ramp_duration": Definition(
        DEFAULTS.ramp_duration,
        "time in which efforts fade to zero with on_setpoint_loss: ramp, in s" + _WHILE_INACTIVE,
        limits=(0.01, 600.0),
        while_inactive=True,
    ),
    "resume_distance": Definition(
        DEFAULTS.resume_distance,
        "after a loss with on_setpoint_loss: hold, largest distance of a setpoint from the commanded position at which "
        "it is followed again, in rad or m" + _WHILE_INACTIVE,
        limits=(0.0, 1e9),
        while_inactive=True,
    ),
    "stamp_check": Definition(
        "ignore",
        "what to do with a setpoint whose stamp repeats or goes back: no check (ignore), answer and report it (warn), "
        "or refuse it (refuse)" + _WHILE_INACTIVE,
        choices=DOUBT_POLICIES,
        while_inactive=True,
    ),
    "jump_check": Definition(
        "ignore",
        "what to do with a setpoint that no motion within the limits of velocity, acceleration and jerk reaches from "
        "the last answered one in the time between their stamps: ignore, warn or refuse" + _WHILE_INACTIVE,
        choices=DOUBT_POLICIES,
        while_inactive=True,
    ),
    "consistency_check": Definition(
        "ignore",
        "what to do with setpoints of which a field is not the time derivative of the one before: ignore, warn or "
        "refuse" + _WHILE_INACTIVE,
        choices=DOUBT_POLICIES,
        while_inactive=True,
    ),
    "consistency_tolerance": Definition(
        0.1,
        "largest relative difference of consistent fields" + _WHILE_INACTIVE,
        limits=(1e-6, 1.0),
        while_inactive=True,
    ),
    "consistency_window": Definition(
        50,
        "setpoints over which fields are compared" + _WHILE_INACTIVE,
        limits=(5, 1000),
        while_inactive=True,
    ),
    "consistency_order": Definition(
        4,
        "highest derivative that is compared: 1 for the velocity, 4 for the snap" + _WHILE_INACTIVE,
        limits=(1, 4),
        while_inactive=True,
    ),
    "stream_rate": Definition(
        1000.0,
        "rate of commands while a trajectory from the topic spline_trajectory is played, or after setpoints were lost, "
        "in Hz",
        limits=(1.0, 10_000.0),
        read_only=True,
    ),
    "command_lead": Definition(
        -1.0,
        "time by which commands are ahead of setpoints, in s: that from a command to the middle of the time at which "
        "it acts. Negative: half of the robot's command_period, and its drive_delay; of a trajectory that is played, "
        "without a command_period, half the period of stream_rate" + _WHILE_INACTIVE,
        limits=(-1.0, 0.1),
        while_inactive=True,
    ),
    "realtime_priority": Definition(
        0,
        "SCHED_FIFO priority of the stream, 1 to 99, applied when the node is activated; 0 for normal scheduling. "
        "If it is not permitted, the node warns and continues with normal scheduling",
        limits=(0, HIGHEST),
        read_only=True,
    ),
    "cpu_affinity": Definition(
        "",
        "processors of the stream, such as 2 or 0,2-3, applied when the node is activated; empty for all. If one is "
        "not there, the node warns and continues",
        read_only=True,
    ),
    "lock_memory": Definition(
        False,
        "keep the memory of the node in place (mlockall), applied when the node is activated. If it is not permitted, "
        "the node warns and continues",
        read_only=True,
    ),
    "effort_command": Definition(
        "motor",
        "content of the topic effort_command: effort of the motors (motor), or effort at the link side of the joints "
        "(joint); read-only while the node is active",
        choices=("motor", "joint"),
        while_inactive=True,
    ),
    "limits": Definition(
        "warn",
        "what to do if a setpoint or its command exceeds limits of joints or motors: publish and report it (warn), "
        "refuse it (refuse), clip efforts of joints and motors and report it (clip), or no check (ignore); read-only "
        "while the node is active",
        choices=LIMIT_POLICIES,
        while_inactive=True,
    ),
    "task_limits": Definition(
        "refuse",
        "what to do with a setpoint on task_setpoint if the motion of the joints or its command exceeds limits, as it "
        "does near singularities: refuse it (refuse), publish and report it (warn), or no check (ignore)",
        choices=("refuse", "warn", "ignore"),
    ),
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
