# SPDX-License-Identifier: Apache-2.0
"""Whether every motion of a robot moves some mass."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import lie
from .model import Robot

Array = NDArray[np.float64]

# What rounding leaves of a zero, relative to the terms that cancel. The least of a real robot, a finger of a few
# grams on a torso, is far above.
_ZERO = 1e-12


def massless_motion(robot: Robot) -> list[str]:
    """Names of joints that can move, alone or together, without moving any mass; empty if there are none.

    The mass matrix is then singular in every configuration, and no effort determines the motion.
    """
    M, terms = _mass_matrix(robot)
    diagonal = np.abs(np.diag(M))
    still = diagonal <= _ZERO * np.diag(terms)
    if np.any(still):
        return [name for name, at_rest in zip(robot.joint_names, still, strict=True) if at_rest]
    scale = np.sqrt(diagonal)
    values, vectors = np.linalg.eigh(M / np.outer(scale, scale))
    k = int(np.argmin(np.abs(values)))
    if abs(values[k]) > _ZERO * np.max(np.diag(terms) / diagonal):
        return []
    shares = np.abs(vectors[:, k])
    return [name for name, share in zip(robot.joint_names, shares, strict=True) if share > 0.1 * np.max(shares)]


def _mass_matrix(robot: Robot) -> tuple[Array, Array]:
    """The mass matrix (n, n) in a configuration without symmetry, and the size (n, n) of the terms in its sums."""
    E, e = robot.coupling
    positions = E @ np.cos(1.0 + 2.4 * np.arange(robot.n)) + e
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
