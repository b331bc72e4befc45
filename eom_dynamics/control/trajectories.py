# SPDX-License-Identifier: Apache-2.0
"""Trajectory messages of joints and of a tool as arrays and splines, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .. import lie
from ..arguments import all_finite, first_not_finite
from ..arrays import Array
from ..codegen.cache import digest
from ..exceptions import StateError
from ..robot import Robot
from ..trajectory import PoseSpline, Spline, Trajectory, sample, through_poses
from .fields import STATE_FIELDS, doubles, read_samples, write
from .joint_order import JointOrder, shown_name
from .settings import SMALL_STEP, START_LATENCY
from .spatial import read_pose, read_twist

_MIN_STEP = 1000  # between points, ns; planners append points after some microseconds


def read_times(trajectory: Any) -> Array:
    """Times of the points (K,), s from the start of the trajectory.

    Removes a point whose time and positions the next point repeats, as planners have between segments.

    Args:
        trajectory: a ``trajectory_msgs/JointTrajectory``, here and below.

    Raises:
        StateError: there are no points, or the times do not increase.
    """
    points, kept = list(trajectory.points), list[int]()
    if not points:
        raise StateError("trajectory has no points")
    stamps = [x.time_from_start.sec * 10**9 + x.time_from_start.nanosec for x in points]
    field = "positions" if hasattr(points[0], "positions") else "transforms"
    for k, stamp in enumerate(stamps):
        if kept and stamp < stamps[kept[-1]] + _MIN_STEP:
            before = kept.pop()
            if stamp < stamps[before] or [*getattr(points[k], field)] != [*getattr(points[before], field)]:
                raise StateError(
                    f"points[{k}].time_from_start is {stamp / 1e9:.12g} s, must be later than points[{before}], "
                    f"{stamps[before] / 1e9:.12g} s, by {_MIN_STEP} ns; remove one of them"
                )
        kept.append(k)
    trajectory.points = [points[k] for k in kept]
    return np.array([stamps[k] for k in kept]) * 1e-9


MAX_END_VELOCITY = SMALL_STEP / START_LATENCY
"""Largest velocity at the end of a trajectory that counts as rest, rad/s or m/s."""


def rest_at_the_end(trajectory: Any) -> None:
    """Set small velocities of the last point to zero: the arm would stop with a step.

    Raises:
        StateError: a velocity exceeds :data:`.MAX_END_VELOCITY`.
    """
    velocities: Any = trajectory.points[-1].velocities if trajectory.points else ()
    for joint, velocity in enumerate(velocities):
        if not abs(velocity) <= MAX_END_VELOCITY:
            name = shown_name(trajectory.joint_names[joint]) if joint < len(trajectory.joint_names) else joint
            raise StateError(
                f"points[{len(trajectory.points) - 1}].velocities[{joint}] (joint {name}) is {velocity:.3g} rad/s or "
                f"m/s, limit {MAX_END_VELOCITY:g} at the end; end at rest"
            )
        velocities[joint] = 0.0


def read_points(trajectory: Any, field: str, order: JointOrder) -> Array | None:
    """Field of all points, (K, n) in the robot's order, NaN for points with an empty field; None if all are empty.

    Raises:
        StateError: a point has the wrong number of entries, or a number that is not finite.
    """
    n = len(order.names)
    parts = [getattr(point, field) for point in trajectory.points]
    if not any(map(len, parts)):
        return None
    empty = doubles(np.full(n, np.nan))
    for k, part in enumerate(parts):
        if len(part) not in (0, n):
            raise StateError(f"points[{k}].{field} has {len(part)} entries, must have {n}, one for each joint")
    values = np.frombuffer(b"".join([part if len(part) else empty for part in parts])).reshape(len(parts), n)
    for k, joint in np.argwhere(~np.isfinite(values)):
        if len(parts[k]):
            name = shown_name(order.names[joint])
            raise StateError(f"points[{k}].{field}[{joint}] (joint {name}) is {values[k, joint]}")
    return order.to_robot(values)


def read_positions(trajectory: Any, order: JointOrder) -> Array:
    """Positions of all points, (K, n) in the robot's order."""
    positions = read_points(trajectory, "positions", order)
    missing = [k for k, point in enumerate(trajectory.points) if not len(point.positions)]
    if positions is None or missing:
        raise StateError(f"points[{missing[0] if missing else 0}].positions is empty; each point must have positions")
    return positions


