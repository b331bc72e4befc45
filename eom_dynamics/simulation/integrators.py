# SPDX-License-Identifier: Apache-2.0
"""Fixed-step integrators for y' = f(t, y); each function takes one step.

A row of y has k positions, k velocities or momenta, and quadratures that the others do not depend on:

    y = (x, v, w),    x' = a function of x and v,    v' = f_v(t, x, v),    w' = f_w(t, x, v).

Semi-implicit Euler, v(t + h) = v + h f_v(t, x, v), then x(t + h) = x + h x'(x, v(t + h)), is symplectic for a constant
mass matrix alone. In general the symplectic form is that of positions and momenta p = M(q) qd: a method that is
symplectic for y' = J grad H(y) with a constant J is so in (q, p), and not in (q, qd), since methods do not commute with
the nonlinear map from one to the other.

:class:`Collocation` has two methods of order 2 s with polynomials of degree s: that of Gauss and Legendre, which is
symplectic and keeps all quadratic invariants, and one that keeps the energy. No method keeps both the symplectic form
and the energy of every system: that would be the exact motion up to its pace (Z. Ge and J. E. Marsden, Physics
Letters A 133, 1988).

E. Hairer, C. Lubich, G. Wanner, "Geometric Numerical Integration" (2006), sections II.1, IV.2 and VI.4; E. Hairer,
"Energy-preserving variant of collocation methods", JNAIAM 5 (2010); L. Brugnano, F. Iavernaro, D. Trigiante,
"Hamiltonian boundary value methods", JNAIAM 5 (2010).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.polynomial import legendre

from ..arguments import choice, positive
from ..arrays import Array
from ..exceptions import StateError
from ..number_rules import violation
from ..spelling import shown

Rate: TypeAlias = Callable[[Array, Array], Array]
"""f: rates (s, N, columns) at s times (s,) and N rows at each of them (s, N, columns)."""

# Fixed-point iterations of a step; a step that takes more is too long.
_ITERATIONS = 60

# Largest last change of an iteration that has converged, relative to 1 + |y|; the next one would be below rounding.
_CONVERGED = 1e-14

# Change below which an iteration that no longer improves is at the level of rounding.
_ROUNDING = 1e-11


def euler(f: Rate, t: float, y: Array, h: float, k: int) -> Array:
    """Explicit Euler, y + h f(t, y): first order, adds energy to every vibration."""
    return y + h * _at(f, t, y)


def semi_implicit_euler(f: Rate, t: float, y: Array, h: float, k: int) -> Array:
    """Semi-implicit Euler: explicit velocities, then positions by the new velocities; first order."""
    velocities = (..., slice(k, 2 * k))
    moved = y.copy()
    moved[velocities] += h * _at(f, t, y)[velocities]
    after: Array = y + h * _at(f, t, moved)
    after[velocities] = moved[velocities]
    return after


def rk4(f: Rate, t: float, y: Array, h: float, k: int) -> Array:
    """The classical Runge-Kutta method of fourth order."""
    first = _at(f, t, y)
    second = _at(f, t + h / 2, y + h / 2 * first)
    third = _at(f, t + h / 2, y + h / 2 * second)
    fourth = _at(f, t + h, y + h * third)
    return y + h / 6 * (first + 2 * second + 2 * third + fourth)


class Collocation:
    """Implicit Runge-Kutta methods on Gauss nodes, of order 2 s.

    With the Legendre polynomials P_j, orthonormal on [0, 1], and the Gauss nodes c_i and weights b_i,

        y'(t + c h) = sum over j < s of P_j(c) g_j,    g_j = sum over i of b_i P_j(c_i) f(t + c_i h, y(t + c_i h)).

    With s nodes this is the method of Gauss and Legendre. With more nodes, g_j tends to the integral of P_j f, for
    which y' = J grad H(y) keeps H exactly: grad H . y' integrates to the sum of g_j' J⁻¹ g_j, which vanishes. The
    energy is then off by the quadrature alone, which is exact for H of degree 2 nodes / s.

    Attributes:
        degree: s.
        nodes: number of nodes, at least s.
    """

    def __init__(self, degree: int, nodes: int | None = None) -> None:
        self.degree, self.nodes = degree, degree if nodes is None else nodes
        x, weights = legendre.leggauss(self.nodes)
        self._c, self._b = (1 + x) / 2, weights / 2
        scale = np.sqrt(2 * np.arange(degree) + 1)
        P = legendre.legvander(x, degree - 1) * scale
        unit = np.eye(degree)
        integrals = np.stack([legendre.legval(x, legendre.legint(p, lbnd=-1)) / 2 for p in unit], axis=-1) * scale
        self._A = (integrals @ P.T) * self._b

    def __call__(self, f: Rate, t: float, y: Array, h: float, k: int) -> Array:
        """Step of rows (N, columns), by fixed-point iteration; NaN in rows for which the step is too long."""
        times = t + h * self._c
        rates = np.repeat(_at(f, t, y)[np.newaxis], self.nodes, axis=0)
        at = y + h * np.tensordot(self._A, rates, axes=1)
        last = np.full(len(y), np.inf)
        waiting = np.ones(len(y), dtype=bool)
        for _ in range(_ITERATIONS):
            rates = np.where(waiting[:, np.newaxis], f(times, at), rates)
            before, at = at, y + h * np.tensordot(self._A, rates, axes=1)
            change = np.max(np.abs(at - before) / (1 + np.abs(at)), axis=(0, 2))
            # False for NaN, too: these rows remain.
            waiting &= ~((change <= _CONVERGED) | ((change >= last) & (change <= _ROUNDING)))
            if not np.any(waiting & np.isfinite(change)):
                break
            last = change
        after: Array = y + h * np.tensordot(self._b, rates, axes=1)
        after[waiting] = np.nan
        return after


class FixedStep(NamedTuple):
    """An integrator of fixed step.

    Attributes:
        order: of the error over a given time, in the step.
        step: y(t + h) from f, t, y, h and k, see the module.
        momenta: whether y should have momenta in place of velocities.
    """

    order: int
    step: Callable[[Rate, float, Array, float, int], Array]
    momenta: bool = False


FIXED_STEP: Mapping[str, FixedStep] = MappingProxyType(
    {
        "euler": FixedStep(1, euler),
        "semi_implicit_euler": FixedStep(1, semi_implicit_euler),
        "rk4": FixedStep(4, rk4),
        "gauss_legendre": FixedStep(6, Collocation(3), momenta=True),
        "energy_keeping": FixedStep(4, Collocation(2, 6), momenta=True),
    }
)
"""Integrators of fixed step by name."""

ADAPTIVE = ("DOP853", "RK45", "RK23", "Radau", "BDF", "LSODA")
"""SciPy's integrators by name, which choose their steps by tolerances."""

