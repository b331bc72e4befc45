# SPDX-License-Identifier: Apache-2.0
"""Adjoint action of SE(3) and of its Lie algebra."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import AnyArray
from .rotations import skew


def Ad(C: AnyArray) -> AnyArray:
    """Adjoint matrix (…, 6, 6) of a pose (…, 4, 4): takes twists from the moving to the reference frame, (18)."""
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
