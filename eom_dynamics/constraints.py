# SPDX-License-Identifier: Apache-2.0
"""Rigid constraints between frames, for contacts and closed loops: Jacobians and dynamics.

With body twists V = J nu and the rates nu of a mechanism, the twist of a successor frame relative to its predecessor,
in the successor's frame, is

    V_rel = J_rel nu,    J_rel = J_s - G J_p,    G = Ad(C_s^-1 C_p),    dG/dt = -ad(V_rel) G,

and its parts along the predecessor's axes are R times its angular and linear part, dR/dt = R [w_rel]. Leibniz' rule on
these products gives the derivatives of J_rel. A cut joint of a loop and a contact are both rows of J_rel.

The equations of a mechanism with mass matrix M under constraint forces f are

    M x - J' f = b,    J x = c.

With the Cholesky factor M = L L', the variables z = L' x and Y = L^-1 J' turn them into z - Y f = L^-1 b, Y' z = c. The
singular value decomposition of Y solves these with the condition number of Y, not its square. Redundant constraints
have zero singular values: f is then the solution of least norm, and x remains unique. R. Featherstone, *Rigid Body
Dynamics Algorithms* (2008), chapters 8 and 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from . import lie
from .arrays import AnyArray, Array
from .equations.body_matrices import BodyMatrices
from .jet import Jet, leibniz
from .recursion.inverse_mass_matrix import solve_mass_matrix


class FrameMotion(NamedTuple):
    """Motion of a frame: pose (4, 4), and jets of the body twist (6,) and body Jacobian (6, k), twist = jacobian rates.

    The twist has at most one derivative fewer than the Jacobian.
    """

    pose: AnyArray
    twist: Jet
    jacobian: Jet

    def at(self, pose: AnyArray) -> FrameMotion:
        """Motion of a frame with a constant pose (4, 4) in this frame."""
        carry = lie.Ad(lie.inverse(pose))
        return FrameMotion(
            self.pose @ pose, Jet([carry @ V for V in self.twist]), Jet([carry @ J for J in self.jacobian])
        )

    def relative_to(self, predecessor: FrameMotion) -> FrameMotion:
        """Motion relative to another frame: pose in the other frame, body twist and Jacobian in this frame."""
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
        """Jet of the Jacobian along fixed axes, the columns of a rotation (3, 3) in the reference frame of ``pose``.

        The linear part is the velocity of this frame's origin, as in ``world_aligned``.
        """
        R = [axes.T @ self.pose[:3, :3]]
        for k in range(len(self.jacobian) - 1):
            R.append(leibniz(R, [lie.skew(twist[:3]) for twist in self.twist], k))
        halves = Jet([J.reshape(2, 3, -1) for J in self.jacobian])
        return Jet([J.reshape(6, -1) for J in Jet(R) @ halves])


def at_rest(size: int, order: int) -> FrameMotion:
    """Motion of a fixed base, up to an order: zero, for a mechanism with ``size`` rates."""
    return FrameMotion(np.eye(4), Jet([np.zeros(6)] * max(order, 1)), Jet([np.zeros((6, size))] * (order + 1)))


def body_motion(body: BodyMatrices, poses: Sequence[AnyArray], index: int) -> FrameMotion:
    """Motion of one body of a robot, from the twists of all bodies and their poses (4, 4) in the base frame."""
    rows = slice(6 * index, 6 * index + 6)
    return FrameMotion(poses[index], Jet([V[rows] for V in body.V]), Jet([J[rows] for J in body.J]))


# Singular values below this share of the largest are zero: about 1000 times the rounding error.
SINGULAR = 1e-12


class ConstrainedSolution(NamedTuple):
    """Solution of a mechanism under rigid constraints.

    Attributes:
        x: accelerations or rates (n,).
        forces: f (m,), constraint forces or impulses; of least norm for redundant constraints.
        rank: number of independent constraints.
        violation: largest entry of J x - c; zero up to rounding unless the constraints contradict each other.
    """

    x: Array
    forces: Array
    rank: int
    violation: float


def solve(
    name: str, mass_matrix: Array, efforts: Array, jacobian: Array, target: Array, directions: Array | None = None
) -> ConstrainedSolution:
    """Solve M x - D' f = b, J x = c for x and f.

    Args:
        name: name of the mechanism, for error messages.
        mass_matrix, efforts: M (n, n) and b (n,); RobotDescriptionError if M is not positive definite.
        jacobian, target: J (m, n) and c (m,); contradictory constraints are solved by least squares.
        directions: D (m, n), efforts of unit forces; by default J, for constraints without friction. With other
            directions, for example for sliding friction, x is unique only if J M^-1 D' has the rank of D.
    """
    try:
        L = np.linalg.cholesky(mass_matrix)
    except np.linalg.LinAlgError:
        solve_mass_matrix(name, mass_matrix, efforts)  # raises the error with the cause
        raise
    free = np.linalg.solve(L, efforts)
    Y = np.linalg.solve(L, jacobian.T)
    if directions is None:
        U, values, V = np.linalg.svd(Y, full_matrices=False)
        rank = int(np.count_nonzero(values > SINGULAR * values[0])) if values.size else 0
        U, values, V = U[:, :rank], values[:rank], V[:rank]
        change = (V @ target) / values - U.T @ free
        forces = V.T @ (change / values)
        z = free + U @ change
    else:
        W = np.linalg.solve(L, directions.T)
        forces, _, rank, _ = np.linalg.lstsq(Y.T @ W, target - Y.T @ free, rcond=SINGULAR)
        z = free + W @ forces
    x = np.linalg.solve(L.T, z)
    violation = float(np.max(np.abs(jacobian @ x - target), initial=0.0))
    return ConstrainedSolution(x, forces, int(rank), violation)


__all__ = ["ConstrainedSolution", "FrameMotion", "at_rest", "body_motion", "solve"]
