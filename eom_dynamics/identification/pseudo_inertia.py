# SPDX-License-Identifier: Apache-2.0
"""Pseudo-inertia of a body, and parameters that make it positive definite.

A mass distribution with mass m, first moment h and inertia I about the origin has the second moments
S = tr(I)/2 1 - I, and a rigid body can have the ten numbers exactly if the pseudo-inertia

    P = [[S, h], [h^T, m]]   (4, 4)

is positive semidefinite (P. Wensing, S. Kim, J.-J. Slotine, IEEE RA-L 3, 2018). Log-Cholesky parameters
theta = (alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3) make P = U U^T positive definite by construction, with

    U = exp(alpha) [[exp(d1), s12, s13, t1], [0, exp(d2), s23, t2], [0, 0, exp(d3), t3], [0, 0, 0, 1]]

(C. Rucker, P. Wensing, "Smooth parameterization of rigid-body inertia", IEEE RA-L 7, 2022). Here U U^T is X of
P = L X L^T, with L L^T the pseudo-inertia of the robot's file: theta is then zero for the file and has no units, and a
change by one is a factor of e. The change of coordinates by L keeps what is positive definite.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array

# Places of d, s and t in U, in the order of theta behind alpha.
_ENTRIES = ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3))
_DIAGONAL = 3

_UPPER = np.triu_indices(3)

# Logarithms beyond are steps that an optimiser takes back; their squares must not overflow.
_LARGEST = 40.0


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


def log_cholesky(theta: Array) -> Array:
    """Positive definite X = U U^T (4, 4) of log-Cholesky parameters theta (10,)."""
    U = _factor(theta)
    return np.asarray(U @ U.T)


def log_cholesky_derivatives(theta: Array) -> Array:
    """Derivatives (10, 4, 4) of :func:`log_cholesky`."""
    U = _factor(theta)
    scale = np.exp(theta[0])
    derivatives = [2 * U @ U.T]
    for k, (i, j) in enumerate(_ENTRIES):
        # dU has one entry, in row i and column j.
        dU = U[i, j] if k < _DIAGONAL else scale
        dX = np.zeros((4, 4))
        dX[i] += dU * U[:, j]
        derivatives.append(dX + dX.T)
    return np.array(derivatives)


def log_cholesky_parameters(X: Array) -> Array:
    """Log-Cholesky parameters theta (10,) of a positive definite matrix X (4, 4).

    Raises:
        numpy.linalg.LinAlgError: it is not positive definite.
    """
    U = np.linalg.cholesky(X[::-1, ::-1])[::-1, ::-1]
    V = U / U[3, 3]
    alpha = np.log(U[3, 3])
    return np.array([alpha, *(np.log(V[k, k]) for k in range(3)), *(V[i, j] for i, j in _ENTRIES[_DIAGONAL:])])


def possible(parameters: Array, smallest: float) -> Array:
    """Inertial parameters (10,) of a body that can be, next to some that perhaps cannot.

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


def _factor(theta: Array) -> Array:
    U = np.eye(4)
    for value, (i, j) in zip(theta[1:], _ENTRIES, strict=True):
        U[i, j] = np.exp(min(value, _LARGEST)) if i == j else value
    return np.exp(min(theta[0], _LARGEST)) * U
