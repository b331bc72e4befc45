# SPDX-License-Identifier: Apache-2.0
"""Motions in closed form: from rest to rest, cosines, the paper's example, finite Fourier series for identification.

In A. Müller and S. Kumar, "Closed form time derivatives of the equations of motion of rigid body systems", Multibody
System Dynamics 53 (2021), the joint variables are q_i = A_i cos(w_i t), and all components of the tool wrench are
10 sin(pi t).
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike

from ..arguments import count, positive, real_array
from ..arrays import MOTION, Array
from ..exceptions import TrajectoryError
from ..jet import Jet
from .trajectory import ORDERS, Spline, numbers


def rest_to_rest(start: ArrayLike, end: ArrayLike, duration: float, *, start_time: float = 0.0) -> Spline:
    """Polynomial of degree nine between two positions, with zero velocity, acceleration, jerk and snap at both.

    The motion is a straight line in joint space, without overshoot.

    Args:
        start, end: (n,), rad or m.
        duration: > 0, s.
        start_time: s.

    Raises:
        TrajectoryError: shapes differ, a number is not finite, or the duration is not positive.
    """
    ends = _positions(start, end)
    duration = positive(duration, "duration", TrajectoryError)
    states = np.zeros((ORDERS, *ends.shape))
    states[0] = ends
    return Spline([start_time, start_time + duration], states)


def shortest_duration(
    start: ArrayLike,
    end: ArrayLike,
    *,
    velocity: ArrayLike = np.inf,
    acceleration: ArrayLike = np.inf,
    jerk: ArrayLike = np.inf,
    snap: ArrayLike = np.inf,
) -> float:
    """Shortest duration of :func:`rest_to_rest` within limits, s; zero if start and end are equal.

    Args:
        start, end: (n,), rad or m.
        velocity, acceleration, jerk, snap: largest magnitude of the derivatives, > 0, a number or (n,); rad or m, per
            s … s⁴.

    Raises:
        TrajectoryError: shapes differ, a limit is not positive, or a joint that moves has no limit.
    """
    ends = _positions(start, end)
    distance = np.abs(ends[1] - ends[0])
    shortest = np.zeros(len(distance))
    for k, (name, limit) in enumerate(zip(MOTION[1:], (velocity, acceleration, jerk, snap), strict=True), start=1):
        bound = real_array(limit, name, finite=False, error=TrajectoryError)
        if bound.shape not in ((), distance.shape) or not np.all(bound > 0):
            raise TrajectoryError(f"{name} must be a positive limit, or {len(distance)} of them, one for each joint")
        shortest = np.maximum(shortest, (_peaks()[k] * distance / bound) ** (1 / k))
    if np.any((shortest == 0) & (distance > 0)):
        raise TrajectoryError("a joint that moves has no limit; give at least a velocity limit")
    return float(np.max(shortest))


@cache
def _peaks() -> Array:
    """Largest magnitudes (5,) of the derivatives of the motion from 0 to 1 in one second."""
    # Its rate is the polynomial of lowest degree with four zeros at each end.
    rate = Polynomial([0, 1]) ** (ORDERS - 1) * Polynomial([1, -1]) ** (ORDERS - 1)
    curve = rate.integ() / rate.integ()(1.0)
    peaks = []
    for k in range(ORDERS):
        derivative = curve.deriv(k) if k else curve
        turns = derivative.deriv().roots()
        inside = turns.real[(np.abs(turns.imag) < 1e-9) & (turns.real >= 0) & (turns.real <= 1)]
        peaks.append(np.max(np.abs(derivative(np.concatenate([inside, [0.0, 1.0]])))))
    return np.array(peaks)


def _positions(start: ArrayLike, end: ArrayLike) -> Array:
    """Start and end (2, n)."""
    first = numbers(start, "start")
    if first.ndim != 1 or not len(first):
        raise TrajectoryError(f"start must have shape (n,), has {first.shape}")
    return np.stack([first, numbers(end, "end", first.shape)])


_PAPER = (  # amplitude, rad, and frequency, rad/s, of each joint
    (-1.2943753211777664, 1.7073873117335832),
    (0.7175341454355011, 3.079992797637052),
    (-0.5691380764966176, 2.1084514453622774),
    (0.5848944158627155, 3.5903916041026207),
    (1.6216297151633214, 1.4183262544423447),
    (-0.9187855709752027, 2.285625793808507),
    (0.4217605991935227, 5.927533308659986),
)


class Cosine:
    """Cosine motion x_i = A_i cos(w_i t + phi_i) with n components, without start and end."""

    def __init__(self, amplitude: ArrayLike, frequency: ArrayLike, phase: ArrayLike = 0.0) -> None:
        """Set amplitude A, angular frequency w in rad/s and phase phi in rad, each a number or (n,)."""
        self.amplitude, self.frequency, self.phase = np.broadcast_arrays(
            *(np.atleast_1d(np.asarray(value, dtype=float)) for value in (amplitude, frequency, phase))
        )
        self.n, self.start, self.end = len(self.amplitude), -np.inf, np.inf

    def derivatives(self, t: ArrayLike, order: int = 4) -> tuple[Array, ...]:
        """Derivatives as in :class:`.Trajectory`, of any order: the k-th is A_i w_i^k cos(w_i t + phi_i + k pi/2)."""
        angle = np.asarray(t, dtype=float)[..., np.newaxis] * self.frequency + self.phase
        cos, sin = np.cos(angle), np.sin(angle)
        # Each derivative shifts the phase by pi/2, here without rounding.
        turned = (cos, -sin, -cos, sin)
        return tuple(self.amplitude * self.frequency**k * turned[k % 4] for k in range(order + 1))


def paper_motion(n: int = 7) -> Cosine:
    """Joint motion of the paper's iiwa example, rad; for n joints, the seven components are truncated or repeated."""
    return Cosine(*np.resize(_PAPER, (n, 2)).T)


