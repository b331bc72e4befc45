# SPDX-License-Identifier: Apache-2.0
"""Antagonistic pair of quadratic springs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ...elementary import absolute, sqrt
from ...jet import Jet
from ...jet_functions import quotient
from ..checks import positive
from .antagonistic import AntagonisticPair
from .base import Parameter, Scalar


@dataclass(frozen=True, eq=False)
class QuadraticPair(AntagonisticPair, kind="antagonistic_quadratic"):
    """f(s) = K s + C s²/2, so that s1 + s2 = (sigma - 2 K)/C and s1 - s2 = 2 tau/sigma.

    Attributes:
        constant: K > 0, stiffness of one spring without stretch, N m/rad (N/m).
        slope: C > 0, growth of the stiffness with the stretch, N m/rad² (N/m²).
        nominal: sigma >= 2 K where no command says otherwise, N m/rad (N/m).
    """

    constant: Annotated[float, Parameter("stiffness", positive, scales=True)]
    slope: Annotated[float, Parameter("slope", positive, scales=True)]
    nominal: Annotated[float, Parameter("nominal", positive, scales=True)]

    @classmethod
    def first_values(cls, stiffness: float, reach: float) -> dict[str, float]:
        """Initial values: half the joint stiffness at zero stretch, the other half due to the stretch."""
        return {"constant": stiffness / 4, "slope": stiffness / 4 / reach, "nominal": stiffness}

    def tension(self, stretch: Jet) -> tuple[Jet, Jet]:
        """K s + C s²/2 and K + C s."""
        return stretch * (stretch * (0.5 * self.slope) + self.constant), stretch * self.slope + self.constant

    def tension_energy(self, stretch: Scalar) -> Scalar:
        """K s²/2 + C s³/6."""
        return stretch * stretch * (stretch * (self.slope / 6) + 0.5 * self.constant)

    def least_stiffness(self, tau: Scalar) -> Scalar:
        """Root of sigma (sigma - 2 K) = 2 C |tau|, where one stretch is zero."""
        return sqrt(absolute(tau) * (2 * self.slope) + self.constant**2) + self.constant

    def stretches(self, tau: Jet, stiffness: Jet) -> tuple[Jet, Jet]:
        """(sigma - 2 K)/(2 C) ± tau/sigma."""
        mean = (stiffness - 2 * self.constant) * (0.5 / self.slope)
        half = quotient(tau, stiffness)
        return mean + half, mean - half
