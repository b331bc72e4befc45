# SPDX-License-Identifier: Apache-2.0
"""Transmissions in which several motors move several joints together, such as a differential."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .checks import refuse

Array = NDArray[np.float64]

# Beyond this condition number a transmission has a direction in which its motors do nothing.
_WORST_CONDITION = 1e8


class Transmission:
    """theta = T phi: joint sides theta of the springs from motors phi, and motor efforts Tᵀ tau.

    A differential of two joints has T = [[1/2, 1/2], [1/2, -1/2]].

    Attributes:
        matrix: T (g, g).
        inverse: its inverse.
    """

    def __init__(self, matrix: ArrayLike) -> None:
        """Raises RobotDescriptionError where T is not a square of finite numbers, or singular."""
        self.matrix = np.asarray(matrix, dtype=float)
        shape = self.matrix.shape
        if len(shape) != 2 or shape[0] != shape[1] or not np.all(np.isfinite(self.matrix)):
            refuse("matrix", f"must be a square of finite numbers, has shape {shape}")
        if not np.linalg.cond(self.matrix) < _WORST_CONDITION:
            refuse("matrix", "is singular: there is a motion of the joints that no motor drives")
        self.inverse = np.linalg.inv(self.matrix)

    def motors(self, theta: Array) -> Array:
        """phi (…, g) of theta (…, g); rates alike."""
        return theta @ self.inverse.T

    def joints(self, phi: Array) -> Array:
        """theta (…, g) of phi (…, g); rates alike."""
        return phi @ self.matrix.T

    def motor_effort(self, tau: Array) -> Array:
        """Efforts at the motors (…, g) of those at the springs."""
        return tau @ self.matrix
