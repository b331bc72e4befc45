# SPDX-License-Identifier: Apache-2.0
"""Paths of a tool along straight lines, with blends at corners."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .. import lie
from ..arrays import Array
from ..exceptions import TrajectoryError
from .pose_spline import PoseSpline, body_twists, checked_poses, steps_between
from .spline import ORDERS, Spline

# The blend of degree nine from one unit vector to another, over the length 2 d, passes the corner at this share of d
# times the length of their difference.
_PASSING = 35 / 256

# Nominal speed along the path, m/s; minimum_time replaces the timing.
_SPEED = 0.25

# Parts of a blend, and the largest angle of a part of a line, rad: poses between knots are interpolated.
_PARTS = 8
_ANGLE = 0.2


def straight_lines(poses: ArrayLike, corner: float) -> PoseSpline:
    """Straight lines of a tool from pose to pose, with blends that pass inner poses at a given distance.

    On a line the tool turns about a fixed axis, in proportion to its way. A blend is a polynomial of degree nine from
    line to line, of the position and of the rotation vector from the orientation at the corner, so that the path is C⁴.
    It moves at 0.25 m/s on lines: find its timing with :func:`.follow` and :func:`.minimum_time`.

    Args:
        poses: (K, 4, 4), K >= 2, with different positions, m.
        corner: distance from a position at which the path passes it, m; less where a line is too short for that.

    Raises:
        TrajectoryError: a pose is invalid, consecutive positions are equal, the path turns back at one, or there is
            half a turn between two poses.
    """
    P = np.atleast_1d(np.asarray(poses, dtype=float))
    _, P = checked_poses(np.arange(len(P)), P)
    steps = np.diff(P[:, :3, 3], axis=0)
    lengths = np.linalg.norm(steps, axis=1)
    if not np.all(lengths > 0):
        k = int(np.argmin(lengths))
        raise TrajectoryError(f"poses {k} and {k + 1} have the same position; a line needs a length")
    rates = steps_between(P)[:, :3] * _SPEED / lengths[:, np.newaxis]
    way = _blended(P[:, :3, 3], steps, corner).stretched(1 / _SPEED)
    passed = np.append(0.0, np.cumsum(lengths)) / _SPEED
    t, frames, twists = [], [], []
    for begin, end in zip(way.t[:-1], way.t[1:], strict=True):
        inner = np.flatnonzero((passed[1:-1] > begin) & (passed[1:-1] < end)) + 1
        k = int(inner[0]) if len(inner) else int(np.searchsorted(passed, 0.5 * (begin + end))) - 1
        before, after = (rates[k - 1], rates[k]) if len(inner) else (rates[k], rates[k])
        # The rotation vector from the orientation of pose k.
        states = np.zeros((ORDERS, 2, 3))
        states[0] = (begin - passed[k]) * before, (end - passed[k]) * after
        states[1] = before, after
        parts = _PARTS if len(inner) else max(int(np.ceil(np.linalg.norm(before) * (end - begin) / _ANGLE)), 1)
        at = np.linspace(begin, end, parts + 1)[: None if end == way.t[-1] else -1]
        x = np.array(Spline([begin, end], states).derivatives(at))
        R = P[k, :3, :3] @ lie.exp(np.concatenate([x[0], np.zeros_like(x[0])], axis=1))[:, :3, :3]
        q, *p = way.derivatives(at)
        frame = np.tile(np.eye(4), (len(at), 1, 1))
        frame[:, :3, :3], frame[:, :3, 3] = R, q
        t.append(at)
        frames.append(frame)
        twists.append(_twists(x, [np.einsum("nji,nj->ni", R, each) for each in p]))
    return PoseSpline(np.concatenate(t), np.concatenate(frames), np.concatenate(twists, axis=1))


def _twists(x: Array, p: list[Array]) -> Array:
    """V … Vddd (4, N, 6) from the rotation vector and its derivatives (5, N, 3), and those 1 … 4 of the position.

    The latter in the frame of the tool, each (N, 3).
    """
    w, wd, wdd, wddd = (V[:, :3] for V in body_twists([np.concatenate([each, 0 * each], axis=1) for each in x]))
    # d/dt (Rᵀ a) = Rᵀ da/dt - w × Rᵀ a.
    jerk_rate = p[3] - np.cross(w, p[2])
    acceleration_rate = p[2] - np.cross(w, p[1])
    acceleration_rates = jerk_rate - np.cross(wd, p[1]) - np.cross(w, acceleration_rate)
    v = p[0]
    vd = p[1] - np.cross(w, v)
    vdd = acceleration_rate - np.cross(wd, v) - np.cross(w, vd)
    vddd = acceleration_rates - np.cross(wdd, v) - 2 * np.cross(wd, vd) - np.cross(w, vdd)
    return np.concatenate([np.stack([w, wd, wdd, wddd]), np.stack([v, vd, vdd, vddd])], axis=2)


def _blended(waypoints: Array, steps: Array, corner: float) -> Spline:
    """Straight lines with blends of degree nine, over the length of the lines."""
    if not (np.isfinite(corner) and corner > 0):
        raise TrajectoryError(f"corner must be a positive distance, is {corner}")
    lengths = np.linalg.norm(steps, axis=1)
    along = steps / lengths[:, np.newaxis]
    turns = np.linalg.norm(np.diff(along, axis=0), axis=1)
    if np.any(turns > 2 - 1e-6):
        k = int(np.argmax(turns)) + 1
        raise TrajectoryError(f"the path turns back at waypoint {k}, where no blend passes it; end the motion there")
    with np.errstate(divide="ignore"):
        wanted = np.where(turns > 1e-12, corner / (_PASSING * turns), np.inf)
    # At most half of the shorter line, so that neighbouring blends do not overlap.
    reach = np.minimum(wanted, 0.5 * np.minimum(lengths[1:], lengths[:-1]))
    at = np.cumsum(lengths)[:-1]
    times, states, rounding = [0.0], [(waypoints[0], along[0])], 1e-12 * float(np.sum(lengths))
    for k, (distance, s) in enumerate(zip(reach, at, strict=True)):
        for sign, direction in ((-1, along[k]), (1, along[k + 1])):
            if s + sign * distance > times[-1] + rounding:
                times.append(s + sign * distance)
                states.append((waypoints[k + 1] + sign * distance * direction, direction))
    if times[-1] + rounding < np.sum(lengths):
        times.append(float(np.sum(lengths)))
        states.append((waypoints[-1], along[-1]))
    derivatives = np.zeros((ORDERS, len(times), waypoints.shape[1]))
    for i, (q, direction) in enumerate(states):
        derivatives[:2, i] = q, direction
    return Spline(times, derivatives)
