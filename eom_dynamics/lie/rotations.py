# SPDX-License-Identifier: Apache-2.0
"""Rotations: matrices, rotation vectors, quaternions and Euler angles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import AnyArray, Array


def sincos(angle: Any) -> tuple[Any, Any]:
    """Sine and cosine of a number, an array (elementwise) or a symbol with its own methods ``sin`` and ``cos``."""
    if hasattr(angle, "sin"):
        return angle.sin(), angle.cos()
    if hasattr(angle, "free_symbols"):
        import sympy

        return sympy.sin(angle), sympy.cos(angle)
    return np.sin(angle), np.cos(angle)


def skew(w: ArrayLike) -> AnyArray:
    """Matrix (…, 3, 3) of the cross product with ``w`` (…, 3): ``skew(w) @ v == np.cross(w, v)``."""
    w = np.asarray(w)
    x, y, z = w[..., 0], w[..., 1], w[..., 2]
    W = np.zeros((*w.shape, 3), dtype=w.dtype)
    W[..., 0, 1], W[..., 0, 2] = -z, y
    W[..., 1, 0], W[..., 1, 2] = z, -x
    W[..., 2, 0], W[..., 2, 1] = -y, x
    return W


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


def rotation_from_rotation_vector(w: ArrayLike) -> Array:
    """Rotation matrix (…, 3, 3) of a rotation by ``|w|`` rad about ``w`` (…, 3)."""
    return _matrix(_scipy().from_rotvec(_rows(w)), w)


def rotation_vector(R: ArrayLike) -> Array:
    """Rotation vector (…, 3) of a rotation matrix (…, 3, 3): unit axis times angle, at most pi rad."""
    return _vector(_of(R).as_rotvec(), R)


def rotation_from_quaternion(xyzw: ArrayLike) -> Array:
    """Rotation matrix (…, 3, 3) of a quaternion (…, 4), real part last as in ROS, normalised; ValueError if zero."""
    return _matrix(_scipy().from_quat(_rows(xyzw)), xyzw)


def quaternion(R: ArrayLike) -> Array:
    """Quaternion (…, 4) of a rotation matrix (…, 3, 3), real part last and not negative."""
    xyzw = _of(R).as_quat()
    return _vector(np.where(xyzw[..., 3:] < 0, -xyzw, xyzw), R)


def rotation_from_euler_angles(sequence: str, angles: ArrayLike) -> Array:
    """Rotation matrix (…, 3, 3) of three successive rotations by angles (…, 3), rad, in the order of the sequence.

    The sequence has capitals for axes that move along ("ZYX", "ZXZ"), small letters for fixed axes ("xyz", which are
    roll, pitch and yaw); ValueError for any other sequence.
    """
    return _matrix(_scipy().from_euler(sequence, _rows(angles)), angles)


def euler_angles(sequence: str, R: ArrayLike) -> Array:
    """Euler angles (…, 3), rad, of a rotation matrix (…, 3, 3), for a sequence as in rotation_from_euler_angles.

    If two axes are parallel (gimbal lock), only the sum or difference of their angles is determined. The third angle is
    then zero, and SciPy warns.
    """
    return _vector(_of(R).as_euler(sequence), R)


def _scipy() -> Any:
    # Imported here, since it takes half a second and few uses of this package need it.
    from scipy.spatial.transform import Rotation

    return Rotation


def _of(R: ArrayLike) -> Any:
    return _scipy().from_matrix(np.asarray(R, dtype=float).reshape(-1, 3, 3))


def _rows(vectors: ArrayLike) -> Array:
    array = np.asarray(vectors, dtype=float)
    return array.reshape(-1, array.shape[-1])


def _matrix(rotation: Any, vectors: ArrayLike) -> Array:
    return rotation.as_matrix().reshape(*np.shape(vectors)[:-1], 3, 3)


def _vector(rows: Array, R: ArrayLike) -> Array:
    return rows.reshape(*np.shape(R)[:-2], rows.shape[-1])
