# SPDX-License-Identifier: Apache-2.0
"""Task space of a frame: the joints that move it, and a length that weighs as much as 1 rad."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..arrays import AnyArray
from .model import Frame, Robot

TWIST = 6
"""Entries of a twist: angular, linear."""

# Robots and frames for which both are kept: computing them takes longer than a solution.
_KEPT = 64


@lru_cache(_KEPT)
def moving_joints(robot: Robot, frame: Frame) -> AnyArray:
    """Indices of the joint variables that move a frame, in the order of q."""
    E, _ = robot.coupling
    moves, i = np.zeros(robot.n, dtype=bool), frame.joint
    while i >= 0:
        moves |= E[i] != 0
        i = robot.joints[i].parent
    return np.flatnonzero(moves)


@lru_cache(_KEPT)
def characteristic_length(robot: Robot, frames: tuple[Frame, ...]) -> float:
    """Characteristic length that weighs as much as 1 rad: about the size of the robot, m."""
    lengths = [float(np.linalg.norm(joint.reference_pose[:3, 3])) for joint in robot.joints]
    lengths += [float(np.linalg.norm(frame.pose[:3, 3])) for frame in frames]
    return 0.5 * sum(lengths) or 1.0
