# SPDX-License-Identifier: Apache-2.0
"""Rigid-body motions: SE(3), its adjoint action, screws and twists.

Twists and screws are 6-vectors (angular; linear), wrenches are (moment; force). A pose ``C`` is the 4 x 4 matrix that
maps coordinates in the moving frame to coordinates in the reference frame.

All functions accept object arrays, so that they run over symbols, too (SymPy, CasADi or anything with
``+ - * sin() cos()``). Equation numbers refer to A. Müller and S. Kumar, "Closed form time derivatives of the equations
of motion of rigid body systems", Multibody System Dynamics 53 (2021).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arrays import AnyArray, Array


def sincos(angle: Any) -> tuple[Any, Any]:
    """Sine and cosine of a number, an array (elementwise) or a symbol with its own methods ``sin`` and ``cos``."""
    if hasattr(angle, "sin"):
        return angle.sin(), angle.cos()
    if hasattr(angle, "free_symbols"):
        import sympy

        return sympy.sin(angle), sympy.cos(angle)
    return np.sin(angle), np.cos(angle)


def skew(w: ArrayLike) -> AnyArray:
    """Matrix (3, 3) of the cross product with ``w`` (3,): ``skew(w) @ v == np.cross(w, v)``."""
    x, y, z = np.asarray(w)
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def pose(rotation: ArrayLike, translation: ArrayLike) -> AnyArray:
    """Pose (4, 4) from a rotation matrix (3, 3) and a translation (3,) in m."""
    rotation, translation = np.asarray(rotation), np.asarray(translation)
    C = np.zeros((4, 4), dtype=np.result_type(rotation, translation))
    C[:3, :3] = rotation
    C[:3, 3] = translation
    C[3, 3] = 1
    return C


def inverse(C: AnyArray) -> AnyArray:
    """Inverse of a pose (4, 4), by transposing its rotation."""
    R = C[:3, :3]
    return pose(R.T, -R.T @ C[:3, 3])


def rotation_from_rpy(rpy: ArrayLike) -> Array:
    """Rotation matrix (3, 3) of roll, pitch and yaw in rad, about the fixed axes x, y, z in that order (as in URDF).

    Entries within 4e-16 of -1, 0 or 1 are rounded to them, because a right angle rounded to double precision has a
    cosine of 6e-17: otherwise the sparsity of a robot's frames would be lost.
    """
    (sr, sp, sy), (cr, cp, cy) = sincos(np.asarray(rpy, dtype=float))
    R = np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )
    nearest = np.round(R)
    return np.where(np.abs(R - nearest) < 4e-16, nearest, R)


def exp(screw: ArrayLike, q: Any) -> AnyArray:
    """Exponential map of ``screw * q``: the motion of a joint, equations (10)-(14).

    Args:
        screw: joint screw (6,) with an angular part of unit length (revolute, helical) or zero (prismatic).
        q: joint variable, rad; for a prismatic joint m.

    Returns:
        Pose (4, 4).
    """
    X = np.asarray(screw)
    e, m = X[:3], X[3:]
    if not np.any(e):
        return pose(np.eye(3, dtype=int), m * q)
    s, c = sincos(q)
    E = skew(e)
    eye = np.eye(3, dtype=int)
    R = eye + s * E + (1 - c) * (E @ E)
    # e x m is the point of the axis nearest to the origin; e (e.m) q is the translation by the pitch.
    return pose(R, (eye - R) @ np.cross(e, m) + e * (e @ m) * q)


def log(C: AnyArray) -> Array:
    """Logarithm of a pose (4, 4): the twist (6,) whose exponential it is, for rotations by less than pi."""
    # Not at the top: it takes half a second to import, which few uses of this module need.
    from scipy.spatial.transform import Rotation

    w = Rotation.from_matrix(C[:3, :3]).as_rotvec()
    angle = float(np.linalg.norm(w))
    W = skew(w)
    # The factor of W² tends to 1/12; below this angle, rounding exceeds the next term of its expansion.
    factor = 1 / 12 if angle < 1e-4 else (1 - angle / 2 / np.tan(angle / 2)) / angle**2
    return np.concatenate([w, (np.eye(3) - 0.5 * W + factor * (W @ W)) @ C[:3, 3]])


def Ad(C: AnyArray) -> AnyArray:
    """Adjoint matrix (6, 6) of a pose: maps twists from the moving to the reference frame, equation (18)."""
    R = C[:3, :3]
    A = np.zeros((6, 6), dtype=C.dtype)
    A[:3, :3] = R
    A[3:, 3:] = R
    A[3:, :3] = skew(C[:3, 3]) @ R
    return A


def ad(twist: ArrayLike) -> AnyArray:
    """Matrix (6, 6) of the Lie bracket, ``ad(V1) @ V2 == [V1, V2]``, equation (21)."""
    V = np.asarray(twist)
    A = np.zeros((6, 6), dtype=V.dtype)
    A[:3, :3] = A[3:, 3:] = skew(V[:3])
    A[3:, :3] = skew(V[3:])
    return A


def momentum_cross(momentum: ArrayLike) -> AnyArray:
    """Skew-symmetric matrix ``H(h)`` (6, 6) of a momentum ``h`` (6,) with ``H(h) @ V == -ad(V).T @ h``.

    It exchanges twist and momentum in the Euler equations; the Christoffel form of the Coriolis matrix uses it.
    """
    h = np.asarray(momentum)
    H = np.zeros((6, 6), dtype=h.dtype)
    H[:3, :3] = -skew(h[:3])
    H[:3, 3:] = H[3:, :3] = -skew(h[3:])
    return H
