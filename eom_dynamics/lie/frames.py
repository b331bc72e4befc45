# SPDX-License-Identifier: Apache-2.0
"""Change of frame of twists and wrenches.

The same motion has a body twist (in the moving frame), a space twist (in the reference frame and about its origin), and
a world-aligned twist (along the axes of the reference frame, with the velocity of the moving origin).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import AnyArray
from .adjoint import Ad
from .poses import inverse


def space_twist(C: AnyArray, twist: ArrayLike) -> AnyArray:
    """Space twist (…, 6) of a body twist (…, 6) at a pose (…, 4, 4); also of screws."""
    return _times(Ad(C), twist)


def body_twist(C: AnyArray, twist: ArrayLike) -> AnyArray:
    """Body twist (…, 6) of a space twist (…, 6) at a pose (…, 4, 4); also of screws."""
    return _times(Ad(inverse(C)), twist)


def world_aligned_twist(C: AnyArray, twist: ArrayLike) -> AnyArray:
    """World-aligned twist (…, 6) of a body twist (…, 6) at a pose (…, 4, 4)."""
    V = np.asarray(twist)
    R = C[..., :3, :3]
    return np.concatenate([_times(R, V[..., :3]), _times(R, V[..., 3:])], axis=-1)


def space_wrench(C: AnyArray, wrench: ArrayLike) -> AnyArray:
    """Wrench (…, 6) about the origin of the reference frame, of one in the moving frame at a pose (…, 4, 4)."""
    return _times(np.swapaxes(Ad(inverse(C)), -1, -2), wrench)


def body_wrench(C: AnyArray, wrench: ArrayLike) -> AnyArray:
    """Wrench (…, 6) in the moving frame at a pose (…, 4, 4), of one about the origin of the reference frame."""
    return _times(np.swapaxes(Ad(C), -1, -2), wrench)


def _times(matrix: AnyArray, vector: ArrayLike) -> AnyArray:
    product: AnyArray = (matrix @ np.asarray(vector)[..., np.newaxis])[..., 0]
    return product
