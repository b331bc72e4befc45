# SPDX-License-Identifier: Apache-2.0
"""Optimal excitation: the most informative periodic motion within limits, for identification.

The parameters of finite Fourier series (J. Swevers et al., "Optimal robot excitation and identification", IEEE Trans.
Robotics and Automation 13, 1997) that start and end at rest, :class:`RestSeries`, are found by sequential quadratic
programming (SciPy's SLSQP):

    minimize    -log det(W^T W)/P + c log(condition number of W)
    subject to  smooth maximum over time of |value|/limit <= 1 for each limited quantity of joints and motors,

with the regressor W of the P base parameters. The first term alone is D-optimality; it might leave the condition number
unchanged, and improve parameters that are already well conditioned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import all_finite, check_options, not_negative, number_or_vector, option
from ..arrays import Array
from ..elastic import ElasticArm
from ..elastic.limits import GivenLimits
from ..exceptions import TrajectoryError
from ..robot import Robot
from ..trajectory import Fourier, Verdict, check
from ..trajectory.feedforward import CHECK_RATE
from .excitation_limits import ExcitationLimits, Information, InformationModel, Spheres, smooth_maximum, with_limits
from .links.regressor import Regressor

# Samples in a period of the highest harmonic: in the optimization, and in the final check at 1 kHz or more.
_COARSE, _FINE = 16, 100
_BISECTIONS = 20  # bisections of the amplitude
_RANDOM = 0.1  # share of the random motions in the progress
_ATTEMPTS = 100  # random motions that may be drawn for each that meets the limits

_SLACK = 1e-9

# Relative excess over limits of an accepted iterate; the final amplitude is reduced.
_NEARLY = 1e-3


@dataclass(frozen=True, eq=False)
class OptimalExcitation:
    """Result of an excitation optimization.

    Attributes:
        trajectory: the motion, at rest at the ends of each of its periods.
        start: the start of the optimization, the best of the random motions.
        information, start_information: information of ``trajectory`` and ``start``.
        verdict: check of the motion against the limits of the robot; the motion uses a share of them.
        iterations: of the optimizer.
        message: of the optimizer, why it ended.
    """

    trajectory: Fourier
    start: Fourier
    information: Information
    start_information: Information
    verdict: Verdict
    iterations: int
    message: str


@dataclass(frozen=True, eq=False)
class ExcitationOptions:
    """Family of motions, limits, and parameters to identify.

    Attributes:
        period: duration of a period, s; the longer it is, the more the joints move.
        harmonics: number of harmonics of 1/period in the motion. Two conditions of rest act on the sines, and two on
            the cosines: with fewer than 3 nothing moves.
        periods: number of repetitions of the motion.
        limits: as of :func:`eom_dynamics.trajectory.check`, instead of the limits in the robot's file.
        share: share of each limit to use; efforts come from a model that is not identified yet.
        spheres: spheres on bodies that must not overlap, see :class:`.Spheres`; without them, only the ranges of
            positions keep the robot away from itself.
        clearance: distance to keep between spheres, m.
        terms: joint terms to identify with the base parameters, such as ``rotor_inertia``; see :class:`.Regressor`.
        noise: (n,) standard deviations of the measured efforts, N m or N, up to a common factor; by default
            proportional to the limits of effort.
        condition_weight: weight of the logarithm of the condition number relative to the logarithmic determinant of the
            information; with 0 the motion is D-optimal.
    """

    period: float = option(10.0, rule="positive", metavar="S")
    harmonics: int = option(8, rule="[3, 50]", metavar="L")
    periods: int = option(1, rule="[1, 10000]", metavar="N")
    limits: GivenLimits | None = None
    share: float = option(0.9, rule="(0, 1]", metavar="X")
    spheres: Mapping[str, ArrayLike] | None = None
    clearance: float = option(0.0, rule="not negative", metavar="M")
    terms: Sequence[str] = ()
    noise: ArrayLike | None = None
    condition_weight: float = 2.0

    def __post_init__(self) -> None:
        """Raise TrajectoryError if a number is out of its range."""
        check_options(self, TrajectoryError)
        not_negative(self.condition_weight, "condition_weight", TrajectoryError)


class Excitation:
    """Excitation problem: motions of a robot for the identification of its parameters.

    Attributes:
        robot: the robot, with the limits given.
        arm: the robot with its springs and motors, and their limits.
        series: the family of motions.
        limits: the limits.
        model: the parameters to identify, and the noise.
        periods: number of periods of the motions.
    """

    def __init__(self, robot: Robot, options: ExcitationOptions = ExcitationOptions()) -> None:
        """Describe the problem.

        Raises:
            TrajectoryError: a term is unknown, or a joint has no range of positions or no limit of velocity.
        """
        self.robot = with_limits(robot, options.limits or {})
        self.arm = ElasticArm(self.robot)
        spheres = Spheres(self.robot, options.spheres, options.clearance) if options.spheres else None
        self.limits = ExcitationLimits(self.arm, options.share, spheres)
        self.series = RestSeries(1 / options.period, options.harmonics, self.limits.velocity)
        try:
            regressor = Regressor(self.robot, options.terms)
        except ValueError as error:
            raise TrajectoryError(str(error)) from None
        self.model = InformationModel(regressor, _noise(self.arm, options.noise))
        self.condition_weight, self.periods = float(options.condition_weight), options.periods
        fine = max(_FINE * options.harmonics, int(np.ceil(CHECK_RATE * options.period)))
        counts = (_COARSE * options.harmonics, fine)
        self._coarse, self._fine = (self.series.matrices(np.arange(k) / k / self.series.frequency, 4) for k in counts)

    def trajectory(self, z: Array) -> Fourier:
        """Trajectory with parameters z (n, 2 L - 3) of :class:`.RestSeries`."""
        return self.series.trajectory(z, self.periods)

    def information(self, trajectory: Fourier) -> Information:
        """Information of one period of a motion."""
        period = 1 / trajectory.frequency
        samples = self._coarse.shape[1]
        t = trajectory.ramp * period + np.arange(samples) * period / samples
        return self.model.information(np.stack(trajectory.derivatives(t, 2)))

    def cost(self, information: Information) -> float:
        """Cost to minimize: -log det/P + condition_weight log(condition number)."""
        condition = self.condition_weight * float(np.log(information.condition))
        return condition - information.log_det / len(self.model.columns)

    def random(self, draw: np.random.Generator) -> Array:
        """Draw the parameters z of a random motion, scaled up to its limits.

        Each joint moves about a random position until it meets a limit of its own; if efforts are then too large, all
        move less. Raises TrajectoryError if no random motion meets the limits: the robot cannot even stand still.
        """
        for _ in range(_ATTEMPTS):
            z = draw.standard_normal(self.series.shape)
            z[:, 0] = 0.0
            states = self.series.states(z, self._coarse)
            z[:, 0] = self.limits.middle + 0.5 * draw.uniform(-1, 1, len(z)) * self.limits.half
            room = np.vstack([self.limits.half - np.abs(z[:, 0] - self.limits.middle), self.limits.largest])
            z[:, 1:] *= np.min(room / np.max(np.abs(states[:4]), axis=1), axis=0)[:, np.newaxis]
            if (within := self._within(z, self._coarse)) is not None:
                return within
        spheres = " and keeps spheres apart" if self.limits.spheres else ""
        raise TrajectoryError(
            f"{self.robot.name}: no random motion meets the limits of effort{spheres}: gravity alone may exceed them, "
            "raise them or the share to use, or narrow the ranges of positions"
        )

    def optimize(
        self,
        *,
        start: Array | None = None,
        candidates: int = 100,
        iterations: int = 300,
        progress: Callable[[float, float], Any] = lambda fraction, cost: None,
    ) -> OptimalExcitation:
        """Find the motion with the least :meth:`cost`; the result is never worse than the start.

        Args:
            start: parameters z of a motion within the limits; by default the best of ``candidates`` random motions.
            candidates: number of random motions.
            iterations: largest number of iterations of the optimizer.
            progress: called with the fraction that is done, at least, and the present cost: first for each random
                motion, then for each iteration.

        Raises:
            TrajectoryError: no motion meets the limits.
        """
        from scipy.optimize import minimize

        def cost_of(z: Array) -> float:
            return self.cost(self.model.information(self.series.states(z, self._coarse)[:3]))

        draw = np.random.default_rng(0)
        if start is None:
            start, best_cost = self.random(draw), np.inf
            for k in range(candidates):
                motion_cost = cost_of(candidate := self.random(draw))
                if motion_cost < best_cost:
                    start, best_cost = candidate, motion_cost
                progress(_RANDOM * (k + 1) / candidates, best_cost)
        first = np.array(start)
        task = _Task(self)
        done, kept, least = 0, task.variables(first), np.inf

        def step(x: Array) -> None:
            nonlocal done, kept, least
            done += 1
            # The last iterate may exceed the limits, or have slack springs.
            cost = task.cost(x)[0]
            if cost < least and np.min(task.margins(x)) > -_NEARLY:
                kept, least = x.copy(), cost
            progress(min(_RANDOM + (1 - _RANDOM) * done / iterations, 1.0), cost)

        answer = minimize(
            task.cost,
            task.variables(first),
            jac=True,
            method="SLSQP",
            constraints={"type": "ineq", "fun": task.margins, "jac": task.margin_gradients},
            callback=step,
            options={"maxiter": iterations, "ftol": 1e-6},
        )
        begun = self._within(first, self._fine)
        if begun is None:
            raise TrajectoryError(f"{self.robot.name}: the start of the optimization exceeds the limits")
        best, before = begun, self.information(self.trajectory(begun))
        after = before
        for x in (kept, answer.x):
            z = self._within(task.parameters(x), self._fine)
            if z is not None and self.cost(reached := self.information(self.trajectory(z))) < self.cost(after):
                best, after = z, reached
        motion, verdict = self.trajectory(best), check(self.arm, self.trajectory(best), rate=CHECK_RATE)
        iterations, message = int(answer.nit), str(answer.message)
        return OptimalExcitation(motion, self.trajectory(begun), after, before, verdict, iterations, message)

    def _within(self, z: Array, matrices: Array) -> Array | None:
        """The motion, or the motion about the same positions with the largest amplitude within the limits."""

        def meets(share: float) -> bool:
            states = self.series.states(_scaled(z, share), matrices)
            return bool(np.nanmax(np.abs(self.limits.ratios(states)), initial=0.0) <= 1 + _SLACK)

        low, high = 0.0, 1.0
        if meets(high):
            return z
        if not meets(low):
            return None
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            low, high = (middle, high) if meets(middle) else (low, middle)
        return _scaled(z, low) if low > 0 else None


class _Task:
    """The functions of the optimizer, of variables x: parameters z, positions in half ranges from the middle."""

    def __init__(self, excitation: Excitation) -> None:
        self._of = excitation
        self._matrices = excitation._coarse
        self._middle, self._unit = np.zeros(excitation.series.shape), np.ones(excitation.series.shape)
        self._middle[:, 0], self._unit[:, 0] = excitation.limits.middle, excitation.limits.half
        self._known: dict[str, tuple[bytes, Any]] = {}

    def variables(self, z: Array) -> Array:
        return ((z - self._middle) / self._unit).ravel()

    def parameters(self, x: Array) -> Array:
        return self._middle + self._unit * x.reshape(self._middle.shape)

    def cost(self, x: Array) -> tuple[float, Array]:
        """Cost, and its gradient."""
        model, weight = self._of.model, self._of.condition_weight
        value, of_states = self._once("cost", x, lambda states: model.cost(states[:3], weight))
        return value, self._of_variables(of_states)

    def margins(self, x: Array) -> Array:
        return 1 - self._peaks(x)[0]

    def _peaks(self, x: Array) -> tuple[Array, Array]:
        return self._once("peaks", x, lambda states: smooth_maximum(self._of.limits.ratios(states)))

    def _once(self, name: str, x: Array, function: Callable[[Array], Any]) -> Any:
        """Value of a function of the states, which the optimizer needs for the same variables again."""
        key = x.tobytes()
        if self._known.get(name, (b"",))[0] != key:
            self._known[name] = key, function(self._states(x))
        return self._known[name][1]

    def _states(self, x: Array) -> Array:
        return self._of.series.states(self.parameters(x), self._matrices)

    def margin_gradients(self, x: Array) -> Array:
        _, weights = self._peaks(x)
        partials = self._of.limits.partials(self._states(x))
        return -self._of_variables(weights.T[:, np.newaxis, :, np.newaxis] * partials)

    def _of_variables(self, of_states: Array) -> Array:
        """Gradients (…, number of variables) from gradients with respect to the states."""
        gradient = self._of.series.parameter_gradient(of_states, self._matrices[: of_states.shape[-3]]) * self._unit
        return gradient.reshape(*gradient.shape[:-2], -1)


def _scaled(z: Array, share: float) -> Array:
    return np.concatenate([z[:, :1], share * z[:, 1:]], axis=1)


def _noise(arm: ElasticArm, values: ArrayLike | None) -> Array:
    """Standard deviations of efforts, up to a factor: given, or the effort limits if all joints have one."""
    n = arm.robot.n
    if values is not None:
        return number_or_vector(values, "noise", n, "positive", error=TrajectoryError)
    efforts = np.array([joint.limits.effort for joint in arm.robot.independent_joints])
    np.minimum.at(efforts, arm.motor_joint, np.abs(arm.gear_ratio) * arm.motor.torque_limit)
    return efforts if all_finite(efforts) else np.ones(n)


class RestSeries:
    """Fourier series of L harmonics with qd, qdd, qddd and qdddd of zero at the ends of each period.

    In the series of :class:`.Fourier`,

        q(t) = q0 + sum over l of a_l/(w l) sin(w l t) - b_l/(w l) cos(w l t),

    velocity and jerk at t = 0 are sums of a_l and l² a_l, acceleration and snap sums of l b_l and l³ b_l. Orthonormal
    bases of the vectors that these four conditions leave, L - 2 sines and L - 2 cosines, take the place of a and b:

        a = scale A p,    b = scale B r,    with the parameters z = (q0, p, r), (n, 2 L - 3).

    Every z is a motion at rest at its ends, continuous up to the snap when it is repeated, and no ramps are required.

    Attributes:
        frequency: f = w/(2 pi), Hz.
        harmonics: L.
        scale: (n,) rad/s or m/s.
    """

    def __init__(self, frequency: float, harmonics: int, scale: Array) -> None:
        """Set the attributes."""
        self.frequency, self.harmonics, self.scale = float(frequency), harmonics, scale
        orders = np.arange(1, self.harmonics + 1, dtype=float)
        self._sine, self._cosine = _complement(orders**0, orders**2), _complement(orders, orders**3)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the parameters z."""
        return len(self.scale), 2 * self.harmonics - 3

    def trajectory(self, z: Array, periods: int = 1) -> Fourier:
        """Trajectory of the series with parameters z."""
        half = self._sine.shape[1]
        scale = self.scale[:, np.newaxis]
        sine, cosine = scale * z[:, 1 : 1 + half] @ self._sine.T, scale * z[:, 1 + half :] @ self._cosine.T
        return Fourier(self.frequency, sine, cosine, z[:, 0], periods=periods)

    def matrices(self, t: Array, order: int) -> Array:
        """Matrices (order + 1, K, 2 L - 3) such that the k-th derivative of q - q0 at times t is scale (F_k zᵀ)ᵀ.

        The first column, of q0, is zero.
        """
        w = 2 * np.pi * self.frequency * np.arange(1, self.harmonics + 1)
        angle = t[:, np.newaxis] * w
        result = np.zeros((order + 1, len(t), self.shape[1]))
        half = self._sine.shape[1]
        for k in range(order + 1):
            # sin(x + k pi/2) is the k-th derivative of sin(x).
            result[k, :, 1 : 1 + half] = (w ** (k - 1) * np.sin(angle + k * np.pi / 2)) @ self._sine
            result[k, :, 1 + half :] = -(w ** (k - 1) * np.cos(angle + k * np.pi / 2)) @ self._cosine
        return result

    def states(self, z: Array, matrices: Array) -> Array:
        """q and its derivatives (order + 1, K, n) from :meth:`matrices`."""
        states: Array = np.einsum("okm,nm->okn", matrices, z * self.scale[:, np.newaxis])
        states[0] += z[:, 0]
        return states

    def parameter_gradient(self, of_states: Array, matrices: Array) -> Array:
        """Gradients (…, n, 2 L - 3) with respect to z, from those (…, order + 1, K, n) with respect to the states."""
        gradient: Array = np.einsum("...okn,okm->...nm", of_states, matrices) * self.scale[:, np.newaxis]
        gradient[..., 0] = np.sum(of_states[..., 0, :, :], axis=-2)
        return gradient


def _complement(*conditions: Array) -> Array:
    """Orthonormal basis (L, L - number of conditions) of the vectors that are orthogonal to all conditions (L,)."""
    rows = np.stack([row / np.linalg.norm(row) for row in conditions])
    complete = np.linalg.qr(rows.T, mode="complete")[0]
    return complete[:, len(rows) :]
