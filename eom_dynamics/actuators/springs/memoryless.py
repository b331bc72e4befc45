# SPDX-License-Identifier: Apache-2.0
"""Memoryless springs: the effort is a function of the deflection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from ...arrays import Array, Scalar
from ...elementary import root
from ...jet import Jet
from ...jet_functions import inverted
from ..parameters import Declared
from .base import EffortJets, Jets, Spring


class EffortLaw(Declared, ABC):
    """Effort as a function of a deflection, with declared parameters."""

    @abstractmethod
    def law(self, delta: Jet) -> Jet:
        """Effort with time derivatives."""

    @abstractmethod
    def energy_law(self, delta: Scalar) -> Scalar:
        """Integral of the effort from 0."""


class MemorylessSpring(Spring, EffortLaw):
    """tau = f(delta) with f(0) = 0 and f' > 0.

    A kind defines f, its integral, and either the inverse or its bounds and an initial value.
    """

    def bounds(self, tau: Scalar) -> tuple[tuple[Scalar, Scalar], Scalar]:
        """Lower and upper bound of the deflection under an effort, and an initial value."""
        raise NotImplementedError(f"{type(self).__name__} has neither bounds nor an inverse of its own")

    def inverse_law(self, tau: Scalar) -> Scalar:
        """Deflection delta with f(delta) = tau, by root finding unless a kind overrides it."""
        ends, start = self.bounds(tau)
        return root(self.law, tau, ends, start)

    def inverse_jet(self, tau: Jet) -> Jet:
        """Deflection delta with f(delta) = tau, with time derivatives as the effort."""
        return inverted(self.law, self.inverse_law(tau[0]), tau)

    @property
    def rest_stiffness(self) -> float | Array:
        """f'(0)."""
        return float(self.law(Jet([0.0, 1.0]))[1])

    def deflections(self, tau: Jets, stiffness: Jet | None = None, state: Scalar | None = None) -> tuple[Jets, Jets]:
        """Deflection by the derivatives of the inverse function."""
        return [self.inverse_jet(tau[0])], tau

    def efforts(self, delta: Sequence[Jet], stiffness: Jet | None = None) -> EffortJets:
        """f(delta)."""
        effort = [self.law(delta[0])]
        return EffortJets(effort, effort)

    def stored_energy(self, delta: Sequence[Scalar]) -> Scalar:
        """Integral of f from 0."""
        return self.energy_law(delta[0])
