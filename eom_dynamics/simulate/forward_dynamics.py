# SPDX-License-Identifier: Apache-2.0
"""Forward dynamics: the accelerations that joint efforts cause."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..dynamics import Dynamics
from ..exceptions import RobotDescriptionError

Array = NDArray[np.float64]


def forward_dynamics(
    dynamics: Dynamics,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike,
    *,
    wrench: Sequence[ArrayLike] = (),
    added_inertia: ArrayLike = 0.0,
) -> Array:
    """Joint accelerations qdd from (M + diag(added_inertia)) qdd = tau - C qd - Q_grav - Q_ext, equation (27).

    Args:
        dynamics: of the robot.
        q, qd, tau: joint variables, their rates and the joint efforts, each (n,) or (N, n); rad or m, per s, N m or N.
        wrench: (W,) as of :meth:`Dynamics.inverse_dynamics`.
        added_inertia: on the diagonal of the mass matrix, such as of rotors that turn with their links; number, (n,) or
            (N, n), kg m² or kg.

    Returns:
        qdd: (n,) or (N, n), rad/s² or m/s².

    Raises:
        StateError: an argument has the wrong shape or is not finite.
        RobotDescriptionError: the mass matrix is not positive definite; see :func:`accelerations`.
    """
    q = np.asarray(q, dtype=float)
    added = np.broadcast_to(added_inertia, q.shape)[..., np.newaxis, :]
    mass_matrix = dynamics.mass_matrix(q) + np.eye(dynamics.robot.n) * added
    bias = dynamics.effort(q, qd, np.zeros_like(q), wrench=wrench)
    return accelerations(dynamics.robot.name, mass_matrix, np.asarray(tau, dtype=float) - bias)


def accelerations(robot: str, inertia: Array, efforts: Array) -> Array:
    """The accelerations (…, k) that efforts (…, k) cause against an inertia matrix (…, k, k).

    Raises:
        RobotDescriptionError: the matrix is not positive definite: the robot of this name has a body that no real one
            has, or a chain without mass at its end.
    """
    try:
        # Cholesky and not LU: it is the test that the matrix is one of inertia.
        lower = np.linalg.cholesky(inertia)
    except np.linalg.LinAlgError:
        raise RobotDescriptionError(
            f"{robot}: its mass matrix is not positive definite, so that efforts do not say how it moves; look for a "
            "body that no real one is like in mass, center_of_mass and inertia, or for one without mass at an end"
        ) from None
    right = efforts[..., np.newaxis]
    solved: Array = np.linalg.solve(np.swapaxes(lower, -1, -2), np.linalg.solve(lower, right))[..., 0]
    return solved
