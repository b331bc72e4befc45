# SPDX-License-Identifier: Apache-2.0
"""Change of frame of twists and wrenches.

The same motion has a body twist (in the moving frame), a space twist (in the reference frame and about its origin), and
a world-aligned twist (along the axes of the reference frame, with the velocity of the moving origin).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import AnyArray, times
from ..jet import leibniz
from .adjoint import Ad
from .poses import inverse


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
    found = []
    for k in range(orders):
        y = level[0] @ np.swapaxes(R, -1, -2)
        found.append(y.reshape(*y.shape[:-2], 6))
        level = [level[j + 1] + leibniz(rates, level, j, np.cross) for j in range(orders - 1 - k)]
    return found


def space_wrench(C: AnyArray, wrench: ArrayLike) -> AnyArray:
    """Wrench (…, 6) about the origin of the reference frame, of one in the moving frame at a pose (…, 4, 4)."""
    return times(np.swapaxes(Ad(inverse(C)), -1, -2), wrench)


def body_wrench(C: AnyArray, wrench: ArrayLike) -> AnyArray:
    """Wrench (…, 6) in the moving frame at a pose (…, 4, 4), of one about the origin of the reference frame."""
    return times(np.swapaxes(Ad(C), -1, -2), wrench)
