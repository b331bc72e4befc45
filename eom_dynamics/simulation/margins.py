# SPDX-License-Identifier: Apache-2.0
"""Feedback of motors and links of an arm at rest: stability margins with a delay, and a regulator of the links.

Around rest, with the state x of links and motors, xd = A x + B u and the feedback u = -F x with a delay T:

    det(s 1 - A + exp(-sT) B F) = 0,

so that a pole crosses the imaginary axis at s = jw together with an eigenvalue of A - exp(-j lag) B F, at the delays T
= lag/w (mod 2 pi/w). For any delay, it crosses to the side to which this eigenvalue moves with the lag: Gu, Kharitonov
and Chen, "Stability of Time-Delay Systems" (2003), section 2.3. The smallest of these delays is the delay margin of a
loop that is stable without delay. The sum of crossings up to a delay determines stability with this delay. Eigenvalues
of undamped modes are as smooth in the lag as all others, unlike frequency responses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline, PPoly
from scipy.linalg import block_diag, solve_continuous_are
from scipy.optimize import linear_sum_assignment

from ..actuators.actuator import LOSSLESS
from ..actuators.friction import Friction
from ..arguments import joint_states, not_negative, positive
from ..arrays import STATE_NAMES, Array
from ..elastic import ElasticArm
from ..elastic.elastic_arm import lowest_frequency
from ..exceptions import StateError
from .elastic_plant import ElasticPlant

# Step of central differences, rad or m, and per s.
_STEP = 1e-5

LEAST_DAMPING = 0.005
"""Least damping ratio of resonances in the model: without damping, the smallest delay can make them unstable."""

# Grid of lags from 0 to pi; lags from pi to 2 pi have the conjugate poles. Positive grid values have evenly spaced
# lags, negative values evenly spaced logarithms, since poles of repeated roots move with a root of the lag.
_PLACES = np.arange(-18.0, 21.0, 0.75, dtype=float)

# Real parts of poles below this share of the largest pole are rounding errors.
_ROUNDING = 1e-12

# Tried factors on the gains, accuracy of the bisection to the first unstable factor, and largest Newton step.
_FACTORS = np.geomspace(1.0, 100.0, 14)
_TOLERANCE, _NEAR = 1e-3, 1e-2

# Newton steps to a crossing.
_STEPS = 3


@dataclass(frozen=True)
class Margins:
    """Stability margins of a loop.

    Attributes:
        delay: delay at which the loop becomes unstable, s; 0 if it is unstable without delay.
        frequency: frequency of the oscillation at that delay, Hz; 0 if the loop is unstable without delay.
        gain: factor on all gains at which the loop becomes unstable with the actual delay; 1 if it is already unstable,
            infinite if it is stable for all factors up to 100.
        phase: lag at which the loop becomes unstable with the actual delay, degrees; 0 if it is already unstable,
            infinite if it is stable for all lags.
    """

    delay: float
    frequency: float
    gain: float
    phase: float


@dataclass(frozen=True)
class LinearLoop:
    """Linearized arm at rest with feedback u = -F x; x: links, motors of elastic joints, then their rates.

    Attributes:
        A, B: matrices (N, N), (N, m) of xd = A x + B u.
        F: feedback matrix (m, N).
    """

    A: Array
    B: Array
    F: Array

    def margins(self, delay: float = 0.0) -> Margins:
        """Stability margins of the loop with a delay of the feedback, s.

        Raises:
            StateError: the delay is negative or not finite.
        """
        T, crossings = not_negative(delay, "delay"), self._unscaled
        first = int(np.argmin(crossings.delays)) if len(crossings.delays) else None
        largest, frequency = np.inf, 0.0
        if crossings.unstable:
            largest = 0.0
        elif first is not None:
            largest, frequency = float(crossings.delays[first]), float(crossings.w[first] / (2 * np.pi))
        if not crossings.stable(T):
            return Margins(largest, frequency, 1.0, 0.0)
        lag = np.rad2deg(np.min(np.mod(crossings.lags - crossings.w * T, 2 * np.pi), initial=np.inf))
        stable, unstable = 1.0, np.inf
        for factor in _FACTORS[1:]:
            if not self._crossings(factor).stable(T):
                unstable = factor
                break
            stable = factor
        while np.isfinite(unstable) and unstable > (1 + _TOLERANCE) * stable:
            middle = np.sqrt(stable * unstable)
            if self._crossings(middle).stable(T):
                stable = middle
            else:
                unstable = middle
        if np.isfinite(unstable):
            unstable = self._gain(T, float(unstable))
        return Margins(largest, frequency, unstable, float(lag))

    def _gain(self, delay: float, factor: float) -> float:
        """Factor near ``factor`` at which a pole crosses the axis with a delay, s."""
        crossings = self._crossings(factor)
        if not len(crossings.w):
            return factor
        turns = np.mod(crossings.lags - crossings.w * delay + np.pi, 2 * np.pi) - np.pi
        w, refined = crossings.w[[np.argmin(np.abs(turns / crossings.w))]], factor
        for _ in range(_STEPS):
            pole, slope = self._nearest(w, w * delay, refined)
            # pole + slope (delay dw - j d(log factor)) = j (w + dw)
            per_w, per_log, error = delay * slope[0] - 1j, 1j * slope[0], 1j * w[0] - pole[0]
            dw, log = np.linalg.solve(
                [[per_w.real, per_log.real], [per_w.imag, per_log.imag]], [error.real, error.imag]
            )
            w, refined = w + dw, refined * float(np.exp(log))
        # A pole that crosses at zero has no start frequency.
        return refined if abs(refined - factor) < _NEAR * factor else factor

    def _nearest(self, w: Array, lags: Array, factor: float) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
        """Poles (k,) nearest to jw with lags (k,), and their derivatives with respect to the lags."""
        poles, modes = np.linalg.eig(self._closed(lags, factor))
        row, nearest = np.arange(len(w)), np.argmin(np.abs(poles - 1j * w[:, np.newaxis]), axis=1)
        left_vectors = np.linalg.inv(modes)[row, nearest]
        products = np.einsum("ki,ki->k", left_vectors @ self.B, modes[row, :, nearest] @ self.F.T)
        slopes: NDArray[np.complex128] = 1j * factor * np.exp(-1j * lags) * products
        return poles[row, nearest], slopes

    @cached_property
    def _unscaled(self) -> _Crossings:
        """Crossings of the loop with unit factor, to rounding."""
        crossings = self._crossings(1.0)
        w, lags = crossings.w, crossings.lags
        for _ in range(_STEPS if len(w) else 0):
            pole, slope = self._nearest(w, lags, 1.0)
            step = -pole.real / slope.real
            w, lags = (pole + slope * step).imag, lags + step
        return crossings._replace(w=w, lags=lags)

    def _closed(self, lags: Array, factor: float) -> NDArray[np.complex128]:
        """Matrices (…, N, N) of the closed loop with lags of the feedback."""
        return self.A - factor * np.exp(-1j * lags)[..., np.newaxis, np.newaxis] * (self.B @ self.F)

    def _crossings(self, factor: float) -> _Crossings:
        """Crossings of the imaginary axis with all gains times a factor."""
        poles = np.linalg.eigvals(self._closed(_lags(_PLACES), factor))
        rounding = _ROUNDING * np.abs(poles).max()
        unstable = int(np.count_nonzero(poles[0].real > rounding))
        for k in range(1, len(poles)):
            # Poles are matched by linear extrapolation.
            expected = 2 * poles[k - 1] - poles[k - 2] if k > 1 else poles[0]
            far = np.abs(expected[:, np.newaxis] - poles[k])
            order = np.argmin(far, axis=1)
            if len(set(order.tolist())) < len(order):  # faster than NumPy's unique for so few
                order = linear_sum_assignment(far)[1]
            poles[k] = poles[k][order]
        poles = poles[:, np.abs(poles.real).max(axis=0) > rounding]
        curves = CubicSpline(_PLACES, poles)
        roots = PPoly(curves.c.real, curves.x).roots(extrapolate=False)
        places = np.concatenate([np.zeros(0), *roots])
        pole = np.repeat(np.arange(len(roots)), [len(x) for x in roots])
        row, at = np.arange(len(places)), _lags(places)
        w, direction = curves(places)[row, pole].imag, np.sign(curves(places, 1)[row, pole].real)
        # Poles below the real axis are the conjugates of poles above it at the opposite lag.
        lower = w < 0
        return _Crossings(
            unstable, np.abs(w), np.where(lower, 2 * np.pi - at, at), np.where(lower, -direction, direction)
        )


def _lags(places: Array) -> Array:
    return np.logaddexp(0, places) * np.pi / np.logaddexp(0, _PLACES[-1])


class _Crossings(NamedTuple):
    """Crossings w (k,), rad/s, of the imaginary axis by the poles of a loop with a delay.

    Lags are from 0 to 2 pi, the direction is 1 to the right and -1 to the left, and poles are unstable without delay.
    """

    unstable: int
    w: Array
    lags: Array
    direction: Array

    @property
    def delays(self) -> Array:
        """Smallest delay (k,) of each crossing, s."""
        return self.lags / self.w

    def stable(self, delay: float) -> bool:
        """True if no pole is in the right half-plane with a delay, s."""
        passed = np.floor((self.w * delay - self.lags) / (2 * np.pi)) + 1
        return bool(self.unstable + 2 * np.sum(self.direction * np.maximum(passed, 0)) <= 0)


def motor_gains(plant: ElasticPlant, q: ArrayLike, natural_frequency: float) -> tuple[Array, Array]:
    """PD gains kp and kd, each (m,), that critically damp each motor without its spring.

    Args:
        plant: links and motors.
        q: (n,) joint variables, for the inertia of links on rigid joints, rad or m.
        natural_frequency: w > 0, rad/s; kp = w² B and kd = 2 w B with the rotor's inertia B.

    Raises:
        StateError: an argument has the wrong shape, is not finite, or the frequency is not positive.
    """
    w = positive(natural_frequency, "natural_frequency")
    inertia = plant.driven_inertia(joint_states(plant.arm.robot.n, q)[0])
    return w**2 * inertia, 2 * w * inertia


def motor_loop(plant: ElasticPlant, q: ArrayLike, natural_frequency: float) -> LinearLoop:
    """Linearized loop, at rest at q (n,), of a motor PD with :func:`motor_gains`, with the same errors.

    Dry friction and gear losses are ignored, since they only damp; resonances have :data:`LEAST_DAMPING`.
    """
    kp, kd = motor_gains(plant, q, natural_frequency)
    joints = []
    for joint in plant.arm.robot.joints:
        friction = joint.actuator.friction
        viscous = np.fmin(friction.viscous, friction.viscous_negative)
        actuator = replace(joint.actuator, friction=Friction(viscous=viscous), gear=LOSSLESS)
        joints.append(replace(joint, actuator=actuator))
    without_dry_friction = replace(plant.arm.robot, joints=tuple(joints), joint_friction=False)
    arm = ElasticArm(without_dry_friction, rotor_model=plant.arm.rotor_model)
    smooth = ElasticPlant(arm)
    n, m = arm.robot.n, len(smooth.rigid)
    rest = smooth.on_trajectory(q, *np.zeros((len(STATE_NAMES) - 1, n)))
    effort = arm.feedforward(q, *np.zeros((len(STATE_NAMES) - 1, n))).motor_effort
    # Map from links and motors of elastic joints to links and all motors.
    free = np.flatnonzero(~smooth.rigid)
    both = np.zeros((n + m, n + len(free)))
    both[:n, :n] = np.eye(n)
    both[n:, :n] = smooth.joints * smooth.rigid[:, np.newaxis]
    both[n + free, n + np.arange(len(free))] = 1.0
    independent = np.concatenate([np.arange(n), n + free])
    independent = np.concatenate([independent, n + m + independent])
    steps = _STEP * np.kron(np.eye(2), both).T
    efforts = effort + np.concatenate([np.eye(m), -np.eye(m)])
    rates = smooth.rate(np.tile(rest, (2 * m, 1)), efforts)[:, independent]
    ends = [
        smooth.rate(rest + step, np.broadcast_to(effort, (len(step), m)))[:, independent] for step in (steps, -steps)
    ]
    A = (ends[0] - ends[1]).T / (2 * _STEP)
    F = np.hstack([kp[:, np.newaxis] * both[n:], kd[:, np.newaxis] * both[n:]])
    return LinearLoop(_with_least_damping(A), (rates[:m] - rates[m:]).T / 2, F)


def _with_least_damping(A: Array) -> Array:
    """Matrix (N, N) with a damping ratio of at least :data:`LEAST_DAMPING` at all resonances."""
    half = len(A) // 2
    squares, modes = np.linalg.eig(-A[half:, :half])
    inverse = np.linalg.inv(modes)
    damping = -np.einsum("ij,ji->i", inverse @ A[half:, half:], modes).real
    # Motors and links without a spring have no resonance.
    resonances = squares.real > 1e-9 * np.max(squares.real)
    least = 2 * LEAST_DAMPING * np.sqrt(np.where(resonances, squares.real, 0.0))
    damped = A.copy()
    damped[half:, half:] -= ((modes * np.maximum(least - damping, 0.0) * resonances) @ inverse).real
    return damped


# Tried weights g of the link errors, and required margins, as factors on gains and delay.
_WEIGHTS = 2.0 * 0.5 ** np.arange(7)
_LEAST = 2.0


class OuterLoop(NamedTuple):
    """Recommended feedback of the links.

    Attributes:
        weight: weight g of the link errors.
        frequency: lowest frequency w, rad/s.
        F: matrix (m, N + n) from deviations of links (n,) and motors of elastic joints, their rates, and the integrals
            of the link deviations, to motor efforts, N m or N.
        loop: linearized loop, with motors under their PD.
        margins: margins with the delay.
    """

    weight: float
    frequency: float
    F: Array
    loop: LinearLoop
    margins: Margins


def outer_loop(plant: ElasticPlant, q: ArrayLike, natural_frequency: float, delay: float) -> OuterLoop:
    """Recommend feedback of the links around the PD of the motors, with gain and delay margins of at least two.

    A linear-quadratic regulator with integral action. With the deviations x of links and motors from their references
    and the integral z of the link deviations, it adds the motor efforts u = -F (x, z), which minimize

        integral of  g² (e' e + w² z' z) + (u / kp)' (u / kp),

    with link errors e, the stiffness kp of the motors' PD, and the lowest frequency w of the links on the springs: B.
    D. O. Anderson, J. B. Moore, "Optimal Control: Linear Quadratic Methods" (1990), sections 3.2 and 9.1. Errors below
    w decrease, and the links are damped on their springs. The PD acts in the drives without delay; F acts with the
    delay of commands.

    Args:
        plant: links and motors.
        q: (n,) joint variables at rest, rad or m.
        natural_frequency: natural frequency of the motors' PD, rad/s.
        delay: delay of the link feedback, s: half the command period plus the drive delay.

    Raises:
        StateError: an argument is out of range, the arm has no springs, or no weight from 2 down to 1/32 has these
            margins.
    """
    T, n = not_negative(delay, "delay"), plant.arm.robot.n
    kp, _ = motor_gains(plant, q, natural_frequency)
    inner = motor_loop(plant, q, natural_frequency)
    w = lowest_frequency(plant.arm, plant.arm.dynamics.mass_matrix(joint_states(n, q)[0]))
    A = inner.A - inner.B @ inner.F
    links = np.eye(n, len(A))
    # State with the integrals z of the links; motor efforts as shifts of the PD's reference.
    A = np.block([[A, np.zeros((len(A), n))], [links, np.zeros((n, n))]])
    B = np.vstack([inner.B, np.zeros((n, len(kp)))])
    weights = block_diag(links.T @ links, w**2 * np.eye(n))
    for g in _WEIGHTS.tolist():
        P = solve_continuous_are(A, B * kp, g**2 * weights, np.eye(len(kp)))
        F = kp[:, np.newaxis] ** 2 * B.T @ P
        loop = LinearLoop(A, B, F)
        margins = loop.margins(T)
        if margins.delay >= _LEAST * T and margins.gain >= _LEAST:
            return OuterLoop(g, w, F, loop, margins)
    raise StateError(
        f"delay of {1e3 * T:g} ms is too long for feedback of the links: it leaves no gain and delay margins of "
        f"{_LEAST:g}; shorten it, or use feedforward and the PD of the motors alone"
    )
