# SPDX-License-Identifier: Apache-2.0
"""Parameters of the node ``eom_dynamics_planning``."""

from __future__ import annotations

from ..node_parameters import COMMON, Definition, Table, fixed
from ..trajectory_limits import ON_REFUSED_TRAJECTORY, PLANNED_LIMITS, START_LATENCY, START_TOLERANCE

TABLE: Table = {
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
    "reserved_cores": fixed(
        1,
        "CPU cores left to other processes; the process uses at least one",
        limits=(0, 1024),
    ),
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
    "on_refused_trajectory": ON_REFUSED_TRAJECTORY,
    "start_latency": START_LATENCY,
    "start_tolerance": START_TOLERANCE,
    "trajectory_limits": PLANNED_LIMITS,
    **COMMON,
}
