# SPDX-License-Identifier: Apache-2.0
"""Definiteness of a robot's mass matrix, and applicability of algorithms."""

from __future__ import annotations

from itertools import compress

import numpy as np

from .. import lie
from ..arrays import Array
from .model import Robot

# Rounding error of zero eigenvalues of a spatial inertia, relative to the largest.
_EIGENVALUE = 1e-12
# Rounding error of a zero, relative to the canceling terms. The smallest ratio of a real robot, a finger of a few
# grams on a torso, is far larger.
_ZERO = 1e-12


def admits_articulated_bodies(robot: Robot, *, with_base: bool = False) -> bool:
    """True if the articulated-body algorithm applies: independent joints, no negative spatial inertia.

    The mass matrix is then positive definite unless joints move no mass; see :func:`joints_without_inertia`.
    """
    E, _ = robot.coupling
    if E.shape[0] != E.shape[1] or not np.array_equal(E, np.eye(len(E))):
        return False
    inertias = [joint.spatial_inertia for joint in robot.joints]
    if with_base:
        inertias.append(robot.base.spatial_inertia)
    eigenvalues = np.linalg.eigvalsh(inertias)
    return bool(np.all(eigenvalues[:, 0] >= -_EIGENVALUE * eigenvalues[:, -1]))


def joints_without_inertia(robot: Robot) -> list[str]:
    """Names of joints that can move, individually or together, without moving any mass.

    The mass matrix is then singular in every configuration, and no effort determines the motion.
    """
    M, terms = _mass_matrix(robot, np.cos(1.0 + 2.4 * np.arange(robot.n)))  # without symmetry
    diagonal = np.abs(np.diag(M))
    zero = diagonal <= _ZERO * np.diag(terms)
    if np.any(zero):
        return list(compress(robot.joint_names, zero))
    scale = np.sqrt(diagonal)
    values, vectors = np.linalg.eigh(M / np.outer(scale, scale))
    k = int(np.argmin(np.abs(values)))
    if abs(values[k]) > _ZERO * np.max(np.diag(terms) / diagonal):
        return []
    shares = np.abs(vectors[:, k])
    return list(compress(robot.joint_names, shares > 0.1 * np.max(shares)))


def smallest_eigenvalue(robot: Robot, q: Array) -> float:
    """Smallest eigenvalue of the mass matrix of the links at q (n,), scaled to entries of 1 or -1 on the diagonal."""
    M, _ = _mass_matrix(robot, q)
    diagonal = np.abs(np.diag(M))
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    return float(np.linalg.eigvalsh(M / np.outer(scale, scale))[0])


def _mass_matrix(robot: Robot, q: Array) -> tuple[Array, Array]:
    """Mass matrix (n, n) at q (n,), and magnitudes (n, n) of its summands."""
    E, e = robot.coupling
    positions = E @ q + e
    M, terms = np.zeros((robot.n, robot.n)), np.zeros((robot.n, robot.n))
    jacobians: list[Array] = []
    for i, joint in enumerate(robot.joints):
        J = np.outer(joint.screw, E[i])
        if joint.parent >= 0:
            step = lie.Ad(lie.inverse(joint.reference_pose @ lie.exp(joint.screw, positions[i])))
            J = J + step @ jacobians[joint.parent]
        jacobians.append(J)
        M += J.T @ joint.spatial_inertia @ J
        terms += np.abs(J.T) @ np.abs(joint.spatial_inertia) @ np.abs(J)
    return M, terms
