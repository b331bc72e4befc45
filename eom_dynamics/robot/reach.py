# SPDX-License-Identifier: Apache-2.0
"""How far a tool can get from the base."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import lie
from .model import Frame, Robot

Array = NDArray[np.float64]

_STARTS, _SWEEPS, _STEPS = 6, 4, 17


def reach(robot: Robot, tool: Frame) -> float:
    """The largest distance of a tool from the origin of the base that a search finds, in m.

    One joint after another is moved to where the tool is farthest, within its limits (without limits a turn, or
    for a slide none at all), from several random configurations. Joints that follow others move with them.
    """
    way = [tool.joint]
    while robot.joints[way[0]].parent >= 0:
        way.insert(0, robot.joints[way[0]].parent)
    E, e = robot.coupling
    ranges = [_range(robot, k) for k in range(robot.n)]
    moving = sorted({int(k) for i in way for k in np.flatnonzero(E[i])})
    generator = np.random.default_rng(0)

    def distance(q: Array) -> float:
        pose = np.eye(4)
        for i in way:
            joint = robot.joints[i]
            pose = pose @ joint.reference_pose @ lie.exp(joint.screw, E[i] @ q + e[i])
        return float(np.linalg.norm((pose @ tool.pose)[:3, 3]))

    farthest = 0.0
    for _ in range(_STARTS):
        q = np.array([generator.uniform(*limits) for limits in ranges])
        for _ in range(_SWEEPS):
            for k in moving:
                others = np.repeat([q], _STEPS + 1, axis=0)
                others[1:, k] = np.linspace(*ranges[k], _STEPS)
                q = max(others, key=distance)
        farthest = max(farthest, distance(q))
    return farthest


def _range(robot: Robot, k: int) -> tuple[float, float]:
    joint = robot.independent_joints[k]
    unlimited = 0.0 if joint.type == "prismatic" else np.pi
    lower, upper = joint.limits.lower, joint.limits.upper
    return (lower if np.isfinite(lower) else -unlimited, upper if np.isfinite(upper) else unlimited)
