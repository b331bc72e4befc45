# SPDX-License-Identifier: Apache-2.0
"""Body-level matrices M_b and C_b between two Jacobians, their time derivatives, and forms of the Coriolis matrix.

A matrix K of all bodies, projected onto joint space, is J' K J, with ' for the transpose. Since dJ/dt = -S J,

    d/dt (J' K J) = J' (dK/dt - S' K - K S) J,

so that the k-th derivative of the mass or Coriolis matrix is J' M_b[k] J or J' C_b[k] J, with the matrices after k such
steps. Equation numbers refer to A. Müller and S. Kumar (2021), see :mod:`.system`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from .. import lie
from ..arrays import AnyArray
from ..jet import Jet


@dataclass(frozen=True)
class BodyMatrices:
    """Twists of N bodies, their Jacobian and the body-level matrices in one state, as jets of order m.

    Attributes:
        S: A a (6N, 6N), equations (17), (20); all time derivatives follow from it.
        J: system Jacobian (6N, n), equation (16); V = J qd.
        U: (6N, 6), maps a twist of the base to twists of the bodies, equation (33).
        V: stacked body-fixed twists (6N,), equation (15).
        b: block-diagonal matrix of ad_V (6N, 6N), equation (30).
        inertia: block-diagonal matrix of the body inertias (6N, 6N), constant, equations (28), (31).
        coriolis: form of C_b, of :data:`CORIOLIS_FORMS`.
    """

    S: Jet
    J: Jet
    U: Jet
    V: Jet
    b: Jet
    inertia: AnyArray
    coriolis: str

    @cached_property
    def M_b_rates(self) -> tuple[Jet, ...]:
        """Time derivatives of M_b: ``M_b_rates[j][k]`` is the k-th of ``M_b[j]``.

        ``M_b_rates[1][1]`` is the time derivative of M_b[1], equations (48), (49).
        """
        constant = Jet([self.inertia] + [np.zeros_like(self.inertia)] * (len(self.S) - 1))
        return derivative_steps(constant, self.S)

    @cached_property
    def C_b_rates(self) -> tuple[Jet, ...]:
        """Time derivatives of C_b: ``C_b_rates[j][k]`` is the k-th of ``C_b[j]``.

        ``C_b_rates[0]`` has the derivatives of C_b itself: dC_b/dt of equation (40) and d²C_b/dt² of (56), (57).
        ``C_b_rates[1][1]`` is the time derivative of C_b[1], (54), (55).
        """
        return derivative_steps(CORIOLIS_FORMS[self.coriolis](self, self.M_b_rates[0]), self.S)

    @property
    def M_b(self) -> tuple[AnyArray, ...]:
        """Matrices (6N, 6N) with d^k M/dt^k = J' M_b[k] J: equations (28), (37), (50) of M_b[0], M_b[1], M_b[2]."""
        return tuple(K[0] for K in self.M_b_rates)

    @property
    def C_b(self) -> tuple[AnyArray, ...]:
        """Matrices (6N, 6N) with d^k C/dt^k = J' C_b[k] J: equations (29), (39), (53) of C_b[0], C_b[1], C_b[2].

        C_b has the form ``coriolis``. The time derivatives of C_b are others: ``C_b_rates[0]``.
        """
        return tuple(K[0] for K in self.C_b_rates)

    def projected(self, matrices: Sequence[AnyArray], right: AnyArray) -> tuple[AnyArray, ...]:
        """J' K right for each matrix K."""
        transposed = self.J[0].T
        return tuple(transposed @ K @ right for K in matrices)


def derivative_step(K: Jet, S: Jet) -> Jet:
    """Body-level matrix of d/dt (L' K R): dK/dt - S' K - K S, one order lower."""
    return K.rate - S.T @ K - K @ S


def derivative_steps(K: Jet, S: Jet) -> tuple[Jet, ...]:
    """Body-level matrices of L' K R and of all its derivatives, by :func:`derivative_step`."""
    steps = [K]
    while len(steps[-1]) > 1:
        steps.append(derivative_step(steps[-1], S))
    return tuple(steps)


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


def _paper_form(body: BodyMatrices, M_b: Jet) -> Jet:
    """C_b = -M_b S - b' M_b, equation (29)."""
    return -(M_b @ body.S) - body.b.T @ M_b


def _skew_form(body: BodyMatrices, M_b: Jet) -> Jet:
    """C_b = -M_b S - b' M_b + M_b b, equations (61)-(64); M_b b adds nothing to C qd, since b V = 0."""
    return _paper_form(body, M_b) + M_b @ body.b


def _christoffel_form(body: BodyMatrices, M_b: Jet) -> Jet:
    """C_b = -M_b S + (M_b b - b' M_b + H(M_b V)) / 2: linear in qd, hence the matrix of Christoffel symbols.

    H(h) w = -ad_w' h for each body, so that H(M_b V) V = -b' M_b V.
    """
    H = Jet([block_diagonal([lie.momentum_cross(h) for h in p.reshape(-1, 6)]) for p in M_b @ body.V])
    return -(M_b @ body.S) + 0.5 * (M_b @ body.b - body.b.T @ M_b + H)


def _wieber_form(body: BodyMatrices, M_b: Jet) -> Jet:
    """C_b of the sum of J_c' m dJ_c/dt + J_w' (I dJ_w/dt - [I w] J_w) over the bodies: linear in qd.

    J_c qd is the velocity of the center of mass along inertial axes, J_w qd the angular velocity w along the body axes,
    I the inertia about the center of mass. The matrix of Christoffel symbols has [I w] - tr(I) [w] / 2 instead of [I
    w]; w x w = 0. P.-B. Wieber, "Some comments on the structure of the dynamics of articulated motion" (2006); S.
    Caron, "Equations of motion", section "Inertia matrix and Coriolis tensor".
    """
    traces = [_trace_about_center(M_b[0][i : i + 6, i : i + 6]) for i in range(0, len(M_b[0]), 6)]
    half = np.array([entry for trace in traces for entry in 3 * [trace / 2] + 3 * [0]])
    return _christoffel_form(body, M_b) - Jet([half[:, np.newaxis] * b for b in body.b])


def _trace_about_center(M: AnyArray) -> Any:
    mass, moment = M[5, 5], (M[2, 4], M[0, 5], M[1, 3])
    about_origin = M[0, 0] + M[1, 1] + M[2, 2]
    return about_origin if mass == 0 else about_origin - 2 * sum(h * h for h in moment) / mass


CORIOLIS_FORMS: Mapping[str, Callable[[BodyMatrices, Jet], Jet]] = MappingProxyType(
    {"christoffel": _christoffel_form, "skew": _skew_form, "paper": _paper_form, "wieber": _wieber_form}
)
"""C_b of each form of the Coriolis matrix, by name."""