def paper_wrench(tools: int = 1) -> Cosine:
    """Tool wrench of the paper's iiwa example, 10 sin(pi t) in all six components, N m and N; equal at all tools.

    The paper's figures of efforts use this wrench, and inertias about the link frames: ``inertia_reference="link"``.
    """
    return Cosine(np.full(6 * tools, 10.0), np.pi, -np.pi / 2)


class Fourier:
    """Periodic excitation, optionally with ramps from and to rest.

    With w = 2 pi f and l = 1 … L,

        q_i(t) = q0_i + sum over l of a_il/(w l) sin(w l t) - b_il/(w l) cos(w l t),

    equation (8) of J. Swevers et al., "Optimal robot excitation and identification", IEEE Trans. Robotics and
    Automation 13 (1997). Averages over whole periods are free of leakage, and derivatives are exact. With ramps, the
    motion starts and ends at rest at q0: in additional periods before and after, q - q0 is multiplied by a polynomial
    of degree nine from 0 to 1 and back.

    Attributes:
        frequency: f, Hz.
        sine, cosine: a and b, (n, L), rad/s or m/s.
        offset: q0 (n,), rad or m.
        periods: number of periods between the ramps.
        ramp: number of periods of each ramp.
        n: number of joints.
        start, end: first time, 0 s, and last time, s.
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
        """Set the attributes of the class.

        Raises:
            TrajectoryError: shapes differ, a number is not finite, frequency or periods are not positive, or the ramp
                is negative.
        """
        self.sine = np.copy(numbers(sine, "sine"))
        if self.sine.ndim != 2 or not self.sine.size:
            raise TrajectoryError(f"sine must have shape (n, L), has {self.sine.shape}")
        self.cosine = np.copy(numbers(cosine, "cosine", self.sine.shape))
        self.offset = np.copy(numbers(offset, "offset", self.sine.shape[:1]))
        self.frequency = positive(frequency, "frequency", TrajectoryError)
        self.periods = count(periods, "periods", 1, error=TrajectoryError)
        self.ramp = count(ramp, "ramp", error=TrajectoryError)
        self.n, self.start, self.end = len(self.offset), 0.0, (self.periods + 2 * self.ramp) / self.frequency

    def derivatives(self, t: ArrayLike, order: int = 4) -> tuple[Array, ...]:
        """Derivatives as in :class:`.Trajectory`: of any order without ramps, up to the fourth with them."""
        at = np.asarray(t, dtype=float)
        inner = np.clip(at, self.start, self.end)
        series = self._series(inner, order)
        if self.ramp:
            series = list(Jet(self._window(inner, order)) * Jet(series))
        inside = (inner == at)[..., np.newaxis]
        return (series[0] + self.offset, *(np.where(inside, x, 0.0) for x in series[1:]))

    def _series(self, t: Array, order: int) -> list[Array]:
        """q - q0 and its derivatives, without ramps."""
        w = 2 * np.pi * self.frequency * np.arange(1, self.sine.shape[1] + 1)
        angle = t[..., np.newaxis] * w
        cos, sin = np.cos(angle), np.sin(angle)
        turned = (sin, cos, -sin, -cos)
        a, b = self.sine / w, self.cosine / w
        return [(turned[k % 4] * w**k) @ a.T - (turned[(k + 1) % 4] * w**k) @ b.T for k in range(order + 1)]

    def _window(self, t: Array, order: int) -> tuple[Array, ...]:
        ramp = rest_to_rest([0.0], [1.0], self.ramp / self.frequency)
        rising, falling = ramp.derivatives(t, order), ramp.derivatives(self.end - t, order)
        early = (t < self.end / 2)[..., np.newaxis]
        return tuple(np.where(early, x, (-1) ** k * y) for k, (x, y) in enumerate(zip(rising, falling, strict=True)))
