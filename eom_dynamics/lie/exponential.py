# SPDX-License-Identifier: Apache-2.0
"""Exponential map of SE(3) and its inverse."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import AnyArray, Array
from .poses import pose
from .rotations import rotation_vector, sincos, skew

_EYE = np.eye(3, dtype=int)


def exp(screw: ArrayLike, q: Any = 1) -> AnyArray:
    """Exponential map of ``screw * q``: the motion of a joint, equations (10)-(14).

    Args:
        screw: joint screw or twist (…, 6); of symbols, its angular part must have unit length (revolute, helical) or
            be zero (prismatic).
        q: joint variable (…), rad; for a prismatic joint m.

    >>> quarter = exp([0.0, 0.0, 1.0, 0.0, -1.0, 0.0], np.pi / 2)  # about z through x = 1 m
    >>> (quarter @ [0.0, 0.0, 0.0, 1.0]).round(6).tolist()
    [1.0, -1.0, 0.0, 1.0]

    Returns:
        Pose (…, 4, 4).
    """
    X = np.asarray(screw)
    e, m = X[..., :3], X[..., 3:]
    if X.dtype != object:
        # With a unit vector, R and p lose no digits, however small the angle. Screws of joints have one up to rounding.
        length = np.linalg.norm(e, axis=-1)
        length = np.where((length == 0) | (np.abs(length - 1) < 4e-16), 1.0, length)
        if np.any(length != 1):
            e, m, q = e / length[..., np.newaxis], m / length[..., np.newaxis], q * length
    q = np.asarray(q)
    s, versine = _sine_and_versine(q)
    s, versine, q = (x[..., np.newaxis, np.newaxis] for x in (s, versine, q))
    E = skew(e)
    R = _EYE + s * E + versine * (E @ E)
    p = (q * _EYE + versine * E + (q - s) * (E @ E)) @ m[..., np.newaxis]
    return pose(R, p[..., 0])


def log(C: ArrayLike) -> Array:
    """Logarithm of a pose (…, 4, 4): the twist (…, 6) whose exponential it is, with an angle of at most pi.

    A rotation by pi has two of them, with opposite axes; the result is either.

    >>> log(exp([0.0, 0.3, 0.0, 0.1, 0.0, 0.2])).round(6).tolist()
    [0.0, 0.3, 0.0, 0.1, 0.0, 0.2]
    """
    C = np.asarray(C, dtype=float)
    w = rotation_vector(C[..., :3, :3])
    angle = np.linalg.norm(w, axis=-1)[..., np.newaxis, np.newaxis]
    W = skew(w)
    # The factor of W² tends to 1/12; below this angle, rounding exceeds the next term of its expansion.
    small = angle < 1e-4
    safe = np.where(small, 1.0, angle)
    factor = np.where(small, 1 / 12, (1 - safe / 2 / np.tan(safe / 2)) / safe**2)
    v = (_EYE - 0.5 * W + factor * (W @ W)) @ C[..., :3, 3:]
    return np.concatenate([w, v[..., 0]], axis=-1)


def _sine_and_versine(q: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Sine of q, and 1 - cos(q) without cancellation."""
    if q.dtype != object:
        return np.sin(q), 2 * np.sin(q / 2) ** 2
    pairs = [sincos(angle) for angle in q.ravel()]
    s, c = (np.array(column, dtype=object).reshape(q.shape) for column in zip(*pairs, strict=True))
    return s, np.asarray(1 - c)
