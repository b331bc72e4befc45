# SPDX-License-Identifier: Apache-2.0
"""Kinematics and energy of chains by textbook formulas, from their parameters and independent of the library."""

from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any

import numpy as np
from differences import derivative
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from eom_dynamics.arrays import Array


def twist_matrix(twist: Array) -> Array:
    """Matrix (4, 4) of a twist (angular; linear); its exponential is the motion."""
    x, y, z = twist[:3]
    matrix = np.zeros((4, 4))
    matrix[:3, :3] = [[0, -z, y], [z, 0, -x], [-y, x, 0]]
    matrix[:3, 3] = twist[3:]
    return matrix


def twist_vector(matrix: Array) -> Array:
    return np.array([matrix[2, 1], matrix[0, 2], matrix[1, 0], *matrix[:3, 3]])


def turning(angles: Array, rates: Array) -> tuple[Array, Array]:
    """Matrix (3, 3) from rates of yaw, pitch, roll, R = Rz Ry Rx, to the angular velocity in R's axes, and its rate."""
    (sp, sr), (cp, cr), (pd, rd) = np.sin(angles[1:]), np.cos(angles[1:]), rates[1:]
    return np.array([[-sp, 0, 1], [cp * sr, cr, 0], [cp * cr, -sr, 0]]), np.array(
        [[-cp * pd, 0, 0], [-sp * pd * sr + cp * cr * rd, -sr * rd, 0], [-sp * pd * cr - cp * sr * rd, -cr * rd, 0]]
    )


def body_poses(parameters: Mapping[str, Any], q: Array) -> Array:
    joints = [parameters["joints"][name] for name in parameters["joint_names"]]
    origins = np.tile(np.eye(4), (len(joints), 1, 1))
    origins[:, :3, :3] = Rotation.from_euler("xyz", [joint["origin"]["rpy"] for joint in joints]).as_matrix()
    origins[:, :3, 3] = [joint["origin"]["xyz"] for joint in joints]
    motions = expm([twist_matrix(np.array(joint["screw"]) * x) for joint, x in zip(joints, q, strict=True)])
    return np.array(list(accumulate(origins @ motions, np.matmul)))


def body_twists(parameters: Mapping[str, Any], q: Array, qd: Array) -> Array:
    """Body-fixed twists (n, 6) by differences of poses."""
    rates = derivative(lambda t: body_poses(parameters, q + t * qd))
    return np.array([twist_vector(matrix) for matrix in np.linalg.inv(body_poses(parameters, q)) @ rates])


def kinetic_energy(parameters: Mapping[str, Any], q: Array, qd: Array) -> float:
    """Sum over the bodies of m v²/2 and w' I w/2, with v and I of the center of mass."""
    total = 0.0
    for name, twist in zip(parameters["joint_names"], body_twists(parameters, q, qd), strict=True):
        joint = parameters["joints"][name]
        xx, xy, xz, yy, yz, zz = joint["inertia"]
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        angular, linear = twist[:3], twist[3:] + np.cross(twist[:3], joint["center_of_mass"])
        total += (joint["mass"] * linear @ linear + angular @ inertia @ angular) / 2
    return total


def potential_energy(parameters: Mapping[str, Any], q: Array) -> float:
    """Minus the sum over the bodies of m g · c, with the center of mass c."""
    joints = [parameters["joints"][name] for name in parameters["joint_names"]]
    return -sum(
        joint["mass"] * np.array(parameters["gravity"]) @ (pose @ [*joint["center_of_mass"], 1.0])[:3]
        for joint, pose in zip(joints, body_poses(parameters, q), strict=True)
    )


def planar_2r(parameters: Mapping[str, Any]) -> Callable[[Array, Array], tuple[Array, Array]]:
    """Planar 2R arm with point masses at the ends of its links: a function of q, qd to M and the bias forces."""
    first, second = (parameters["joints"][name] for name in parameters["joint_names"])
    m1, m2, L1, L2 = first["mass"], second["mass"], first["center_of_mass"][0], second["center_of_mass"][0]
    g = -parameters["gravity"][1]

    def equations(q: Array, qd: Array) -> tuple[Array, Array]:
        c2, s2 = np.cos(q[1]), np.sin(q[1])
        a, b = (m1 + m2) * L1**2 + m2 * L2**2, m2 * L1 * L2
        M = np.array([[a + 2 * b * c2, m2 * L2**2 + b * c2], [m2 * L2**2 + b * c2, m2 * L2**2]])
        coriolis = b * s2 * np.array([-qd[1] * (2 * qd[0] + qd[1]), qd[0] ** 2])
        outer = m2 * g * L2 * np.cos(q[0] + q[1])
        return M, coriolis + np.array([(m1 + m2) * g * L1 * np.cos(q[0]) + outer, outer])

    return equations
