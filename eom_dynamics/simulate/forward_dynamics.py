# SPDX-License-Identifier: Apache-2.0
"""Forward dynamics: the accelerations that joint efforts cause."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..dynamics import Dynamics

Array = NDArray[np.float64]


def forward_dynamics(
    dynamics: Dynamics, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, *, added_inertia: ArrayLike = 0.0
) -> Array:
    """Joint accelerations qdd from (M(q) + diag(added_inertia)) qdd = tau - C(q, qd) qd - Q_grav, equation (27).

    Args:
        dynamics: of the robot.
        q, qd, tau: joint variables, their rates and the joint efforts, each (n,) or (N, n); rad or m, per s, N m or N.
        added_inertia: on the diagonal of the mass matrix, such as of rotors that turn with their links; number, (n,) or
            (N, n), kg m² or kg.

    Returns:
        qdd: (n,) or (N, n), rad/s² or m/s².

    Raises:
        StateError: an argument has the wrong shape or is not finite.
        numpy.linalg.LinAlgError: the mass matrix is not positive definite: the robot has a body that no real one has,
            or a chain without mass at its end.
    """
    q = np.asarray(q, dtype=float)
    added = np.broadcast_to(added_inertia, q.shape)[..., np.newaxis, :]
    mass_matrix = dynamics.mass_matrix(q) + np.eye(dynamics.robot.n) * added
    bias = dynamics.effort(q, qd, np.zeros_like(q))
    # Cholesky and not LU: it is the test that the matrix is one of inertia.
    lower = np.linalg.cholesky(mass_matrix)
    right = (np.asarray(tau, dtype=float) - bias)[..., np.newaxis]
    qdd: Array = np.linalg.solve(np.swapaxes(lower, -1, -2), np.linalg.solve(lower, right))[..., 0]
    return qdd
