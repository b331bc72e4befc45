# SPDX-License-Identifier: Apache-2.0
"""Springs of several joints that act on each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...jet import Jet
from ..checks import refuse
from .base import Array, Deflection

# How far from symmetric a matrix may be, relative to its largest entry.
_SYMMETRY = 1e-9


class CoupledSpring:
    """tau = K delta of the joints of a group, K symmetric and positive definite, (g, g), N m/rad (N/m).

    Attributes:
        matrix: K (g, g).
        compliance: its inverse (g, g).
    """

    kind = "coupled"

    def __init__(self, matrix: ArrayLike) -> None:
        """Raises RobotDescriptionError where K is not a square of finite numbers, symmetric and positive definite."""
        K = np.asarray(matrix, dtype=float)
        if K.ndim != 2 or K.shape[0] != K.shape[1] or not np.all(np.isfinite(K)):
            refuse("matrix", f"must be a square of finite numbers, has shape {K.shape}")
        if np.max(np.abs(K - K.T)) > _SYMMETRY * np.max(np.abs(K)):
            refuse("matrix", "must be symmetric: a spring gives back what it takes")
        least = float(np.linalg.eigvalsh(K)[0])
        if least <= 0:
            refuse("matrix", f"must be positive definite; its least eigenvalue is {least:g}")
        self.matrix = 0.5 * (K + K.T)
        self.compliance = np.linalg.inv(self.matrix)

    def effort(self, delta: Array) -> Array:
        """K delta, (…, g)."""
        return delta @ self.matrix

    def energy(self, delta: Array) -> Array:
        """deltaᵀ K delta/2 (…), J."""
        return 0.5 * np.sum(delta * self.effort(delta), axis=-1)

    def deflection(self, tau: Array, taud: Array, taudd: Array) -> Deflection:
        """The efforts times the compliance, each (…, g)."""
        return tau @ self.compliance, taud @ self.compliance, taudd @ self.compliance

    def deflection_series(self, tau: Jet) -> Jet:
        """The deflections (…, g) with as many time derivatives as the efforts (…, g) have."""
        return tau @ self.compliance

    @property
    def rest_stiffness(self) -> Array:
        """The diagonal of K (g,)."""
        return np.diag(self.matrix).copy()
