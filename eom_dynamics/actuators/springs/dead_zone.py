# SPDX-License-Identifier: Apache-2.0
"""Spring that is soft within a gap and stiff beyond it: a joint with backlash."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ...arrays import Array
from ...jet import Jet
from ...jet_functions import plus, square_root
from ..checks import positive, refuse
from .base import Parameter
from .memoryless import MemorylessSpring
from .root_finding import increasing_root


@dataclass(frozen=True, eq=False)
class DeadZoneSpring(MemorylessSpring, kind="dead_zone"):
    """tau = k delta + (K - k) (h(delta - b) - h(-delta - b)), h(x) = (x + sqrt(x² + w²))/2.

    The stiffness rises from k within the gap to K beyond it. h is the positive part of x, smoothed over a width w; it
    is off by w/2 at x = 0 and by less than w²/(4|x|) elsewhere, and has all derivatives. The stiffness k > 0 of a seal
    or of grease keeps the deflection determined within the gap; real backlash is the limit for small k.

    Attributes:
        outer: K, stiffness beyond the gap, N m/rad (N/m).
        inner: k, stiffness within the gap, 0 < k <= K.
        half_gap: b > 0, rad (m).
        width: w > 0, rad (m).
    """

    outer: Annotated[float | Array, Parameter("stiffness", positive, scales=True)]
    inner: Annotated[float | Array, Parameter("inner_stiffness", positive, scales=True)]
    half_gap: Annotated[float | Array, Parameter("half_gap", positive)]
    width: Annotated[float | Array, Parameter("width", positive)]

    def __post_init__(self) -> None:
        """Check parameters; raises ParameterError if k exceeds K."""
        super().__post_init__()
        if np.any(np.greater(self.inner, self.outer)):
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
        """Derivatives of the square roots in h."""
        delta = np.asarray(delta, dtype=float)
        if order <= 2:
            return list(self._values(delta)[1 : 1 + order])
        zero = np.zeros(np.broadcast(delta, self.width).shape)
        sides = []
        for edge in (self.half_gap, -self.half_gap):
            x = Jet([delta - edge + zero, zero + 1.0, *([zero] * (order - 1))])
            sides.append(square_root(plus(x * x, np.square(self.width))))
        # h(x) - h(-y) = (x + y)/2 + (X - Y)/2, y = delta + b: the rest is linear in delta.
        roots = 0.5 * (self.outer - self.inner) * (sides[0] - sides[1])
        return [self.stiffness(delta), *roots[2:]][:order]

    def energy(self, delta: Array) -> Array:
        """Integral of the effort, with that of h, (x² + x sqrt(x² + w²) + w² asinh(x/w))/4."""
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
        # The start is exact without smoothing: soft up to the edge of the gap, stiff beyond.
        edge = self.inner * self.half_gap
        start = np.where(
            np.abs(tau) < edge,
            ends[1],
            np.copysign(self.half_gap + (np.abs(tau) - edge) / self.outer, tau),
        )
        return increasing_root(self._values, tau, (np.minimum(*ends), np.maximum(*ends)), start)

    def inverse_with_slopes(self, tau: Array) -> tuple[Array, Array, Array]:
        """The inverse, with both slopes by one evaluation."""
        delta = self.inverse(tau)
        _, stiffness, rate = self._values(delta)
        return delta, stiffness, rate

    def _values(self, delta: Array) -> tuple[Array, Array, Array]:
        """Effort, stiffness and stiffness rate from the same roots, without cancellation.

        The spring is odd: with d = |delta|, x = d - b, X = sqrt(x² + w²), and y = -d - b, Y likewise, h' = h/X and
        X² - Y² = -4 b d give h(x) - h(y) = d (2 h(x) + 2 h(y))/(X + Y).
        """
        distance, w = np.abs(delta), self.width
        x, y = distance - self.half_gap, distance + self.half_gap
        square = w * w
        X, Y = np.sqrt(x * x + square), np.sqrt(y * y + square)
        first = np.where(x > 0, 0.5 * (x + X), 0.5 * square / (X + np.abs(x)))
        second = 0.5 * square / (Y + y)
        more = self.outer - self.inner
        effort = delta * (self.inner + 2 * more * (first + second) / (X + Y))
        rate = np.copysign(0.5 * more * square, delta) * (1 / (X * X * X) - 1 / (Y * Y * Y))
        return effort, self.inner + more * (first / X + second / Y), rate

    def _integral(self, x: Array | float) -> Array:
        """Integral of h from -infinity, but for a constant, by a form of h that does not cancel."""
        root = np.hypot(x, self.width)
        h = np.where(np.greater(x, 0), 0.5 * (x + root), 0.5 * np.square(self.width) / (root + np.abs(x)))
        return 0.25 * (2 * x * h + np.square(self.width) * np.arcsinh(x / self.width))
