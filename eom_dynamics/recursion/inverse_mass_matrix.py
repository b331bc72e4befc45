# SPDX-License-Identifier: Apache-2.0
"""Inverse mass matrix: by factors for scalars of any type, and by Cholesky factorization for numbers.

The factors M = L' D L, from the tips of a tree to its base, keep the zeros between branches: R. Featherstone,
"Efficient factorization of the joint-space inertia matrix for branched kinematic trees", Int. J. Robot. Res. 24 (2005).
Entries that are plain zeros cost nothing in compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..arrays import Array
from ..exceptions import RobotDescriptionError
from .scalars import Matrix, Numbers, Scalar

# Rounding error of a pivot, relative to its diagonal entry of M, per row. Pivots of real arms are 1e6 times larger.
ROUNDING = 64 * float(np.finfo(float).eps)


def reciprocal_pivot(pivot: Scalar, scale: Scalar, size: int) -> Scalar:
    """Reciprocal of a pivot of a mass matrix or articulated inertia; NaN for a pivot that is zero up to rounding.

    Args:
        pivot: diagonal entry of M after elimination.
        scale: diagonal entry of M, or its magnitude.
        size: number of rows of M.

    Raises:
        RobotDescriptionError: the pivot is zero as a number: a joint moves no mass in any configuration.
    """
    if hasattr(pivot, "select"):
        # Zero in some configurations only: decide by the numbers.
        return (pivot - (ROUNDING * size) * scale).select(1.0 / pivot, float("nan"))
    if isinstance(pivot, float) and pivot == 0.0:
        raise RobotDescriptionError(
            "the mass matrix is singular, since a joint moves no mass, so that no effort determines its acceleration; "
            "give its body mass off the axis, or inertia about it, or leave the joint out with a tip"
        )
    return 1.0 / pivot


def inverse_matrix(M: Matrix) -> Matrix:
    """M⁻¹ = K D⁻¹ K' with K = L⁻¹, for a positive definite M, parents before children."""
    L, by_D = _factors(M)
    n = len(M)
    K: Matrix = [[0.0] * n for _ in range(n)]
    for i in range(n):
        K[i][i] = 1.0
        for j in range(i):
            K[i][j] = -L[i][j]
            for k in range(j + 1, i):
                K[i][j] = K[i][j] - L[i][k] * K[k][j]
    result: Matrix = [[0.0] * n for _ in range(n)]
    for i in range(n):
        scaled = [K[i][k] * by_D[k] for k in range(i + 1)]
        for j in range(i + 1):
            entry: Scalar = 0.0
            for k in range(j + 1):
                entry = entry + scaled[k] * K[j][k]
            result[i][j] = result[j][i] = entry
    return result


def solver(M: Matrix) -> Callable[[Sequence[Scalar]], Numbers]:
    """Function of b that returns M⁻¹ b, for a positive definite M."""
    L, by_D = _factors(M)

    def solved(b: Sequence[Scalar]) -> Numbers:
        x = list(b)
        for k in reversed(range(len(x))):
            for i in range(k):
                x[i] = x[i] - L[k][i] * x[k]
        x = [value * by for value, by in zip(x, by_D, strict=True)]
        for k in range(len(x)):
            for i in range(k):
                x[k] = x[k] - L[k][i] * x[i]
        return x

    return solved


def _factors(M: Matrix) -> tuple[Matrix, Numbers]:
    """Unit lower triangular L, and the reciprocals of the diagonal of D."""
    n = len(M)
    rest = [list(row) for row in M]
    L: Matrix = [[0.0] * n for _ in range(n)]
    by_D: Numbers = [0.0] * n
    for k in reversed(range(n)):
        by_D[k] = reciprocal_pivot(rest[k][k], M[k][k], n)
        L[k][:k] = [entry * by_D[k] for entry in rest[k][:k]]
        for i in range(k):
            for j in range(i + 1):
                rest[i][j] = rest[i][j] - L[k][i] * rest[k][j]
    return L, by_D


def solve_mass_matrix(robot: str, inertia: Array, efforts: Array) -> Array:
    """Accelerations (…, k) for a symmetric inertia matrix (…, k, k), kg m² or kg, and efforts (…, k), N m or N.

    Args:
        robot: name of the robot, for the error message.

    Raises:
        RobotDescriptionError: the matrix is not positive definite beyond rounding, because a body has a physically
            inconsistent inertia or a chain ends in massless bodies.
    """
    lower = refuse_singular(robot, inertia)
    right = efforts[..., np.newaxis]
    return np.linalg.solve(np.swapaxes(lower, -1, -2), np.linalg.solve(lower, right))[..., 0]


def refuse_singular(robot: str, inertia: Array, rounding: float = ROUNDING) -> Array:
    """Cholesky factor (…, k, k) of an inertia matrix; arguments and errors as for :func:`solve_mass_matrix`.

    Args:
        rounding: largest pivot, relative to its diagonal entry and per row, considered zero.
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
