# SPDX-License-Identifier: Apache-2.0
"""Inverse kinematics of derivatives: joint rates to snap, from the twist of a tool and its derivatives.

The joint rates that a twist V requires, with weights W of the joints, a damping d and a motion u of the null space, are

    qd = u + inverse(W) J' y,    K y = V - J u,    K = J inverse(W) J' + d² I,

or, with fewer joints than the twist has entries, K qd = J' V + d² W u, K = J' J + d² W. Both hold at each time, so that
Leibniz' rule gives their derivatives one after the other: that of order k contains J to order k, and thus qd to order
k - 1, and always the same K. The results are therefore derivatives of one motion, damped or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array
from ..exceptions import StateError
from ..states import joint_states
from .compiled import Kinematics

# Singular values below this share of the largest one are damped.
_NEAR_SINGULAR = 0.01

# Damping at a singularity, in singular values.
_DAMPING = 0.5


class InverseMotion(NamedTuple):
    """Joint rates of a tool's motion.

    Attributes:
        rates: qd, qdd, …, as many as twists were given, each (n,) or (N, n); rad or m, per s, s², ….
        missed: what is missing to each twist, V - J qd, and to its derivatives, each (6,) or (N, 6). Zero up to
            rounding unless the motion was damped, or the robot has too few joints.
        damping: d, () or (N,); zero away from singularities.
    """

    rates: tuple[Array, ...]
    missed: tuple[Array, ...]
    damping: Array


def inverse_motion(
    kinematics: Kinematics,
    q: ArrayLike,
    *twists: ArrayLike,
    frame: str = "body",
    of: str | None = None,
    null_motion: Sequence[ArrayLike] = (),
    weights: ArrayLike | None = None,
    damping: float | None = None,
) -> InverseMotion:
    """Joint rates, accelerations, … for the twist of a tool and its time derivatives.

    Args:
        kinematics: of the robot.
        q: joint variables (n,) or (N, n), rad or m.
        twists: V, Vd, …, at least the first, each (6,) or (N, 6); rad/s and m/s, and per s, ….
        frame, of: as for :meth:`.Kinematics.jacobian`.
        null_motion: u, ud, …, preferred joint rates and their derivatives, in the shape of q, as far as the motion of
            the tool admits them. Omitted ones are zero.
        weights: positive cost of the squared rate of each joint (n,); by default 1.
        damping: d; by default zero, and near singularities (a singular value below a hundredth of the largest) rising
            to a two-hundredth of the largest. For the derivatives it is constant: a motion through a singularity
            requires one number, for example 0.01.

    Raises:
        StateError: an argument has the wrong shape or is not finite, or there is no such frame.
        ValueError: weights or damping are out of range.
    """
    n, orders = kinematics.robot.n, len(twists)
    states = joint_states(n, q)
    samples = states[0].shape[:-1]
    if not orders:
        raise StateError("inverse_motion requires a twist")
    V = [_checked(twist, f"twist {k}" if k else "twist", (*samples, 6)) for k, twist in enumerate(twists)]
    if len(null_motion) > orders:
        raise StateError(f"null_motion has {len(null_motion)} derivatives for {orders} twists")
    u = [_checked(x, "null_motion", (*samples, n)) for x in null_motion]
    u += [np.zeros((*samples, n))] * (orders - len(u))
    W = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    if W.shape != (n,) or not np.all(np.isfinite(W)) or np.any(W <= 0):
        raise ValueError(f"weights must be {n} positive numbers, are {weights!r}")
    if damping is not None and not (np.isfinite(damping) and damping >= 0):
        raise ValueError(f"damping must not be negative, is {damping!r}")

    J = [kinematics.jacobian(states[0], frame=frame, of=of)]
    d = _damping(J[0]) if damping is None else np.full(samples, float(damping))
    wide = n >= 6
    inverse = np.asarray(np.linalg.pinv(_gram(J, W, d, wide, 0), rcond=1e-14, hermitian=True), dtype=float)
    solved: list[Array] = []
    rates: list[Array] = []
    for k in range(orders):
        if k:
            J = list(kinematics.jacobian_derivatives(states[0], *rates, frame=frame, of=of))
        right = V[k] - _product(J, u, k) if wide else _product(_transposed(J), V, k) + _squared(d) * W * u[k]
        for j in range(1, k + 1):
            right = right - comb(k, j) * _apply(_gram(J, W, d, wide, j), solved[k - j])
        solved.append(_apply(inverse, right))
        rates.append(u[k] + _product(_transposed(J), solved, k) / W if wide else solved[k])
    missed = tuple(V[k] - _product(J, rates, k) for k in range(orders))
    return InverseMotion(tuple(rates), missed, d)


def _damping(J: Array) -> Array:
    """Damping by the smallest singular value: Y. Nakamura and H. Hanafusa, ASME J. Dyn. Syst. 108 (1986)."""
    values = np.linalg.svd(J, compute_uv=False)
    threshold = _NEAR_SINGULAR * values[..., 0]
    share = np.minimum(values[..., -1] / np.where(threshold > 0, threshold, 1.0), 1.0)
    d: Array = _DAMPING * threshold * (1 - share) ** 2
    return d


def _gram(J: Sequence[Array], W: Array, d: Array, wide: bool, k: int) -> Array:
    """Derivative k of K."""
    total: Array = np.zeros(())
    for j in range(k + 1):
        left, right = J[j], np.swapaxes(J[k - j], -1, -2)
        total = total + comb(k, j) * ((left / W) @ right if wide else np.swapaxes(left, -1, -2) @ J[k - j])
    if k == 0:
        total = total + _squared(d)[..., np.newaxis] * (np.eye(6) if wide else np.diag(W))
    return total


def _squared(d: Array) -> Array:
    squared: Array = d[..., np.newaxis] ** 2
    return squared


def _transposed(J: Sequence[Array]) -> list[Array]:
    return [np.swapaxes(x, -1, -2) for x in J]


def _product(matrices: Sequence[Array], vectors: Sequence[Array], k: int) -> Array:
    """Derivative k of the product of a matrix and a vector."""
    total: Array = np.zeros(())
    for j in range(k + 1):
        total = total + comb(k, j) * _apply(matrices[j], vectors[k - j])
    return total


def _apply(matrix: Array, vector: Array) -> Array:
    product: Array = (matrix @ vector[..., np.newaxis])[..., 0]
    return product


def _checked(value: ArrayLike, name: str, shape: tuple[int, ...]) -> Array:
    array = np.asarray(value, dtype=float)
    if array.shape != shape:
        raise StateError(f"{name} must have shape {shape}, has {array.shape}")
    if not np.all(np.isfinite(array)):
        raise StateError(f"{name} must be finite")
    return array
