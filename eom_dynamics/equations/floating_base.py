# SPDX-License-Identifier: Apache-2.0
"""The equations of motion of a floating base in closed form, with time derivatives of any order.

With the body-fixed twist V0 of the base and nu = (V0, qd), the twists of all bodies (the base first) are V = H nu,
where

    H = [ I  0 ]    dH/dt = -S H,    S = [ 0  0   ]
        [ U  J ]                         [ 0  S_J ]

has the J, U and S of the fixed base (:mod:`.system`): S depends on the joints only. With H instead of J, and b of the
twists including base motion, the terms are as in :mod:`.closed_form`,

    M(q) nud + C(q, nu) nu + Q_grav(C0, q) + Q_ext(q, t) = tau,

and every time derivative is the same step. Gravity is an acceleration G = (0; -R0' g) of the base, which turns in its
frame: Q_grav = H' M_b [I; U] G, d/dt(R0' g) = R0' g x w.

A. Müller and S. Kumar, "Closed form time derivatives of the equations of motion of rigid body systems", Multibody
System Dynamics 53 (2021), for the fixed base.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .. import lie
from ..arguments import checked_pose, choice, state_arrays, wrenches
from ..arrays import AnyArray, Array, times
from ..codegen.backends import require_robot
from ..exceptions import StateError
from ..jet import Jet, leibniz
from ..robot import Robot
from ..robot.task_space import TWIST
from .body_matrices import CORIOLIS_FORMS, BodyMatrices, ad_blocks, block_diagonal
from .closed_form import EquationsOfMotion, external_forces, passive_forces
from .system import system_matrices, tool_matrix


@dataclass(frozen=True)
class FloatingEquationsOfMotion(EquationsOfMotion):
    """Terms of the equations of motion of a floating base in one state, or N; index k is the k-th time derivative.

    Attributes:
        M: mass matrix (6 + n, 6 + n), of a batch (N, 6 + n, 6 + n).
        C: Coriolis matrix, in the requested form.
        gravity: Q_grav (6 + n,) or (N, 6 + n), with the efforts against constant loads and parallel springs.
        external: Q_ext (6 + n,) or (N, 6 + n).
        rates: nu, nud, …, in this state.
    """

    names = ("q", "nu", "nud", "nudd", "nuddd")


def floating_equations_of_motion(
    robot: Robot,
    pose: ArrayLike,
    q: ArrayLike,
    *rates: ArrayLike,
    wrench: Sequence[ArrayLike] = (),
    coriolis: str = "christoffel",
) -> FloatingEquationsOfMotion:
    """M, C, Q_grav and Q_ext of a robot on a floating base, with their time derivatives.

    ``efforts(next_rate)`` of the result returns wrench on the base and joint efforts (6 + n,), with derivatives.

    Args:
        robot: the robot; ``robot.base`` is the inertia of its base, its gravity is along the inertial axes.
        pose: pose of the base in the inertial frame, (4, 4) or (N, 4, 4), m. A batch is computed state by state.
        q: joint variables (n,) or (N, n), rad or m.
        rates: nu, nud, …, each (6 + n,) or (N, 6 + n), at least nu. m rates give m - 1 time derivatives.
        wrench, coriolis: as for :func:`.equations_of_motion`. The form ``christoffel`` is linear in nu, and dM/dt - 2 C
            is skew-symmetric.

    Raises:
        StateError: an array has the wrong shape or is not finite, a batch is empty, or the pose is invalid.
        StateError: nu is missing, or the form of the Coriolis matrix is unknown.
        TypeError: ``robot`` is not a Robot.
    """
    choice(coriolis, "coriolis", CORIOLIS_FORMS)
    states, samples = floating_states("floating_equations_of_motion", robot, pose, q, rates)
    at_tools = wrenches(wrench, len(rates), robot.wrench_shape, samples)
    if not samples:
        return _equations(robot, states[0], states[1], states[2:], at_tools, coriolis)
    rows = [
        _equations(robot, states[0][i], states[1][i], [x[i] for x in states[2:]], [W[i] for W in at_tools], coriolis)
        for i in range(*samples)
    ]
    return FloatingEquationsOfMotion.stacked(rows)


def floating_states(
    function: str, robot: Robot, pose: ArrayLike, q: ArrayLike, rates: Sequence[ArrayLike]
) -> tuple[list[Array], tuple[int, ...]]:
    """Pose, q, nu, nud, … of one state or a batch, and () or (N,); a StateError names the function."""
    require_robot(robot)
    if not rates:
        raise StateError(f"{function} needs at least pose, q and nu")
    names = ["pose", "q", *("nu" + k * "d" for k in range(len(rates)))]
    shapes = [(4, 4), (robot.n,), *[(TWIST + robot.n,)] * len(rates)]
    states, samples = state_arrays((pose, q, *rates), names, shapes)
    if samples == (0,):
        raise StateError(f"pose has no states: its shape is {states[0].shape}")
    checked_pose(states[0], "pose")
    return states, samples


def _equations(
    robot: Robot, pose: AnyArray, q: AnyArray, rates: Sequence[AnyArray], wrench: Sequence[AnyArray], coriolis: str
) -> FloatingEquationsOfMotion:
    body = floating_system(robot, q, rates, coriolis)
    M = body.projected(body.M_b, body.J[0])
    G = gravity_acceleration(pose[:3, :3].T @ robot.gravity, Jet([rate[:3] for rate in rates]))
    T = tool_matrix(robot, with_base=True)
    held = [np.append(np.zeros(TWIST), x) for x in passive_forces(robot, q, [rate[TWIST:] for rate in rates])]
    return FloatingEquationsOfMotion(
        M=M,
        C=body.projected(body.C_b, body.J[0]),
        gravity=tuple(leibniz([M_k[:, :TWIST] for M_k in M], G, k) + held[k] for k in range(len(G))),
        external=external_forces(body, Jet([T @ np.ravel(W) for W in wrench])),
        rates=tuple(rates),
    )


def floating_system(robot: Robot, q: AnyArray, rates: Sequence[AnyArray], coriolis: str = "paper") -> BodyMatrices:
    """Matrices for joint variables ``q`` (n,) and the rates nu, nud, … (6 + n,), with H as J."""
    fixed = system_matrices(robot, q, *(rate[TWIST:] for rate in rates))
    zero = np.zeros((TWIST, TWIST))
    top = np.eye(TWIST, TWIST + robot.n)
    H = Jet(
        [
            np.vstack([top if k == 0 else 0 * top, np.hstack([U, J])])
            for k, (U, J) in enumerate(zip(fixed.U, fixed.J, strict=True))
        ]
    )
    V = H @ Jet(rates)
    b = Jet([ad_blocks(V_k) for V_k in V])
    S = Jet([block_diagonal([zero, S_k]) for S_k in fixed.S])
    U = Jet([H_k[:, :TWIST] for H_k in H])
    inertia = block_diagonal([robot.base.spatial_inertia, fixed.inertia])
    return BodyMatrices(S=S, J=H, U=U, V=V, b=b, inertia=inertia, coriolis=coriolis)


def gravity_acceleration(gravity: AnyArray, w: Jet) -> Jet:
    """G = (0; -R0' g) and its time derivatives, for R0' g (3,) and the angular velocity of the base in its frame."""
    known = [gravity]
    for k in range(len(w) - 1):
        known.append(leibniz(known, w, k, np.cross))
    return Jet([np.concatenate([np.zeros(3), -g]) for g in known])


@dataclass(frozen=True, eq=False)
class CenterOfMassCoordinates:
    """Equations of motion in center-of-mass coordinates, mass_matrix xid + coriolis_matrix xi + gravity = T'^-1 tau.

    They make the mass matrix block-diagonal. The twist V0 of the base is replaced by the average angular velocity w of
    the whole robot and the velocity cd of its center of mass, both along the inertial axes:

        xi = (w, cd, qd) = T nu,    h = (I_c w, m cd),    T_kin = (w' I_c w + m cd' cd + qd' M_q qd) / 2

    with the centroidal momentum h and the inertia I_c of the robot about its center of mass with locked joints. This is
    König's theorem for a robot: its kinetic energy has three terms, for the center of mass, the average rotation, and
    the joints relative to both. Gravity acts on the center of mass only.

    G. Garofalo, B. Henze, J. Englsberger, C. Ott, "On the inertially decoupled structure of the floating base robot
    dynamics", IFAC-PapersOnLine 48-1 (2015). The average angular velocity is in general not the rate of an orientation.

    Attributes:
        T: maps nu to xi = (w, cd, qd), (6 + n, 6 + n) or (N, 6 + n, 6 + n).
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
    """Terms of a floating base in center-of-mass coordinates.

    Args:
        M: mass matrix (…, 6 + n, 6 + n), positive definite.
        C: Coriolis matrix with dM/dt = C + C', as returned by :meth:`.FloatingBase.coriolis_matrix`.
        gravity: Q_grav (…, 6 + n).
        pose: pose of the base in the inertial frame (…, 4, 4).
        nu: (V0, qd) (…, 6 + n).
    """
    Md = C + np.swapaxes(C, -1, -2)
    top, top_rate, mass = M[..., :TWIST, :], Md[..., :TWIST, :], M[..., 5:6, 5:6]
    # Twist of the base at the same momentum with all joints locked.
    locked = np.linalg.solve(top[..., :TWIST], top)
    locked_rate = np.linalg.solve(top[..., :TWIST], top_rate - top_rate[..., :TWIST] @ locked)
    R, turning = pose[..., :3, :3], lie.skew(nu[..., :3])
    T, Td = np.zeros((2, *M.shape))
    T[..., TWIST:, TWIST:] = np.eye(M.shape[-1] - TWIST)
    for rows, body, rate in (
        (slice(0, 3), locked[..., :3, :], locked_rate[..., :3, :]),
        (slice(3, 6), top[..., 3:, :] / mass, top_rate[..., 3:, :] / mass),
    ):
        T[..., rows, :], Td[..., rows, :] = R @ body, R @ (turning @ body + rate)
    inverse = np.linalg.inv(T)
    transposed = np.swapaxes(inverse, -1, -2)
    return CenterOfMassCoordinates(
        T, Td, transposed @ M @ inverse, transposed @ (C - M @ inverse @ Td) @ inverse, times(transposed, gravity)
    )
