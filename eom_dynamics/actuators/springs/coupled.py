# SPDX-License-Identifier: Apache-2.0
"""Linear springs of several joints that act on each other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from ...arrays import Array
from ...jet import Jet
from ..checks import refuse, square
from .base import Parameter, Spring

# Largest difference from symmetry, relative to the largest entry.
_SYMMETRY = 1e-9


def _symmetric_positive_definite(name: str, value: Any) -> Array:
    K = square(name, value)
    if np.max(np.abs(K - K.T)) > _SYMMETRY * np.max(np.abs(K)):
        refuse(name, "must be symmetric: a spring stores energy and gives it back")
    least = float(np.linalg.eigvalsh(K)[0])
    if least <= 0:
        refuse(name, f"must be positive definite; its least eigenvalue is {least:g}")
    return 0.5 * (K + K.T)


@dataclass(frozen=True, eq=False)
class CoupledSpring(Spring):
    """tau = K delta of a group of g joints, all joint and motor vectors (…, g).

    Attributes:
        matrix: K (g, g), symmetric and positive definite, N m/rad (N/m).
    """

    kind = "coupled"
    is_linear = True

    matrix: Annotated[Array, Parameter("matrix", _symmetric_positive_definite, scales=True)]

    @cached_property
    def compliance(self) -> Array:
        """Inverse of K (g, g)."""
        return np.asarray(np.linalg.inv(self.matrix), dtype=float)

    @property
    def rest_stiffness(self) -> float | Array:
        """Diagonal of K (g,)."""
        return np.diag(self.matrix).copy()

    def deflection_jet(self, tau: Jet, stiffness: Jet | None = None, state: Array | None = None) -> tuple[Jet, Jet]:
        """Efforts times the compliance."""
        return tau @ self.compliance, tau

    def effort_jet(self, delta: Jet, stiffness: Jet | None = None) -> tuple[Jet, Jet | None]:
        """K delta."""
        return delta @ self.matrix, None

    def load(self, delta: Array, deltad: Array, stiffness: Array | None = None) -> Array:
        """K delta."""
        return delta @ self.matrix

    def tangents(self, delta: Array) -> tuple[Array | float, Array | float]:
        """K, no damping."""
        return self.matrix, 0.0

    def energy(self, delta: Array) -> Array:
        """delta_i (K delta)_i/2 of each joint i; their sum is the energy."""
        return 0.5 * delta * (delta @ self.matrix)
