# SPDX-License-Identifier: Apache-2.0
"""A spring that is soft within a gap and stiff beyond it: a geared joint with backlash."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .base import Array, Spring, positive, refuse
from .newton import increasing_root


class DeadZoneSpring(Spring):
    """tau = k delta + (K - k) (h(delta - b) - h(-delta - b)), h(x) = (x + sqrt(x² + w²))/2.

    The stiffness rises from k within the gap to K beyond it. Smoothing: h is the positive part of x, rounded over
    a width w, off by w/2 at x = 0 and by less than w²/(4|x|) elsewhere; it has all derivatives. k > 0 keeps the
    deflection determined where the teeth touch nothing: it stands for the seal or the grease, and real backlash
    is its limit for small k.

    Attributes:
        outer: K, stiffness beyond the gap, N m/rad (N/m).
        inner: k, stiffness within it, 0 < k <= K.
        half_gap: b > 0, rad (m).
        width: w > 0, rad (m).
    """

    kind = "dead_zone"
    parameters = ("outer", "inner", "half_gap", "width")

    def __init__(self, outer: ArrayLike, inner: ArrayLike, half_gap: ArrayLike, width: ArrayLike) -> None:
        """Raises RobotDescriptionError where a parameter is not positive, or k exceeds K."""
        self.outer = positive("stiffness", outer)
        self.inner = positive("inner_stiffness", inner)
        self.half_gap = positive("half_gap", half_gap)
        self.width = positive("width", width)
        if np.any(self.inner > self.outer):
            refuse("inner_stiffness", f"must not exceed stiffness, {self.outer}, is {self.inner}")

    def effort(self, delta: Array) -> Array:
        """See the class."""
        return self._effort_and_stiffness(delta)[0]

    def stiffness(self, delta: Array) -> Array:
        """k + (K - k) (h'(delta - b) + h'(-delta - b))."""
        return self._effort_and_stiffness(delta)[1]

    def stiffness_rate(self, delta: Array) -> Array:
        """(K - k) (h''(delta - b) - h''(-delta - b)), h'' = w²/(2 sqrt(x² + w²)³)."""
        x, y = np.hypot(delta - self.half_gap, self.width), np.hypot(delta + self.half_gap, self.width)
        return 0.5 * (self.outer - self.inner) * self.width**2 * (x**-3 - y**-3)

    def energy(self, delta: Array) -> Array:
        """The integral of the effort, with that of h, (x² + x sqrt(x² + w²) + w² asinh(x/w))/4."""
        beyond = (
            self._integral(delta - self.half_gap)
            + self._integral(-delta - self.half_gap)
            - 2 * self._integral(-self.half_gap)
        )
        return 0.5 * self.inner * np.square(delta) + (self.outer - self.inner) * beyond

    def inverse(self, tau: Array) -> Array:
        """By Newton's method from the asymptotes, between tau/K and tau/k."""
        tau = np.asarray(tau, dtype=float)
        ends = tau / self.outer, tau / self.inner
        # The spring without smoothing: soft up to the edge of the gap, stiff from there.
        edge = self.inner * self.half_gap
        start = np.where(
            np.abs(tau) < edge,
            ends[1],
            np.copysign(self.half_gap + (np.abs(tau) - edge) / self.outer, tau),
        )
        return increasing_root(self._effort_and_stiffness, tau, (np.minimum(*ends), np.maximum(*ends)), start)

    def _effort_and_stiffness(self, delta: Array) -> tuple[Array, Array]:
        """Both from the same roots, without a difference of near numbers.

        With X = sqrt(x² + w²), x = delta - b, and Y, y likewise for -delta: h' = h/X, and X² - Y² = -4 b delta gives
        h(x) - h(y) = delta (2 h(x) + 2 h(y))/(X + Y).
        """
        x, y = delta - self.half_gap, -delta - self.half_gap
        X, Y = np.hypot(x, self.width), np.hypot(y, self.width)
        first, second = self._positive(x, X), self._positive(y, Y)
        more = self.outer - self.inner
        effort = delta * (self.inner + 2 * more * (first + second) / (X + Y))
        return effort, self.inner + more * (first / X + second / Y)

    def _positive(self, x: Array, root: Array) -> Array:
        """h(x), given sqrt(x² + w²)."""
        # The same number twice; each form cancels on the other's side.
        return np.where(x > 0, 0.5 * (x + root), 0.5 * self.width**2 / (root + np.abs(x)))

    def _integral(self, x: Array) -> Array:
        positive_part = self._positive(x, np.hypot(x, self.width))
        return 0.25 * (2 * x * positive_part + self.width**2 * np.arcsinh(x / self.width))
