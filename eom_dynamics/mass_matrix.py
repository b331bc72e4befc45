# SPDX-License-Identifier: Apache-2.0
"""Accelerations from an inertia matrix, where no recursion gives them."""

from __future__ import annotations

import numpy as np

from .arrays import Array
from .exceptions import RobotDescriptionError


def solve_mass_matrix(robot: str, inertia: Array, efforts: Array) -> Array:
    """Accelerations (…, k) for an inertia matrix (…, k, k) and efforts (…, k).

    Args:
        robot: name of the robot, for the error message.
        inertia: symmetric, kg m² or kg.
        efforts: N m or N.

    Raises:
        RobotDescriptionError: the matrix is not positive definite, because a body has an impossible inertia or a chain
            ends in massless bodies.
    """
    try:
        # Cholesky rather than LU, since it fails exactly if the matrix is not positive definite.
        lower = np.linalg.cholesky(inertia)
    except np.linalg.LinAlgError:
        raise RobotDescriptionError(
            f"{robot}: the mass matrix is not positive definite, so forward dynamics has no unique solution; check "
            "mass, center_of_mass and inertia of the bodies, and look for a massless body at the end of a chain"
        ) from None
    right = efforts[..., np.newaxis]
    solved: Array = np.linalg.solve(np.swapaxes(lower, -1, -2), np.linalg.solve(lower, right))[..., 0]
    return solved
