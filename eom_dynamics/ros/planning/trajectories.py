# SPDX-License-Identifier: Apache-2.0
"""Trajectory service: smooth motion through waypoints or poses of a tool, and its feedforward."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from trajectory_msgs.msg import JointTrajectoryPoint

from ...arguments import violation
from ...arrays import Array
from ...control.fields import EFFORT_FIELDS, MOTOR_FIELDS, STATE_FIELDS, doubles, write
from ...control.joint_order import JointOrder
from ...control.trajectories import fill_in, hold_others, read_points, read_positions, read_times, read_tool_trajectory
from ...elastic import ElasticArm
from ...exceptions import StateError, TrajectoryError
from ...kinematics.compiled import kinematics_of
from ...robot import Robot
from ...trajectory import Spline, follow, minimum_time, through
from ...trajectory.feedforward import CHECK_RATE, checked, trajectory_feedforward
from ..interfaces import LimitViolation, set_stamp, srv

_Constants = srv.ComputeTrajectoryFeedforward.Request
_ALL = _Constants.STATE | _Constants.EFFORT | _Constants.MOTOR

_POINT_FIELDS = ("positions", "velocities", "accelerations")
_FOLLOWED = {_Constants.ALL_GIVEN: 2, _Constants.VELOCITIES: 1, _Constants.POSITIONS: 0}  # number of derivatives
_VIOLATION_FIELDS = ("quantity", "name", "value", "limit", "ratio")


def answer_trajectory(arm: ElasticArm, request: Any, *, measured: Callable[[Sequence[str]], Array]) -> Any:
    """Answer ComputeTrajectoryFeedforward.

    Args:
        measured: returns the present positions (n,) of joints by their names; raises StateError.
    """
    if request.outputs and request.outputs != _Constants.NONE and request.outputs & ~_ALL:
        raise StateError(f"outputs must be STATE, EFFORT, MOTOR, a sum of them, NONE or 0, is {request.outputs}")
    if violation(request.sample_rate, "not negative"):
        raise StateError(f"sample_rate must be at least 0 Hz (0: waypoints only), is {request.sample_rate}")
    of_tool = bool(request.tool_trajectory.points)
    points = (request.tool_trajectory if of_tool else request.trajectory).points
    if len(points) > _Constants.MAX_SAMPLES:
        raise StateError(f"trajectory has {len(points)} points, may have {_Constants.MAX_SAMPLES}: split it")
    if points and not of_tool:
        hold_others(request.trajectory, arm.robot.joint_names, measured)
    order = JointOrder.of(arm, list(request.trajectory.joint_names))
    if of_tool:
        _require_no_options(request)
        start = requested_start(request, order, lambda: measured(arm.robot.joint_names))
        times, motion = tool_motion(arm.robot, request.tool_trajectory, start)
        stamps_of_tool = [point.time_from_start for point in request.tool_trajectory.points]
        request.trajectory.points = [JointTrajectoryPoint(time_from_start=stamp) for stamp in stamps_of_tool]
    else:
        times = read_times(request.trajectory)
        motion = fit_motion(request.trajectory, times, order, request)
    retimed = request.timing not in ("", _Constants.GIVEN)
    if violation(request.path_tolerance, "not negative"):
        raise StateError(f"path_tolerance must be at least 0 (0: by the digits), is {request.path_tolerance}")
    if retimed:
        tolerance = request.path_tolerance or None
        waypoints = None if of_tool else motion.states[0]
        times, motion = retime(arm, motion, times, request.timing, waypoints=waypoints, tolerance=tolerance)
        stamps = np.round(1e9 * times).astype(int)
        # Points within the tolerance of others may be passed at the same time.
        kept = np.append(True, stamps[1:] > np.maximum.accumulate(stamps[:-1]))
        request.trajectory.points = [x for x, later in zip(request.trajectory.points, kept, strict=True) if later]
        times = times[kept]
        for point, stamp in zip(request.trajectory.points, stamps[kept].tolist(), strict=True):
            set_stamp(point.time_from_start, stamp)
    result = trajectory_feedforward(arm, motion, times, rate=request.sample_rate, most=_Constants.MAX_SAMPLES)
    exceeded = "" if result.verdict.ok else f"exceeds limits: {result.verdict}"
    fill_in(request.trajectory, "effort", result.efforts, order)
    # The motion may not follow given derivatives.
    as_given = not (of_tool or retimed)
    for k in range(0 if of_tool else 1, len(_POINT_FIELDS)):
        values = motion.states[k] if as_given else motion.derivatives(times, k)[k]
        fill_in(request.trajectory, _POINT_FIELDS[k], values, order, where_given=as_given)
    response = srv.ComputeTrajectoryFeedforward.Response(
        success=True, message=exceeded, trajectory=request.trajectory, joint_names=order.names
    )
    response.motor_names = order.motor_names
    response.exceeded = [
        LimitViolation(time=x.t, **{field: getattr(x, field) for field in _VIOLATION_FIELDS})
        for x in result.verdict.exceeded
    ]
    response.time_scaling = result.verdict.time_scaling or math.nan
    response.time = doubles(result.samples.t)
    outputs = request.outputs or _ALL
    for output, fields, to_message, rows in (
        (_Constants.STATE, STATE_FIELDS, order.to_message, result.samples[1:]),
        (_Constants.EFFORT, EFFORT_FIELDS, order.to_message, result.command[:3]),
        (_Constants.MOTOR, MOTOR_FIELDS, order.motors_to_message, result.command[3:]),
    ):
        if outputs & output:
            write(response, fields, [to_message(values) for values in rows])
    return response


def retime(
    arm: ElasticArm,
    motion: Spline,
    times: Array,
    timing: str,
    *,
    waypoints: Array | None = None,
    tolerance: float | None = None,
) -> tuple[Array, Spline]:
    """Retime a motion and its waypoints (K,), as requested; the fastest one passes waypoints (K, n) within a tolerance.

    Without waypoints it is along the motion.
    """
    if timing == _Constants.FASTEST:
        path = motion if waypoints is None else waypoints
        fastest = minimum_time(arm, path, tolerance=tolerance)
        passed = fastest.times_at(times) if waypoints is None else fastest.waypoint_times
        return motion.start + passed, Spline(motion.start + fastest.t, fastest.states)
    if timing != _Constants.SLOW_DOWN:
        raise StateError(f"timing must be given, slow_down or fastest, is {timing!r:.60}")
    check = checked(arm, motion, CHECK_RATE, _Constants.MAX_SAMPLES)
    scaling = check.time_scaling
    if scaling is None:
        raise TrajectoryError(f"{check}; change the path")
    return motion.start + scaling * (times - motion.start), motion.stretched(scaling)


class Start(NamedTuple):
    """Start of a trajectory's motion, if not at its first point."""

    time: float  # of the trajectory, s; earlier points are skipped
    positions: Mapping[str, float]  # of its joints, rad or m; empty to start at the first later point


