# SPDX-License-Identifier: Apache-2.0
"""Poses as homogeneous transforms."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import AnyArray, times


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
    moved: AnyArray = times(C[..., :3, :3], points) + C[..., :3, 3]
    return moved
