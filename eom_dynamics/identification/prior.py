# SPDX-License-Identifier: Apache-2.0
"""Prior: distance of a body's inertia from that in the robot's file.

With the pseudo-inertia P0 = L L^T of the file and P = L X L^T, the eigenvalues x of X are those of P0^-1 P, and

    entropic distance   tr X - log det X - 4 = sum of (x - 1 - log x)
    geodesic distance   half of the sum of (log x)²

(T. Lee, P. Wensing, F. Park, "Geometric robot dynamic identification: a convex programming approach", IEEE T-RO 36,
2020). Neither depends on units or on the choice of the body's frame.
"""

from __future__ import annotations

import numpy as np

from ..arguments import choice
from ..arrays import Array
from .pseudo_inertia import pseudo_inertia

KINDS = ("entropic", "geodesic")

_LOWER = np.tril_indices(4)

_WEIGHTS = np.where(_LOWER[0] == _LOWER[1], 1.0, np.sqrt(2))

ENTRIES = len(_LOWER[0])
"""Entries of the pseudo-inertia of a body."""


class Prior:
    """Distance from the inertia of a body in the file.

    Attributes:
        factor: lower triangular L (4, 4) of the file's pseudo-inertia.
    """

    def __init__(self, parameters: Array, kind: str = "entropic") -> None:
        """Take the inertial parameters (10,) of the file, whose pseudo-inertia must be positive definite."""
        choice(kind, "prior", KINDS)
        self.factor: Array = np.asarray(np.linalg.cholesky(pseudo_inertia(parameters)))
        self._entropic = kind == "entropic"

    def distance(self, parameters: Array) -> float:
        """Distance of inertial parameters (10,) of a physically consistent body."""
        inverse = np.linalg.inv(self.factor)
        return self.of_relative(inverse @ pseudo_inertia(parameters) @ inverse.T)

    def of_relative(self, X: Array) -> float:
        """Distance of positive definite X (4, 4)."""
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
