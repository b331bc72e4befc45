# SPDX-License-Identifier: Apache-2.0
"""Lagrange's equations of a system with energies T = q̇ᵀ M(q) q̇ / 2 and U(q).

    d/dt dL/dqd - dL/dq + dR/dqd = tau + Q,    L = T - U

SymPy's ``LagrangesMethod`` derives the equations. M is the Hessian of T with respect to qd, and the velocity terms are
S qd with the Christoffel symbols

    c_ijk = (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) / 2,    S_ij = sum over k of c_ijk qd_k.

B. Siciliano et al., Robotics (2009), section 7.1; A. De Luca, Robotics 2, slide "Robot dynamic model", writes C_i for
the matrix of the c_ijk of joint i.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import sympy as sp
from sympy.physics.mechanics import LagrangesMethod, dynamicsymbols

from ..arguments import choice, count, is_sequence, mapping
from ..exceptions import EomDynamicsError
from ..spelling import duplicates
from .normal_form import exact, normal_form


class LagrangianError(EomDynamicsError, ValueError):
    """Coordinates or energies do not define a Lagrangian."""


def variables(names: int | str, prefix: str = "q") -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Symbols of coordinates and their rates, from names separated by spaces, or from a number n for q1 … qn.

    The prefix replaces q. A rate has its d before the index: xd of x, and xd0 of x0. LagrangianError if there is no
    name, a name is repeated, or a name equals the rate of another name.

    >>> variables("x theta")
    ((x, theta), (xd, thetad))
    """
    if isinstance(names, str):
        listed = names.split()
    elif isinstance(names, int) and not isinstance(names, bool):
        listed = [f"{prefix}{i + 1}" for i in range(names)]
    else:
        listed = []
    if not listed:
        raise LagrangianError(f"names must be names separated by spaces, or a number from 1, is {names!r:.60}")
    q = tuple(sp.Symbol(name, real=True) for name in listed)
    check_coordinates(q)
    return q, tuple(map(rate, q))


def check_coordinates(q: Sequence[Any]) -> None:
    """Raise LagrangianError unless coordinates are distinct symbols, none named as a time derivative of another."""
    for x in q:
        if not isinstance(x, sp.Symbol):
            raise LagrangianError(f"q must be a tuple of symbols, see variables; {x!r:.60} is none")
    names = [x.name for x in q]
    if again := duplicates(names):
        raise LagrangianError(f"coordinate {again[0]} is listed twice")
    for x in q:
        for derivative, what in zip(rate_symbols(x, names), ("rate", "acceleration", "jerk", "snap"), strict=False):
            if derivative.name in names:
                raise LagrangianError(
                    f"coordinate {derivative.name} has the name of the {what} of {x.name}; choose another name"
                )


def rate_symbols(variable: Any, names: Iterable[str]) -> Iterator[Any]:
    """Symbols of the time derivatives of a variable, from its rate on, up to the longest of the names."""
    longest = max(map(len, names), default=0)
    while len(variable.name) < longest:
        variable = rate(variable)
        yield variable


def rate(variable: Any) -> Any:
    """Symbol of the time derivative: qd1 of q1, qdd1 of qd1, xd of x, xd0 of x0."""
    match = re.fullmatch(r"(.*?)(_?\d*)", variable.name)
    assert match is not None  # the pattern takes any name
    letters, digits = match.groups()
    return sp.Symbol(f"{letters}d{digits}", real=True)


FORMS: Mapping[str, Any] = MappingProxyType(
    {"christoffel": sp.Rational(1, 2), "mass_rate": sp.Integer(1), "momentum": sp.Integer(0)}
)
"""Weights of dM/dt in the factorizations of the velocity terms, see :meth:`Lagrangian.coriolis_matrix`."""


