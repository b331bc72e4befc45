# SPDX-License-Identifier: Apache-2.0
"""A spring with a damper beside it: its deflection has a memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...jet import Jet
from ..checks import positive
from .base import Array, Deflection
from .phi import phi_functions


class DampedSpring:
    """tau = K delta + D deltad: a stable filter of first order from effort to deflection.

    The deflection is a state of its own, which the caller keeps: :meth:`advance` takes it over a time step,
    :meth:`deflection` gives its rates, and :meth:`settled` the one without any transient.

    Attributes:
        constant: K > 0, N m/rad (N/m).
        damping: D > 0, N m s/rad (N s/m).
    """

    kind = "damped"
    parameters = ("constant", "damping")

    def __init__(self, constant: ArrayLike, damping: ArrayLike) -> None:
        """Raises RobotDescriptionError where a parameter is not positive and finite."""
        self.constant = positive("stiffness", constant)
        self.damping = positive("damping", damping)

    def effort(self, delta: Array, deltad: Array) -> Array:
        """K delta + D deltad."""
        return self.constant * delta + self.damping * deltad

    def energy(self, delta: Array) -> Array:
        """K delta²/2."""
        return 0.5 * self.constant * np.square(delta)

    def power_loss(self, deltad: Array) -> Array:
        """D deltad², W."""
        return self.damping * np.square(deltad)

    def deflection(self, delta: Array, tau: Array, taud: Array) -> Deflection:
        """delta as it is, deltad = (tau - K delta)/D, deltadd = (taud - K deltad)/D."""
        deltad = (tau - self.constant * delta) / self.damping
        return delta, deltad, (taud - self.constant * deltad) / self.damping

    def deflection_series(self, tau: Jet, delta: Array | None = None) -> Jet:
        """The deflection with as many time derivatives as the effort, from its present value, by default settled."""
        series = [self.settled(*tau[:3]) if delta is None else delta]
        for k in range(len(tau) - 1):
            series.append((tau[k] - self.constant * series[k]) / self.damping)
        return Jet(series)

    def settled(self, tau: Array, taud: Array, taudd: Array) -> Array:
        """The deflection without transient under an effort with these derivatives and none above.

        delta = tau/K - T taud/K + T² taudd/K, with the filter's time T = D/K.
        """
        T = self.damping / self.constant
        return (tau - T * (taud - T * taudd)) / self.constant

    def advance(self, delta: Array, before: Sequence[Array], after: Sequence[Array], dt: float | Array) -> Array:
        """The deflection a time step later.

        Exact for an effort that is a polynomial of degree five in time: that which meets the effort and two
        derivatives at both ends of the step. For any smooth effort the error is of order dt⁷ a step.

        Args:
            delta: at the start.
            before, after: (tau, taud, taudd) at the start and at the end.
            dt: the step, s, > 0.
        """
        z = dt * self.constant / self.damping
        phi = phi_functions(z, 7)
        terms = hermite_derivatives(before, after, dt)
        return phi[0] * delta + dt / self.damping * sum(p * term for p, term in zip(phi[1:], terms, strict=True))

    @property
    def rest_stiffness(self) -> float | Array:
        """K."""
        return self.constant

    @classmethod
    def stacked(cls, springs: Sequence[Any]) -> DampedSpring:
        """One spring of many, for deflections (…, number of springs)."""
        return cls(*(np.stack([getattr(spring, name) for spring in springs]) for name in cls.parameters))


def hermite_derivatives(before: Sequence[Array], after: Sequence[Array], dt: float | Array) -> list[Array]:
    """P^(k)(0) dt^k, k = 0 … 5, of the quintic with value and two derivatives given at 0 and at dt."""
    p0, p1, p2 = before[0], dt * before[1], dt**2 * before[2]
    # What the end has beyond the parabola of the start.
    a = after[0] - p0 - p1 - 0.5 * p2
    b = dt * after[1] - p1 - p2
    c = dt**2 * after[2] - p2
    return [p0, p1, p2, 60 * a - 24 * b + 3 * c, -360 * a + 168 * b - 24 * c, 720 * a - 360 * b + 60 * c]
