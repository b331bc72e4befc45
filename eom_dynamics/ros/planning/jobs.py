# SPDX-License-Identifier: Apache-2.0
"""Jobs of the worker process that plans trajectories, and its answers."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from ...arrays import Array
from ...trajectory import Spline


class PlanningJob(NamedTuple):
    """Trajectory to plan, as plain data.

    Attributes:
        robot: pickled robot.
        payload: parameters of the payloads at its tools.
        message: serialized message; if empty, the process only loads the robot.
        is_spline: True for a ``SplineTrajectory``, False for a ``JointTrajectory``.
        positions: present positions (n,), rad or m, None if unknown; joints without a name are held there.
        begin: start time on the trajectory, s; None for its first point.
        is_at_rest: True if the motion then starts from ``positions``, else from the first later point.
        limits: value of this parameter.
        trajectory_limits: value of this parameter, for a ``JointTrajectory``.
        ignored_joints: joints of the message to ignore.
    """

    robot: bytes
    payload: Array
    message: bytes = b""
    is_spline: bool = False
    positions: Array | None = None
    begin: float | None = None
    is_at_rest: bool = False
    limits: str = "refuse"
    trajectory_limits: str = "refuse"
    ignored_joints: tuple[str, ...] = ()


class PlannedMotion(NamedTuple):
    """Motion of a trajectory.

    Attributes:
        motion: motion of all joints in the robot's order.
        held: joints (n,) without a name in the trajectory.
        notes: lines for the log.
    """

    motion: Spline
    held: NDArray[Any]
    notes: tuple[str, ...] = ()
