# SPDX-License-Identifier: Apache-2.0
"""The cubic spring, the usual model of a harmonic drive's hardening."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..checks import not_negative, positive
from .base import Array, Spring


class CubicSpring(Spring):
    """tau = K delta + K3 delta³, as of T. D. Tuttle and W. P. Seering, "A nonlinear model of a harmonic drive gear
    transmission", IEEE Trans. Robotics and Automation 12 (1996).

    Attributes:
        linear: K > 0, N m/rad (N/m).
        cubic: K3 >= 0, N m/rad³ (N/m³); a softening spring would not be monotone.
    """

    kind = "cubic"
    parameters = ("linear", "cubic")

    def __init__(self, linear: ArrayLike, cubic: ArrayLike) -> None:
        """Raises RobotDescriptionError where K is not positive, or K3 negative."""
        self.linear = positive("stiffness", linear)
        self.cubic = not_negative("cubic", cubic)

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
        """Those of the polynomial."""
        rows = [self.stiffness(delta), self.stiffness_rate(delta), 6 * self.cubic + np.zeros_like(delta)]
        return rows[:order] + [np.zeros_like(rows[0])] * (order - 3)

    def energy(self, delta: Array) -> Array:
        """K delta²/2 + K3 delta⁴/4."""
        square = np.square(delta)
        return square * (0.5 * self.linear + 0.25 * self.cubic * square)

    def inverse(self, tau: Array) -> Array:
        """The only real root, by hyperbolic functions, which do not cancel, and a step of Newton.

        With delta = 2 s sinh u and s² = K/(3 K3) the equation is sinh 3u = tau / (2 K3 s³), and 2 K3 s³ = 2 K s/3.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.sqrt(self.linear / (3 * self.cubic))
            root = 2 * scale * np.sinh(np.arcsinh(1.5 * tau / (self.linear * scale)) / 3)
        # A spring without K3, or with one so small that only rounding is left of it, is linear.
        delta = np.where(np.isfinite(root), root, tau / self.linear)
        return delta - (self.effort(delta) - tau) / self.stiffness(delta)
