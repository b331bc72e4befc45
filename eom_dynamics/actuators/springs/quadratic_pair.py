# SPDX-License-Identifier: Apache-2.0
"""Antagonistic pair of quadratic springs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ...arrays import Array
from ...jet import Jet
from ...jet_functions import plus, quotient
from ..checks import positive
from .antagonistic import AntagonisticPair
from .base import Parameter


@dataclass(frozen=True, eq=False)
class QuadraticPair(AntagonisticPair, kind="antagonistic_quadratic"):
    """f(s) = K s + C s²/2, so that s1 + s2 = (sigma - 2 K)/C and s1 - s2 = 2 tau/sigma.

    Attributes:
        constant: K > 0, stiffness of one spring without stretch, N m/rad (N/m).
        slope: C > 0, growth of the stiffness with the stretch, N m/rad² (N/m²).
        nominal: sigma >= 2 K where no command says otherwise, N m/rad (N/m).
    """

    constant: Annotated[float | Array, Parameter("stiffness", positive, scales=True)]
    slope: Annotated[float | Array, Parameter("slope", positive, scales=True)]
    nominal: Annotated[float | Array, Parameter("nominal", positive, scales=True)]

    def tension(self, stretch: Array, order: int) -> list[Array]:
        """K s + C s²/2, K + C s, C and zeros."""
        f = stretch * (self.constant + 0.5 * self.slope * stretch)
        if order == 0:
            return [f]
        zero = np.zeros_like(f)
        return [f, self.constant + self.slope * stretch, self.slope + zero, *([zero] * (order - 2))][: order + 1]

    def tension_energy(self, stretch: Array) -> Array:
        """K s²/2 + C s³/6."""
        return np.square(stretch) * (0.5 * self.constant + self.slope * stretch / 6)

    def least_stiffness(self, tau: Array) -> Array:
        """Root of sigma (sigma - 2 K) = 2 C |tau|, where one stretch is zero."""
        return self.constant + np.sqrt(np.square(self.constant) + 2 * self.slope * np.abs(tau))

    def stretches(self, tau: Jet, stiffness: Jet) -> tuple[Jet, Jet]:
        """(sigma - 2 K)/(2 C) ± tau/sigma."""
        mean = plus(stiffness, -2 * self.constant) * (0.5 / self.slope)
        half = quotient(tau, stiffness)
        return mean + half, mean - half