def hold_others(trajectory: Any, robot_names: Sequence[str], measured: Callable[[Sequence[str]], Array]) -> None:
    """Add the joints that a trajectory does not name to its points, at rest at their measured positions.

    Args:
        measured: returns positions (n,) of joints by their names.

    Raises:
        StateError: a joint is unknown or listed twice, a point has a wrong number of entries, or a position is unknown.
    """
    names = list(trajectory.joint_names or robot_names)
    others = [name for name in robot_names if name not in names]
    JointOrder(robot_names, names + others)  # raises for unknown and repeated names
    if not others:
        return
    positions = measured(others).tolist()
    for k, point in enumerate(trajectory.points):
        for field in ("positions", "velocities", "accelerations"):
            entries = getattr(point, field)
            if len(entries) not in (0, len(names)):
                raise StateError(
                    f"points[{k}].{field} has {len(entries)} entries, must have {len(names)}, one for each joint"
                )
            if len(entries):
                setattr(point, field, [*entries, *(positions if field == "positions" else [0.0] * len(others))])
    trajectory.joint_names = names + others


def fill_in(trajectory: Any, field: str, values: Array, order: JointOrder, *, where_given: bool = False) -> None:
    """Assign values (K, n), in the robot's order, to a field of all points, or of points that contain the field."""
    rows = order.to_message(values)
    for point, row in zip(trajectory.points, rows, strict=True):
        if len(getattr(point, field)) or not where_given:
            setattr(point, field, doubles(row))


class ToolTrajectory(NamedTuple):
    """Motion of a frame, None for the first tool."""

    frame: str | None
    path: PoseSpline


def read_tool_trajectory(trajectory: Any) -> ToolTrajectory:
    """Smooth motion through the poses of a trajectory.

    ``joint_names`` contains the name of the frame; empty: the first tool. Each point has one transform in the base
    frame. The first and last point may have a velocity and an acceleration along the axes of the base frame, zero by
    default.

    Raises:
        StateError: the message is invalid.
        TrajectoryError: there is no motion through the poses, as for :func:`.through_poses`.
    """
    names = list(trajectory.joint_names)
    if len(names) > 1:
        raise StateError(f"tool_trajectory.joint_names must have the name of one frame or be empty, has {len(names)}")
    times, points = read_times(trajectory), trajectory.points
    if len(points) < 2:
        raise StateError("tool_trajectory must have two points or more")
    poses = []
    for k, point in enumerate(points):
        if len(point.transforms) != 1:
            raise StateError(f"points[{k}].transforms must have one entry, has {len(point.transforms)}")
        transform = point.transforms[0]
        poses.append(read_pose(transform.translation, transform.rotation, f"points[{k}].transforms[0]"))
        if 0 < k < len(points) - 1 and (point.velocities or point.accelerations):
            raise StateError(
                f"points[{k}] has velocities or accelerations; only the first and last point may have them"
            )
    path = through_poses(times, poses, start=_twists(points, 0, poses[0]), end=_twists(points, -1, poses[-1]))
    return ToolTrajectory(names[0] if names else None, path)


def _twists(points: Any, place: int, pose: Array) -> list[Array]:
    """Body twist and its derivative at the first or last point, as far as given."""
    point, k = points[place], place % len(points)
    if point.accelerations and not point.velocities:
        raise StateError(f"points[{k}] has accelerations without velocities")
    world_aligned = []
    for name in ("velocities", "accelerations"):
        entries = getattr(point, name)
        if len(entries) > 1:
            raise StateError(f"points[{k}].{name} has {len(entries)} entries, limit 1")
        world_aligned += [read_twist(entry, f"points[{k}]") for entry in entries]
    if not world_aligned:
        return []
    with np.errstate(over="ignore", invalid="ignore"):
        twists = [np.asarray(x, dtype=float) for x in lie.body_twists(pose, *world_aligned)]
    if not all_finite(*twists):
        raise StateError(f"numbers too large: the body twist of points[{k}] would be infinite")
    return twists


MAX_ENTRIES = 50_000
"""The constant of the same name in the message."""

SHORTEST_PIECE = 1e-4
"""The constant of the same name in the message, s. On shorter pieces, rounding of positions would be large jerks."""

_LARGEST_KNOT = 1e9


def check_size(message: Any) -> None:
    """Raise StateError if a message is too large to read quickly."""
    if max(len(getattr(message, field)) for field in ("knots", *STATE_FIELDS)) > MAX_ENTRIES:
        raise StateError(f"fields may have {MAX_ENTRIES} entries: send the motion in parts")


