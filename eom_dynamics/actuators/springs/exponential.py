# SPDX-License-Identifier: Apache-2.0
"""Exponential spring, which hardens equally in both directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ...arrays import Array
from ..checks import positive
from .base import Parameter
from .memoryless import MemorylessSpring


@dataclass(frozen=True, eq=False)
class ExponentialSpring(MemorylessSpring, kind="exponential"):
    """tau = K/a sinh(a delta): two opposed exponential springs K/(2a) exp(a delta).

    Attributes:
        constant: K > 0, stiffness at rest, N m/rad (N/m).
        growth: a > 0, 1/rad (1/m).
    """

    constant: Annotated[float | Array, Parameter("stiffness", positive, scales=True)]
    growth: Annotated[float | Array, Parameter("growth", positive)]

    def effort(self, delta: Array) -> Array:
        """K/a sinh(a delta)."""
        return self.constant / self.growth * np.sinh(self.growth * delta)

    def stiffness(self, delta: Array) -> Array:
        """K cosh(a delta)."""
        return self.constant * np.cosh(self.growth * delta)

    def stiffness_rate(self, delta: Array) -> Array:
        """K a sinh(a delta)."""
        return self.constant * self.growth * np.sinh(self.growth * delta)

    def slopes(self, delta: Array, order: int) -> list[Array]:
        """K a^k cosh(a delta) and K a^k sinh(a delta) in turn."""
        x = self.growth * delta
        functions = (np.cosh(x), np.sinh(x))
        return [self.constant * self.growth**k * functions[k % 2] for k in range(order)]

    def energy(self, delta: Array) -> Array:
        """K/a² (cosh(a delta) - 1), as 2 K/a² sinh²(a delta/2), which does not cancel."""
        return 2 * self.constant / self.growth**2 * np.square(np.sinh(0.5 * self.growth * delta))

    def inverse(self, tau: Array) -> Array:
        """asinh(a tau/K)/a."""
        return np.arcsinh(self.growth * tau / self.constant) / self.growth
