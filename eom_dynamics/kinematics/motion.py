# SPDX-License-Identifier: Apache-2.0
"""Inverse kinematics of derivatives: joint rates to snap, from the twist of a tool and its derivatives.

The joint rates that a twist V requires, with weights W of the joints, a damping d and a motion u of the null space, are

    qd = u + inverse(W) J' y,    V = J qd + d² y,

or, with fewer joints than the twist has entries, J' (V - J qd) = d² W (qd - u). Both hold at each time, so that
Leibniz' rule gives their derivatives one after the other: that of order k contains J to order k, and thus qd to order
k - 1, and the unknown of order k always by the same matrix, K = J inverse(W) J' + d² I or K = J' J + d² W. The results
are therefore derivatives of one motion, damped or not.
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

# Entries of a twist.
_TWIST = 6

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

    >>> import eom_dynamics as eom
    >>> kinematics = eom.Kinematics(eom.load_robot("ur5e"))
    >>> upwards = [0.0, 0.0, 0.0, 0.0, 0.0, 0.1]  # m/s
    >>> motion = eom.inverse_motion(kinematics, [0.3, -1.2, 1.4, 0.3, 0.9, 0.6], upwards, frame="world_aligned")
    >>> bool(abs(motion.missed[0]).max() < 1e-12), float(motion.damping)
    (True, 0.0)

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
    derive = _wide if n >= _TWIST else _narrow
    given = _Given(u, W, d, _inverse(J[0], W, d))
    rates: list[Array] = []
    duals: list[Array] = []
    for k in range(orders):
        if k:
            J = list(kinematics.jacobian_derivatives(states[0], *rates, frame=frame, of=of))
        rate, dual = derive(J, V[k], rates, duals, given)
        rates.append(rate)
        duals.append(dual)
    missed = tuple(V[k] - _leibniz(J, rates, k) for k in range(orders))
    return InverseMotion(tuple(rates), missed, d)


class _Given(NamedTuple):
    """What is the same for all derivatives: u, ud, …, W, d, and the inverse of K."""

    u: Sequence[Array]
    W: Array
    d: Array
    inverse: Array


def _wide(
    J: Sequence[Array], V: Array, rates: Sequence[Array], y: Sequence[Array], given: _Given
) -> tuple[Array, Array]:
    """Next derivative of the rates and of y, from V = J qd + d² y and qd = u + inverse(W) J' y."""
    k = len(rates)
    turned = _leibniz([np.swapaxes(x, -1, -2) for x in J], y, k)
    known = given.u[k] + turned / given.W
    dual = _times(given.inverse, V - _leibniz(J, rates, k) - _times(J[0], known))
    return known + _times(np.swapaxes(J[0], -1, -2), dual) / given.W, dual


def _narrow(
    J: Sequence[Array], V: Array, rates: Sequence[Array], e: Sequence[Array], given: _Given
) -> tuple[Array, Array]:
    """Next derivative of the rates and of the error e = V - J qd, from J' e = d² W (qd - u)."""
    k = len(rates)
    known = V - _leibniz(J, rates, k)
    turned = _leibniz([np.swapaxes(x, -1, -2) for x in J], e, k)
    right = _times(np.swapaxes(J[0], -1, -2), known) + turned + given.d[..., np.newaxis] ** 2 * given.W * given.u[k]
    rate = _times(given.inverse, right)
    return rate, known - _times(J[0], rate)


def _inverse(J: Array, W: Array, d: Array) -> Array:
    """Inverse of K, or its pseudo-inverse."""
    squared = d[..., np.newaxis, np.newaxis] ** 2
    Jt = np.swapaxes(J, -1, -2)
    K = (J / W) @ Jt + squared * np.eye(_TWIST) if J.shape[-1] >= _TWIST else Jt @ J + squared * np.diag(W)
    return np.asarray(np.linalg.pinv(K, rcond=1e-14, hermitian=True), dtype=float)


def _damping(J: Array) -> Array:
    """Damping by the smallest singular value: Y. Nakamura and H. Hanafusa, ASME J. Dyn. Syst. 108 (1986)."""
    values = np.linalg.svd(J, compute_uv=False)
    threshold = _NEAR_SINGULAR * values[..., 0]
    share = np.minimum(values[..., -1] / np.where(threshold > 0, threshold, 1.0), 1.0)
    d: Array = _DAMPING * threshold * (1 - share) ** 2
    return d


def _leibniz(matrices: Sequence[Array], vectors: Sequence[Array], k: int) -> Array:
    """Derivative k of the product of a matrix and a vector, but for what is not known of it."""
    total: Array = np.zeros(())
    for j in range(k + 1):
        if k - j < len(vectors):
            term = _times(matrices[j], vectors[k - j])
            total = total + (term if j in (0, k) else comb(k, j) * term)
    return total


def _times(matrix: Array, vector: Array) -> Array:
    product: Array = (matrix @ vector[..., np.newaxis])[..., 0]
    return product


def _checked(value: ArrayLike, name: str, shape: tuple[int, ...]) -> Array:
    array = np.asarray(value, dtype=float)
    if array.shape != shape:
        raise StateError(f"{name} must have shape {shape}, has {array.shape}")
    if not np.all(np.isfinite(array)):
        raise StateError(f"{name} must be finite")
    return array
