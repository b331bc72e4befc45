# SPDX-License-Identifier: Apache-2.0
"""Motion of a frame, and of one frame relative to another, with Jacobians and time derivatives of any order.

With body twists V = J nu, where nu are the rates of a mechanism, the twist of a successor frame relative to its
predecessor, in the successor's frame, is

    V_rel = J_rel nu,    J_rel = J_s - G J_p,    G = Ad(C_s^-1 C_p),    dG/dt = -ad(V_rel) G,

and its angular and linear part along the axes of the predecessor are R of those, dR/dt = R [w_rel]. Leibniz' rule on
these products gives the derivatives of J_rel. A joint that closes a loop and a contact are both rows of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .. import lie
from ..arrays import AnyArray
from ..equations.system import SystemMatrices
from ..jet import Jet, leibniz


class FrameMotion(NamedTuple):
    """Motion of a frame.

    Attributes:
        pose: (4, 4).
        twist: jet of the body twist (6,), at most one derivative fewer than the Jacobian.
        jacobian: jet of the body Jacobian (6, k), twist = jacobian rates.
    """

    pose: AnyArray
    twist: Jet
    jacobian: Jet

    def at(self, pose: AnyArray) -> FrameMotion:
        """Motion of a frame with a constant pose (4, 4) in this one."""
        carry = lie.Ad(lie.inverse(pose))
        return FrameMotion(
            self.pose @ pose, Jet([carry @ V for V in self.twist]), Jet([carry @ J for J in self.jacobian])
        )

    def relative_to(self, predecessor: FrameMotion) -> FrameMotion:
        """Motion relative to another frame: pose in the other frame, body twist and Jacobian in this one."""
        gap = lie.inverse(predecessor.pose) @ self.pose
        G = [lie.Ad(lie.inverse(gap))]
        J: list[AnyArray] = []
        V: list[AnyArray] = []
        for k in range(len(self.jacobian)):
            J.append(self.jacobian[k] - leibniz(G, predecessor.jacobian, k))
            if k + 1 < len(self.jacobian):
                V.append(self.twist[k] - leibniz(G, predecessor.twist, k))
                G.append(-leibniz([lie.ad(twist) for twist in V], G, k))
        return FrameMotion(gap, Jet(V), Jet(J))

    def jacobian_along(self, axes: AnyArray) -> Jet:
        """Jet of the Jacobian along fixed axes, the columns of a rotation (3, 3) in the frame to which ``pose`` refers.

        Its linear part is the velocity of the origin of this frame, as in ``world_aligned``.
        """
        R = [axes.T @ self.pose[:3, :3]]
        for k in range(len(self.jacobian) - 1):
            R.append(leibniz(R, [lie.skew(twist[:3]) for twist in self.twist], k))
        halves = Jet([J.reshape(2, 3, -1) for J in self.jacobian])
        return Jet([J.reshape(6, -1) for J in Jet(R) @ halves])


def at_rest(size: int, order: int) -> FrameMotion:
    """Motion of a fixed base, up to an order: zero, for a mechanism with ``size`` rates."""
    return FrameMotion(np.eye(4), Jet([np.zeros(6)] * max(order, 1)), Jet([np.zeros((6, size))] * (order + 1)))


def body_motion(body: SystemMatrices, poses: Sequence[AnyArray], index: int) -> FrameMotion:
    """Motion of one body of a robot, by its system matrices in closed form.

    Args:
        body: system matrices V and J of all bodies, with their time derivatives.
        poses: of all bodies in the base frame, each (4, 4).
        index: of the body.
    """
    rows = slice(6 * index, 6 * index + 6)
    return FrameMotion(poses[index], Jet([V[rows] for V in body.V]), Jet([J[rows] for J in body.J]))
