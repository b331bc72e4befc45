# SPDX-License-Identifier: Apache-2.0
"""Transmissions between several motors and several joints, such as a differential."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import all_finite
from .parameters import refuse, square

# Beyond this condition number a transmission counts as singular.
_WORST_CONDITION = 1e8


class Transmission:
    """theta = T phi: joint sides theta of the springs from motor positions phi, and motor efforts Tᵀ tau.

    A differential of two joints has T = [[1/2, 1/2], [1/2, -1/2]].

    Attributes:
        matrix: T (g, g).
        inverse: inverse of T (g, g).
    """

    def __init__(self, matrix: ArrayLike) -> None:
        """Check the matrix; raises ParameterError unless it is square, finite and invertible."""
        self.matrix = square("matrix", matrix)
        invertible = np.linalg.cond(self.matrix) < _WORST_CONDITION
        if not (invertible and all_finite(np.linalg.inv(self.matrix))):
            refuse("matrix", "must be invertible: the motors cannot drive all motions of the joints")
        self.inverse = np.linalg.inv(self.matrix)
