# SPDX-License-Identifier: Apache-2.0
"""Task space of a frame: moving joints, reach, and characteristic length."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .. import lie
from ..arrays import AnyArray, Array, times
from .model import ENDS, Frame, Joint, Robot

TWIST = 6
"""Entries of a twist: angular, linear."""

# Cache size for robots and frames: the computation takes longer than a solution of inverse kinematics.
_CACHE_SIZE = 64


@lru_cache(_CACHE_SIZE)
def moving_joints(robot: Robot, frame: Frame) -> AnyArray:
    """Indices of the joint variables that move a frame, in the order of q."""
    return np.flatnonzero(np.any(robot.coupling[0][robot.path(frame.joint)], axis=0))


@lru_cache(_CACHE_SIZE)
def characteristic_length(robot: Robot, frames: tuple[Frame, ...]) -> float:
    """Characteristic length, m, equivalent to 1 rad: about the size of the robot."""
    lengths = [float(np.linalg.norm(joint.reference_pose[:3, 3])) for joint in robot.joints]
    lengths += [float(np.linalg.norm(frame.pose[:3, 3])) for frame in frames]
    return 0.5 * sum(lengths) or 1.0


def independent_ranges(robot: Robot, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Lower and upper ends (n,) of the independent joints, from the ranges of all joints including mimic joints."""
    low, high = np.full(robot.n, -np.inf), np.full(robot.n, np.inf)
    for ratios, *ends in zip(robot.coupling[0], *(x - robot.coupling[1] for x in (lower, upper)), strict=True):
        # A joint follows at most one independent joint.
        leader = int(np.argmax(np.abs(ratios)))
        if ratio := ratios[leader]:
            first, last = sorted(end / ratio for end in ends)
            low[leader], high[leader] = max(low[leader], first), min(high[leader], last)
    return low, high


_STARTS, _SWEEPS, _STEPS = 6, 4, 17


def reach(robot: Robot, tool: Frame) -> float:
    """Reach of a tool, m: largest distance from the base origin, by coordinate search.

    Joints are moved in turn within their limits to the farthest tool position. The search starts from several random
    configurations, and from a configuration with each joint moving the tool away from the previous body. Joints without
    limits may rotate by ±pi, and do not translate. The result is a lower bound. Time is linear in the number of joints,
    except for leaders of mimic joints.
    """
    path = robot.path(tool.joint)[::-1]
    E, e = robot.coupling
    unlimited = [0.0 if joint.type == "prismatic" else np.pi for joint in robot.independent_joints]
    ends = np.array([(joint.limits.lower, joint.limits.upper) for joint in robot.independent_joints])
    ranges = np.where(np.isfinite(ends), ends, np.outer(unlimited, [-1.0, 1.0]))
    driven = {k: [i for i in path if E[i, k]] for k in range(robot.n)}
    alone = {joints[0]: k for k, joints in driven.items() if len(joints) == 1}
    together = [k for k, joints in driven.items() if len(joints) > 1]
    q = np.random.default_rng(0).uniform(ranges[:, 0], ranges[:, 1], (_STARTS, robot.n))
    point = tool.pose[np.newaxis, :3, 3]
    for i in reversed(path):
        joint, x = robot.joints[i], q[:1] @ E[i] + e[i]
        if (k := alone.get(i)) is not None:
            x = _farthest(joint, joint.reference_pose, point, *np.sort(E[i, k] * ranges[k] + e[i]))
            q[0, k] = (x[0] - e[i]) / E[i, k]
        point = lie.transformed(joint.reference_pose @ lie.exp(joint.screw, x), point)
    for _ in range(_SWEEPS):
        pose = np.eye(4)
        for i, point in zip(path, _points(robot, path, tool, q @ E.T + e)[1:], strict=True):
            joint = robot.joints[i]
            pose = pose @ joint.reference_pose
            if (k := alone.get(i)) is not None:
                ends = np.sort(E[i, k] * ranges[k] + e[i])
                q[:, k] = (_farthest(joint, pose, point, *ends) - e[i]) / E[i, k]
            pose = pose @ lie.exp(joint.screw, q @ E[i] + e[i])
        for k in together:
            candidates = np.repeat(q[np.newaxis], _STEPS + 1, axis=0)
            candidates[1:, :, k] = np.linspace(ranges[k, 0], ranges[k, 1], _STEPS)[:, np.newaxis]
            distances = np.linalg.norm(_points(robot, path, tool, candidates @ E.T + e)[0], axis=-1)
            q = candidates[np.argmax(distances, axis=0), np.arange(_STARTS)]
    return float(np.max(np.linalg.norm(_points(robot, path, tool, q @ E.T + e)[0], axis=-1)))


def _points(robot: Robot, path: list[int], tool: Frame, x: Array) -> list[Array]:
    """The tool's origin (…, 3) in the base and in the body of each joint of the path, for joint variables x (…, n)."""
    points = [np.broadcast_to(tool.pose[:3, 3], (*x.shape[:-1], 3))]
    for i in reversed(path):
        joint = robot.joints[i]
        points.append(lie.transformed(joint.reference_pose @ lie.exp(joint.screw, x[..., i]), points[-1]))
    return points[::-1]


def _farthest(joint: Joint, pose: Array, point: Array, lower: float, upper: float) -> Array:
    """Joint variables (N,) in a range with points (N, 3) of the body farthest from the base."""
    if joint.type != "revolute":
        candidates = np.linspace(lower, upper, 2 if joint.type == "prismatic" else _STEPS)
        moved = lie.transformed(pose[..., np.newaxis, :, :] @ lie.exp(joint.screw, candidates), point[:, np.newaxis])
        return candidates[np.argmax(np.linalg.norm(moved, axis=-1), axis=-1)]
    # p(x) = center + cos(x) u + sin(x) v, so that the squared distance is mean + 2 (a cos(x) + b sin(x)).
    axis, moment = joint.screw[:3], joint.screw[3:]
    lever = point - lie.skew(axis) @ moment
    u = lever - (lever @ axis)[:, np.newaxis] * axis
    center = lie.transformed(pose, point - u)
    a, b = (np.sum(center * times(pose[..., :3, :3], w), axis=-1) for w in (u, np.cross(axis, u)))
    peak = np.arctan2(b, a)
    first = peak + 2 * np.pi * np.ceil((lower - peak) / (2 * np.pi))
    at_end = np.where(a * np.cos(upper) + b * np.sin(upper) > a * np.cos(lower) + b * np.sin(lower), upper, lower)
    return np.where(first <= upper, first, at_end)


def poses_within_limits(robot: Robot, count: int, most: float = np.pi) -> Array:
    """Random poses (count, n) within joint limits, ``most`` rad or m from zero; equal at each call."""
    limits = [joint.limits for joint in robot.independent_joints]
    lower, upper = (np.clip([getattr(x, side) for x in limits], -most, most) for side in ENDS)
    return np.random.default_rng(0).uniform(lower, np.maximum(lower, upper), (count, robot.n))
