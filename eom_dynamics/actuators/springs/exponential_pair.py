# SPDX-License-Identifier: Apache-2.0
"""Antagonistic pair of exponential springs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ...elementary import absolute, expm1
from ...jet import Jet
from ...jet_functions import exponential_less_one, logarithm_of_one_plus
from ..checks import positive
from .antagonistic import AntagonisticPair
from .base import Parameter, Scalar


@dataclass(frozen=True, eq=False)
class ExponentialPair(AntagonisticPair, kind="antagonistic_exponential"):
    """f(s) = K/a (exp(a s) - 1), so that exp(a s) = (sigma ± a tau)/(2 K).

    Attributes:
        constant: K > 0, stiffness of one spring without stretch, N m/rad (N/m).
        growth: a > 0, 1/rad (1/m).
        nominal: sigma >= 2 K where no command says otherwise, N m/rad (N/m).
    """

    constant: Annotated[float, Parameter("stiffness", positive, scales=True)]
    growth: Annotated[float, Parameter("growth", positive)]
    nominal: Annotated[float, Parameter("nominal", positive, scales=True)]

    @classmethod
    def first_values(cls, stiffness: float, reach: float) -> dict[str, float]:
        """Initial values: half the joint stiffness at zero stretch, grown by a factor of e at the reach."""
        return {"constant": stiffness / 4, "growth": 1 / reach, "nominal": stiffness}

    def tension(self, stretch: Jet) -> tuple[Jet, Jet]:
        """K/a (exp(a s) - 1) and K exp(a s)."""
        grown = exponential_less_one(stretch * self.growth)
        return grown * (self.constant / self.growth), (grown + 1.0) * self.constant

    def tension_energy(self, stretch: Scalar) -> Scalar:
        """K/a² (exp(a s) - 1 - a s)."""
        x = stretch * self.growth
        return (expm1(x) - x) * (self.constant / self.growth**2)

    def least_stiffness(self, tau: Scalar) -> Scalar:
        """2 K + a |tau|."""
        return absolute(tau) * self.growth + 2 * self.constant

    def tensions(self, tau: Jet, stiffness: Jet) -> tuple[Jet, Jet]:
        """(sigma - 2 K)/(2 a) ± tau/2, since a f(s) = K exp(a s) - K."""
        mean, half = (stiffness - 2 * self.constant) * (0.5 / self.growth), tau * 0.5
        return mean + half, mean - half

    def stretches(self, tau: Jet, stiffness: Jet) -> tuple[Jet, Jet]:
        """log((sigma ± a tau)/(2 K))/a, in the difference of sigma and 2 K, where springs are nearly slack."""
        a, scale = self.growth, 1 / (2 * self.constant)
        beyond = stiffness - 2 * self.constant
        first, second = (logarithm_of_one_plus((beyond + tau * (sign * a)) * scale) * (1 / a) for sign in (1.0, -1.0))
        return first, second
