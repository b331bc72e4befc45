# SPDX-License-Identifier: Apache-2.0
"""Dynamics under rigid constraints J x = c: accelerations, or the velocity jump at an impact.

The conditions of a mechanism with mass matrix M under constraint forces f are

    M x - J' f = b,    J x = c.

With the Cholesky factor M = L L', the variables z = L' x and Y = L^-1 J' turn them into z - Y f = L^-1 b, Y' z = c. The
singular value decomposition of Y solves these with the condition number of Y, not its square. Redundant constraints
have zero singular values: f is then the one of least norm, and x is unique all the same. R. Featherstone, *Rigid Body
Dynamics Algorithms* (2008), chapters 8 and 11.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..mass_matrix import solve_mass_matrix

# Singular values below this share of the largest one are zero: about 1000 times the rounding error.
SINGULAR = 1e-12


class ConstrainedSolution(NamedTuple):
    """Solution of a mechanism under rigid constraints.

    Attributes:
        x: (n,), accelerations or rates.
        forces: f (m,), constraint forces or impulses; of least norm where constraints are redundant.
        rank: number of independent constraints.
        violation: largest entry of J x - c; zero up to rounding unless the constraints contradict each other.
    """

    x: Array
    forces: Array
    rank: int
    violation: float


def solve(
    name: str, mass_matrix: Array, efforts: Array, jacobian: Array, target: Array, directions: Array | None = None
) -> ConstrainedSolution:
    """Solve M x - D' f = b, J x = c for x and f.

    Args:
        name: of the mechanism, for error messages.
        mass_matrix: M (n, n).
        efforts: b (n,).
        jacobian: J (m, n), constraints.
        target: c (m,); where constraints contradict each other, they are met by least squares.
        directions: D (m, n), efforts of unit forces; by default J, for constraints without friction. With other
            directions, such as those of sliding friction, x is unique only if J M^-1 D' has the rank of D.

    Raises:
        RobotDescriptionError: the mass matrix is not positive definite.
    """
    try:
        L = np.linalg.cholesky(mass_matrix)
    except np.linalg.LinAlgError:
        solve_mass_matrix(name, mass_matrix, efforts)  # raises the error that says what to look for
        raise
    free = np.linalg.solve(L, efforts)
    Y = np.linalg.solve(L, jacobian.T)
    if directions is None:
        U, values, V = np.linalg.svd(Y, full_matrices=False)
        rank = int(np.count_nonzero(values > SINGULAR * values[0])) if values.size else 0
        U, values, V = U[:, :rank], values[:rank], V[:rank]
        change = (V @ target) / values - U.T @ free
        forces = V.T @ (change / values)
        z = free + U @ change
    else:
        W = np.linalg.solve(L, directions.T)
        forces, _, rank, _ = np.linalg.lstsq(Y.T @ W, target - Y.T @ free, rcond=SINGULAR)
        z = free + W @ forces
    x = np.linalg.solve(L.T, z)
    violation = float(np.max(np.abs(jacobian @ x - target), initial=0.0))
    return ConstrainedSolution(x, forces, int(rank), violation)
