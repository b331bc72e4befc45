# SPDX-License-Identifier: Apache-2.0
"""Pseudo-inertia of a body, and its distance from that in the robot's file, the prior.

A mass distribution with mass m, first moment h and inertia I about the origin has the second moments
S = tr(I)/2 1 - I, and a rigid body can have the ten numbers exactly if the pseudo-inertia

    P = [[S, h], [h^T, m]]   (4, 4)

is positive semidefinite (P. Wensing, S. Kim, J.-J. Slotine, IEEE RA-L 3, 2018). With the pseudo-inertia P0 = L L^T of
the file and P = L X L^T, the eigenvalues x of X are those of P0^-1 P, and

    entropic distance   tr X - log det X - 4 = sum of (x - 1 - log x)
    geodesic distance   half of the sum of (log x)²

(T. Lee, P. Wensing, F. Park, "Geometric robot dynamic identification: a convex programming approach", IEEE T-RO 36,
2020). Neither depends on units or on the choice of the body's frame.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array

KINDS = ("entropic", "geodesic")

_LOWER = np.tril_indices(4)

_WEIGHTS = np.where(_LOWER[0] == _LOWER[1], 1.0, np.sqrt(2))

ENTRIES = len(_LOWER[0])
"""Entries of the pseudo-inertia of a body."""

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


class Prior:
    """Distance from the inertia of a body in the file.

    Attributes:
        factor: lower triangular L (4, 4) of the file's pseudo-inertia.
    """

    def __init__(self, parameters: Array, kind: str = "entropic") -> None:
        """Take the inertial parameters (10,) of the file, whose pseudo-inertia must be positive definite."""
        self.factor: Array = np.asarray(np.linalg.cholesky(pseudo_inertia(parameters)))
        self._entropic = kind == "entropic"

    def of_relative(self, X: Array) -> float:
        """Distance of P = L X L^T, with positive definite X (4, 4)."""
        x = np.linalg.eigvalsh(X)
        with np.errstate(divide="ignore", invalid="ignore"):
            logarithm = np.log(x)
            each = x - 1 - logarithm if self._entropic else 0.5 * np.square(logarithm)
        return float(np.sum(each)) if x[0] > 0 else np.inf

    def gradient(self, C: Array) -> Array:
        """Derivatives (10,) at Y = 1 of the distance of X = C Y C^T for the entries of Y, see :func:`packed`.

        The entropic distance has the unit matrix as its second derivatives.
        """
        W = C.T @ C
        if self._entropic:
            return packed(W - np.eye(4))
        w, V = np.linalg.eigh(W)
        return packed((V * np.log(np.maximum(w, np.finfo(float).tiny))) @ V.T)


def packed(symmetric: Array) -> Array:
    """Symmetric matrices (…, 4, 4) packed into entries (…, 10) of the same norm."""
    return symmetric[..., _LOWER[0], _LOWER[1]] * _WEIGHTS


def unpacked(entries: Array) -> Array:
    """Symmetric matrices (…, 4, 4) unpacked from their entries (…, 10)."""
    result = np.zeros((*entries.shape[:-1], 4, 4))
    result[..., _LOWER[0], _LOWER[1]] = result[..., _LOWER[1], _LOWER[0]] = entries / _WEIGHTS
    return result
