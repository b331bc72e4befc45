# SPDX-License-Identifier: Apache-2.0
"""Cut joints: loop-closure constraints and their time derivatives.

A cut joint is a pair of frames on two bodies, its predecessor and its successor. With the twist V_rel of the
successor's frame relative to the predecessor's, in the successor's frame, the constraints P V_rel = 0 are rows
J_c = L J of the constraint Jacobian. Their time derivatives follow from the derivative step of
:mod:`eom_dynamics.equations.closed_form`, here one-sided:

    d/dt (L J) = (dL/dt - L S) J.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import lie
from ..arrays import AnyArray
from ..equations.system import System
from ..jet import Jet, leibniz


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

    def jacobian(self, body: System, poses: list[AnyArray]) -> Jet:
        """J_c (6 - k, n) to the order of the kinematics, for poses of the bodies in the base frame."""
        P = self.forbidden
        size = len(body.J[0])
        successor = np.zeros((6, size))
        successor[:, 6 * self.successor : 6 * self.successor + 6] = lie.Ad(lie.inverse(self.successor_pose))
        predecessor = np.zeros((6, size))
        if self.predecessor >= 0:
            at = slice(6 * self.predecessor, 6 * self.predecessor + 6)
            predecessor[:, at] = lie.Ad(lie.inverse(self.predecessor_pose))
        # G maps twists from the predecessor's frame to the successor's; dG/dt = -ad(V_rel) G.
        G = [lie.Ad(lie.inverse(self.gap(poses)))]
        relative: list[AnyArray] = []
        for k in range(len(body.V)):
            carried = leibniz(G, [predecessor @ V for V in body.V[: k + 1]], k)
            relative.append(successor @ body.V[k] - carried)
            if k + 1 < len(body.V):
                G.append(-leibniz([lie.ad(V) for V in relative], G, k))
        constant = Jet([P @ successor] + [np.zeros((len(P), size))] * (len(G) - 1))
        L: Jet = constant - Jet([P @ g @ predecessor for g in G])
        rows = [L[0] @ body.J[0]]
        while len(L) > 1:
            L = L.rate - L @ body.S
            rows.append(L[0] @ body.J[0])
        return Jet(rows)
