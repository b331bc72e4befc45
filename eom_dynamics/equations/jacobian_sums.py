# SPDX-License-Identifier: Apache-2.0
"""Mass matrix, gravity and Coriolis tensor as sums over the bodies, by Jacobians of their centers of mass.

With c, R, m and I the center of mass, rotation, mass and inertia about the center of mass of a body in the base frame,

    M = sum of m J_c' J_c + J_w' I J_w,    Q_grav = -sum of m J_c' g,

as in B. Siciliano et al., Robotics (2009), section 7.1.1. The column of joint i in J_w is its axis w_i; in J_c it is
the velocity of the center of mass per joint rate. For two joints on the path to a body, rotation of joint a, nearer to
the base, rotates the columns of joint b:

    d(J_c)_b / dq_a = d(J_c)_a / dq_b = w_a x (J_c)_b,    d(w_b) / dq_a = w_a x w_b,    d(w_a) / dq_b = 0.

This route shares only the body poses with the other routes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import lie
from ..arguments import choice, joint_vectors
from ..arrays import AnyArray
from ..codegen.backends import require_robot
from ..kinematics.frames import body_poses
from ..robot import Robot
from .closed_form import equations_of_motion, passive_forces


class BodyJacobians(NamedTuple):
    """Jacobians of a body, along the axes of the base, with respect to the independent joint variables.

    Attributes:
        linear: J_c (3, n), velocity of the center of mass.
        angular: J_w (3, n), angular velocity.
        inertia: I (3, 3) about the center of mass, kg m².
        mass: m, kg.
    """

    linear: AnyArray
    angular: AnyArray
    inertia: AnyArray
    mass: float


def center_of_mass_jacobians(robot: Robot, q: ArrayLike) -> list[BodyJacobians]:
    """Jacobians of the center of mass and of the rotation of each body, in the order of ``robot.joints``.

    Args:
        robot: the robot.
        q: joint variables (n,), rad or m.

    Raises:
        StateError: q has the wrong shape or is not finite. This holds for all functions here.
    """
    E, _ = robot.coupling
    return [
        BodyJacobians(linear @ E, angular @ E, inertia, joint.mass)
        for joint, (linear, angular, inertia) in zip(robot.joints, _single(robot, q), strict=True)
    ]


def mass_matrix_from_jacobians(robot: Robot, q: ArrayLike) -> AnyArray:
    """Mass matrix M (n, n), sum of m J_c' J_c + J_w' I J_w."""
    return sum(
        body.mass * body.linear.T @ body.linear + body.angular.T @ body.inertia @ body.angular
        for body in center_of_mass_jacobians(robot, q)
    )


def gravity_from_jacobians(robot: Robot, q: ArrayLike) -> AnyArray:
    """Q_grav (n,): minus the sum of m J_c' g, plus the efforts against constant loads and parallel springs."""
    (q,) = joint_vectors(robot.n, q)
    (passive,) = passive_forces(robot, q, [q])
    return passive - sum(body.mass * body.linear.T for body in center_of_mass_jacobians(robot, q)) @ robot.gravity


def coriolis_tensor_from_jacobians(robot: Robot, q: ArrayLike) -> AnyArray:
    """Christoffel symbols c_ijk (n, n, n), from the partial derivatives of the Jacobians with respect to q.

    dM_ij/dq_k is the sum of m (dJ_c'/dq_k J_c + J_c' dJ_c/dq_k) and the same terms of J_w and I, with dI/dq_k = [w_k] I
    - I [w_k].
    """
    E, _ = robot.coupling
    total: AnyArray = np.zeros((len(E),) * 3)
    for i, (J, w, inertia) in enumerate(_single(robot, q)):
        path = robot.path(i)
        dM = np.zeros((len(E),) * 3, dtype=J.dtype)
        for k in path:
            dJ, dw = np.zeros_like(J), np.zeros_like(w)
            for j in path:
                dJ[:, j] = lie.skew(w[:, min(j, k)]) @ J[:, max(j, k)]
                if k < j:
                    dw[:, j] = lie.skew(w[:, k]) @ w[:, j]
            turn = lie.skew(w[:, k])
            half = robot.joints[i].mass * dJ.T @ J + dw.T @ inertia @ w
            dM[:, :, k] = half + half.T + w.T @ (turn @ inertia - inertia @ turn) @ w
        total = total + christoffel_symbols(dM)
    return np.einsum("abc,ai,bj,ck->ijk", total, E, E, E)


def christoffel_symbols(dM: AnyArray) -> AnyArray:
    """c_ijk = (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) / 2, from ``dM[i, j, k]`` = dM_ij/dq_k (n, n, n)."""
    return (dM + np.swapaxes(dM, 1, 2) - np.moveaxis(dM, 2, 0)) / 2


def _single(robot: Robot, q: ArrayLike) -> list[tuple[AnyArray, AnyArray, AnyArray]]:
    """J_c, J_w, each (3, number of joints), and I of each body, as if all joints were independent."""
    (q,) = joint_vectors(robot.n, q)
    poses = body_poses(robot, q)
    twists = [lie.space_twist(C, joint.screw) for C, joint in zip(poses, robot.joints, strict=True)]
    bodies: list[tuple[AnyArray, AnyArray, AnyArray]] = []
    for i, (C, joint) in enumerate(zip(poses, robot.joints, strict=True)):
        center, R = lie.transformed(C, joint.center_of_mass), C[:3, :3]
        J, w = (np.zeros((3, len(poses)), dtype=C.dtype) for _ in range(2))
        for j in robot.path(i):
            axis, moment = twists[j][:3], twists[j][3:]
            J[:, j], w[:, j] = moment + lie.skew(axis) @ center, axis
        bodies.append((J, w, R @ joint.inertial.about_center_of_mass @ R.T))
    return bodies


ROUTES = ("kernel", "mass_matrix", "jacobians")
"""Routes to the Coriolis tensor."""


def coriolis_tensor(robot: Robot, q: ArrayLike, route: str = "kernel") -> AnyArray:
    """Coriolis tensor: Christoffel symbols of the first kind c_ijk (n, n, n), symmetric in j and k.

        c_ijk = (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) / 2,    C_ij = sum over k of c_ijk qd_k

    The slice c_i of joint i is the matrix C_k of A. De Luca, Robotics 2, slide "Robot dynamic model". Its quadratic
    form is the velocity term: (C qd)_i = qd' c_i qd. :meth:`eom_dynamics.Dynamics.coriolis_tensor` is the compiled
    version.

    Args:
        robot: the robot.
        q: joint variables (n,), rad or m.
        route: ``kernel`` (the Coriolis matrix for unit velocities), ``mass_matrix`` (partial derivatives of M) or
            ``jacobians`` (partial derivatives of the body Jacobians). No route uses finite differences.

    Raises:
        StateError: q has the wrong shape or is not finite, or the route is unknown.
        TypeError: ``robot`` is not a Robot.
    """
    require_robot(robot)
    choice(route, "route", ROUTES)
    (q,) = joint_vectors(robot.n, q)
    if route == "jacobians":
        return coriolis_tensor_from_jacobians(robot, q)
    units, rest = np.eye(robot.n, dtype=int), np.zeros(robot.n, dtype=int)
    if route == "kernel":  # C is linear in qd: c_ijk is C_ij for the unit velocity of joint k
        return np.stack([equations_of_motion(robot, q, unit).C[0] for unit in units], axis=-1)
    # The time derivative of M at the unit velocity of joint k is dM/dq_k.
    return christoffel_symbols(np.stack([equations_of_motion(robot, q, unit, rest).M[1] for unit in units], axis=-1))
