# SPDX-License-Identifier: Apache-2.0
"""Trajectory messages of joints and of a tool as arrays and splines, and back, and the identity of a message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, NamedTuple
from zlib import crc32

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
from .spatial import read_pose, read_twist


def read_times(trajectory: Any) -> Array:
    """Times of the points (K,), s from the start of the trajectory.

    Args:
        trajectory: a ``trajectory_msgs/JointTrajectory``, here and below.

    Raises:
        StateError: there are no points, or the times do not increase.
    """
    if not trajectory.points:
        raise StateError("trajectory has no points")
    stamps = np.array([x.time_from_start.sec * 10**9 + x.time_from_start.nanosec for x in trajectory.points])
    for k in np.flatnonzero(np.diff(stamps) <= 0):
        raise StateError(
            f"points[{k + 1}].time_from_start is {stamps[k + 1] / 1e9:g} s, must be later than that of the point "
            f"before, {stamps[k] / 1e9:g} s"
        )
    return stamps * 1e-9


def require_rest_at_the_end(trajectory: Any) -> None:
    """Refuse a trajectory whose last point has a velocity: the arm would stop with a step.

    Raises:
        StateError: it has one that single precision tells from zero.
    """
    for joint, velocity in enumerate(trajectory.points[-1].velocities if trajectory.points else ()):
        if not abs(velocity) <= np.finfo(np.float32).eps:
            name = shown_name(trajectory.joint_names[joint]) if joint < len(trajectory.joint_names) else joint
            raise StateError(
                f"points[{len(trajectory.points) - 1}].velocities[{joint}] (joint {name}) is {velocity:.3g} rad/s or "
                "m/s, must be 0 at the end (parameter allow_nonzero_velocity_at_trajectory_end)"
            )


def read_points(trajectory: Any, field: str, order: JointOrder) -> Array | None:
    """A field of all points, (K, n) in the robot's order, NaN where it is empty; None if it is empty in all.

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


def fill_in(trajectory: Any, field: str, values: Array, order: JointOrder, *, where_given: bool = False) -> None:
    """Assign values (K, n), in the robot's order, to a field of all points, or of those that have it."""
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

    ``joint_names`` has the name of the frame, or is empty for the first tool. Each point has one transform in the base
    frame; the first and the last one may have a velocity and an acceleration, along the axes of the base frame, which
    are zero otherwise.

    Raises:
        StateError: the message is invalid.
        TrajectoryError: there is no motion through the poses, as for :func:`.through_poses`.
    """
    names, points = list(trajectory.joint_names), trajectory.points
    if len(names) > 1:
        raise StateError(f"tool_trajectory.joint_names must have the name of one frame or be empty, has {len(names)}")
    times = read_times(trajectory)
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
    """Body twist and its derivative at the first or last point; those that are given."""
    point, k = points[place], place % len(points)
    if point.accelerations and not point.velocities:
        raise StateError(f"points[{k}] has accelerations without velocities")
    world_aligned = []
    for name in ("velocities", "accelerations"):
        entries = getattr(point, name)
        if len(entries) > 1:
            raise StateError(f"points[{k}].{name} must have one entry or none, has {len(entries)}")
        world_aligned += [read_twist(entry, f"points[{k}]") for entry in entries]
    if not world_aligned:
        return []
    with np.errstate(over="ignore", invalid="ignore"):
        twists = [np.asarray(x, dtype=float) for x in lie.body_twists(pose, *world_aligned)]
    if not all_finite(*twists):
        raise StateError(f"numbers too large: the body twist of points[{k}] would be infinite")
    return twists


class RequestNames:
    """Names of the trajectories of a topic, in the order of their arrival."""

    def __init__(self, topic: str) -> None:
        self._topic, self._count = topic, 0

    def next(self, message: Any) -> str:
        """Name of a message that has arrived: its own ``request``, or topic, number and checksum."""
        self._count += 1
        return getattr(message, "request", "") or f"{self._topic}/{self._count}/{checksum(message):08x}"


def checksum(message: Any) -> int:
    """CRC-32 of the positions of a trajectory, which its sender can compute as well.

    Of 64-bit floating-point numbers, little-endian: the field position of a SplineTrajectory, else point by point the
    positions of a JointTrajectory, or of a MultiDOFJointTrajectory translation (x, y, z) and rotation (x, y, z, w) of
    each transform.
    """
    return crc32(np.asarray(_positions(message), dtype="<f8").tobytes())


def _positions(message: Any) -> Array:
    if hasattr(message, "position"):
        return np.asarray(message.position)
    if not len(message.points) or hasattr(message.points[0], "positions"):
        return np.concatenate([np.zeros(0), *(point.positions for point in message.points)])
    moves = [(x.translation, x.rotation) for point in message.points for x in point.transforms]
    return np.array([(p.x, p.y, p.z, turn.x, turn.y, turn.z, turn.w) for p, turn in moves])


MAX_ENTRIES = 50_000
"""The constant of the same name in the message."""

SHORTEST_PIECE = 1e-4
"""The constant of the same name in the message, s. On shorter pieces, rounding of positions would be large jerks."""

_LARGEST_KNOT = 1e9


def check_size(message: Any) -> None:
    """Raise StateError if a message is too large to read quickly."""
    if max(len(getattr(message, field)) for field in ("knots", *STATE_FIELDS)) > MAX_ENTRIES:
        raise StateError(f"fields may have {MAX_ENTRIES} entries: send the motion in parts")


def read_spline(message: Any, robot_names: Sequence[str]) -> Spline:
    """The motion of a message, joints in the robot's order.

    Args:
        message: a SplineTrajectory with one knot at least.
        robot_names: the robot's joints.

    Raises:
        StateError: a joint is missing, a field has the wrong length or a number that is not finite, or knots do not
            increase or are too close.
    """
    check_size(message)
    order = JointOrder(robot_names, list(message.joint_names))
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


def limits_digest(motion: Spline, robot: Robot) -> str:
    """Digest of all that a check of limits depends on: a motion, and the robot, with its limits and payloads.

    Of the class names, numbers and texts of the robot, then of the times and states of the knots; see :func:`.digest`.
    """
    return digest(robot_digest(robot), motion.t.tobytes(), motion.states.tobytes())


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
    """Duration of a motion, s; with a single knot, that of the way to it, from time 0 on."""
    return motion.end - (motion.start if len(motion.t) > 1 else min(motion.start, 0.0))


def check_waypoints(count: int, n: int) -> None:
    """Raise StateError if a motion through so many waypoints of n joints has more entries than a message may."""
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
    # Knots at a distance of the shortest piece may be rounded.
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