def whole_turns(difference: Array) -> Array:
    """Whole turns that are nearest to differences of positions, rad."""
    return np.asarray(2 * np.pi * np.round(difference / (2 * np.pi)))


def fit_motion(
    trajectory: Any, times: Array, order: JointOrder, options: Any, start: Start | None = None, continuous: Any = False
) -> Spline:
    """Fit a smooth motion to the points of a trajectory, with the options of a request, or from a start on.

    Points after a start are moved by whole turns of ``continuous`` joints (n,), to be nearest to it.
    """
    if options.follow not in _FOLLOWED:
        raise StateError(f"follow must be ALL_GIVEN, POSITIONS or VELOCITIES, is {options.follow}")
    if options.ends not in ("", _Constants.REST, _Constants.FREE):
        raise StateError(f"ends must be rest or free, is {options.ends!r:.60}")
    positions = read_positions(trajectory, order)
    columns = [read_points(trajectory, field, order) for field in _POINT_FIELDS[1:]]
    velocities, accelerations = (x if k < _FOLLOWED[options.follow] else None for k, x in enumerate(columns))
    if start is not None:
        later = times > start.time
        if not later.any():
            raise StateError(f"it ended {start.time - times[-1]:.3g} s ago")
        rows = [[start.positions[name] for name in trajectory.joint_names]] if start.positions else []
        times, positions = np.append([start.time] * len(rows), times[later]), positions[later]
        for row in map(order.to_robot, np.array(rows)):
            turns = np.where(continuous, whole_turns(positions[0] - row), 0.0)
            positions = np.vstack([row, positions - turns])
        unknown = np.full((len(rows), positions.shape[1]), np.nan)
        velocities, accelerations = (
            None if x is None else np.vstack([unknown, x[later]]) for x in (velocities, accelerations)
        )
    ends = options.ends or _Constants.REST
    return through(times, positions, velocities=velocities, accelerations=accelerations, ends=ends)


def _require_no_options(request: Any) -> None:
    columns = {"follow": request.follow != _Constants.ALL_GIVEN, "ends": request.ends not in ("", _Constants.REST)}
    if names := [name for name, is_given in columns.items() if is_given]:
        raise StateError(f"{', '.join(names)}: for waypoints of the joints only, not for a tool_trajectory")


def tool_motion(robot: Robot, trajectory: Any, start: Array) -> tuple[Array, Spline]:
    """Times (K,) of the poses of a MultiDOFJointTrajectory, and the joint motion from ``start`` (n,)."""
    with np.errstate(all="ignore"):  # poses and twists of any size; the motion of the joints is checked
        result = read_tool_trajectory(trajectory)
        try:
            motion = follow(kinematics_of(robot), result.path, start, frame=result.frame)
        except np.linalg.LinAlgError:
            raise StateError("tool_trajectory is too fast: poses between its points overflow") from None
    return result.path.t, motion.spline


def requested_start(request: Any, order: JointOrder, measured: Callable[[], Array]) -> Array:
    """Joint positions (n,) at the start of a request's tool_trajectory, in the robot's order.

    Raises:
        StateError: they are neither in its only waypoint nor measured.
    """
    points = request.trajectory.points
    if not points:
        return measured()
    if len(points) > 1:
        raise StateError(
            f"trajectory has {len(points)} points; with a tool_trajectory it may have one, with the positions of the "
            "joints at the start"
        )
    positions = read_points(request.trajectory, "positions", order)
    if positions is None:
        raise StateError("points[0].positions is empty; it must have the positions of the joints at the start")
    return positions[0]
