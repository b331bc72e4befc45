# SPDX-License-Identifier: Apache-2.0
"""Accelerations from an inertia matrix, by Cholesky factorisation."""

from __future__ import annotations

import numpy as np

from .arrays import Array
from .exceptions import RobotDescriptionError
from .recursion.inverse_mass_matrix import ROUNDING


def solve_mass_matrix(robot: str, inertia: Array, efforts: Array) -> Array:
    """Accelerations (…, k) for an inertia matrix (…, k, k) and efforts (…, k).

    Args:
        robot: name of the robot, for the error message.
        inertia: symmetric, kg m² or kg.
        efforts: N m or N.

    Raises:
        RobotDescriptionError: the matrix is not positive definite beyond rounding, because a body has an impossible
            inertia or a chain ends in massless bodies.
    """
    lower = refuse_singular(robot, inertia)
    right = efforts[..., np.newaxis]
    solved: Array = np.linalg.solve(np.swapaxes(lower, -1, -2), np.linalg.solve(lower, right))[..., 0]
    return solved


def refuse_singular(robot: str, inertia: Array, rounding: float = ROUNDING) -> Array:
    """Cholesky factor (…, k, k) of an inertia matrix; arguments and errors as for :func:`solve_mass_matrix`.

    Args:
        robot, inertia: as there.
        rounding: largest pivot, relative to its diagonal entry and per row, that counts as zero.
    """
    size = inertia.shape[-1]
    try:
        # Cholesky rather than LU, since it fails if the matrix is not positive definite.
        lower = np.asarray(np.linalg.cholesky(inertia), dtype=float)
        pivots = np.diagonal(lower, axis1=-2, axis2=-1) ** 2
        singular = np.any(pivots <= rounding * size * np.diagonal(inertia, axis1=-2, axis2=-1))
    except np.linalg.LinAlgError:
        singular = np.True_
    if singular:
        raise RobotDescriptionError(
            f"{robot}: the mass matrix is not positive definite, so forward dynamics has no unique solution; check "
            "mass, center_of_mass and inertia of the bodies, and look for a massless body at the end of a chain, or "
            "leave this configuration"
        )
    return lower
