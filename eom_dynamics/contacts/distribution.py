# SPDX-License-Identifier: Apache-2.0
"""Distribution of contact forces: efforts and forces for a motion, by least squares or inside friction cones.

Of the efforts e = M nud + h that a motion needs, contact forces f leave tau = e_j - J_j' f to the joints, and must meet
J_b' f = e_b of the base, which nothing else drives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag

from ..arrays import Array
from ..exceptions import ContactError
from ..spelling import shown
from ..states import number_or_vector
from .cones import WrenchCone, checked_faces, minimize, second_order_rows
from .contact import Contact, by_contact

# Singular values below this share of the largest one are zero, as for constraints.
_SINGULAR = 1e-12

# Rounding error of a balance without contacts, relative to the largest effort.
_BALANCED = 1e-9


@dataclass(frozen=True)
class Distribution:
    """Contact forces and joint efforts for a motion.

    Attributes:
        tau: joint efforts (n,), N m or N.
        forces: force (3,) or wrench (6,) on the robot of each contact by name, in the contact's axes; N m, N.
        residual: wrench (6,) on the floating base that is missing for this motion; empty of a fixed base.
    """

    tau: Array
    forces: dict[str, Array]
    residual: Array


def distribute(
    contacts: Sequence[Contact],
    jacobian: Array,
    needed: Array,
    base: int,
    reference: Array,
    cones: str | int | None,
    force_weights: ArrayLike,
    effort_weights: ArrayLike,
    effort_limits: ArrayLike | None,
) -> Distribution:
    """Contact forces and joint efforts; arguments as for :meth:`.ContactDynamics.force_distribution`."""
    size, n = len(jacobian), len(needed) - base
    if isinstance(cones, str) and cones != "exact":
        raise ContactError(f"cones must be None, 'exact' or a number of faces, is {shown(cones)}")
    faces = None if cones is None or isinstance(cones, str) else checked_faces(cones)
    W_f = _not_negative(force_weights, "force_weights", size)
    W_t = _not_negative(effort_weights, "effort_weights", n)
    if np.any(W_f <= 0):
        raise ContactError("force_weights must be positive")
    balance = _Balance(jacobian[:, :base], needed[:base], jacobian[:, base:], needed[base:])
    if cones is not None:
        limits = None if effort_limits is None else _not_negative(effort_limits, "effort_limits", n, finite=False)
        f = _inside(balance, contacts, faces, reference, W_f, W_t, limits)
    elif effort_limits is None:
        f = _least_squares(balance, reference, W_f, W_t)
    else:
        raise ContactError("effort_limits need cones: 'exact' or a number of faces")
    return Distribution(balance.efforts(f), by_contact(contacts, f), balance.e_b - balance.J_b.T @ f)


class _Balance(NamedTuple):
    """Contact Jacobians and needed efforts of the base and of the joints."""

    J_b: Array
    e_b: Array
    J_j: Array
    e_j: Array

    def efforts(self, f: Array) -> Array:
        return self.e_j - self.J_j.T @ f


def _least_squares(x: _Balance, reference: Array, W_f: Array, W_t: Array) -> Array:
    """In closed form: the balance of the base fixes part of f, and least squares the rest, in its null space."""
    U, values, V = np.linalg.svd(x.J_b.T)
    rank = int(np.count_nonzero(values > _SINGULAR * np.max(values, initial=0.0)))
    fixed = V[:rank].T @ ((U.T @ x.e_b)[:rank] / values[:rank])
    free = V[rank:].T
    rows = np.concatenate([np.sqrt(W_f)[:, np.newaxis] * free, np.sqrt(W_t)[:, np.newaxis] * (x.J_j.T @ free)])
    wanted = np.concatenate([np.sqrt(W_f) * (reference - fixed), np.sqrt(W_t) * x.efforts(fixed)])
    return fixed + free @ np.linalg.lstsq(rows, wanted, rcond=None)[0]


def _inside(
    x: _Balance,
    contacts: Sequence[Contact],
    faces: int | None,
    reference: Array,
    W_f: Array,
    W_t: Array,
    limits: Array | None,
) -> Array:
    """By a quadratic program over the cones."""
    reason = "no contact forces inside the friction cones balance this motion"
    if limits is not None:
        reason += " within the limits of the efforts"
    limits = np.full(len(x.e_j), np.inf) if limits is None else limits
    if not contacts:
        # Nothing is left to choose; the solver takes no empty problems.
        if np.any(np.abs(x.e_j) > limits) or np.any(np.abs(x.e_b) > _BALANCED * np.max(np.abs(x.e_j), initial=1.0)):
            raise ContactError(f"{reason}: there are no contacts")
        return np.zeros(0)
    T, half_spaces, cones = _variables(contacts, faces)
    weighted = x.J_j * W_t
    P = T.T @ (np.diag(W_f) + weighted @ x.J_j.T) @ T
    p = -T.T @ (W_f * reference + weighted @ x.e_j)
    limited = np.isfinite(limits)
    rows, bound, e_j = (x.J_j.T @ T)[limited], limits[limited], x.e_j[limited]
    A = np.concatenate([half_spaces, rows, -rows])
    a = np.concatenate([np.zeros(len(half_spaces)), bound + e_j, bound - e_j])  # |e_j - J_j' f| <= limits
    return T @ minimize(P, p, (x.J_b.T @ T, x.e_b), (A, a), cones, reason)


def _variables(contacts: Sequence[Contact], faces: int | None) -> tuple[Array, Array, Array]:
    """Variables u of contact forces, as matrices T, A, B with f = T u.

    With faces of pyramids, u = f and A u <= 0. Without, u are the forces of all points and corners, and each three rows
    of B u are in a second-order cone.
    """
    maps: list[Array] = []
    half_spaces: list[Array] = [np.zeros((0, 0))]
    cones: list[Array] = [np.zeros((0, 0))]
    for contact in contacts:
        if faces is None:
            G = contact.cone.grasp_matrix if isinstance(contact.cone, WrenchCone) else np.eye(3)
            maps.append(G)
            cones.append(second_order_rows(contact.friction, G.shape[1] // 3))
        else:
            rows = contact.cone.half_spaces(faces)
            maps.append(np.eye(contact.size))
            # Unit rows, since the solver measures violations by them.
            half_spaces.append(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    T, A, B = block_diag(*maps), block_diag(*half_spaces), block_diag(*cones)
    return (T, A, np.zeros((0, T.shape[1]))) if len(A) else (T, np.zeros((0, T.shape[1])), B)


def _not_negative(value: ArrayLike, name: str, size: int, *, finite: bool = True) -> Array:
    array = number_or_vector(value, name, size, finite=finite)
    if not np.all(array >= 0):
        raise ContactError(f"{name} must not be negative, are {array.tolist()}")
    return array
