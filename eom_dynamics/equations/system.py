# SPDX-License-Identifier: Apache-2.0
"""Kinematics of all bodies in stacked body-fixed twists: block matrices A, X, a, S, J, U and their time derivatives.

Equation numbers refer to A. Müller and S. Kumar, "Closed form time derivatives of the equations of motion of rigid
body systems", Multibody System Dynamics 53 (2021). The paper has first and second derivatives; with S = A a, those of
any order follow from

    dA/dt = S - S A,    dJ/dt = -S J,    dU/dt = -S U.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .. import lie
from ..arrays import AnyArray
from ..codegen.backends import require_robot
from ..exceptions import StateError
from ..jet import Jet, leibniz
from ..robot import Robot
from ..states import joint_vectors


@dataclass(frozen=True)
class BodyTwists:
    """Twists of N bodies and their Jacobian in one state, as jets of order m.

    Attributes:
        S: A a (6N, 6N), equations (17), (20); all time derivatives follow from it.
        J: system Jacobian (6N, n), equation (16); V = J qd.
        U: (6N, 6), maps a twist of the base to twists of the bodies, equation (33).
        V: stacked body-fixed twists (6N,), equation (15).
        b: block-diagonal matrix of ad_V (6N, 6N), equation (30).
    """

    S: Jet
    J: Jet
    U: Jet
    V: Jet
    b: Jet


@dataclass(frozen=True)
class SystemMatrices(BodyTwists):
    """Block matrices of a robot with N bodies and n independent joint variables in one state, named as in the paper.

    A, a, S, J, U, V and b are jets: index k is the k-th time derivative, A[1] is dA/dt.

    Attributes:
        A: (6N, 6N), Ad from body j to body i at block (i, j), equation (17); its rate is equation (26).
        X: joint screws (6N, n), constant, equation (17); mimic joints have the screws of theirs times their ratios.
        a: block-diagonal matrix of qd_i ad_X_i (6N, 6N), equation (20).
        D: (6N, 6N), Ad of each step at block (i, parent of i), equation (24); A = (I - D)^-1, equation (23).
        S, J, U, V, b: as of :class:`BodyTwists`; rates of J = A X and V are equations (19) and (22), without gravity.
    """

    A: Jet
    X: AnyArray
    a: Jet
    D: AnyArray


def system_matrices(robot: Robot, q: ArrayLike, *rates: ArrayLike) -> SystemMatrices:
    """Block matrices of the kinematics of all bodies, equations (15)-(26), with time derivatives.

    Args:
        robot: the robot.
        q: joint variables (n,), rad or m.
        rates: qd, qdd, …, as q, at least qd. m rates give m - 1 time derivatives of each matrix.

    Raises:
        StateError: a vector has the wrong length or is not finite, or qd is missing.
        TypeError: ``robot`` is not a Robot.
    """
    require_robot(robot)
    if not rates:
        raise StateError("system_matrices needs at least q and qd")
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
    return SystemMatrices(S=S, J=J, U=U, V=V, b=b, A=A, X=X, a=a, D=parent_matrix(robot, steps))


def screw_matrix(robot: Robot) -> AnyArray:
    """Constant block-diagonal matrix X (6N, N) of the joint screws, equation (17)."""
    X = np.zeros((6 * len(robot.joints), len(robot.joints)))
    for i, joint in enumerate(robot.joints):
        X[6 * i : 6 * i + 6, i] = joint.screw
    return X


def tool_matrix(robot: Robot, *, with_base: bool = False) -> AnyArray:
    """Constant matrix (6N, 6 × number of tools) that maps wrenches at the tools to wrenches of the bodies.

    With six rows of the base before the others on request.
    """
    dtype = np.result_type(float, *(tool.pose for tool in robot.tools))
    T = np.zeros((6 * len(robot.joints) + 6, 6 * len(robot.tools)), dtype=dtype)
    for k, tool in enumerate(robot.tools):
        T[6 * tool.joint + 6 : 6 * tool.joint + 12, 6 * k : 6 * k + 6] = lie.Ad(lie.inverse(tool.pose)).T
    return T if with_base else T[6:]


def inertia_matrix(robot: Robot) -> AnyArray:
    """Constant block-diagonal matrix M_b (6N, 6N) of the body inertias, equations (27), (31)."""
    return block_diagonal([joint.spatial_inertia for joint in robot.joints])


def joint_steps(robot: Robot, q: AnyArray) -> list[AnyArray]:
    """Ad (6, 6) of each joint, which maps twists from the parent's frame to the body's, for joint variables (n,)."""
    E, e = robot.coupling
    return [
        lie.Ad(lie.inverse(joint.reference_pose @ lie.exp(joint.screw, x)))
        for joint, x in zip(robot.joints, E @ q + e, strict=True)
    ]


def parent_matrix(robot: Robot, steps: Sequence[AnyArray]) -> AnyArray:
    """D (6N, 6N) of A = (I - D)^-1, equation (24): each of the steps at block (i, parent of i)."""
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
    """(6N, 6): maps a twist of the base to the bodies that are attached to it."""
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
    """Jet of a matrix whose rate is -S times itself: J, equation (19), and U."""
    derivatives = [value]
    for k in range(len(S) - 1):
        derivatives.append(-leibniz(S, derivatives, k))
    return Jet(derivatives)


def ad_blocks(V: AnyArray) -> AnyArray:
    """Block-diagonal matrix (6N, 6N) of ad of each of N stacked twists (6N,), equation (30)."""
    return block_diagonal([lie.ad(twist) for twist in V.reshape(-1, 6)])


def block_diagonal(blocks: Sequence[AnyArray]) -> AnyArray:
    """Block-diagonal matrix of square blocks of any sizes."""
    size = sum(map(len, blocks))
    matrix, start = np.zeros((size, size), dtype=np.result_type(*blocks)), 0
    for block in blocks:
        end = start + len(block)
        matrix[start:end, start:end] = block
        start = end
    return matrix
