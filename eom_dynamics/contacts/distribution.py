# SPDX-License-Identifier: Apache-2.0
"""Distribution of contact forces: efforts and forces for a motion, by least squares or inside friction cones.

Of the efforts e = M nud + h that a motion needs, contact forces f leave tau = e_j - J_j' f to the joints, and must meet
J_b' f = e_b of the base, which nothing else drives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    J_b, J_j, e_b, e_j = jacobian[:, :base], jacobian[:, base:], needed[:base], needed[base:]
    if cones is None:
        if effort_limits is not None:
            raise ContactError("effort_limits need cones: 'exact' or a number of faces")
        f = _least_squares(J_b, e_b, J_j, e_j, reference, W_f, W_t)
    else:
        f = _inside(contacts, faces, J_b, e_b, J_j, e_j, reference, W_f, W_t, effort_limits)
    return Distribution(e_j - J_j.T @ f, by_contact(contacts, f), e_b - J_b.T @ f)


def _least_squares(J_b: Array, e_b: Array, J_j: Array, e_j: Array, reference: Array, W_f: Array, W_t: Array) -> Array:
    """In closed form: the balance of the base fixes part of f, and least squares the rest, in its null space."""
    U, values, V = np.linalg.svd(J_b.T)
    rank = int(np.count_nonzero(values > _SINGULAR * np.max(values, initial=0.0)))
    fixed = V[:rank].T @ ((U.T @ e_b)[:rank] / values[:rank])
    free = V[rank:].T
    rows = np.concatenate([np.sqrt(W_f)[:, np.newaxis] * free, np.sqrt(W_t)[:, np.newaxis] * (J_j.T @ free)])
    wanted = np.concatenate([np.sqrt(W_f) * (reference - fixed), np.sqrt(W_t) * (e_j - J_j.T @ fixed)])
    return fixed + free @ np.linalg.lstsq(rows, wanted, rcond=None)[0]


def _inside(
    contacts: Sequence[Contact],
    faces: int | None,
    J_b: Array,
    e_b: Array,
    J_j: Array,
    e_j: Array,
    reference: Array,
    W_f: Array,
    W_t: Array,
    effort_limits: ArrayLike | None,
) -> Array:
    """By a quadratic program over the cones."""
    reason = "no contact forces inside the friction cones balance this motion"
    limits: Array = np.full(len(e_j), np.inf)
    if effort_limits is not None:
        limits = _not_negative(effort_limits, "effort_limits", len(e_j), finite=False)
        reason += " within the limits of the efforts"
    if not contacts:
        # Nothing is left to choose; the solver takes no empty problems.
        if np.any(np.abs(e_j) > limits) or np.any(np.abs(e_b) > _BALANCED * np.max(np.abs(e_j), initial=1.0)):
            raise ContactError(f"{reason}: there are no contacts")
        return np.zeros(0)
    T, half_spaces, cones = _variables(contacts, faces)
    weighted = J_j * W_t
    P = T.T @ (np.diag(W_f) + weighted @ J_j.T) @ T
    p = -T.T @ (W_f * reference + weighted @ e_j)
    A, a = half_spaces, np.zeros(len(half_spaces))
    limited = np.isfinite(limits)
    if np.any(limited):
        rows, bound = (J_j.T @ T)[limited], limits[limited]
        # |e_j - J_j' f| <= limits
        A = np.concatenate([A, rows, -rows])
        a = np.concatenate([a, bound + e_j[limited], bound - e_j[limited]])
    u = minimize(P, p, (J_b.T @ T, e_b), (A, a), cones, reason)
    return T @ u


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
