# SPDX-License-Identifier: Apache-2.0
"""Cut joints: loop-closure constraints and their time derivatives.

A cut joint is a pair of frames on two bodies, its predecessor and its successor. With the twist V_rel of the
successor's frame relative to the predecessor's, in the successor's frame, the constraints P V_rel = 0 are rows
J_c = P J_rel of the constraint Jacobian; see :mod:`eom_dynamics.constraints.frame_motion`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import lie
from ..arrays import AnyArray
from ..constraints import FrameMotion, at_rest, body_motion
from ..equations.system import SystemMatrices
from ..jet import Jet


@dataclass(frozen=True, eq=False)
class CutJoint:
    """A joint that closes a loop.

    Attributes:
        name: name of the joint.
        predecessor: index of the tree joint that moves the predecessor; -1 for the base.
        predecessor_pose: pose (4, 4) of the joint's frame in the predecessor.
        successor: index of the tree joint that moves the successor.
        successor_pose: pose (4, 4) of the joint's frame in the successor. The loop is closed if the two frames differ
            only by a motion of the joint.
        screws: (k, 6), the motions that the joint allows, in its frame: one for a revolute joint, three for a
            spherical one. They must generate a subgroup of SE(3), so that they are the same in both frames.
    """

    name: str
    predecessor: int
    predecessor_pose: AnyArray
    successor: int
    successor_pose: AnyArray
    screws: AnyArray

    @property
    def forbidden(self) -> AnyArray:
        """P (6 - k, 6): orthonormal basis of the constraints, orthogonal to the screws."""
        _, values, rows = np.linalg.svd(np.atleast_2d(self.screws))
        return rows[np.count_nonzero(values > 1e-9) :]

    def gap(self, poses: list[AnyArray]) -> AnyArray:
        """Pose (4, 4) of the successor's frame in the predecessor's, for poses of the bodies in the base frame."""
        at = self.predecessor_pose if self.predecessor < 0 else poses[self.predecessor] @ self.predecessor_pose
        return lie.inverse(at) @ poses[self.successor] @ self.successor_pose

    def jacobian(self, body: SystemMatrices, poses: list[AnyArray]) -> Jet:
        """J_c (6 - k, n) to the order of the kinematics, for poses of the bodies in the base frame."""
        J = body.J
        predecessor = at_rest(J[0].shape[1], len(J) - 1)
        if self.predecessor >= 0:
            predecessor = body_motion(body, poses, self.predecessor)
        return self.rows(predecessor, body_motion(body, poses, self.successor))

    def rows(self, predecessor: FrameMotion, successor: FrameMotion) -> Jet:
        """J_c (6 - k, n), from the motion of the two bodies."""
        relative = successor.at(self.successor_pose).relative_to(predecessor.at(self.predecessor_pose))
        P = self.forbidden
        return Jet([P @ J for J in relative.jacobian])