@dataclass(frozen=True, eq=False)
class Lagrangian:
    """Mechanical system defined by its energies. Results are SymPy expressions in the symbols q, qd, qdd, ….

    Attributes:
        q: generalized coordinates, n symbols; :func:`rate` makes the symbols of their rates: qd1 of q1.
        T: kinetic energy, quadratic in the rates, J.
        U: potential energy, a function of q, J.
        dissipation: Rayleigh's function R of the rates, W: d qd²/2 for viscous and ``f |qd|`` for dry friction. Its
            gradient is the friction.
        forces: generalized forces Q of the surroundings on the system, in addition to the efforts tau; n expressions in
            q, qd and ``inputs``, such as J' F for a force F at the tip; () for none.
        inputs: time-dependent symbols in the forces, such as F, with time derivatives Fd, Fdd, ….
        values: numeric values of parameter symbols, if known.

    Raises:
        LagrangianError: a coordinate or an input is not a symbol, is repeated, or has the name of a time derivative; an
            energy or a force is not a finite expression, or depends on accelerations; T is not quadratic in the rates,
            or U depends on them; an energy depends on inputs; the number of forces is not n; ``values`` is not a
            mapping.
    """

    q: tuple[Any, ...]
    T: Any
    U: Any = sp.S.Zero
    dissipation: Any = sp.S.Zero
    values: Mapping[Any, float] = field(default_factory=dict)
    forces: tuple[Any, ...] = ()
    inputs: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        """Check the energies, and write their numbers as fractions."""
        if not isinstance(self.q, Sequence) or isinstance(self.q, str) or not self.q:
            raise LagrangianError(f"q must be a tuple of symbols, see variables, is {self.q!r:.60}")
        for name in ("forces", "inputs"):
            if not is_sequence(getattr(self, name)):
                raise LagrangianError(f"{name} must be a tuple, is {getattr(self, name)!r:.60}")
        mapping(self.values, "values", "symbols to numbers", LagrangianError)
        for name in ("q", "inputs", "forces"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        check_coordinates((*self.q, *self.inputs))
        for name in ("T", "U", "dissipation"):
            energy = _expression(getattr(self, name), name, self.qdd)
            object.__setattr__(self, name, energy)
            if symbols := energy.free_symbols & set(self.inputs):
                raise LagrangianError(f"{name} must not depend on inputs, has {', '.join(sorted(map(str, symbols)))}")
        if self.forces and len(self.forces) != self.n:
            raise LagrangianError(
                f"forces must be {self.n} expressions, one for each coordinate, or (), are {len(self.forces)}"
            )
        forces = (_expression(Q, f"force {i}", self.qdd) for i, Q in enumerate(self.forces or (0,) * self.n, start=1))
        object.__setattr__(self, "forces", tuple(forces))
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
        """Lagrangian L = T - U."""
        return self.T - self.U

    @cached_property
    def effort(self) -> Any:
        """Efforts tau (n, 1) of a motion, by the Euler-Lagrange equations minus the forces."""
        return self.efforts(0)[0]

    def efforts(self, order: int) -> tuple[Any, ...]:
        """Efforts tau and time derivatives up to an order, each (n, 1), in q, qd, qdd, qddd, ….

        Derivatives of dry friction ignore its jump at rest. StateError if ``order`` is not an integer from 0.
        """
        known = self._efforts
        while len(known) <= count(order, "order"):
            known.append([(normal_form(self.time_derivative(x)), self.time_derivative(y)) for x, y in known[-1]])
        return tuple(sp.ImmutableMatrix([x + y for x, y in rows]) for rows in known[: order + 1])

    @cached_property
    def _efforts(self) -> list[list[tuple[Any, Any]]]:
        """Efforts of energies, and of friction and forces (not necessarily polynomials); derivatives follow."""
        motion = self.M * sp.Matrix(self.qdd) + self.velocity_terms + self.gravity
        return [[(normal_form(x), y - z) for x, y, z in zip(motion, self.friction, self.forces, strict=True)]]

    @cached_property
    def _equations(self) -> tuple[Any, Any]:
        """Mass matrix (n, n) and forcing (n, 1) by SymPy, with coordinates as functions of time."""
        q = [sp.Function(x.name, real=True)(dynamicsymbols._t) for x in self.q]
        symbols = dict(zip((*(x.diff() for x in q), *q), (*self.qd, *self.q), strict=True))
        method = LagrangesMethod(self.L.xreplace({x: function for function, x in symbols.items()}), q)
        method.form_lagranges_equations()
        return method.mass_matrix.xreplace(symbols), method.forcing.xreplace(symbols)

    @cached_property
    def M(self) -> Any:
        """Mass matrix (n, n), the Hessian of T with respect to qd."""
        return sp.ImmutableMatrix(self._equations[0].applyfunc(normal_form))

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
        dM = sp.derive_by_array(self.M, self.q)  # the coordinate is the first axis
        c = (sp.permutedims(dM, (1, 2, 0)) + sp.permutedims(dM, (1, 0, 2)) - dM) / 2
        return sp.ImmutableDenseNDimArray(c.applyfunc(normal_form))

    @cached_property
    def C_k(self) -> tuple[Any, ...]:
        """Matrices C_k (n, n) of Christoffel symbols: the velocity term of joint k is qd' C_k qd."""
        return tuple(sp.ImmutableMatrix(self.christoffel[i].tomatrix()) for i in range(self.n))

    @cached_property
    def velocity_terms(self) -> Any:
        """Coriolis and centrifugal efforts c (n, 1), c_k = qd' C_k qd."""
        return sp.ImmutableMatrix((-self._equations[1] - self.gravity).applyfunc(normal_form))

    def coriolis_matrix(self, form: str = "christoffel") -> Any:
        """Coriolis matrix S (n, n), S qd = c: ``christoffel`` (w = 1/2), ``mass_rate`` (w = 1) or ``momentum`` (w = 0).

        With P_ij = d(M qd)_i / dq_j, every S = w dM/dt + (1 - w) P - P'/2 satisfies S qd = c, since P qd = (dM/dt) qd.
        For w = 1/2, S is the matrix of Christoffel symbols and dM/dt - 2 S is skew-symmetric; in general this holds for
        no other w. StateError if the form is unknown.
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
        """Time derivative of an expression in q, inputs, and their time derivatives of any order, by the chain rule.

        Jumps of signs are ignored.
        """
        expression = sp.sympify(expression)
        present = expression.free_symbols
        terms = []
        for variable in (*self.q, *self.inputs):
            for xd in rate_symbols(variable, [f"{x}d" for x in present]):
                if variable in present:
                    terms.append(sp.diff(expression, variable).replace(sp.DiracDelta, lambda *_: sp.S.Zero) * xd)
                variable = xd
        return sp.Add(*terms)

    def with_values(self, values: Mapping[Any, Any] | None = None) -> Lagrangian:
        """System with numbers or expressions substituted for parameters; by default ``values``."""
        replaced = {
            sp.sympify(symbol): exact(value) for symbol, value in (self.values if values is None else values).items()
        }
        remaining = {symbol: value for symbol, value in self.values.items() if symbol not in replaced}
        T, U, R, *forces = (x.xreplace(replaced) for x in (self.T, self.U, self.dissipation, *self.forces))
        return Lagrangian(self.q, normal_form(T), normal_form(U), R, remaining, tuple(forces), self.inputs)


def _expression(value: Any, name: str, qdd: Sequence[Any]) -> Any:
    """Energy or force as an exact expression."""
    if isinstance(value, str | bool | type(None)) or not isinstance(value, int | float | sp.Expr):
        raise LagrangianError(f"{name} must be an expression, is {value!r:.60}")
    expression = exact(value)
    if expression.has(sp.oo, -sp.oo, sp.zoo, sp.nan):
        raise LagrangianError(f"{name} must be finite, is {expression!s:.60}")
    if symbols := expression.free_symbols & set(qdd):
        raise LagrangianError(f"{name} must not depend on accelerations, has {', '.join(sorted(map(str, symbols)))}")
    return expression