def read_spline(message: Any, robot_names: Sequence[str], held: Array | None = None) -> Spline:
    """The motion of a message, joints in the robot's order.

    Args:
        message: a SplineTrajectory with at least one knot.
        robot_names: the robot's joints.
        held: positions in the robot's order, for joints that the message does not name; None: it must name all.

    Raises:
        StateError: a joint is missing, a field has the wrong length or a number that is not finite, or knots do not
            increase or are too close.
    """
    check_size(message)
    names = list(message.joint_names or robot_names)
    others = [] if held is None else [name for name in robot_names if name not in names]
    JointOrder(robot_names, names + others)  # raises for unknown and missing names
    moved = [name in names for name in robot_names]
    order = JointOrder([name for name in robot_names if name in names], names)
    knots = np.array(message.knots, dtype=float)
    if bad := first_not_finite(knots):
        (place,) = bad
        raise StateError(f"knots[{place}] is {knots[place]}")
    _check_knots(knots)
    states = read_samples(message, order, most=MAX_ENTRIES)
    if states.shape[1] != len(knots):
        size = len(knots) * len(order.names)
        raise StateError(
            f"position has {len(message.position)} entries, must have {size}, one for each joint at each of the knots"
        )
    if others:
        named, states = states, np.zeros((len(STATE_FIELDS), len(knots), len(robot_names)))
        states[0][:, np.logical_not(moved)], states[..., moved] = held, named
    return Spline(knots, states)


def write_spline(message: Any, motion: Spline, joint_names: Sequence[str]) -> None:
    """Write a motion into the fields of a message.

    Raises:
        StateError: the motion has more entries, shorter pieces or later knots than a message may have.
    """
    _check_knots(motion.t)
    check_waypoints(len(motion.t), motion.n)
    message.joint_names = list(joint_names)
    message.knots = doubles(motion.t)
    write(message, STATE_FIELDS, [*motion.states])


@lru_cache(maxsize=8)
def robot_digest(robot: Robot) -> str:
    """Digest of a robot, with its limits and payloads."""
    return digest(*_parts(robot))


def _parts(x: Any) -> Iterator[bytes | str]:
    """All of dataclasses, sequences, arrays, numbers and texts; zeros without their sign."""
    if is_dataclass(x):
        yield type(x).__name__
        for entry in fields(x):
            yield from _parts(getattr(x, entry.name))
    elif isinstance(x, list | tuple):
        yield str(len(x))
        for entry in x:
            yield from _parts(entry)
    elif isinstance(x, np.ndarray):
        yield str(x.shape)
        yield (x + 0.0).tobytes()
    else:
        yield repr(float(x) + 0.0 if isinstance(x, float) else x)


def duration(motion: Spline) -> float:
    """Duration of a motion, s; for a single knot, the time from 0 to the knot."""
    return motion.end - (motion.start if len(motion.t) > 1 else min(motion.start, 0.0))


def check_waypoints(count: int, n: int) -> None:
    """Raise StateError if a motion through ``count`` waypoints of n joints exceeds the maximum size of a message."""
    if count * n > MAX_ENTRIES:
        raise StateError(
            f"{count} waypoints of {n} joints make {count * n} entries, must be at most {MAX_ENTRIES}: send the "
            "trajectory in parts"
        )


def _check_knots(knots: Array) -> None:
    steps = np.diff(knots)
    if not (steps > 0).all():
        place = int(np.argmin(steps > 0)) + 1
        raise StateError(f"knots[{place}] is {knots[place]:g} s, must be later than {knots[place - 1]:g} s before it")
    # Tolerance for rounding of the knots.
    if not (steps > 0.999 * SHORTEST_PIECE).all():
        place = int(np.argmin(steps)) + 1
        raise StateError(
            f"knots[{place}] is {steps[place - 1]:.3g} s after the one before it, must be at least {SHORTEST_PIECE:g} s"
        )
    if not (np.abs(knots) <= _LARGEST_KNOT).all():
        place = int(np.argmax(np.abs(knots)))
        raise StateError(f"knots[{place}] is {knots[place]:g} s, must be at most {_LARGEST_KNOT:g} s from 0")


def trajectory_fields(motion: Trajectory, joint_names: Sequence[str], rate: float) -> dict[str, Any]:
    """Return a JointTrajectory as nested dictionaries, as for ``ros2 topic pub``; positions to accelerations."""
    samples = sample(motion, rate)
    since = np.round((samples.t - motion.start) * 1e9).astype(np.int64)
    points = [
        {
            "positions": q.tolist(),
            "velocities": qd.tolist(),
            "accelerations": qdd.tolist(),
            "time_from_start": {"sec": int(sec), "nanosec": int(nanosec)},
        }
        for q, qd, qdd, sec, nanosec in zip(*samples[1:4], *np.divmod(since, 10**9), strict=True)
    ]
    return {"joint_names": list(joint_names), "points": points}
