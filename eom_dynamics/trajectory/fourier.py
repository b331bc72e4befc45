# SPDX-License-Identifier: Apache-2.0
"""Finite Fourier series: excitation trajectories for the identification of a robot's dynamics."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exceptions import TrajectoryError
from ..jet import Jet
from .rest import rest_to_rest

Array = NDArray[np.float64]


class Fourier:
    """The periodic motion of J. Swevers et al., "Optimal robot excitation and identification", IEEE Trans. Robotics and
    Automation 13 (1997), equation (8), with w = 2 pi f and l = 1 … L:

        q_i(t) = q0_i + sum over l of a_il/(w l) sin(w l t) - b_il/(w l) cos(w l t).

    Averaged over whole periods it is free of leakage, and its derivatives are known exactly. With a ramp it begins and
    ends at rest at q0: what it goes beyond q0 is multiplied with a polynomial of degree nine from 0 to 1, and back, in
    whole periods more before and after, so that the periods between are as without.

    Attributes:
        frequency: f of the period, Hz.
        sine, cosine: a and b, (n, L), rad/s or m/s.
        offset: q0 (n,), rad or m.
        periods: whole ones between the ramps.
        ramp: periods that each ramp takes.
    """

    def __init__(
        self,
        frequency: float,
        sine: ArrayLike,
        cosine: ArrayLike,
        offset: ArrayLike,
        *,
        periods: int = 1,
        ramp: int = 0,
    ) -> None:
        """Take the parameters of the class.

        Raises:
            TrajectoryError: shapes differ, a number is not finite, frequency or periods are not positive, or the ramp
                is negative.
        """
        try:
            self.sine, self.cosine, self.offset = (np.array(x, dtype=float) for x in (sine, cosine, offset))
        except (TypeError, ValueError):
            raise TrajectoryError("sine, cosine and offset must be arrays of numbers") from None
        if self.sine.ndim != 2 or not self.sine.size or self.cosine.shape != self.sine.shape:
            raise TrajectoryError(f"sine and cosine must both be (n, L); {self.sine.shape}, {self.cosine.shape}")
        if self.offset.shape != self.sine.shape[:1]:
            raise TrajectoryError(f"offset must have shape {self.sine.shape[:1]}, has {self.offset.shape}")
        if not all(np.all(np.isfinite(x)) for x in (self.sine, self.cosine, self.offset)):
            raise TrajectoryError("sine, cosine and offset must be finite")
        if not (np.isfinite(frequency) and frequency > 0):
            raise TrajectoryError(f"frequency must be a positive number of Hz, is {frequency}")
        if periods < 1 or periods != int(periods) or ramp < 0 or ramp != int(ramp):
            raise TrajectoryError(f"periods must be a whole number > 0, and ramp one >= 0; {periods}, {ramp}")
        self.frequency, self.periods, self.ramp = float(frequency), int(periods), int(ramp)

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.offset)

    @property
    def start(self) -> float:
        """First time, 0 s."""
        return 0.0

    @property
    def end(self) -> float:
        """Last time, s."""
        return (self.periods + 2 * self.ramp) / self.frequency

    def derivatives(self, t: ArrayLike, order: int = 4) -> tuple[Array, ...]:
        """As of :class:`.Trajectory`; of any order without a ramp, else up to the fourth."""
        at = np.asarray(t, dtype=float)
        inner = np.clip(at, self.start, self.end)
        series = self._series(inner, order)
        if self.ramp:
            window = self._window(inner, order)
            jet = Jet(window) * Jet(series)
            series = list(jet)
        inside = (inner == at)[..., np.newaxis]
        return (series[0] + self.offset, *(np.where(inside, x, 0.0) for x in series[1:]))

    def _series(self, t: Array, order: int) -> list[Array]:
        """What the motion goes beyond its offset, without ramps, with its derivatives."""
        w = 2 * np.pi * self.frequency * np.arange(1, self.sine.shape[1] + 1)
        angle = t[..., np.newaxis] * w
        cos, sin = np.cos(angle), np.sin(angle)
        turned = (sin, cos, -sin, -cos)
        a, b = self.sine / w, self.cosine / w
        return [(turned[k % 4] * w**k) @ a.T - (turned[(k + 1) % 4] * w**k) @ b.T for k in range(order + 1)]

    def _window(self, t: Array, order: int) -> tuple[Array, ...]:
        duration = self.ramp / self.frequency
        ramp = rest_to_rest([0.0], [1.0], duration)
        rising, falling = ramp.derivatives(t, order), ramp.derivatives(self.end - t, order)
        early = (t < self.end / 2)[..., np.newaxis]
        return tuple(np.where(early, x, (-1) ** k * y) for k, (x, y) in enumerate(zip(rising, falling, strict=True)))
