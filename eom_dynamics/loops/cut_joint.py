# SPDX-License-Identifier: Apache-2.0
"""A joint that closes a loop: what it forbids, and how that changes in time.

The joint is cut, so that the rest is a tree; its two halves are frames on two bodies. What the joint forbids
of their relative motion, P V_rel = 0, makes the rows J_c = L J of the constraint Jacobian, with V_rel the twist of
the successor's half relative to the predecessor's, in the successor's. Time derivatives follow by the step that
serves all terms of the equations of motion (see :mod:`eom_dynamics.equations.closed_form`), here one-sided:

    d/dt (L J) = (dL/dt - L S) J.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import lie
from ..equations.system import System
from ..jet import Jet, leibniz

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class CutJoint:
    """A joint that closes a loop.

    Attributes:
        name: name of the joint.
        predecessor: index of the tree joint that moves the one body; -1 for the base.
        predecessor_pose: pose (4, 4) of the joint's frame in that body.
        successor: index of the tree joint that moves the other body.
        successor_pose: pose (4, 4) of the joint's frame in that body. The loop is closed where both frames
            coincide but for a motion of the joint.
        screws: (k, 6), the motions that the joint allows, in the successor's frame of the joint: a revolute joint
            has one, a spherical one three. They must be the motions of a subgroup of SE(3), for then they
            are the same in both frames.
    """

    name: str
    predecessor: int
    predecessor_pose: Array
    successor: int
    successor_pose: Array
    screws: Array

    @property
    def forbidden(self) -> Array:
        """P (6 - k, 6): orthonormal rows, zero on what the joint allows."""
        _, values, rows = np.linalg.svd(np.atleast_2d(self.screws))
        return rows[np.count_nonzero(values > 1e-9) :]

    def gap(self, poses: list[Array]) -> Array:
        """Pose (4, 4) of the successor's frame in the predecessor's; poses are those of the bodies in the base."""
        at = self.predecessor_pose if self.predecessor < 0 else poses[self.predecessor] @ self.predecessor_pose
        return lie.inverse(at) @ poses[self.successor] @ self.successor_pose

    def jacobian(self, body: System, poses: list[Array]) -> Jet:
        """J_c (6 - k, n) with as many time derivatives as the kinematics have."""
        P = self.forbidden
        size = len(body.J[0])
        successor = np.zeros((6, size))
        successor[:, 6 * self.successor : 6 * self.successor + 6] = lie.Ad(lie.inverse(self.successor_pose))
        predecessor = np.zeros((6, size))
        if self.predecessor >= 0:
            at = slice(6 * self.predecessor, 6 * self.predecessor + 6)
            predecessor[:, at] = lie.Ad(lie.inverse(self.predecessor_pose))
        # G takes twists from the predecessor's frame to the successor's; dG/dt = -ad(V_rel) G.
        G = [lie.Ad(lie.inverse(self.gap(poses)))]
        relative: list[Array] = []
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
