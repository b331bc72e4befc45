# SPDX-License-Identifier: Apache-2.0
"""The Coriolis tensor: Christoffel symbols of the first kind, by three routes that agree.

    c_ijk = (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) / 2,    C_ij = sum over k of c_ijk qd_k

The slice c_i of joint i is the matrix C_k of the lectures of A. De Luca, whose quadratic form is the velocity term:
(C qd)_i = qd' c_i qd. :meth:`eom_dynamics.Dynamics.coriolis_tensor` is the compiled one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import choice
from ..arrays import AnyArray
from ..codegen.backends import require_robot
from ..robot import Robot
from ..states import joint_vectors
from .closed_form import equations_of_motion
from .jacobian_sums import christoffel_symbols, coriolis_tensor_from_jacobians


def coriolis_tensor(robot: Robot, q: ArrayLike, route: str = "kernel") -> AnyArray:
    """Christoffel symbols c_ijk (n, n, n), symmetric in j and k.

    Args:
        robot: the robot.
        q: joint variables (n,), rad or m.
        route: ``kernel`` (the Coriolis matrix for unit velocities), ``mass_matrix`` (partial derivatives of M) or
            ``jacobians`` (partial derivatives of the Jacobians of the bodies). None uses finite differences.

    Raises:
        StateError: q has the wrong shape or is not finite.
        StateError: the route is unknown.
        TypeError: ``robot`` is not a Robot.
    """
    require_robot(robot)
    choice(route, "route", ROUTES)
    (q,) = joint_vectors(robot.n, q)
    return ROUTES[route](robot, q)


def _from_kernel(robot: Robot, q: AnyArray) -> AnyArray:
    """C is linear in qd: c_ijk is C_ij for the unit velocity of joint k."""
    return np.stack([equations_of_motion(robot, q, unit).C[0] for unit in np.eye(robot.n, dtype=int)], axis=-1)


def _from_mass_matrix(robot: Robot, q: AnyArray) -> AnyArray:
    """The time derivative of M at the unit velocity of joint k is dM/dq_k."""
    rest = np.zeros(robot.n, dtype=int)
    dM = [equations_of_motion(robot, q, unit, rest).M[1] for unit in np.eye(robot.n, dtype=int)]
    return christoffel_symbols(np.stack(dM, axis=-1))


ROUTES: Mapping[str, Callable[[Robot, AnyArray], AnyArray]] = MappingProxyType(
    {"kernel": _from_kernel, "mass_matrix": _from_mass_matrix, "jacobians": coriolis_tensor_from_jacobians}
)
"""Routes to the Coriolis tensor, by name."""