LONGEST = 1e7
"""Longest simulation, s, so that each one ends."""

MOST_STEPS = 10_000_000
"""Most steps of fixed length in a simulation: some ten of them take a millisecond."""


def check_method(method: str, step: float | None) -> None:
    """Raise StateError unless the method is known, and a step is given exactly for fixed-step methods."""
    choice(method, "method", (*ADAPTIVE, *FIXED_STEP))
    if method in ADAPTIVE and step is not None:
        raise StateError(f"{method} chooses its steps by tolerances; omit step, or use {', '.join(FIXED_STEP)}")
    if method in FIXED_STEP and violation(step, "positive"):
        raise StateError(f"{method} needs a step, a number of seconds > 0, is {shown(step)}")


def check_tolerances(relative: float, absolute: float) -> None:
    """Raise StateError unless both tolerances are finite and positive."""
    positive(relative, "relative_tolerance")
    positive(absolute, "absolute_tolerance")


def check_times(times: Array, step: float | None) -> None:
    """Raise StateError if a simulation over these times is too long, or has too many steps of fixed length."""
    duration = float(times[-1] - times[0])
    if not duration <= LONGEST:
        raise StateError(f"t must span at most {LONGEST:g} s, spans {duration:.3g} s; choose a larger unit of time")
    if step is not None and not duration <= step * MOST_STEPS:
        raise StateError(
            f"step must be so long that there are at most {MOST_STEPS:,} of them; {float(step):g} s is too short for "
            f"{duration:.6g} s"
        )


def even_steps(start: float, end: float, step: float) -> int:
    """Number of equal steps from start to end, none longer than ``step`` (up to rounding)."""
    return max(1, int(np.ceil((end - start) / step * (1 - 1e-9))))


def _at(f: Rate, t: float, y: Array) -> Array:
    """f at one time."""
    return f(np.array([t]), y[np.newaxis])[0]
