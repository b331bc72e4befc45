# SPDX-License-Identifier: Apache-2.0
"""Poses of the bodies."""

from __future__ import annotations

from numpy.typing import ArrayLike

from .. import lie
from ..arrays import AnyArray
from ..robot import Robot
from ..states import joint_vectors


def body_poses(robot: Robot, q: ArrayLike) -> list[AnyArray]:
    """Poses (4, 4) of all bodies in the base frame in the order of ``robot.joints``, equations (5)-(7).

    Args:
        robot: the robot.
        q: joint variables (n,), rad or m.

    Raises:
        StateError: q has the wrong shape or is not finite.
    """
    E, e = robot.coupling
    poses: list[AnyArray] = []
    for joint, x in zip(robot.joints, E @ joint_vectors(robot.n, q)[0] + e, strict=True):
        step = joint.reference_pose @ lie.exp(joint.screw, x)
        poses.append(step if joint.parent < 0 else poses[joint.parent] @ step)
    return poses
