# SPDX-License-Identifier: Apache-2.0
"""Cubic spring, the usual model of the hardening of harmonic drives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ...arrays import Array
from ..checks import not_negative, positive
from .base import Parameter
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

    linear: Annotated[float | Array, Parameter("stiffness", positive, scales=True)]
    cubic: Annotated[float | Array, Parameter("cubic", not_negative, scales=True)]

    def effort(self, delta: Array) -> Array:
        """K delta + K3 delta³."""
        return delta * (self.linear + self.cubic * np.square(delta))

    def stiffness(self, delta: Array) -> Array:
        """K + 3 K3 delta²."""
        return self.linear + 3 * self.cubic * np.square(delta)

    def stiffness_rate(self, delta: Array) -> Array:
        """6 K3 delta."""
        return 6 * self.cubic * delta

    def slopes(self, delta: Array, order: int) -> list[Array]:
        """Derivatives of the polynomial."""
        rows = [self.stiffness(delta), self.stiffness_rate(delta), 6 * self.cubic + np.zeros_like(delta)]
        return rows[:order] + [np.zeros_like(rows[0])] * (order - 3)

    def energy(self, delta: Array) -> Array:
        """K delta²/2 + K3 delta⁴/4."""
        square = np.square(delta)
        return square * (0.5 * self.linear + 0.25 * self.cubic * square)

    def inverse(self, tau: Array) -> Array:
        """The only real root, by hyperbolic functions, which do not cancel, and one Newton step.

        With delta = 2 s sinh u and s² = K/(3 K3) the equation is sinh 3u = tau / (2 K3 s³), and 2 K3 s³ = 2 K s/3.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.sqrt(self.linear / (3 * self.cubic))
            root = 2 * scale * np.sinh(np.arcsinh(1.5 * tau / (self.linear * scale)) / 3)
        # For K3 = 0, or so small that only rounding is left of it, the spring is linear.
        delta = np.where(np.isfinite(root), root, tau / self.linear)
        return delta - (self.effort(delta) - tau) / self.stiffness(delta)
