# SPDX-License-Identifier: Apache-2.0
"""Rotations, poses, screws, the adjoint action, and twists and wrenches in other frames.

The same motion has a body twist (in the moving frame), a space twist (in the reference frame and about its origin), and
a world-aligned twist (along the axes of the reference frame, with the velocity of the moving origin).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import AnyArray, Array, times
from ..jet import leibniz


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
    """Rotation matrix (…, 3, 3) of a quaternion (…, 4), real part last as in ROS, normalized; ValueError if zero."""
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


def pose(rotation: ArrayLike, translation: ArrayLike) -> AnyArray:
    """Pose (…, 4, 4) from a rotation matrix (…, 3, 3) and a translation (…, 3) in m."""
    rotation, translation = np.asarray(rotation), np.asarray(translation)
    leading = np.broadcast_shapes(rotation.shape[:-2], translation.shape[:-1])
    C = np.zeros((*leading, 4, 4), dtype=np.result_type(rotation, translation))
    C[..., :3, :3] = rotation
    C[..., :3, 3] = translation
    C[..., 3, 3] = 1
    return C


def inverse(C: AnyArray) -> AnyArray:
    """Inverse of a pose (…, 4, 4), by transposing its rotation."""
    back = np.swapaxes(C[..., :3, :3], -1, -2)
    return pose(back, -(back @ C[..., :3, 3:])[..., 0])


def transformed(C: AnyArray, points: ArrayLike) -> AnyArray:
    """Points (…, 3) of the moving frame in coordinates of the reference frame, m, for a pose (…, 4, 4)."""
    return times(C[..., :3, :3], points) + C[..., :3, 3]


class ScrewAxis(NamedTuple):
    """Axis of a screw motion.

    Attributes:
        axis: unit vector (…, 3).
        point: point (…, 3) of the axis nearest to the origin, m; zero for a translation.
        pitch: advance per angle (…), m/rad; infinite for a translation.
        rate: angular velocity about the axis (…), rad/s; velocity of a translation, m/s.
    """

    axis: Array
    point: Array
    pitch: Array
    rate: Array


def screw(axis: ArrayLike, point: ArrayLike = (0, 0, 0), pitch: ArrayLike = 0) -> AnyArray:
    """Unit screw (…, 6) about a unit vector ``axis`` (…, 3) through ``point`` (…, 3), m, equations (6), (7).

    Args:
        axis: unit vector.
        point: any point of the axis; without effect on a translation.
        pitch: m/rad: 0 for a revolute joint, infinite for a prismatic one.

    >>> screw([0, 0, 1], point=[1, 0, 0], pitch=0.5).tolist()
    [0.0, 0.0, 1.0, 0.0, -1.0, 0.5]
    """
    e, p, h = np.asarray(axis), np.asarray(point), np.asarray(pitch)
    # Not np.cross(), which mixes symbols and numbers in recent NumPy only.
    turning = times(skew(p), e)
    if h.dtype == object:
        return _stacked(e, turning + h[..., np.newaxis] * e)
    translates = np.isinf(h)[..., np.newaxis]
    advance = np.where(translates, 0, h[..., np.newaxis])
    turning = _stacked(e, turning + advance * e)
    return np.where(translates, _stacked(0 * e, e), turning) if np.any(translates) else turning


def _stacked(angular: AnyArray, linear: AnyArray) -> AnyArray:
    return np.concatenate(np.broadcast_arrays(angular, linear), axis=-1)


def screw_axis(twist: ArrayLike) -> ScrewAxis:
    """Axis, point, pitch and rate of a twist or screw (…, 6); the axis of a zero twist is zero."""
    V = np.asarray(twist, dtype=float)
    w, v = V[..., :3], V[..., 3:]
    turn = np.linalg.norm(w, axis=-1)
    turns = turn > 0
    rate = np.where(turns, turn, np.linalg.norm(v, axis=-1))
    axis = np.where(turns[..., np.newaxis], w, v) / np.where(rate == 0, 1.0, rate)[..., np.newaxis]
    divisor = np.where(turns, turn, 1.0)
    point = np.where(turns[..., np.newaxis], np.cross(axis, v) / divisor[..., np.newaxis], 0.0)
    pitch = np.where(turns, np.sum(axis * v, axis=-1) / divisor, np.inf)
    return ScrewAxis(axis, point, pitch, rate)


def twist_matrix(V: ArrayLike) -> AnyArray:
    """Matrix [V] (…, 4, 4) of a twist or screw (…, 6), an element of se(3): dC/dt = C [V] for the body twist V.

    dC/dt = [V] C for the space twist; the matrix exponential of [V] is :func:`.exp` of V.

    >>> twist_matrix([0, 0, 1, 2, 3, 4]).tolist()
    [[0, -1, 0, 2], [1, 0, 0, 3], [0, 0, 0, 4], [0, 0, 0, 0]]
    """
    V = np.asarray(V)
    matrix = np.zeros((*V.shape[:-1], 4, 4), dtype=V.dtype)
    matrix[..., :3, :3] = skew(V[..., :3])
    matrix[..., :3, 3] = V[..., 3:]
    return matrix


def twist_vector(matrix: ArrayLike) -> AnyArray:
    """Twist (…, 6) of its matrix (…, 4, 4), the inverse of :func:`twist_matrix`; other entries are ignored."""
    matrix = np.asarray(matrix)
    angular = np.stack([matrix[..., 2, 1], matrix[..., 0, 2], matrix[..., 1, 0]], axis=-1)
    return np.concatenate([angular, matrix[..., :3, 3]], axis=-1)


def Ad(C: AnyArray) -> AnyArray:
    """Adjoint matrix (…, 6, 6) of a pose (…, 4, 4): twists from the moving to the fixed frame, equation (18)."""
    R = C[..., :3, :3]
    return _lower_blocks(R, skew(C[..., :3, 3]) @ R)


def ad(twist: ArrayLike) -> AnyArray:
    """Matrix (…, 6, 6) of the Lie bracket, ``ad(V1) @ V2 == [V1, V2]``, of twists (…, 6), equation (21)."""
    V = np.asarray(twist)
    return _lower_blocks(skew(V[..., :3]), skew(V[..., 3:]))


def momentum_cross(momentum: ArrayLike) -> AnyArray:
    """Skew-symmetric matrix ``H(h)`` (…, 6, 6) of a momentum ``h`` (…, 6) with ``H(h) @ V == -ad(V).T @ h``.

    It exchanges twist and momentum in the Euler equations; the Christoffel form of the Coriolis matrix uses it.
    """
    h = np.asarray(momentum)
    H = np.zeros((*h.shape, 6), dtype=h.dtype)
    H[..., :3, :3] = -skew(h[..., :3])
    H[..., :3, 3:] = H[..., 3:, :3] = -skew(h[..., 3:])
    return H


def _lower_blocks(diagonal: AnyArray, below: AnyArray) -> AnyArray:
    A = np.zeros((*diagonal.shape[:-2], 6, 6), dtype=diagonal.dtype)
    A[..., :3, :3] = A[..., 3:, 3:] = diagonal
    A[..., 3:, :3] = below
    return A


def space_twist(C: AnyArray, twist: ArrayLike) -> AnyArray:
    """Space twist (…, 6) of a body twist (…, 6) at a pose (…, 4, 4); also of screws."""
    return times(Ad(C), twist)


def body_twist(C: AnyArray, twist: ArrayLike) -> AnyArray:
    """Body twist (…, 6) of a space twist (…, 6) at a pose (…, 4, 4); also of screws."""
    return times(Ad(inverse(C)), twist)


def world_aligned_twist(C: AnyArray, twist: ArrayLike) -> AnyArray:
    """World-aligned twist (…, 6) of a body twist (…, 6) at a pose (…, 4, 4)."""
    V = np.asarray(twist)
    R = C[..., :3, :3]
    return np.concatenate([times(R, V[..., :3]), times(R, V[..., 3:])], axis=-1)


def body_twists(C: AnyArray, *world_aligned: ArrayLike) -> list[AnyArray]:
    """Body twist and its time derivatives (…, 6), of a world-aligned twist and its derivatives at a pose (…, 4, 4).

    For a vector y along fixed axes, x = R' y has R' dy/dt = dx/dt + w x x, with w the angular part of the body twist.
    """
    R, orders = C[..., :3, :3], len(world_aligned)
    halves = [np.asarray(twist).reshape(*np.shape(twist)[:-1], 2, 3) @ R for twist in world_aligned]
    known = [[half] for half in halves]  # known[m][j]: derivative j of R' times derivative m of the twist
    for j in range(1, orders):
        rates = [x[..., :1, :] for x in known[0]]
        for m in range(orders - j):
            turning = leibniz(rates, known[m], j - 1, np.cross)
            known[m].append(known[m + 1][j - 1] - turning)
    return [x.reshape(*x.shape[:-2], 6) for x in known[0]]


def world_aligned_twists(C: AnyArray, *body: ArrayLike) -> list[AnyArray]:
    """World-aligned twist and its time derivatives (…, 6), of a body twist and its derivatives at a pose (…, 4, 4).

    The inverse of :func:`body_twists`: a vector y = R x has dy/dt = R (dx/dt + w x x).
    """
    R, orders = C[..., :3, :3], len(body)
    level = [np.asarray(twist).reshape(*np.shape(twist)[:-1], 2, 3) for twist in body]  # R' y and its derivatives
    rates = [x[..., :1, :] for x in level]
    twists = []
    for k in range(orders):
        y = level[0] @ np.swapaxes(R, -1, -2)
        twists.append(y.reshape(*y.shape[:-2], 6))
        level = [level[j + 1] + leibniz(rates, level, j, np.cross) for j in range(orders - 1 - k)]
    return twists


def space_wrench(C: AnyArray, wrench: ArrayLike) -> AnyArray:
    """Wrench (…, 6) about the origin of the reference frame, from a wrench in the moving frame at a pose (…, 4, 4)."""
    return times(np.swapaxes(Ad(inverse(C)), -1, -2), wrench)


def body_wrench(C: AnyArray, wrench: ArrayLike) -> AnyArray:
    """Wrench (…, 6) in the moving frame at a pose (…, 4, 4), from a wrench about the origin of the reference frame."""
    return times(np.swapaxes(Ad(C), -1, -2), wrench)
