# SPDX-License-Identifier: Apache-2.0
"""Equations of motion of a floating base in centre-of-mass coordinates, which make its mass matrix block-diagonal.

In place of the twist V0 of the base stand the average angular velocity w of the whole robot and the velocity cd of its
centre of mass, both along the inertial axes:

    xi = (w, cd, qd) = T nu,    h = (I_c w, m cd),    T_kin = (w' I_c w + m |cd|² + qd' M_q qd) / 2

with the centroidal momentum h and the inertia I_c of the robot about its centre of mass, as if its joints were locked.
This is König's theorem for a robot: its kinetic energy is that of the centre of mass, of the average rotation, and of
the joints relative to both. Gravity acts on the centre of mass alone.

G. Garofalo, B. Henze, J. Englsberger, C. Ott, "On the inertially decoupled structure of the floating base robot
dynamics", IFAC-PapersOnLine 48-1 (2015). The average angular velocity is in general not the rate of an orientation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import lie
from ..arrays import Array, times

_TWIST = 6


@dataclass(frozen=True, eq=False)
class CenterOfMassCoordinates:
    """Equations of motion in xi = T nu, in one state or N: mass_matrix xid + coriolis_matrix xi + gravity = T'^-1 tau.

    Attributes:
        T: (6 + n, 6 + n) or (N, 6 + n, 6 + n), from nu to xi = (w, cd, qd).
        Td: its time derivative: xid = T nud + Td nu.
        mass_matrix: T'^-1 M T^-1: the blocks I_c (3, 3), m times the identity (3, 3) and M_q (n, n) on its diagonal,
            zeros elsewhere up to rounding.
        coriolis_matrix: T'^-1 (C - M T^-1 Td) T^-1; the mass matrix's rate minus twice this is skew-symmetric.
        gravity: T'^-1 Q_grav (6 + n,) or (N, 6 + n): (0, -m g), and efforts against passive joints.
    """

    T: Array
    Td: Array
    mass_matrix: Array
    coriolis_matrix: Array
    gravity: Array


def center_of_mass_coordinates(M: Array, C: Array, gravity: Array, pose: Array, nu: Array) -> CenterOfMassCoordinates:
    """Terms of a floating base in coordinates of the centre of mass.

    Args:
        M: mass matrix (…, 6 + n, 6 + n), positive definite.
        C: Coriolis matrix with dM/dt = C + C', as :meth:`.FloatingBase.coriolis_matrix` has it.
        gravity: Q_grav (…, 6 + n).
        pose: of the base in the inertial frame (…, 4, 4).
        nu: (V0, qd) (…, 6 + n).
    """
    Md = C + np.swapaxes(C, -1, -2)
    top, top_rate, mass = M[..., :_TWIST, :], Md[..., :_TWIST, :], M[..., 5:6, 5:6]
    # Twist of the base at the same momentum with all joints locked.
    locked = np.linalg.solve(top[..., :_TWIST], top)
    locked_rate = np.linalg.solve(top[..., :_TWIST], top_rate - top_rate[..., :_TWIST] @ locked)
    R, turning = pose[..., :3, :3], lie.skew(nu[..., :3])
    T, Td = np.zeros((2, *M.shape))
    T[..., _TWIST:, _TWIST:] = np.eye(M.shape[-1] - _TWIST)
    for rows, body, rate in (
        (slice(0, 3), locked[..., :3, :], locked_rate[..., :3, :]),
        (slice(3, 6), top[..., 3:, :] / mass, top_rate[..., 3:, :] / mass),
    ):
        T[..., rows, :], Td[..., rows, :] = R @ body, R @ (turning @ body + rate)
    inverse = np.linalg.inv(T)
    transposed = np.swapaxes(inverse, -1, -2)
    return CenterOfMassCoordinates(
        T,
        Td,
        transposed @ M @ inverse,
        transposed @ (C - M @ inverse @ Td) @ inverse,
        times(transposed, gravity),
    )
