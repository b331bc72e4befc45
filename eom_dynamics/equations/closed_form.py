# SPDX-License-Identifier: Apache-2.0
"""The equations of motion in closed form, with time derivatives of any order.

    M(q) qdd + C(q, qd) qd + Q_grav(q) + Q_ext(q, t) = tau

Every term projects a body-level matrix K onto joint space, L' K R, where L and R have the rates -S L and -S R, so that

    d/dt (L' K R) = L' (dK/dt - S' K - K S) R.

Applied k times, this step (:func:`derivative_step`) gives the k-th derivative of each term. Its first two applications
are equations (35)-(60) of A. Müller and S. Kumar, "Closed form time derivatives of the equations of motion of rigid
body systems", Multibody System Dynamics 53 (2021); all equation numbers refer to that paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from math import comb
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from .. import lie
from ..arguments import choice
from ..arrays import AnyArray
from ..codegen.backends import require_robot
from ..exceptions import StateError
from ..jet import Jet
from ..recursion.passive_efforts import passive_efforts, passive_joints
from ..robot import Robot
from ..states import STATE_NAMES, derivative_names, joint_vectors, number_of_states, wrenches
from .system import BodyTwists, block_diagonal, inertia_matrix, system_matrices, tool_matrix

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class EquationsOfMotion:
    """Terms of the equations of motion in one state, or N; index k is the k-th time derivative.

    Attributes:
        M: mass matrix (n, n), of a batch (N, n, n).
        C: Coriolis matrix (n, n) or (N, n, n), in the requested form.
        gravity: Q_grav (n,) or (N, n), the effort that holds the robot against gravity, and its joints against constant
            efforts and parallel springs.
        external: Q_ext (n,) or (N, n), the effort that exerts the tool wrench.
        rates: qd, qdd, …, the time derivatives of q in this state.
    """

    M: tuple[AnyArray, ...]
    C: tuple[AnyArray, ...]
    gravity: tuple[AnyArray, ...]
    external: tuple[AnyArray, ...]
    rates: tuple[AnyArray, ...]

    names: ClassVar[Sequence[str]] = STATE_NAMES
    """Of the joint variables and their rates, in errors."""

    @classmethod
    def stacked(cls, each: Sequence[Self]) -> Self:
        """The terms of several states, with a leading axis N."""
        terms = ([getattr(one, field.name) for one in each] for field in fields(cls))
        return cls(*(tuple(map(np.stack, zip(*term, strict=True))) for term in terms))

    @property
    def order(self) -> int:
        """Highest time derivative of the matrices."""
        return len(self.M) - 1

    def efforts(self, next_rate: ArrayLike) -> tuple[AnyArray, ...]:
        """tau and its time derivatives up to ``order``, each (n,) or (N, n), equations (27), (35), (45).

        Args:
            next_rate: (n,) or (N, n), the next time derivative of q, on which the matrices do not depend: qdd for
                order 0, qddd for order 1, qdddd for order 2.
        """
        *samples, n = self.rates[0].shape
        name = f"next_rate ({derivative_names(self.names[1], len(self.rates) + 1)[-1]})"
        (last,) = joint_vectors(n, next_rate, samples=tuple(samples), names=[name])
        columns = [rate[..., np.newaxis] for rate in (*self.rates, last)]
        inertial = [
            sum(comb(k, j) * (self.M[j] @ columns[k - j + 1] + self.C[j] @ columns[k - j]) for j in range(k + 1))
            for k in range(self.order + 1)
        ]
        return tuple(g + W + x[..., 0] for x, g, W in zip(inertial, self.gravity, self.external, strict=True))


def equations_of_motion(
    robot: Robot, q: ArrayLike, *rates: ArrayLike, wrench: Sequence[ArrayLike] = (), coriolis: str = "christoffel"
) -> EquationsOfMotion:
    """M, C, Q_grav and Q_ext with their time derivatives, equations (27)-(60).

    Args:
        robot: the robot.
        q: joint variables (n,) or (N, n), rad or m. A batch is computed state by state.
        rates: qd, qdd, …, as q, at least qd. m rates give m - 1 time derivatives of the matrices:
            (q, qd, qdd, qddd) gives M, dM/dt and d²M/dt².
        wrench: (W, Wd, …), the wrench (6,) that the robot exerts on its surroundings at its tool and its time
            derivatives; moment first, in the tool's frame, N m and N. Omitted ones are zero. With k > 1 tools (k, 6);
            for a batch each with a leading axis N or without.
        coriolis: form of the Coriolis matrix; all have the same C qd. ``christoffel`` (Christoffel symbols; dM/dt - 2 C
            is skew-symmetric), ``skew`` (equations (61)-(64); dM/dt - 2 C is skew-symmetric), ``wieber`` (by Jacobians
            of the centres of mass; dM/dt - 2 C is skew-symmetric) or ``paper`` (equation (29)).

    Raises:
        StateError: a vector has the wrong length or is not finite.
        StateError: qd is missing, or the form of the Coriolis matrix is unknown.
        TypeError: ``robot`` is not a Robot.
    """
    require_robot(robot)
    if not rates:
        raise StateError("equations_of_motion needs at least q and qd")
    choice(coriolis, "coriolis", CORIOLIS_FORMS)
    if (N := number_of_states(q)) is not None:
        return of_batch(partial(equations_of_motion, robot, coriolis=coriolis), robot, N, (q, *rates), wrench)
    q, *derivatives = joint_vectors(robot.n, q, *rates)
    body = system_matrices(robot, q, *derivatives)
    inertia = inertia_matrix(robot)
    M_b = Jet([inertia] + [np.zeros_like(inertia)] * (len(derivatives) - 1))
    at_tools = wrenches(wrench, len(derivatives), robot.wrench_shape, symbols=True)
    T = tool_matrix(robot)
    return EquationsOfMotion(
        M=mass_matrix(body, M_b),
        C=coriolis_matrix(body, M_b, CORIOLIS_FORMS[coriolis]),
        gravity=tuple(Jet(gravity_forces(body, M_b, robot.gravity)) + Jet(passive_forces(robot, q, derivatives))),
        external=external_forces(body, Jet([T @ np.ravel(W) for W in at_tools])),
        rates=tuple(derivatives),
    )


def of_batch(
    equations: Callable[..., EquationsOfMotion],
    robot: Robot,
    N: int,
    motion: Sequence[ArrayLike],
    wrench: Sequence[ArrayLike],
) -> EquationsOfMotion:
    """Equations of motion of N states, with a leading axis N, by those of one state."""
    states = joint_vectors(robot.n, *motion, samples=(N,))
    at_tools = wrenches(wrench, None, robot.wrench_shape, (N,))
    states_of = [equations(*(x[i] for x in states), wrench=[W[i] for W in at_tools]) for i in range(N)]
    return EquationsOfMotion.stacked(states_of)


def derivative_step(K: Jet, S: Jet) -> Jet:
    """Body-level matrix of d/dt (L' K R): dK/dt - S' K - K S, one order lower."""
    return K.rate - S.T @ K - K @ S


def _between(left: AnyArray, K: Jet, right: AnyArray, S: Jet) -> tuple[AnyArray, ...]:
    """left' K right and its time derivatives, for left and right with the rates -S left and -S right."""
    terms = [left.T @ K[0] @ right]
    while len(K) > 1:
        K = derivative_step(K, S)
        terms.append(left.T @ K[0] @ right)
    return tuple(terms)


def mass_matrix(body: BodyTwists, M_b: Jet) -> tuple[AnyArray, ...]:
    """M = J' M_b J, equation (27), and its derivatives, (37), (47): each (n, n)."""
    return _between(body.J[0], M_b, body.J[0], body.S)


def coriolis_matrix(body: BodyTwists, M_b: Jet, form: Callable[[BodyTwists, Jet], Jet]) -> tuple[AnyArray, ...]:
    """C = J' C_b J, equation (28), and its derivatives, (39), (50): each (n, n)."""
    return _between(body.J[0], form(body, M_b), body.J[0], body.S)


def gravity_forces(body: BodyTwists, M_b: Jet, gravity: AnyArray) -> tuple[AnyArray, ...]:
    """Q_grav = J' M_b U (0; -g), equation (32), and its derivatives, (42), (57): each (n,)."""
    base_acceleration = np.concatenate([np.zeros(3), -gravity])
    return _between(body.J[0], M_b, body.U[0] @ base_acceleration, body.S)


def passive_forces(robot: Robot, q: AnyArray, rates: Sequence[AnyArray]) -> tuple[AnyArray, ...]:
    """Efforts against constant loads and parallel springs of the joints, with time derivatives."""
    joints = passive_joints(robot)
    if not joints:
        return (np.zeros(robot.n, dtype=int),) * len(rates)  # keeps floating-point numbers out of symbolic expressions
    motion = [x.tolist() for x in (q, *rates[:-1])]
    return tuple(np.array(level) for level in zip(*passive_efforts(joints, robot.n, motion), strict=True))


def external_forces(body: BodyTwists, W: Jet) -> tuple[AnyArray, ...]:
    """Q_ext = J' W, equation (34), and its derivatives, (43), (59): each (n,).

    Args:
        body: kinematics of the robot.
        W: stacked wrenches of all bodies (6N,), each in its body's frame.
    """
    terms = [body.J[0].T @ W[0]]
    while len(W) > 1:
        W = W.rate - body.S.T @ W  # derivative_step without a Jacobian on the right
        terms.append(body.J[0].T @ W[0])
    return tuple(terms)


def _paper_form(body: BodyTwists, M_b: Jet) -> Jet:
    """C_b = -M_b S - b' M_b, equation (29)."""
    return -(M_b @ body.S) - body.b.T @ M_b


def _skew_form(body: BodyTwists, M_b: Jet) -> Jet:
    """C_b = -M_b S - b' M_b + M_b b, equations (61)-(64); M_b b adds nothing to C qd, since b V = 0."""
    return _paper_form(body, M_b) + M_b @ body.b


def _christoffel_form(body: BodyTwists, M_b: Jet) -> Jet:
    """C_b = -M_b S + (M_b b - b' M_b + H(M_b V)) / 2: linear in qd, hence the matrix of Christoffel symbols.

    H(h) w = -ad_w' h for each body, so that H(M_b V) V = -b' M_b V.
    """
    H = Jet([block_diagonal([lie.momentum_cross(h) for h in p.reshape(-1, 6)]) for p in M_b @ body.V])
    return -(M_b @ body.S) + 0.5 * (M_b @ body.b - body.b.T @ M_b + H)


def _wieber_form(body: BodyTwists, M_b: Jet) -> Jet:
    """C_b of the sum of J_c' m dJ_c/dt + J_w' (I dJ_w/dt - [I w] J_w) over the bodies: linear in qd.

    J_c qd is the velocity of the centre of mass along inertial axes, J_w qd the angular velocity w along those of the
    body, I the inertia about the centre of mass. The matrix of Christoffel symbols has [I w] - tr(I) [w] / 2 in the
    place of [I w]; w x w = 0. P.-B. Wieber, "Some comments on the structure of the dynamics of articulated motion"
    (2006); the notes of S. Caron have it, too.
    """
    traces = [_trace_about_center(M_b[0][i : i + 6, i : i + 6]) for i in range(0, len(M_b[0]), 6)]
    half = np.array([entry for trace in traces for entry in 3 * [trace / 2] + 3 * [0]])
    return _christoffel_form(body, M_b) - Jet([half[:, np.newaxis] * b for b in body.b])


def _trace_about_center(M: AnyArray) -> Any:
    mass, moment = M[5, 5], (M[2, 4], M[0, 5], M[1, 3])
    about_origin = M[0, 0] + M[1, 1] + M[2, 2]
    return about_origin if mass == 0 else about_origin - 2 * sum(h * h for h in moment) / mass


CORIOLIS_FORMS: Mapping[str, Callable[[BodyTwists, Jet], Jet]] = MappingProxyType(
    {"christoffel": _christoffel_form, "skew": _skew_form, "paper": _paper_form, "wieber": _wieber_form}
)
"""C_b of each form of the Coriolis matrix, by name."""
