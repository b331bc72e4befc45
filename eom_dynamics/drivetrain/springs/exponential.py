# SPDX-License-Identifier: Apache-2.0
"""The exponential spring, which hardens alike in both directions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..checks import positive
from .base import Array, Spring


class ExponentialSpring(Spring):
    """tau = K/a sinh(a delta): two exponential springs K/(2a) exp(a delta) that pull against each other.

    Attributes:
        constant: K > 0, stiffness at rest, N m/rad (N/m).
        growth: a > 0, 1/rad (1/m).
    """

    kind = "exponential"
    parameters = ("constant", "growth")

    def __init__(self, constant: ArrayLike, growth: ArrayLike) -> None:
        """Raises RobotDescriptionError where a parameter is not positive and finite."""
        self.constant = positive("stiffness", constant)
        self.growth = positive("growth", growth)

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
        """K a^k times cosh and sinh of a delta in turn."""
        x = self.growth * np.asarray(delta)
        turns = (np.cosh(x), np.sinh(x))
        return [self.constant * self.growth**k * turns[k % 2] for k in range(order)]

    def energy(self, delta: Array) -> Array:
        """K/a² (cosh(a delta) - 1), as 2 K/a² sinh²(a delta/2), which does not cancel."""
        return 2 * self.constant / self.growth**2 * np.square(np.sinh(0.5 * self.growth * delta))

    def inverse(self, tau: Array) -> Array:
        """asinh(a tau/K)/a."""
        return np.arcsinh(self.growth * tau / self.constant) / self.growth
