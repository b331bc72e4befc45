# SPDX-License-Identifier: Apache-2.0
"""Springs whose effort is a function of the deflection."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from ...arrays import Array
from ...jet import Jet
from ...jet_functions import composed, inverted
from .base import Deflections, Spring


class MemorylessSpring(Spring):
    """tau = f(delta) with f(0) = 0 and f' > 0; all functions work entry by entry."""

    @abstractmethod
    def effort(self, delta: Array) -> Array:
        """f(delta)."""

    @abstractmethod
    def slopes(self, delta: Array, order: int) -> list[Array]:
        """f', f'', …: the first ``order`` derivatives of f at delta."""

    @abstractmethod
    def inverse(self, tau: Array) -> Array:
        """delta with f(delta) = tau."""

    def stiffness(self, delta: Array) -> Array:
        """f'(delta)."""
        return self.slopes(delta, 1)[0]

    def stiffness_rate(self, delta: Array) -> Array:
        """f''(delta), N m/rad² (N/m²)."""
        return self.slopes(delta, 2)[1]

    def inverse_with_slopes(self, tau: Array) -> tuple[Array, Array, Array]:
        """delta with f(delta) = tau, f' and f'' there."""
        delta = self.inverse(tau)
        return delta, self.stiffness(delta), self.stiffness_rate(delta)

    @property
    def rest_stiffness(self) -> float | Array:
        """f'(0)."""
        return self.stiffness(np.zeros(()))

    def deflections(
        self, efforts: tuple[Array, Array, Array], stiffness: Sequence[Array] = (), state: Array | None = None
    ) -> Deflections:
        """Deflection from tau = f(delta), taud = f' deltad, taudd = f' deltadd + f'' deltad²."""
        tau, taud, taudd = efforts
        delta, slope, bend = self.inverse_with_slopes(tau)
        deltad = taud / slope
        return Deflections(delta, deltad, (taudd - bend * deltad**2) / slope, tau)

    def deflection_jet(self, tau: Jet, stiffness: Jet | None = None, state: Array | None = None) -> tuple[Jet, Jet]:
        """Deflection by the inverse function's derivatives."""
        delta = self.inverse(tau[0])
        return inverted(delta, self.slopes(delta, len(tau) - 1), tau), tau

    def effort_jet(self, delta: Jet, stiffness: Jet | None = None) -> tuple[Jet, Jet | None]:
        """f(delta)."""
        return composed([self.effort(delta[0]), *self.slopes(delta[0], len(delta) - 1)], delta), None

    def load(self, delta: Array, deltad: Array, stiffness: Array | None = None) -> Array:
        """f(delta)."""
        return self.effort(delta)

    def tangents(self, delta: Array) -> tuple[Array | float, Array | float]:
        """f', no damping."""
        return self.stiffness(delta), 0.0
