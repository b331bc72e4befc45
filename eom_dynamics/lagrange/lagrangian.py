# SPDX-License-Identifier: Apache-2.0
"""Lagrange's equations of a system with energies T = q̇ᵀ M(q) q̇ / 2 and U(q).

    d/dt dL/dqd - dL/dq + dR/dqd = tau,    L = T - U

M is the Hessian of T with respect to qd, and the terms of velocities are S qd with the Christoffel symbols

    c_ijk = (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) / 2,    S_ij = sum over k of c_ijk qd_k.

B. Siciliano et al., Robotics (2009), section 7.1; A. De Luca writes C_i for the matrix of the c_ijk of joint i.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import sympy as sp

from ..arguments import choice
from .normal_form import exact, normal_form
from .variables import LagrangianError, check_coordinates, rate

FORMS: Mapping[str, Any] = MappingProxyType(
    {"christoffel": sp.Rational(1, 2), "mass_rate": sp.Integer(1), "momentum": sp.Integer(0)}
)
"""Weights of dM/dt in the factorisations of the velocity terms, see :meth:`Lagrangian.coriolis_matrix`."""


@dataclass(frozen=True, eq=False)
class Lagrangian:
    """A mechanical system by its energies. All results are SymPy expressions in the symbols q, qd and qdd.

    Attributes:
        q: generalised coordinates, n symbols; those of their rates are made by :func:`rate`: qd1 of q1.
        T: kinetic energy, quadratic in the rates, J.
        U: potential energy, a function of q, J.
        dissipation: Rayleigh's function R of the rates, W, whose gradient is the friction: d qd²/2 for viscous and
            ``f |qd|`` for dry friction.
        values: numbers of symbols among the parameters, if known.

    Raises:
        LagrangianError: a coordinate is not a symbol, is repeated, or has the name of a rate; an energy is not a finite
            expression, or depends on accelerations; T is not quadratic in the rates, or U depends on them; ``values``
            is no mapping.
    """

    q: tuple[Any, ...]
    T: Any
    U: Any = sp.S.Zero
    dissipation: Any = sp.S.Zero
    values: Mapping[Any, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the energies, and write their numbers as fractions."""
        if not isinstance(self.q, Sequence) or isinstance(self.q, str) or not self.q:
            raise LagrangianError(f"q must be a tuple of symbols, see variables, is {self.q!r:.60}")
        if not isinstance(self.values, Mapping):
            raise LagrangianError(f"values must be a mapping from symbols to numbers, is {self.values!r:.60}")
        object.__setattr__(self, "q", tuple(self.q))
        check_coordinates(self.q)
        for name in ("T", "U", "dissipation"):
            object.__setattr__(self, name, _energy(getattr(self, name), name, self.qdd))
        if self.U.free_symbols & set(self.qd):
            raise LagrangianError("U must not depend on rates of the coordinates")
        scale = sp.Dummy()
        scaled = self.T.xreplace({qd: scale * qd for qd in self.qd})
        if normal_form(scaled - scale**2 * self.T) != 0:
            raise LagrangianError("T must be quadratic in the rates of the coordinates")

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return len(self.q)

    @cached_property
    def qd(self) -> tuple[Any, ...]:
        """Symbols of the first time derivatives."""
        return tuple(map(rate, self.q))

    @cached_property
    def qdd(self) -> tuple[Any, ...]:
        """Symbols of the second time derivatives."""
        return tuple(map(rate, self.qd))

    @property
    def L(self) -> Any:
        """T - U."""
        return self.T - self.U

    @cached_property
    def effort(self) -> Any:
        """Left-hand side of the Euler-Lagrange equations (n, 1): the efforts tau that realise the motion."""
        rows = []
        for q, qd in zip(self.q, self.qd, strict=True):
            momentum = sp.diff(self.L, qd)
            friction = sp.diff(self.dissipation, qd)
            rows.append(normal_form(self.time_derivative(momentum) - sp.diff(self.L, q)) + friction)
        return sp.ImmutableMatrix(rows)

    @cached_property
    def M(self) -> Any:
        """Mass matrix (n, n), the Hessian of T with respect to qd."""
        entries = {
            (i, j): normal_form(sp.diff(self.T, self.qd[i], self.qd[j])) for i in range(self.n) for j in range(i + 1)
        }
        return sp.ImmutableMatrix(self.n, self.n, lambda i, j: entries[max(i, j), min(i, j)])

    @cached_property
    def gravity(self) -> Any:
        """Gradient of U (n, 1): efforts against gravity and springs."""
        return sp.ImmutableMatrix([normal_form(sp.diff(self.U, q)) for q in self.q])

    @cached_property
    def friction(self) -> Any:
        """Gradient of the dissipation with respect to the rates (n, 1)."""
        return sp.ImmutableMatrix([sp.diff(self.dissipation, qd) for qd in self.qd])

    @cached_property
    def christoffel(self) -> Any:
        """Christoffel symbols c_ijk (n, n, n), the Coriolis tensor."""
        dM = [sp.diff(self.M, q) for q in self.q]
        half = sp.Rational(1, 2)
        entries = {
            (i, j, k): normal_form(half * (dM[k][i, j] + dM[j][i, k] - dM[i][j, k]))
            for i in range(self.n)
            for j in range(self.n)
            for k in range(j + 1)
        }
        rows = [
            [[entries[i, max(j, k), min(j, k)] for k in range(self.n)] for j in range(self.n)] for i in range(self.n)
        ]
        return sp.ImmutableDenseNDimArray(rows, (self.n, self.n, self.n))

    @cached_property
    def C_k(self) -> tuple[Any, ...]:
        """The n matrices (n, n) of Christoffel symbols: the velocity term of joint k is qd' C_k qd."""
        c = self.christoffel
        return tuple(sp.ImmutableMatrix(self.n, self.n, lambda j, k, i=i: c[i, j, k]) for i in range(self.n))

    @cached_property
    def velocity_terms(self) -> Any:
        """Coriolis and centrifugal efforts c (n, 1), c_k = qd' C_k qd."""
        qd = sp.Matrix(self.qd)
        return sp.ImmutableMatrix([normal_form((qd.T * C * qd)[0]) for C in self.C_k])

    def coriolis_matrix(self, form: str = "christoffel") -> Any:
        """A matrix S (n, n) with S qd = c.

        With P_ij = d(M qd)_i / dq_j, every S = w dM/dt + (1 - w) P - P'/2 is one, since P qd = (dM/dt) qd. Then
        dM/dt - 2 S is skew-symmetric for w = 1/2, where S is that of the Christoffel symbols, and in general for no
        other w.

        Args:
            form: ``christoffel`` (w = 1/2), ``mass_rate`` (w = 1) or ``momentum`` (w = 0).

        Raises:
            StateError: the form is unknown.
        """
        choice(form, "form", FORMS)
        P = (self.M * sp.Matrix(self.qd)).jacobian(self.q)
        S = FORMS[form] * self.mass_rate + (1 - FORMS[form]) * P - P.T / 2
        return sp.ImmutableMatrix(S.applyfunc(normal_form))

    @cached_property
    def mass_rate(self) -> Any:
        """Time derivative of M (n, n)."""
        return sp.ImmutableMatrix(self.M.applyfunc(lambda entry: normal_form(self.time_derivative(entry))))

    def time_derivative(self, expression: Any) -> Any:
        """Time derivative of an expression in q and qd, by the chain rule."""
        chain: Sequence[tuple[Any, Any]] = [*zip(self.q, self.qd, strict=True), *zip(self.qd, self.qdd, strict=True)]
        return sp.Add(*(sp.diff(expression, x) * xd for x, xd in chain))

    def with_values(self, values: Mapping[Any, Any] | None = None) -> Lagrangian:
        """The system with numbers or expressions substituted for parameters; by default its own ``values``."""
        given = {
            sp.sympify(symbol): exact(value) for symbol, value in (self.values if values is None else values).items()
        }
        left = {symbol: value for symbol, value in self.values.items() if symbol not in given}
        T, U, R = (expression.xreplace(given) for expression in (self.T, self.U, self.dissipation))
        return Lagrangian(self.q, normal_form(T), normal_form(U), R, left)


def _energy(value: Any, name: str, qdd: Sequence[Any]) -> Any:
    """An energy as an exact expression."""
    if isinstance(value, str | bool | type(None)) or not isinstance(value, int | float | sp.Expr):
        raise LagrangianError(f"{name} must be an expression, is {value!r:.60}")
    expression = exact(value)
    if expression.has(sp.oo, -sp.oo, sp.zoo, sp.nan):
        raise LagrangianError(f"{name} must be finite, is {expression!s:.60}")
    if found := expression.free_symbols & set(qdd):
        raise LagrangianError(f"{name} must not depend on accelerations, has {', '.join(sorted(map(str, found)))}")
    return expression
