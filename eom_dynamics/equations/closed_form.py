# SPDX-License-Identifier: Apache-2.0
"""The equations of motion in closed form, with time derivatives of any order.

    M(q) qdd + C(q, qd) qd + Q_grav(q) + Q_ext(q, t) = tau

Every term projects a body-level matrix K onto joint space, L' K R, where L and R have the rates -S L and -S R, so that

    d/dt (L' K R) = L' (dK/dt - S' K - K S) R.

Applied k times, this step (:func:`.derivative_step`) gives the k-th derivative of each term. Its first two applications
are equations (35)-(60) of A. Müller and S. Kumar, "Closed form time derivatives of the equations of motion of rigid
body systems", Multibody System Dynamics 53 (2021); all equation numbers are from its preprint, arXiv:2507.11076.
:func:`.system_matrices` returns the body-level matrices themselves.

As in the paper, there is no joint friction and no rotor inertia; :mod:`eom_dynamics.recursion` adds both to the efforts
if the robot includes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from math import comb
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import choice, joint_vectors, number_of_states, wrenches
from ..arrays import STATE_NAMES, AnyArray, derivative_names
from ..codegen.backends import require_robot
from ..exceptions import StateError
from ..jet import Jet
from ..recursion.passive_efforts import passive_efforts, passive_joints
from ..robot import Robot
from .body_matrices import CORIOLIS_FORMS, BodyMatrices
from .system import system_matrices, tool_matrix

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
    """Names of the joint variables and their rates, for errors."""

    @classmethod
    def stacked(cls, equations: Sequence[Self]) -> Self:
        """Terms of several states, with a leading axis N."""
        terms = ([getattr(state, field.name) for state in equations] for field in fields(cls))
        return cls(*(tuple(map(np.stack, zip(*term, strict=True))) for term in terms))

    @property
    def order(self) -> int:
        """Highest time derivative of the matrices."""
        return len(self.M) - 1

    def efforts(self, next_rate: ArrayLike) -> tuple[AnyArray, ...]:
        """tau and its time derivatives up to ``order``, each (n,) or (N, n), equations (1), (35), (45).

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
    """M, C, Q_grav and Q_ext with their time derivatives: equations (27), (32), (34), (36)-(60).

    First and second derivatives are equations (36) and (46), (47) for M, (38) and (52) for C. The first derivatives of
    Q_grav and Q_ext are (43) and (44); their second derivatives are terms of (45).

    Args:
        robot: the robot.
        q: joint variables (n,) or (N, n), rad or m. A batch is computed state by state.
        rates: qd, qdd, …, as q, at least qd. m rates give m - 1 time derivatives of the matrices:
            (q, qd, qdd, qddd) gives M, dM/dt and d²M/dt².
        wrench: (W, Wd, …), the wrench (6,) that the robot exerts on its surroundings at its tool and its time
            derivatives; moment first, in the tool's frame, N m and N. Omitted derivatives are zero. With k > 1 tools
            (k, 6); for a batch each with a leading axis N or without.
        coriolis: form of the Coriolis matrix; all have the same C qd. ``christoffel`` (Christoffel symbols; dM/dt - 2 C
            is skew-symmetric), ``skew`` (equations (61)-(64); dM/dt - 2 C is skew-symmetric), ``wieber`` (by Jacobians
            of the centers of mass; dM/dt - 2 C is skew-symmetric) or ``paper`` (equation (29)).

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
    body = system_matrices(robot, q, *derivatives, coriolis=coriolis)
    at_tools = wrenches(wrench, len(derivatives), robot.wrench_shape, symbols=True)
    T = tool_matrix(robot)
    base_acceleration = np.concatenate([np.zeros(3), -robot.gravity])
    gravity = body.projected(body.M_b, body.U[0] @ base_acceleration)
    return EquationsOfMotion(
        M=body.projected(body.M_b, body.J[0]),
        C=body.projected(body.C_b, body.J[0]),
        gravity=tuple(Jet(gravity) + Jet(passive_forces(robot, q, derivatives))),
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
    """Equations of motion of N states, with a leading axis N, from a function for one state."""
    states = joint_vectors(robot.n, *motion, samples=(N,))
    at_tools = wrenches(wrench, None, robot.wrench_shape, (N,))
    states_of = [equations(*(x[i] for x in states), wrench=[W[i] for W in at_tools]) for i in range(N)]
    return EquationsOfMotion.stacked(states_of)


def passive_forces(robot: Robot, q: AnyArray, rates: Sequence[AnyArray]) -> tuple[AnyArray, ...]:
    """Efforts against constant loads and parallel springs of the joints, with time derivatives."""
    joints = passive_joints(robot)
    if not joints:
        return (np.zeros(robot.n, dtype=int),) * len(rates)  # keeps floating-point numbers out of symbolic expressions
    motion = [x.tolist() for x in (q, *rates[:-1])]
    return tuple(np.array(level) for level in zip(*passive_efforts(joints, robot.n, motion), strict=True))


def external_forces(body: BodyMatrices, W: Jet) -> tuple[AnyArray, ...]:
    """Q_ext = J' W, equation (34), and its derivatives (n,); the first is equation (44).

    Args:
        body: kinematics of the robot.
        W: stacked wrenches of all bodies (6N,), each in its body's frame.
    """
    terms = [body.J[0].T @ W[0]]
    while len(W) > 1:
        W = W.rate - body.S.T @ W  # derivative_step without a Jacobian on the right
        terms.append(body.J[0].T @ W[0])
    return tuple(terms)
