# SPDX-License-Identifier: Apache-2.0
"""Linear spring with a damper in parallel; its deflection is a state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial
from typing import Annotated, Any

from ...arrays import Array, Scalar
from ...elementary import absolute, exp, select
from ...jet import Jet
from ..parameters import positive
from .base import EffortJets, Jets, Parameter, Spring
from .interpolation import hermite_derivatives

# Up to this z, powers are summed: the recursion would divide differences of nearly equal numbers by z.
_EXPANSION_END = 4.0
_TERMS = 40


def phi_functions(z: Any, count: int) -> list[Any]:
    """phi_0(-z) … phi_{count-1}(-z), z >= 0: integrals of exp(-z (1 - s)) s^(k-1)/(k-1)! over s from 0 to 1.

    M. Hochbruck and A. Ostermann, "Exponential integrators", Acta Numerica 19 (2010), equations (2.9) to (2.11):
    phi_0(x) = exp(x), phi_k(x) = sum over j of x^j/(j + k)!, x phi_{k+1}(x) = phi_k(x) - 1/k!.
    """
    is_large = z - _EXPANSION_END
    small, large = select(is_large, _EXPANSION_END, z), select(is_large, z, _EXPANSION_END)
    # The highest function is a sum of positive terms, phi_k(-z) = exp(-z) sum z^j/(j! (j + k) (k - 1)!). Lower
    # functions follow by downward recursion, which is stable.
    k = count - 1
    total: Any = 0.0
    for j in range(_TERMS - 1, -1, -1):
        total = total * small + 1 / (factorial(j) * (j + k))
    expansion = [exp(-small) * total * (1 / factorial(k - 1))]
    for j in range(k - 1, -1, -1):
        expansion.insert(0, 1 / factorial(j) - small * expansion[0])
    recursion = [exp(-large)]
    inverse = 1.0 / large
    for j in range(k):
        recursion.append((1 / factorial(j) - recursion[-1]) * inverse)
    return [select(is_large, r, s) for s, r in zip(expansion, recursion, strict=True)]


# Smallest transient, relative to the deflection.
_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class DampedSpring(Spring, kind="damped"):
    """tau = K delta + D deltad: a stable first-order filter from effort to deflection.

    The caller stores the deflection: :meth:`advanced` propagates it over a time step, :meth:`deflections` returns its
    rates, and :meth:`settled` is the deflection without transient.

    Attributes:
        constant: K > 0, N m/rad (N/m).
        damping: D > 0, N m s/rad (N s/m).
    """

    is_damped = True

    constant: Annotated[float, Parameter("stiffness", positive, scales=True)]
    damping: Annotated[float, Parameter("damping", positive, scales=True)]

    @property
    def rest_stiffness(self) -> float | Array:
        """K."""
        return self.constant

    def deflections(self, tau: Jets, stiffness: Jet | None = None, state: Scalar | None = None) -> tuple[Jets, Jets]:
        """Present deflection, deltad = (tau - K delta)/D, deltadd = (taud - K deltad)/D, …

        Without a transient (up to rounding) the rates are of the settled deflection: a small D divides differences of
        nearly equal efforts, which then are rounding errors only.
        """
        (effort,) = tau
        T = self.damping / self.constant
        still = [self.settled(effort), (effort[1] - T * effort[2]) / self.constant, effort[2] / self.constant, 0.0]
        for x in effort[3:-1]:
            still.append((x - self.constant * still[-1]) / self.damping)
        if state is None:
            return [Jet(still[: len(effort)])], tau
        moving = absolute(state - still[0]) - _ROUNDING * absolute(still[0])
        delta = [state]
        for x, settled in zip(effort[:-1], still[1:], strict=False):
            delta.append(select(moving, (x - self.constant * delta[-1]) / self.damping, settled))
        return [Jet(delta)], tau

    def efforts(self, delta: Sequence[Jet], stiffness: Jet | None = None) -> EffortJets:
        """K delta + D deltad."""
        effort = [delta[0] * self.constant + delta[0].rate * self.damping]
        return EffortJets(effort, effort)

    def stored_energy(self, delta: Sequence[Scalar]) -> Scalar:
        """K delta²/2."""
        return 0.5 * self.constant * (delta[0] * delta[0])

    def power_loss(self, deltad: Sequence[Scalar]) -> Scalar:
        """D deltad²."""
        return self.damping * (deltad[0] * deltad[0])

    def settled(self, tau: Jet) -> Scalar:
        """delta = tau/K - T taud/K + T² taudd/K, with the time constant T = D/K of the filter."""
        T = self.damping / self.constant
        return (tau[0] - T * (tau[1] - T * tau[2])) / self.constant

    def advanced(self, delta: Scalar, before: Sequence[Scalar], after: Sequence[Scalar], dt: Scalar) -> Scalar:
        """Deflection a time step later, by the exact solution of the filter.

        The effort is a quintic in time with the effort and two derivatives at both ends of the step. For any smooth
        effort the error is of order dt⁷ per step.
        """
        phi = phi_functions(dt * (self.constant / self.damping), 7)
        terms = hermite_derivatives(before, after, dt)
        forced = sum((p * term for p, term in zip(phi[1:], terms, strict=True)), 0.0)
        return phi[0] * delta + dt * (1 / self.damping) * forced
