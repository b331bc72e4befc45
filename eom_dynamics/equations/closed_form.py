# SPDX-License-Identifier: Apache-2.0
"""The equations of motion in closed form, with time derivatives of any order.

    M(q) qdd + C(q, qd) qd + Q_grav(q) + Q_ext(q, t) = tau

Every term is a constant or kinematic kernel K between two matrices L, R whose rates are -S L, -S R, so that

    d/dt (L' K R) = L' (dK/dt - S' K - K S) R.

This one step (:func:`derivative_step`), applied k times, is the k-th derivative of every term; its first two
are equations (35)-(60) of A. Müller and S. Kumar, "Closed form time derivatives of the equations of motion of
rigid body systems", Multibody System Dynamics 53 (2021), which all equation numbers refer to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import lie
from ..jet import Jet
from ..robot import Robot
from ..states import joint_vectors, wrenches
from .system import System, inertia_matrix, system, tool_matrix

Array = NDArray[Any]


@dataclass(frozen=True)
class EquationsOfMotion:
    """The terms of the equations of motion in one state; index k is the k-th time derivative.

    Attributes:
        M: mass matrix (n, n).
        C: Coriolis matrix (n, n), by the kernel that was asked for.
        gravity: Q_grav (n,), the effort that holds the robot against gravity.
        external: Q_ext (n,), the effort that exerts the tool wrench.
        rates: qd, qdd, …, the derivatives of the state that the equations were made for.
    """

    M: tuple[Array, ...]
    C: tuple[Array, ...]
    gravity: tuple[Array, ...]
    external: tuple[Array, ...]
    rates: tuple[Array, ...]

    @property
    def order(self) -> int:
        """Highest time derivative of the matrices."""
        return len(self.M) - 1

    def efforts(self, next_rate: ArrayLike) -> tuple[Array, ...]:
        """tau and its time derivatives up to ``order``, each (n,), equations (27), (35), (45).

        Args:
            next_rate: the next derivative of the joint variables (n,), which the matrices do not depend
                on: qdd for order 0, qddd for order 1, qdddd for order 2.
        """
        rates = (*self.rates, *joint_vectors(len(self.rates[0]), next_rate, first=len(self.rates) + 1))
        return tuple(
            self.gravity[k]
            + self.external[k]
            + sum(comb(k, j) * (self.M[j] @ rates[k - j + 1] + self.C[j] @ rates[k - j]) for j in range(k + 1))
            for k in range(self.order + 1)
        )


def equations_of_motion(
    robot: Robot,
    q: ArrayLike,
    *rates: ArrayLike,
    wrench: Sequence[ArrayLike] = (),
    coriolis: str = "christoffel",
) -> EquationsOfMotion:
    """M, C, Q_grav and Q_ext with their time derivatives, equations (27)-(60).

    Args:
        robot: the robot.
        q: joint variables (n,), rad or m.
        rates: their time derivatives qd, qdd, …, (n,) each, at least qd. With m of them the matrices come
            with m - 1 derivatives: (q, qd, qdd, qddd) gives M, dM/dt and d²M/dt².
        wrench: the wrench (6,) that the robot exerts on its surroundings at its tool, moment first, in the
            tool's frame, N m and N, and as many of its time derivatives as there are; what is not given is
            zero. A robot with k > 1 tools has wrenches (k, 6).
        coriolis: which of the matrices C with the same C qd: ``christoffel`` (Christoffel symbols; dM/dt - 2 C
            is skew-symmetric), ``skew`` (equations (61)-(64); dM/dt - 2 C is skew-symmetric) or ``paper``
            (equation (29)).

    Raises:
        StateError: a vector has the wrong length or is not finite.
        ValueError: there is no Coriolis kernel of that name.
    """
    if not rates:
        raise ValueError("equations_of_motion needs at least q and qd")
    if coriolis not in CORIOLIS_KERNELS:
        raise ValueError(f"coriolis must be one of {', '.join(CORIOLIS_KERNELS)}, is {coriolis!r}")
    q, *derivatives = joint_vectors(robot.n, q, *rates)
    body = system(robot, q, derivatives)
    inertia = inertia_matrix(robot)
    M_b = Jet([inertia] + [np.zeros_like(inertia)] * (len(derivatives) - 1))
    at_tools = wrenches(wrench, len(derivatives), robot.wrench_shape)
    T = tool_matrix(robot)
    return EquationsOfMotion(
        M=mass_matrix(body, M_b),
        C=coriolis_matrix(body, M_b, CORIOLIS_KERNELS[coriolis]),
        gravity=gravity_forces(body, M_b, robot.gravity),
        external=external_forces(body, Jet([T @ np.ravel(W) for W in at_tools])),
        rates=tuple(derivatives),
    )


def derivative_step(K: Jet, S: Jet) -> Jet:
    """The kernel of d/dt (L' K R): dK/dt - S' K - K S, known to one order less."""
    return K.rate - S.T @ K - K @ S


def between(left: Array, K: Jet, right: Array, S: Jet) -> tuple[Array, ...]:
    """left' K right and its time derivatives, where left and right have the rates -S left, -S right."""
    terms = [left.T @ K[0] @ right]
    while len(K) > 1:
        K = derivative_step(K, S)
        terms.append(left.T @ K[0] @ right)
    return tuple(terms)


def mass_matrix(body: System, M_b: Jet) -> tuple[Array, ...]:
    """M = J' M_b J, equation (27), and its derivatives, (37), (47): each (n, n)."""
    return between(body.J[0], M_b, body.J[0], body.S)


def coriolis_matrix(body: System, M_b: Jet, kernel: Callable[[System, Jet], Jet]) -> tuple[Array, ...]:
    """C = J' C_b J, equation (28), and its derivatives, (39), (50): each (n, n)."""
    return between(body.J[0], kernel(body, M_b), body.J[0], body.S)


def gravity_forces(body: System, M_b: Jet, gravity: Array) -> tuple[Array, ...]:
    """Q_grav = J' M_b U (0; -g), equation (32), and its derivatives, (42), (57): each (n,)."""
    base_acceleration = np.concatenate([np.zeros(3), -gravity])
    return between(body.J[0], M_b, body.U[0] @ base_acceleration, body.S)


def external_forces(body: System, W: Jet) -> tuple[Array, ...]:
    """Q_ext = J' W, equation (34), and its derivatives, (43), (59): each (n,).

    Args:
        body: the kinematics.
        W: the stacked wrenches on all bodies (6N,), each in its body's frame.
    """
    terms = [body.J[0].T @ W[0]]
    while len(W) > 1:
        W = W.rate - body.S.T @ W  # the same step; W has no Jacobian on its right
        terms.append(body.J[0].T @ W[0])
    return tuple(terms)


def _paper_kernel(body: System, M_b: Jet) -> Jet:
    """C_b = -M_b S - b' M_b, equation (29)."""
    return -(M_b @ body.S) - body.b.T @ M_b


def _skew_kernel(body: System, M_b: Jet) -> Jet:
    """The paper's kernel and M_b b, which adds nothing to C qd since b V = 0; equations (61)-(64)."""
    return _paper_kernel(body, M_b) + M_b @ body.b


def _christoffel_kernel(body: System, M_b: Jet) -> Jet:
    """-M_b S + (M_b b - b' M_b + H(M_b V)) / 2: linear in qd, and so the matrix of Christoffel symbols.

    H(h) w = -ad_w' h, body by body, so that H(M_b V) V = -b' M_b V.
    """
    H = Jet([_momentum_blocks(h) for h in M_b @ body.V])
    return -(M_b @ body.S) + 0.5 * (M_b @ body.b - body.b.T @ M_b + H)


def _momentum_blocks(momenta: Array) -> Array:
    matrix = np.zeros((len(momenta), len(momenta)), dtype=momenta.dtype)
    for i in range(0, len(momenta), 6):
        matrix[i : i + 6, i : i + 6] = lie.momentum_cross(momenta[i : i + 6])
    return matrix


CORIOLIS_KERNELS: Mapping[str, Callable[[System, Jet], Jet]] = MappingProxyType(
    {"christoffel": _christoffel_kernel, "skew": _skew_kernel, "paper": _paper_kernel}
)
"""The Coriolis kernels by name."""
