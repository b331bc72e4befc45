# SPDX-License-Identifier: Apache-2.0
"""Linear spring with a damper in parallel, whose deflection is a state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ...arrays import Array
from ...jet import Jet
from ..checks import positive
from .base import Deflections, Parameter, Spring
from .phi_functions import phi_functions


@dataclass(frozen=True, eq=False)
class DampedSpring(Spring, kind="damped"):
    """tau = K delta + D deltad: a stable first-order filter from effort to deflection.

    The caller keeps the deflection: :meth:`advance` takes it over a time step, :meth:`deflection_jet` gives its rates,
    and :meth:`settled` is the deflection without transient.

    Attributes:
        constant: K > 0, N m/rad (N/m).
        damping: D > 0, N m s/rad (N s/m).
    """

    is_damped = True
    is_linear = True

    constant: Annotated[float | Array, Parameter("stiffness", positive, scales=True)]
    damping: Annotated[float | Array, Parameter("damping", positive, scales=True)]

    @property
    def rest_stiffness(self) -> float | Array:
        """K."""
        return self.constant

    def deflection_jet(self, tau: Jet, stiffness: Jet | None = None, state: Array | None = None) -> tuple[Jet, Jet]:
        """The present deflection, deltad = (tau - K delta)/D, deltadd = (taud - K deltad)/D, …"""
        delta = [self.settled(*tau[:3]) if state is None else state]
        for k in range(len(tau) - 1):
            delta.append((tau[k] - self.constant * delta[k]) / self.damping)
        return Jet(delta), tau

    def deflections(
        self, efforts: tuple[Array, Array, Array], stiffness: Sequence[Array] = (), state: Array | None = None
    ) -> Deflections:
        """:meth:`deflection_jet` to second order."""
        tau, taud, taudd = efforts
        delta = self.settled(tau, taud, taudd) if state is None else state
        deltad = (tau - self.constant * delta) / self.damping
        return Deflections(delta, deltad, (taud - self.constant * deltad) / self.damping, tau)

    def effort_jet(self, delta: Jet, stiffness: Jet | None = None) -> tuple[Jet, Jet | None]:
        """K delta + D deltad."""
        return delta * self.constant + delta.rate * self.damping, None

    def load(self, delta: Array, deltad: Array, stiffness: Array | None = None) -> Array:
        """K delta + D deltad."""
        return self.constant * delta + self.damping * deltad

    def tangents(self, delta: Array) -> tuple[Array | float, Array | float]:
        """K and D."""
        return self.constant, self.damping

    def energy(self, delta: Array) -> Array:
        """K delta²/2."""
        return 0.5 * self.constant * np.square(delta)

    def power_loss(self, deltad: Array) -> Array | float:
        """D deltad²."""
        return self.damping * np.square(deltad)

    def settled(self, tau: Array, taud: Array, taudd: Array) -> Array:
        """delta = tau/K - T taud/K + T² taudd/K, with the time constant T = D/K of the filter."""
        T = self.damping / self.constant
        return (tau - T * (taud - T * taudd)) / self.constant

    def advance(self, delta: Array, before: Sequence[Array], after: Sequence[Array], dt: float | Array) -> Array:
        """Deflection a time step later, by the exact solution of the filter.

        The effort is the quintic in time that has the effort and two derivatives at both ends of the step. For any
        smooth effort the error is of order dt⁷ a step.
        """
        z = dt * self.constant / self.damping
        phi = phi_functions(z, 7)
        terms = hermite_derivatives(before, after, dt)
        return phi[0] * delta + dt / self.damping * sum(p * term for p, term in zip(phi[1:], terms, strict=True))


def hermite_derivatives(before: Sequence[Array], after: Sequence[Array], dt: float | Array) -> list[Array]:
    """P^(k)(0) dt^k, k = 0 … 5, of the quintic with value and two derivatives given at 0 and at dt."""
    p0, p1, p2 = before[0], dt * before[1], dt**2 * before[2]
    # Differences at the end from the parabola of the start.
    a = after[0] - p0 - p1 - 0.5 * p2
    b = dt * after[1] - p1 - p2
    c = dt**2 * after[2] - p2
    return [p0, p1, p2, 60 * a - 24 * b + 3 * c, -360 * a + 168 * b - 24 * c, 720 * a - 360 * b + 60 * c]
