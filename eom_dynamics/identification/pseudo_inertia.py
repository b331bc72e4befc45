# SPDX-License-Identifier: Apache-2.0
"""Pseudo-inertia of a body, and its inertial parameters.

A mass distribution with mass m, first moment h and inertia I about the origin has the second moments
S = tr(I)/2 1 - I, and a rigid body can have the ten numbers exactly if the pseudo-inertia

    P = [[S, h], [h^T, m]]   (4, 4)

is positive semidefinite (P. Wensing, S. Kim, J.-J. Slotine, IEEE RA-L 3, 2018).
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array

_UPPER = np.triu_indices(3)


def pseudo_inertia(parameters: Array) -> Array:
    """P (…, 4, 4) of inertial parameters pi (…, 10): mass, first moments, inertia xx … zz about the origin."""
    pi = np.asarray(parameters, dtype=float)
    inertia = np.zeros((*pi.shape[:-1], 3, 3))
    inertia[..., _UPPER[0], _UPPER[1]] = pi[..., 4:]
    inertia[..., _UPPER[1], _UPPER[0]] = pi[..., 4:]
    P = np.zeros((*pi.shape[:-1], 4, 4))
    trace = np.trace(inertia, axis1=-2, axis2=-1)[..., np.newaxis, np.newaxis]
    P[..., :3, :3] = 0.5 * trace * np.eye(3) - inertia
    P[..., :3, 3] = P[..., 3, :3] = pi[..., 1:4]
    P[..., 3, 3] = pi[..., 0]
    return P


def parameters_of(pseudo: Array) -> Array:
    """Inertial parameters pi (…, 10) of pseudo-inertias (…, 4, 4)."""
    second = pseudo[..., :3, :3]
    trace = np.trace(second, axis1=-2, axis2=-1)[..., np.newaxis, np.newaxis]
    inertia = trace * np.eye(3) - second
    moments = inertia[..., _UPPER[0], _UPPER[1]]
    return np.concatenate([pseudo[..., 3, 3:], pseudo[..., :3, 3], moments], axis=-1)


def consistent(parameters: Array, smallest: float) -> Array:
    """Physically consistent inertial parameters (10,) close to given ones.

    Args:
        parameters: pi (10,).
        smallest: least radius of gyration of the body in any direction, m; it becomes a little fatter where it is less.
    """
    pi = np.asarray(parameters, dtype=float)
    mass = pi[0]
    center = pi[1:4] / mass
    P = pseudo_inertia(pi)
    about_center = P[:3, :3] - mass * np.outer(center, center)
    values, vectors = np.linalg.eigh(about_center)
    about_center = (vectors * np.maximum(values, mass * smallest**2)) @ vectors.T
    P[:3, :3] = about_center + mass * np.outer(center, center)
    return parameters_of(P)
