# SPDX-License-Identifier: Apache-2.0
"""Springs whose effort is a function of the deflection."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from ...arrays import Array
from ...elementary import root
from ...jet import Jet
from ...jet_functions import inverted
from .base import Scalar, Spring, SpringEfforts


class MemorylessSpring(Spring):
    """tau = f(delta) with f(0) = 0 and f' > 0.

    A kind gives f, its integral, and either bounds and a first value of its inverse or the inverse itself.
    """

    @abstractmethod
    def effort(self, delta: Jet, *parameters: Scalar) -> Jet:
        """f(delta)."""

    @abstractmethod
    def stored_energy(self, delta: Scalar) -> Scalar:
        """Integral of f from 0."""

    def bounds(self, tau: Scalar) -> tuple[tuple[Scalar, Scalar], Scalar]:
        """Lower and upper bound of the deflection under an effort, and a first value."""
        raise NotImplementedError(f"{type(self).__name__} has neither bounds nor an inverse of its own")

    def inverse(self, tau: Scalar) -> Scalar:
        """delta with f(delta) = tau, as the root of f unless the kind has a better way."""
        ends, start = self.bounds(tau)
        return root(self.effort, tau, ends, start)

    def inverse_jet(self, tau: Jet) -> Jet:
        """:meth:`inverse` with the time derivatives of the effort."""
        return inverted(self.effort, self.inverse(tau[0]), tau)

    @property
    def rest_stiffness(self) -> float | Array:
        """f'(0)."""
        return float(self.effort(Jet([0.0, 1.0]))[1])

    def deflections(
        self, tau: Sequence[Jet], stiffness: Jet | None = None, state: Scalar | None = None
    ) -> tuple[Sequence[Jet], Sequence[Jet]]:
        """Deflection by the derivatives of the inverse function."""
        return [self.inverse_jet(tau[0])], tau

    def efforts(self, delta: Sequence[Jet], stiffness: Jet | None = None) -> SpringEfforts:
        """f(delta)."""
        effort = [self.effort(delta[0])]
        return SpringEfforts(effort, effort)

    def energy(self, delta: Sequence[Scalar]) -> Scalar:
        """Integral of f from 0."""
        return self.stored_energy(delta[0])
