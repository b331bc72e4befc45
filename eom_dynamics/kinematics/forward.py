# SPDX-License-Identifier: Apache-2.0
"""Poses of the bodies."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .. import lie
from ..arrays import AnyArray
from ..codegen.backends import require_robot
from ..robot import Robot
from ..states import joint_vectors, number_of_states


def body_poses(robot: Robot, q: ArrayLike) -> list[AnyArray]:
    """Poses (4, 4) or (N, 4, 4) of all bodies in the base frame in the order of ``robot.joints``, equations (5)-(7).

    Args:
        robot: the robot.
        q: joint variables (n,) or (N, n), rad or m.

    Raises:
        StateError: q has the wrong shape or is not finite.
        TypeError: ``robot`` is not a Robot.
    """
    require_robot(robot)
    if number_of_states(q) is not None:
        return [np.stack(poses) for poses in zip(*(body_poses(robot, one) for one in np.asarray(q)), strict=True)]
    E, e = robot.coupling
    poses: list[AnyArray] = []
    for joint, x in zip(robot.joints, E @ joint_vectors(robot.n, q)[0] + e, strict=True):
        step = joint.reference_pose @ lie.exp(joint.screw, x)
        poses.append(step if joint.parent < 0 else poses[joint.parent] @ step)
    return poses
