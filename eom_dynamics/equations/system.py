# SPDX-License-Identifier: Apache-2.0
"""Block matrices of all bodies in stacked body-fixed twists, A, X, a, S, J, U, M_b and C_b, and their time derivatives.

Equation numbers refer to A. Müller and S. Kumar, "Closed form time derivatives of the equations of motion of rigid body
systems", Multibody System Dynamics 53 (2021), as numbered in the preprint, arXiv:2507.11076. The paper has first and
second derivatives; with S = A a, derivatives of any order follow from

    dA/dt = S - S A,    dJ/dt = -S J,    dU/dt = -S U.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .. import lie
from ..arguments import choice, joint_vectors
from ..arrays import AnyArray
from ..codegen.backends import require_robot
from ..exceptions import StateError
from ..jet import Jet, leibniz
from ..robot import Robot
from .body_matrices import CORIOLIS_FORMS, BodyMatrices, ad_blocks, block_diagonal


@dataclass(frozen=True)
class SystemMatrices(BodyMatrices):
    """Block matrices of a robot with N bodies and n independent joint variables in one state, named as in the paper.

    A, a, S, J, U, V and b are jets: index k is the k-th time derivative, A[1] is dA/dt. M_b and C_b are the matrices
    between two Jacobians in the k-th derivatives of M and C; :attr:`M_b_rates` and :attr:`C_b_rates` are their time
    derivatives. They are computed when first read.

    Attributes:
        A: (6N, 6N), Ad from body j to body i at block (i, j), equation (17); its rate is equation (26).
        X: joint screws (6N, n), constant, equation (17). A mimic joint's screw, times its ratio, is in the column of
            its leader.
        a: block-diagonal matrix of qd_i ad_X_i (6N, 6N), equation (20).
        D: (6N, 6N), Ad of each step at block (i, parent of i), equation (24); A = (I - D)^-1, equation (23).
        S: A a (6N, 6N), equations (17), (20); all time derivatives follow from it.
        J: system Jacobian A X (6N, n), equation (16); its rate is equation (19).
        U: (6N, 6), maps a twist of the base to twists of the bodies, equation (33).
        V: stacked body-fixed twists (6N,), equation (15); their rate, without gravity, is equation (22).
        b: block-diagonal matrix of ad_V (6N, 6N), equation (30).
        inertia: block-diagonal matrix of the body inertias (6N, 6N), constant, equations (28), (31).
        coriolis: form of C_b.
    """

    A: Jet
    X: AnyArray
    a: Jet
    D: AnyArray


def system_matrices(robot: Robot, q: ArrayLike, *rates: ArrayLike, coriolis: str = "paper") -> SystemMatrices:
    """Block matrices of all bodies, equations (15)-(31), (37)-(42), (48)-(60), with time derivatives.

    Args:
        robot: the robot.
        q: joint variables (n,), rad or m.
        rates: qd, qdd, …, as q, at least qd. m rates give m - 1 time derivatives of each matrix.
        coriolis: form of C_b, as for :func:`.equations_of_motion`, whose default ``christoffel`` serves control, as
            dM/dt - 2 C is skew-symmetric. The default is the form of equation (29) of the paper, as for other matrices.

    >>> import numpy as np, eom_dynamics as eom
    >>> robot, q, qd, qdd = eom.load_robot("planar_2r"), [0.3, -0.5], [0.2, 0.1], [1.0, -2.0]
    >>> system = eom.equations.system_matrices(robot, q, qd, qdd)
    >>> rates = eom.equations_of_motion(robot, q, qd, qdd, coriolis="paper")
    >>> J = system.J[0]
    >>> np.allclose(J.T @ system.M_b[1] @ J, rates.M[1]), np.allclose(J.T @ system.C_b[1] @ J, rates.C[1])
    (True, True)

    Raises:
        StateError: a vector has the wrong length or is not finite, qd is missing, or the form of C_b is unknown.
        TypeError: ``robot`` is not a Robot.
    """
    require_robot(robot)
    if not rates:
        raise StateError("system_matrices needs at least q and qd")
    choice(coriolis, "coriolis", CORIOLIS_FORMS)
    q, *derivatives = joint_vectors(robot.n, q, *rates)
    E, _ = robot.coupling
    speeds = [E @ rate for rate in derivatives]
    steps = joint_steps(robot, q)
    A0, X = ancestors(robot, steps), screw_matrix(robot) @ E
    a = Jet(
        [block_diagonal([joint.ad_screw * r for joint, r in zip(robot.joints, rate, strict=True)]) for rate in speeds]
    )
    A, S = _transport(A0, a)
    J = _rates_by(S, A0 @ X)
    U = _rates_by(S, A0 @ base_matrix(robot, steps))
    V = J @ Jet(derivatives)
    b = Jet([ad_blocks(V_k) for V_k in V])
    D, inertia = parent_matrix(robot, steps), inertia_matrix(robot)
    return SystemMatrices(S=S, J=J, U=U, V=V, b=b, inertia=inertia, coriolis=coriolis, A=A, X=X, a=a, D=D)


def screw_matrix(robot: Robot) -> AnyArray:
    """Constant block-diagonal matrix X (6N, N) of the joint screws, equation (17)."""
    X = np.zeros((6 * len(robot.joints), len(robot.joints)))
    for i, joint in enumerate(robot.joints):
        X[6 * i : 6 * i + 6, i] = joint.screw
    return X


def tool_matrix(robot: Robot, *, with_base: bool = False) -> AnyArray:
    """Constant matrix (6N, 6 × number of tools) that maps wrenches at the tools to wrenches of the bodies.

    On request, six rows of the base come first.
    """
    dtype = np.result_type(float, *(tool.pose for tool in robot.tools))
    T = np.zeros((6 * len(robot.joints) + 6, 6 * len(robot.tools)), dtype=dtype)
    for k, tool in enumerate(robot.tools):
        T[6 * tool.joint + 6 : 6 * tool.joint + 12, 6 * k : 6 * k + 6] = lie.Ad(lie.inverse(tool.pose)).T
    return T if with_base else T[6:]


def inertia_matrix(robot: Robot) -> AnyArray:
    """Constant block-diagonal matrix M_b (6N, 6N) of the body inertias, equations (28), (31)."""
    return block_diagonal([joint.spatial_inertia for joint in robot.joints])


def joint_steps(robot: Robot, q: AnyArray) -> list[AnyArray]:
    """Ad (6, 6) of each joint, from the parent's frame to the body's frame, for joint variables (n,)."""
    E, e = robot.coupling
    return [
        lie.Ad(lie.inverse(joint.reference_pose @ lie.exp(joint.screw, x)))
        for joint, x in zip(robot.joints, E @ q + e, strict=True)
    ]


def parent_matrix(robot: Robot, steps: Sequence[AnyArray]) -> AnyArray:
    """D (6N, 6N) of A = (I - D)^-1, equation (24): the step of body i at block (i, parent of i)."""
    D = np.zeros((6 * len(robot.joints), 6 * len(robot.joints)), dtype=steps[0].dtype)
    for i, joint in enumerate(robot.joints):
        if joint.parent >= 0:
            D[6 * i : 6 * i + 6, 6 * joint.parent : 6 * joint.parent + 6] = steps[i]
    return D


def ancestors(robot: Robot, steps: Sequence[AnyArray]) -> AnyArray:
    """A (6N, 6N), equation (17): block (i, j) maps the twist of body j, an ancestor of body i, to body i.

    A = (I - D)^-1 with D of :func:`parent_matrix`; rows are filled from the base outward.
    """
    A = block_diagonal([np.eye(6, dtype=int)] * len(robot.joints)).astype(steps[0].dtype)
    for i, joint in enumerate(robot.joints):
        if joint.parent >= 0:
            row, parent = slice(6 * i, 6 * i + 6), slice(6 * joint.parent, 6 * joint.parent + 6)
            A[row, : row.start] = steps[i] @ A[parent, : row.start]
    return A


def base_matrix(robot: Robot, steps: Sequence[AnyArray]) -> AnyArray:
    """Map (6N, 6) from a base twist to the bodies attached to the base."""
    rows = np.zeros((6 * len(robot.joints), 6), dtype=steps[0].dtype)
    for i, joint in enumerate(robot.joints):
        if joint.parent < 0:
            rows[6 * i : 6 * i + 6] = steps[i]
    return rows


def _transport(A0: AnyArray, a: Jet) -> tuple[Jet, Jet]:
    """Jets of A and of S = A a, by Leibniz' rule on S = A a and dA/dt = S - S A, equation (26)."""
    A, S = [A0], [A0 @ a[0]]
    for k in range(1, len(a)):
        A.append(S[k - 1] - leibniz(S, A, k - 1))
        S.append(leibniz(A, a, k))
    return Jet(A), Jet(S)


def _rates_by(S: Jet, value: AnyArray) -> Jet:
    """Jet of a matrix with rate -S times itself: J, equation (19), and U."""
    derivatives = [value]
    for k in range(len(S) - 1):
        derivatives.append(-leibniz(S, derivatives, k))
    return Jet(derivatives)
