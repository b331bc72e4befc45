# SPDX-License-Identifier: Apache-2.0
"""Coupled linear springs of several joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from ...arrays import Array, Scalar
from ...jet import Jet
from ..parameters import refuse, square
from .base import EffortJets, Jets, Parameter, Spring

# Largest difference from symmetry, relative to the largest entry.
_SYMMETRY = 1e-9

# Eigenvalue of which the compliance is still finite.
_SOFTEST = 1e-300


def _symmetric_positive_definite(name: str, value: Any) -> Array:
    K = square(name, value)
    if np.max(np.abs(K - K.T)) > _SYMMETRY * np.max(np.abs(K)):
        refuse(name, "must be symmetric: a spring stores energy and gives it back")
    least = float(np.linalg.eigvalsh(K)[0])
    if least <= _SOFTEST:
        refuse(name, f"must be positive definite; its least eigenvalue is {least:g}")
    return 0.5 * (K + K.T)


@dataclass(frozen=True, eq=False)
class CoupledSpring(Spring):
    """tau = K delta of a group of g joints, all joint and motor vectors (…, g).

    Attributes:
        matrix: K (g, g), symmetric and positive definite, N m/rad (N/m).
    """

    kind = "coupled"

    matrix: Annotated[Array, Parameter("matrix", _symmetric_positive_definite, scales=True)]

    @cached_property
    def compliance(self) -> Array:
        """Inverse of K (g, g)."""
        return np.asarray(np.linalg.inv(self.matrix), dtype=float)

    @property
    def rest_stiffness(self) -> float | Array:
        """Diagonal of K (g,)."""
        return np.diag(self.matrix).copy()

    def deflections(self, tau: Jets, stiffness: Jet | None = None, state: Scalar | None = None) -> tuple[Jets, Jets]:
        """The compliance times the efforts."""
        return _product(self.compliance, tau), tau

    def efforts(self, delta: Sequence[Jet], stiffness: Jet | None = None) -> EffortJets:
        """K delta."""
        efforts = _product(self.matrix, delta)
        return EffortJets(efforts, efforts)

    def stored_energy(self, delta: Sequence[Scalar]) -> Scalar:
        """delta' K delta/2."""
        return 0.5 * sum(x * y for x, y in zip(delta, _product(self.matrix, delta), strict=True))


def _product(matrix: Array, vector: Sequence[Any]) -> list[Any]:
    """The matrix times a vector of jets or scalars."""
    return [sum((a * x for a, x in zip(row, vector, strict=True)), 0.0) for row in matrix.tolist()]
