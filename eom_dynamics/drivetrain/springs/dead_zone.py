# SPDX-License-Identifier: Apache-2.0
"""A spring that is soft within a gap and stiff beyond it: a geared joint with backlash."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...jet import Jet
from ..checks import positive, refuse
from ..series import plus, square_root
from .base import Array, Deflection, Spring
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
        return self._values(np.asarray(delta))[0]

    def stiffness(self, delta: Array) -> Array:
        """k + (K - k) (h'(delta - b) + h'(-delta - b))."""
        return self._values(np.asarray(delta))[1]

    def stiffness_rate(self, delta: Array) -> Array:
        """(K - k) (h''(delta - b) - h''(-delta - b)), h'' = w²/(2 sqrt(x² + w²)³)."""
        return self._values(np.asarray(delta))[2]

    def slopes(self, delta: Array, order: int) -> list[Array]:
        """Those of h follow from its root."""
        delta = np.asarray(delta, dtype=float)
        zero = np.zeros(np.broadcast(delta, self.width).shape)
        sides = []
        for edge in (self.half_gap, -self.half_gap):
            x = Jet([delta - edge + zero, zero + 1.0, *([zero] * (order - 1))])
            sides.append(square_root(plus(x * x, np.square(self.width))))
        # h(x) - h(-y) = (x + y)/2 + (X - Y)/2, y = delta + b: what the roots lack is linear.
        more = 0.5 * (self.outer - self.inner)
        roots = more * (sides[0] - sides[1])
        return [self.stiffness(delta), *roots[2:]][:order]

    def energy(self, delta: Array) -> Array:
        """The integral of the effort, with that of h, (x² + x sqrt(x² + w²) + w² asinh(x/w))/4."""
        beyond = (
            self._integral(delta - self.half_gap)
            + self._integral(-delta - self.half_gap)
            - 2 * self._integral(-self.half_gap)
        )
        return 0.5 * self.inner * np.square(delta) + (self.outer - self.inner) * beyond

    def inverse(self, tau: Array) -> Array:
        """By Halley's method from the asymptotes, between tau/K and tau/k."""
        tau = np.asarray(tau, dtype=float)
        ends = tau / self.outer, tau / self.inner
        # The spring without smoothing: soft up to the edge of the gap, stiff from there.
        edge = self.inner * self.half_gap
        start = np.where(
            np.abs(tau) < edge,
            ends[1],
            np.copysign(self.half_gap + (np.abs(tau) - edge) / self.outer, tau),
        )
        return increasing_root(self._values, tau, (np.minimum(*ends), np.maximum(*ends)), start)

    def deflection(self, tau: Array, taud: Array, taudd: Array) -> Deflection:
        """As of :class:`Spring`, stiffness and its rate at once."""
        delta = self.inverse(tau)
        _, stiffness, rate = self._values(delta)
        deltad = taud / stiffness
        return delta, deltad, (taudd - rate * deltad**2) / stiffness

    def _values(self, delta: Array) -> tuple[Array, Array, Array]:
        """Effort, stiffness and its rate from the same roots, without a difference of near numbers.

        The spring is the same to both sides: with d = |delta|, x = d - b, X = sqrt(x² + w²), and y = -d - b, Y
        likewise, h' = h/X and X² - Y² = -4 b d give h(x) - h(y) = d (2 h(x) + 2 h(y))/(X + Y).
        """
        distance, w = np.abs(delta), self.width
        x, y = distance - self.half_gap, distance + self.half_gap
        square = w * w
        X, Y = np.sqrt(x * x + square), np.sqrt(y * y + square)
        # The same number twice; each form cancels on the other's side.
        first = np.where(x > 0, 0.5 * (x + X), 0.5 * square / (X + np.abs(x)))
        second = 0.5 * square / (Y + y)
        more = self.outer - self.inner
        effort = delta * (self.inner + 2 * more * (first + second) / (X + Y))
        rate = np.copysign(0.5 * more * square, delta) * (1 / (X * X * X) - 1 / (Y * Y * Y))
        return effort, self.inner + more * (first / X + second / Y), rate

    def _positive(self, x: Array, root: Array) -> Array:
        """h(x), given sqrt(x² + w²)."""
        # The same number twice; each form cancels on the other's side.
        return np.where(x > 0, 0.5 * (x + root), 0.5 * self.width**2 / (root + np.abs(x)))

    def _integral(self, x: Array) -> Array:
        positive_part = self._positive(x, np.hypot(x, self.width))
        return 0.25 * (2 * x * positive_part + self.width**2 * np.arcsinh(x / self.width))
