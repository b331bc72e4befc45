# SPDX-License-Identifier: Apache-2.0
"""Cubic spring, the usual model of the hardening of harmonic drives."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import Annotated

from ...elementary import asinh, sinh_cosh
from ...jet import Jet
from ..checks import not_negative, positive
from .base import Parameter, Scalar
from .memoryless import MemorylessSpring


@dataclass(frozen=True, eq=False)
class CubicSpring(MemorylessSpring, kind="cubic"):
    """tau = K delta + K3 delta³.

    T. D. Tuttle, W. P. Seering, "A nonlinear model of a harmonic drive gear transmission", IEEE Trans. Robotics and
    Automation 12 (1996).

    Attributes:
        linear: K > 0, N m/rad (N/m).
        cubic: K3 >= 0, N m/rad³ (N/m³); a softening spring would not be monotone.
    """

    linear: Annotated[float, Parameter("stiffness", positive, scales=True)]
    cubic: Annotated[float, Parameter("cubic", not_negative, scales=True)]

    @classmethod
    def first_values(cls, stiffness: float, reach: float) -> dict[str, float]:
        """Initial values with which the cubic term is three tenths of the effort at the reach."""
        return {"linear": 0.7 * stiffness, "cubic": 0.3 * stiffness / reach**2}

    def law(self, delta: Jet) -> Jet:
        """K delta + K3 delta³."""
        return delta * (delta * delta * self.cubic + self.linear)

    def energy_law(self, delta: Scalar) -> Scalar:
        """K delta²/2 + K3 delta⁴/4."""
        square = delta * delta
        return square * (0.25 * self.cubic * square + 0.5 * self.linear)

    def inverse_law(self, tau: Scalar) -> Scalar:
        """The only real root, by hyperbolic functions, which do not cancel.

        With delta = 2 s sinh u and s² = K/(3 K3) the equation is sinh 3u = tau / (2 K3 s³), and 2 K3 s³ = 2 K s/3.
        """
        scale = sqrt(self.linear / self.cubic / 3) if self.cubic else inf
        if scale > _LINEAR:
            return tau / self.linear
        sinh, _ = sinh_cosh(asinh(tau * (1.5 / (self.linear * scale))) * (1 / 3))
        return sinh * (2 * scale)


# Deflection, rad or m, at which the cubic term has a third of the linear one: beyond this the spring is linear.
_LINEAR = 1e100
