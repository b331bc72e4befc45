# SPDX-License-Identifier: Apache-2.0
"""Exponential spring, which hardens equally in both directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ...elementary import asinh, sinh_cosh
from ...jet import Jet
from ...jet_functions import hyperbolic_sine
from ..checks import positive
from .base import Parameter, Scalar
from .memoryless import MemorylessSpring


@dataclass(frozen=True, eq=False)
class ExponentialSpring(MemorylessSpring, kind="exponential"):
    """tau = K/a sinh(a delta): two opposed exponential springs K/(2a) exp(a delta).

    Attributes:
        constant: K > 0, stiffness at rest, N m/rad (N/m).
        growth: a > 0, 1/rad (1/m).
    """

    constant: Annotated[float, Parameter("stiffness", positive, scales=True)]
    growth: Annotated[float, Parameter("growth", positive)]

    @classmethod
    def first_values(cls, stiffness: float, reach: float) -> dict[str, float]:
        """Initial values with which the stiffness has grown by a factor of e at the reach."""
        return {"constant": 0.7 * stiffness, "growth": 1 / reach}

    def law(self, delta: Jet) -> Jet:
        """K/a sinh(a delta)."""
        return hyperbolic_sine(delta * self.growth) * (self.constant / self.growth)

    def energy_law(self, delta: Scalar) -> Scalar:
        """K/a² (cosh(a delta) - 1), as 2 K/a² sinh²(a delta/2), which does not cancel."""
        sinh, _ = sinh_cosh(delta * (0.5 * self.growth))
        return sinh * sinh * (2 * self.constant / self.growth**2)

    def inverse_law(self, tau: Scalar) -> Scalar:
        """asinh(a tau/K)/a."""
        return asinh(tau * (self.growth / self.constant)) / self.growth
