# SPDX-License-Identifier: Apache-2.0
"""Distance of a body's inertia from that in the robot's file, as residuals of least squares.

With the pseudo-inertia P0 = L L^T of the file and X = L^-1 P L^-T, whose eigenvalues are those of P0^-1 P,

    entropic distance   tr(P0^-1 P) - log det(P0^-1 P) - 4 = sum of (x - 1 - log x) over the eigenvalues x
    geodesic distance   half of the sum of (log x)²

(T. Lee, P. Wensing, F. Park, "Geometric robot dynamic identification: a convex programming approach", IEEE T-RO 36,
2020). Neither depends on units or on the choice of the body's frame. Both are |f(X)|²/2 in the Frobenius norm, for the
matrix function of f(x) = sign(x - 1) sqrt(2 (x - 1 - log x)) or of f(x) = log x, which is smooth; its derivative is
that of Daleckii and Krein (N. Higham, Functions of Matrices, 2008, theorem 3.11).
"""

from __future__ import annotations

import numpy as np

from ..arguments import choice
from ..arrays import Array
from .pseudo_inertia import pseudo_inertia

KINDS = ("entropic", "geodesic")

# Below this |x - 1| the series of f is more accurate than the formula.
_SERIES = 1e-3

# Eigenvalues closer than this, relatively, have the derivative of f as their divided difference.
_CLOSE = 1e-5

_LOWER = np.tril_indices(4)

_WEIGHTS = np.where(_LOWER[0] == _LOWER[1], 1.0, np.sqrt(2))

RESIDUALS = len(_LOWER[0])
"""Residuals of a body."""


class Prior:
    """Residuals of a body with the distance as half of the sum of their squares.

    Attributes:
        factor: lower triangular L (4, 4) of the file's pseudo-inertia.
    """

    def __init__(self, parameters: Array, kind: str = "entropic") -> None:
        """Take the inertial parameters (10,) of the file, whose pseudo-inertia must be positive definite."""
        choice(kind, "prior", KINDS)
        self.factor: Array = np.asarray(np.linalg.cholesky(pseudo_inertia(parameters)))
        self._entropic = kind == "entropic"

    def distance(self, parameters: Array) -> float:
        """Distance of inertial parameters (10,) of a body that can be."""
        inverse = np.linalg.inv(self.factor)
        X = inverse @ pseudo_inertia(parameters) @ inverse.T
        return 0.5 * float(np.sum(np.square(self.residuals(X, np.zeros((0, 4, 4)))[0])))

    def residuals(self, relative: Array, derivatives: Array) -> tuple[Array, Array]:
        """Residuals (10,) of X (4, 4), and their derivatives (10, k) for its derivatives (k, 4, 4)."""
        x, V = np.linalg.eigh(relative)
        # Of a nearly singular matrix the smaller eigenvalues are rounding errors, whose inverses would overflow.
        x = np.maximum(x, np.finfo(float).eps * max(float(x[-1]), np.finfo(float).eps))
        f, _ = self._function(x)
        change = V.T @ derivatives @ V
        gap = x[:, np.newaxis] - x
        close = np.abs(gap) <= _CLOSE * (x[:, np.newaxis] + x)
        mean = 0.5 * (x[:, np.newaxis] + x)
        divided = np.where(close, self._function(mean)[1], (f[:, np.newaxis] - f) / np.where(close, 1.0, gap))
        moved = V @ (divided * change) @ V.T
        return packed((V * f) @ V.T), packed(moved).T

    def _function(self, x: Array) -> tuple[Array, Array]:
        """The function f and its derivative."""
        if not self._entropic:
            return np.log(x), 1 / x
        u = x - 1
        near = np.abs(u) < _SERIES
        exact = np.sign(u) * np.sqrt(2 * np.maximum(u - np.log(x), 0.0))
        f = np.where(near, u * (1 - u / 3 + 7 * u**2 / 36), exact)
        slope = np.where(near, 1 - 2 * u / 3 + 7 * u**2 / 12, u / (x * np.where(near, 1.0, f)))
        return f, slope


def packed(symmetric: Array) -> Array:
    """Entries (…, 10) of symmetric matrices (…, 4, 4) that have the same norm."""
    return symmetric[..., _LOWER[0], _LOWER[1]] * _WEIGHTS


def unpacked(entries: Array) -> Array:
    """Symmetric matrices (…, 4, 4) of their entries (…, 10)."""
    result = np.zeros((*entries.shape[:-1], 4, 4))
    result[..., _LOWER[0], _LOWER[1]] = result[..., _LOWER[1], _LOWER[0]] = entries / _WEIGHTS
    return result
