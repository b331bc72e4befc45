# SPDX-License-Identifier: Apache-2.0
"""Stability margins of motor and link feedback of an arm at rest, under a delay.

Around rest, with the state x of links and motors, xd = A x + B u and the feedback u = -F x, all of which acts T later:

    det(1 + L(jw) exp(-jwT)) = 0,    L(s) = F (s 1 - A)^-1 B,

so that a pole crosses the imaginary axis at each w where an eigenvalue of L has magnitude 1, with the delays
T = (arg + pi)/w (mod 2 pi/w): Gu, Kharitonov and Chen, "Stability of Time-Delay Systems" (2003), section 2.3. The
smallest of them is the delay margin of a loop that is stable without delay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..actuators.friction import Friction
from ..actuators.gear import LOSSLESS
from ..arguments import not_negative, positive
from ..arrays import Array
from ..elastic import ElasticArm, chain_gains, flat_state, linearizing_effort
from ..exceptions import StateError
from ..robot import Robot
from ..states import STATE_NAMES, joint_states
from .elastic_plant import ElasticPlant, State

# Step of central differences, rad or m, and per s.
_STEP = 1e-5

# Frequencies of the search: in all, and on each side of each resonance, which they approach to this share of it.
_FREQUENCIES, _BESIDE, _NEAREST = 1500, 40, 1e-6

# Factors on the gains that are tried, and how closely the first that is unstable is found.
_FACTORS = np.geomspace(1.0, 1e3, 20)
_TOLERANCE = 1e-3

# Of the interval between two frequencies.
_BISECTIONS = 24


@dataclass(frozen=True)
class Margins:
    """Stability margins of a loop.

    Attributes:
        delay: at which the loop becomes unstable, s; 0 if it is unstable without delay.
        frequency: of the oscillation at that delay, Hz; 0 if it is unstable without delay.
        gain: factor on all gains at which the loop becomes unstable under the delay that it has; 1 if it is unstable as
            it is, infinite if no factor up to 1000 makes it so.
        phase: lag at which the loop becomes unstable under the delay that it has, degrees; 0 if it is unstable as it
            is, infinite if no lag makes it so.
    """

    delay: float
    frequency: float
    gain: float
    phase: float


@dataclass(frozen=True)
class LinearLoop:
    """Linearised arm at rest with feedback u = -F x; x: links, motors of elastic joints, then their rates.

    Attributes:
        A, B: (N, N), (N, m) of xd = A x + B u.
        F: (m, N).
    """

    A: Array
    B: Array
    F: Array

    def margins(self, delay: float = 0.0) -> Margins:
        """Stability margins of the loop with a delay of the feedback, s.

        Raises:
            StateError: the delay is negative or not finite.
        """
        T, (crossings, phases) = not_negative(delay, "delay"), self._unscaled
        delays = phases / crossings
        largest = float(np.min(delays, initial=np.inf))
        frequency = float(crossings[np.argmin(delays)] / (2 * np.pi)) if 0 < largest < np.inf else 0.0
        if largest <= T:
            return Margins(largest, frequency, 1.0, 0.0)
        lag = np.rad2deg(np.min(phases - crossings * T, initial=np.inf))
        stable, unstable = 1.0, np.inf
        for factor in _FACTORS[1:]:
            if self._largest_delay(factor) <= T:
                unstable = factor
                break
            stable = factor
        while np.isfinite(unstable) and unstable > (1 + _TOLERANCE) * stable:
            middle = np.sqrt(stable * unstable)
            if self._largest_delay(middle) <= T:
                unstable = middle
            else:
                stable = middle
        return Margins(largest, frequency, float(unstable), float(lag))

    def _loci(self, w: Array) -> NDArray[np.complex128]:
        """Eigenvalues (…, m) of L(jw), the smallest first."""
        response = np.linalg.solve(1j * w[..., np.newaxis, np.newaxis] * np.eye(len(self.A)) - self.A, self.B)
        loci = np.linalg.eigvals(self.F @ response).astype(complex)
        return np.take_along_axis(loci, np.argsort(np.abs(loci), axis=-1), axis=-1)

    def _largest_delay(self, factor: float) -> float:
        crossings, phases = self._crossings(factor)
        return float(np.min(phases / crossings, initial=np.inf))

    @cached_property
    def _unscaled(self) -> tuple[Array, Array]:
        return self._crossings(1.0)

    @cached_property
    def _search(self) -> tuple[Array, Array]:
        """Frequencies (W,) and logarithms (W, m) of the sizes of loci."""
        w = self._frequencies()
        return w, np.log(np.maximum(np.abs(self._loci(w)), np.finfo(float).tiny))

    def _crossings(self, factor: float) -> tuple[Array, Array]:
        """Frequencies (k,), rad/s, where a locus has magnitude 1 with all gains times a factor, and phases above -pi.

        A loop that is unstable without delay has one, with phase 0.
        """
        if np.linalg.eigvals(self.A - factor * self.B @ self.F).real.max() >= 0:
            return np.full(1, np.inf), np.zeros(1)
        w, sizes = self._search
        above = sizes > -np.log(factor)
        k, locus = np.nonzero(above[:-1] != above[1:])
        # The n-th size of all is continuous in w, a locus by itself changes places with others.
        low, high, left = w[k], w[k + 1], above[k, locus]
        each = np.arange(len(k))
        for _ in range(_BISECTIONS if len(k) else 0):
            middle = 0.5 * (low + high)
            same = (factor * np.abs(self._loci(middle)[each, locus]) > 1) == left
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        phases = np.angle(self._loci(high)[each, locus])
        return high, np.mod(phases + np.pi, 2 * np.pi)

    def _frequencies(self) -> Array:
        """Frequencies of the search, rad/s, dense around resonances, where the loci are not smooth."""
        poles = np.concatenate([np.linalg.eigvals(self.A), np.linalg.eigvals(self.A - self.B @ self.F)])
        sizes = np.abs(poles)
        low, high = 1e-2 * sizes[sizes > 1e-3 * sizes.max()].min(), 1e2 * sizes.max() * _FACTORS[-1]
        beside = np.geomspace(_NEAREST, 0.3, _BESIDE)
        peaks = np.unique(np.round(np.abs(poles.imag[poles.imag > low]), 9))
        near = peaks[:, np.newaxis] * np.concatenate([1 - beside, 1 + beside])
        return np.unique(np.concatenate([np.geomspace(low, high, _FREQUENCIES), near.ravel()]))


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
    """Linearised loop, at rest at q (n,), of a motor PD with :func:`motor_gains`; errors as there.

    Dry friction and losses of gears are left out, since they only damp.
    """
    kp, kd = motor_gains(plant, q, natural_frequency)
    return linear_loop(plant, q, lambda arm, x: -kp * x.theta - kd * x.thetad)


def link_loop(plant: ElasticPlant, q: ArrayLike, natural_frequency: float) -> LinearLoop:
    """Linearised loop, at rest at q (n,), of :func:`~eom_dynamics.elastic.linearizing_effort`.

    Gains are those of :func:`~eom_dynamics.elastic.chain_gains`. Dry friction and losses of gears are left out.

    Raises:
        StateError: as of those functions; a joint is rigid.
    """
    rigid = ", ".join(name for name, x in zip(plant.arm.motor_names, plant.rigid.tolist(), strict=True) if x)
    if rigid:
        raise StateError(f"feedback linearization needs springs at all joints; rigid: {rigid}")
    (at,), gains = joint_states(plant.arm.robot.n, q), chain_gains(natural_frequency)
    reference = [at, *np.zeros((len(STATE_NAMES) - 1, at.size))]

    def effort(arm: ElasticArm, x: State) -> Array:
        state = flat_state(arm, x.theta, x.thetad, x.q, x.qd)
        return linearizing_effort(arm, state, reference, gains, stiffness_gains=chain_gains(natural_frequency, 2))

    return linear_loop(plant, at, effort)


def linear_loop(plant: ElasticPlant, q: ArrayLike, feedback: Callable[[ElasticArm, State], Array]) -> LinearLoop:
    """Linearize an arm at rest and its feedback."""
    arm = ElasticArm(_without_dry_friction(plant.arm.robot), rotor_model=plant.arm.rotor_model)
    smooth = ElasticPlant(arm)
    n, m = arm.robot.n, len(smooth.rigid)
    rest = smooth.on_trajectory(q, *np.zeros((len(STATE_NAMES) - 1, n)))
    effort = arm.feedforward(q, *np.zeros((len(STATE_NAMES) - 1, n))).motor_effort
    # From links and motors of elastic joints to links and all motors.
    free = np.flatnonzero(~smooth.rigid)
    both = np.zeros((n + m, n + len(free)))
    both[:n, :n] = np.eye(n)
    both[n:, :n] = smooth.joints * smooth.rigid[:, np.newaxis]
    both[n + free, n + np.arange(len(free))] = 1.0
    states = np.kron(np.eye(2), both)
    kept = np.concatenate([np.arange(n), n + free])
    kept = np.concatenate([kept, n + m + kept])

    def slopes(function: Callable[[Array], Array]) -> Array:
        ends = [function(rest + step * _STEP * states.T) for step in (1, -1)]
        slope: Array = (ends[0] - ends[1]).T / (2 * _STEP)
        return slope

    efforts = effort + np.concatenate([np.eye(m), -np.eye(m)])
    rates = smooth.rate(np.tile(rest, (2 * m, 1)), efforts)[:, kept]
    A = slopes(lambda x: smooth.rate(x, np.broadcast_to(effort, (len(x), m)))[:, kept])
    F = -slopes(lambda x: feedback(arm, smooth.parts(x)))
    return LinearLoop(A, (rates[:m] - rates[m:]).T / 2, F)


def _without_dry_friction(robot: Robot) -> Robot:
    joints = []
    for joint in robot.joints:
        friction = joint.actuator.friction
        viscous = np.fmin(friction.viscous, friction.viscous_negative)
        smooth = replace(joint.actuator, friction=Friction(viscous=viscous), gear=LOSSLESS)
        joints.append(replace(joint, actuator=smooth))
    return replace(robot, joints=tuple(joints), joint_friction=False)
