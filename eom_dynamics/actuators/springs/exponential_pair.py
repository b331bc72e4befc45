# SPDX-License-Identifier: Apache-2.0
"""Antagonistic pair of exponential springs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ...arrays import Array
from ...jet import Jet
from ...jet_functions import logarithm
from ..checks import positive
from .antagonistic import AntagonisticPair
from .base import Parameter


@dataclass(frozen=True, eq=False)
class ExponentialPair(AntagonisticPair, kind="antagonistic_exponential"):
    """f(s) = K/a (exp(a s) - 1), so that exp(a s) = (sigma ± a tau)/(2 K).

    Attributes:
        constant: K > 0, stiffness of one spring without stretch, N m/rad (N/m).
        growth: a > 0, 1/rad (1/m).
        nominal: sigma >= 2 K where no command says otherwise, N m/rad (N/m).
    """

    constant: Annotated[float | Array, Parameter("stiffness", positive, scales=True)]
    growth: Annotated[float | Array, Parameter("growth", positive)]
    nominal: Annotated[float | Array, Parameter("nominal", positive, scales=True)]

    def tension(self, stretch: Array, order: int) -> list[Array]:
        """K/a (exp(a s) - 1), then K a^k exp(a s)."""
        x = self.growth * stretch
        f = self.constant / self.growth * np.expm1(x)
        return [f, *(self.constant * self.growth**k * np.exp(x) for k in range(order))]

    def tension_energy(self, stretch: Array) -> Array:
        """K/a² (exp(a s) - 1 - a s)."""
        x = self.growth * stretch
        return self.constant / self.growth**2 * (np.expm1(x) - x)

    def least_stiffness(self, tau: Array) -> Array:
        """2 K + a |tau|."""
        return 2 * self.constant + self.growth * np.abs(tau)

    def stretches(self, tau: Jet, stiffness: Jet) -> tuple[Jet, Jet]:
        """log((sigma ± a tau)/(2 K))/a."""
        a, scale = self.growth, 1 / (2 * self.constant)
        first, second = (logarithm((stiffness + tau * (sign * a)) * scale) * (1 / a) for sign in (1.0, -1.0))
        return first, second
