# SPDX-License-Identifier: Apache-2.0
"""Reach of a tool."""

from __future__ import annotations

import numpy as np

from .. import lie
from ..arrays import Array
from .model import Frame, Robot

_STARTS, _SWEEPS, _STEPS = 6, 4, 17


def reach(robot: Robot, tool: Frame) -> float:
    """Reach of a tool: its largest distance from the origin of the base, m, by coordinate search.

    From several random configurations, one joint after another is moved within its limits to where the tool is
    farthest. Joints without limits may rotate by ±pi, and do not translate. The result is a lower bound.
    """
    path = [tool.joint]
    while robot.joints[path[0]].parent >= 0:
        path.insert(0, robot.joints[path[0]].parent)
    E, e = robot.coupling
    ranges = [_range(robot, k) for k in range(robot.n)]
    moving = sorted({int(k) for i in path for k in np.flatnonzero(E[i])})
    generator = np.random.default_rng(0)

    def distance(q: Array) -> float:
        pose = np.eye(4)
        for i in path:
            joint = robot.joints[i]
            pose = pose @ joint.reference_pose @ lie.exp(joint.screw, E[i] @ q + e[i])
        return float(np.linalg.norm((pose @ tool.pose)[:3, 3]))

    farthest = 0.0
    for _ in range(_STARTS):
        q = np.array([generator.uniform(*limits) for limits in ranges])
        for _ in range(_SWEEPS):
            for k in moving:
                candidates = np.repeat([q], _STEPS + 1, axis=0)
                candidates[1:, k] = np.linspace(*ranges[k], _STEPS)
                q = max(candidates, key=distance)
        farthest = max(farthest, distance(q))
    return farthest


def _range(robot: Robot, k: int) -> tuple[float, float]:
    joint = robot.independent_joints[k]
    unlimited = 0.0 if joint.type == "prismatic" else np.pi
    lower, upper = joint.limits.lower, joint.limits.upper
    return (lower if np.isfinite(lower) else -unlimited, upper if np.isfinite(upper) else unlimited)
