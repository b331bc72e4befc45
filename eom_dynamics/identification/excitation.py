# SPDX-License-Identifier: Apache-2.0
"""Optimal excitation: the most informative periodic motion within limits, for identification.

The parameters of finite Fourier series (J. Swevers et al., "Optimal robot excitation and identification", IEEE Trans.
Robotics and Automation 13, 1997) that start and end at rest, :class:`.RestSeries`, are found by sequential quadratic
programming (SciPy's SLSQP):

    minimise    -log det(W^T W)/P + c log(condition number of W)
    subject to  smooth maximum over time of |value|/limit <= 1 for each limited quantity of joints and motors,

with the regressor W of the P base parameters. The first term alone is D-optimality; it may leave the condition number
as it was, and improve parameters that are well conditioned already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array
from ..elastic import ElasticArm
from ..elastic.bounds import GivenLimits
from ..exceptions import TrajectoryError
from ..option_fields import option
from ..robot import Robot
from ..trajectory import Fourier, Verdict, check
from .excitation_information import Information, InformationModel
from .excitation_limits import MotionLimits, smooth_maximum, with_limits
from .excitation_series import RestSeries
from .excitation_spheres import Spheres
from .regressor import Regressor

# Samples in a period of the highest harmonic: in the optimisation, and in the final check at 1 kHz or more.
_COARSE, _FINE = 16, 100

CHECK_RATE = 1000.0
"""Smallest rate at which the limits of the result are checked, Hz."""

# Bisections of the amplitude.
_BISECTIONS = 20

# Random motions that may be drawn for each that meets the limits.
_ATTEMPTS = 100

_SLACK = 1e-9

# Share by which an iterate may exceed limits and be kept; its amplitude is reduced in the end.
_NEARLY = 1e-3


@dataclass(frozen=True, eq=False)
class OptimalExcitation:
    """Result of an excitation optimisation.

    Attributes:
        trajectory: the motion, at rest at the ends of each of its periods.
        start: the motion at which the optimisation began, the best of the random ones.
        information, start_information: of both.
        verdict: check of the motion against the limits of the robot, of which it uses a share.
        iterations: of the optimiser.
        message: of the optimiser, why it ended.
    """

    trajectory: Fourier
    start: Fourier
    information: Information
    start_information: Information
    verdict: Verdict
    iterations: int
    message: str


@dataclass(frozen=True)
class ExcitationSeries:
    """Family of motions.

    Attributes:
        period: duration of a period, s; the longer it is, the more the joints move.
        harmonics: number of harmonics of 1/period in the motion.
        periods: number of periods.
    """

    period: float = option(10.0, rule="positive", metavar="S")
    harmonics: int = option(8, rule="[3, 50]", metavar="L")
    periods: int = option(1, rule="[1, 10000]", metavar="N")


@dataclass(frozen=True, eq=False)
class ExcitationBounds:
    """Limits of the motion.

    Attributes:
        limits: as of :func:`eom_dynamics.trajectory.check`, in place of those in the robot's file.
        share: share of each limit to use; efforts are those of a model that is not identified yet.
        spheres: spheres on bodies that must not overlap, see :class:`.Spheres`; without them, only the ranges of
            positions keep the robot away from itself.
        clearance: distance to keep between spheres, m.
    """

    limits: GivenLimits | None = None
    share: float = option(0.9, rule="(0, 1]", metavar="X")
    spheres: Mapping[str, ArrayLike] | None = None
    clearance: float = option(0.0, rule="not negative", metavar="M")


@dataclass(frozen=True, eq=False)
class ExcitationCriterion:
    """Information to maximise.

    Attributes:
        terms: term of each joint to identify besides the inertias, such as viscous or rotor_inertia.
        noise: (n,) standard deviations of the measured efforts, N m or N, up to a common factor; by default
            proportional to the limits of effort.
        condition_weight: weight of the logarithm of the condition number beside that of the determinant of the
            information; with 0 the motion is D-optimal.
    """

    terms: Sequence[str] = option((), flag="--term", metavar="NAME")
    noise: ArrayLike | None = None
    condition_weight: float = option(2.0, rule="not negative", metavar="C")


class Excitation:
    """Excitation problem: motions of a robot for the identification of its parameters.

    Attributes:
        robot: the robot, with the limits given.
        arm: with its springs and motors, whose limits count, too.
        series: the family of motions.
        limits: the limits.
        model: the parameters to identify, and the noise.
        periods: number of periods of the motions.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        series: ExcitationSeries = ExcitationSeries(),
        bounds: ExcitationBounds = ExcitationBounds(),
        criterion: ExcitationCriterion = ExcitationCriterion(),
    ) -> None:
        """Describe the task.

        Raises:
            TrajectoryError: a number is out of its range, a term is unknown, or a joint has no range of positions or no
                limit of velocity.
        """
        period, harmonics, weight = series.period, series.harmonics, criterion.condition_weight
        if not (np.isfinite(period) and period > 0):
            raise TrajectoryError(f"period must be a positive number of s, is {period}")
        self.robot = with_limits(robot, bounds.limits or {})
        self.arm = ElasticArm(self.robot)
        self.limits = MotionLimits(
            self.arm, bounds.share, Spheres(self.robot, bounds.spheres, bounds.clearance) if bounds.spheres else None
        )
        self.series = RestSeries(1 / period, harmonics, self.limits.velocity)
        try:
            regressor = Regressor(self.robot, criterion.terms)
        except ValueError as error:
            raise TrajectoryError(str(error)) from None
        self.model = InformationModel(regressor, _noise(self.arm, criterion.noise))
        if not (np.isfinite(weight) and weight >= 0):
            raise TrajectoryError(f"condition_weight must be a number from 0 on, is {weight:g}")
        self.condition_weight = float(weight)
        self.periods = series.periods
        self.trajectory(np.zeros(self.series.shape))  # checks the number of periods
        self._coarse = self._grid(_COARSE * harmonics)
        self._fine = self._grid(max(_FINE * harmonics, int(np.ceil(CHECK_RATE * period))))

    def trajectory(self, z: Array) -> Fourier:
        """Trajectory with parameters z (n, 2 L - 3) of :class:`.RestSeries`."""
        return self.series.trajectory(z, self.periods)

    def information(self, trajectory: Fourier) -> Information:
        """Information of one period of a motion."""
        period = 1 / trajectory.frequency
        samples = len(self._coarse[0])
        t = trajectory.ramp * period + np.arange(samples) * period / samples
        return self.model.information(np.stack(trajectory.derivatives(t, 2)))

    def cost(self, information: Information) -> float:
        """Cost to minimise: -log det/P + condition_weight log(condition number)."""
        return -information.log_det / len(self.model.columns) + self.condition_weight * float(
            np.log(information.condition)
        )

    def random(self, draw: np.random.Generator) -> Array:
        """Draw the parameters z of a random motion, scaled up to its limits.

        Each joint moves about a random position until it meets a limit of its own; if efforts are then too large, all
        move less.

        Raises:
            TrajectoryError: no random motion meets the limits: they do not allow the robot to stand still.
        """
        matrices = self._coarse[1]
        for _ in range(_ATTEMPTS):
            z = draw.standard_normal(self.series.shape)
            z[:, 0] = 0.0
            states = self.series.states(z, matrices)
            z[:, 0] = self.limits.middle + 0.5 * draw.uniform(-1, 1, len(z)) * self.limits.half
            room = np.vstack([self.limits.half - np.abs(z[:, 0] - self.limits.middle), self.limits.largest])
            z[:, 1:] *= np.min(room / np.max(np.abs(states[:4]), axis=1), axis=0)[:, np.newaxis]
            within = self._within(z, matrices)
            if within is not None:
                return within
        spheres = " and keeps spheres apart" if self.limits.spheres else ""
        raise TrajectoryError(
            f"{self.robot.name}: no random motion meets the limits of effort{spheres}: gravity alone may exceed them, "
            "raise them or the share to use, or narrow the ranges of positions"
        )

    def best_random(self, count: int, draw: np.random.Generator) -> Array:
        """Parameters z of the best of ``count`` random motions."""
        best, least = self.random(draw), np.inf
        for _ in range(count):
            z = self.random(draw)
            cost = self.cost(self.model.information(self.series.states(z, self._coarse[1])[:3]))
            if cost < least:
                best, least = z, cost
        return best

    def optimize(
        self,
        *,
        start: Array | None = None,
        candidates: int = 100,
        iterations: int = 300,
        seed: int = 0,
        progress: Callable[[float, float], Any] = lambda fraction, cost: None,
    ) -> OptimalExcitation:
        """Find the motion with the least :meth:`cost`; the result is never worse than the start.

        Args:
            start: parameters z of a motion within the limits; by default the best of ``candidates`` random ones.
            candidates: number of random motions.
            iterations: largest number of iterations of the optimiser.
            seed: of the random motions.
            progress: called with the fraction that is done, at least, and the present cost.

        Raises:
            TrajectoryError: no motion meets the limits.
        """
        from scipy.optimize import minimize

        first = self.best_random(candidates, np.random.default_rng(seed)) if start is None else np.array(start)
        task = _Task(self)
        done, kept, least = 0, task.variables(first), np.inf

        def step(x: Array) -> None:
            nonlocal done, kept, least
            done += 1
            # The last iterate may be beyond the limits, or where springs would be slack.
            cost = task.cost(x)[0]
            if cost < least and np.min(task.margins(x)) > -_NEARLY:
                kept, least = x.copy(), cost
            progress(min(done / iterations, 1.0), cost)

        answer = minimize(
            lambda x: task.cost(x)[0],
            task.variables(first),
            jac=lambda x: task.cost(x)[1],
            method="SLSQP",
            constraints={"type": "ineq", "fun": task.margins, "jac": task.margin_gradients},
            callback=step,
            options={"maxiter": iterations, "ftol": 1e-6},
        )
        begun = self._within(first, self._fine[1])
        if begun is None:
            raise TrajectoryError(f"{self.robot.name}: the start of the optimisation exceeds the limits")
        found, before = begun, self.information(self.trajectory(begun))
        after = before
        for x in (kept, answer.x):
            z = self._within(task.parameters(x), self._fine[1])
            if z is not None and self.cost(reached := self.information(self.trajectory(z))) < self.cost(after):
                found, after = z, reached
        motion = self.trajectory(found)
        return OptimalExcitation(
            trajectory=motion,
            start=self.trajectory(begun),
            information=after,
            start_information=before,
            verdict=check(self.arm, motion, rate=CHECK_RATE),
            iterations=int(answer.nit),
            message=str(answer.message),
        )

    def _grid(self, samples: int) -> tuple[Array, Array]:
        t = np.arange(samples) / samples / self.series.frequency
        return t, self.series.matrices(t, 4)

    def _within(self, z: Array, matrices: Array) -> Array | None:
        """The motion, or one about the same positions with the largest amplitude that meets the limits."""

        def meets(share: float) -> bool:
            states = self.series.states(_scaled(z, share), matrices)
            return bool(np.nanmax(np.abs(self.limits.ratios(states)), initial=0.0) <= 1 + _SLACK)

        if meets(1.0):
            return z
        if not meets(0.0):
            return None
        low, high = 0.0, 1.0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            low, high = (middle, high) if meets(middle) else (low, middle)
        return _scaled(z, low) if low > 0 else None


class _Task:
    """The functions of the optimiser, of variables x: parameters z, positions in half ranges from the middle."""

    def __init__(self, excitation: Excitation) -> None:
        self._of = excitation
        self._matrices = excitation._coarse[1]
        self._partials = excitation.limits.kinematic_partials()
        self._known: dict[str, tuple[bytes, Any]] = {}

    def variables(self, z: Array) -> Array:
        limits, x = self._of.limits, z.copy()
        x[:, 0] = (x[:, 0] - limits.middle) / limits.half
        return x.ravel()

    def parameters(self, x: Array) -> Array:
        limits, z = self._of.limits, x.reshape(self._of.series.shape).copy()
        z[:, 0] = limits.middle + limits.half * z[:, 0]
        return z

    def cost(self, x: Array) -> tuple[float, Array]:
        """Cost, and its gradient."""
        return self._once("cost", x, self._cost)

    def margins(self, x: Array) -> Array:
        return 1 - self._once("peaks", x, self._peaks)[0]

    def _once(self, name: str, x: Array, function: Callable[[Array], Any]) -> Any:
        """Value of a function that is asked for the same variables again."""
        key = x.tobytes()
        if name not in self._known or self._known[name][0] != key:
            self._known[name] = key, function(x)
        return self._known[name][1]

    def _states(self, x: Array) -> Array:
        return self._of.series.states(self.parameters(x), self._matrices)

    def _cost(self, x: Array) -> tuple[float, Array]:
        value, of_states = self._of.model.cost(self._states(x)[:3], self._of.condition_weight)
        return value, self._of_variables(of_states)

    def _peaks(self, x: Array) -> tuple[Array, Array]:
        return smooth_maximum(self._of.limits.ratios(self._states(x)))

    def margin_gradients(self, x: Array) -> Array:
        _, weights = self._once("peaks", x, self._peaks)
        states = self._states(x)
        linear = len(self._partials)
        gradients = np.zeros((weights.shape[1], *states.shape))
        gradients[:linear] = np.einsum("kc,coj->cokj", weights[:, :linear], self._partials)
        if linear < weights.shape[1]:
            partials = self._of.limits.nonlinear_partials(states)
            gradients[linear:] = weights[:, linear:].T[:, np.newaxis, :, np.newaxis] * partials
        return -self._of_variables(gradients)

    def _of_variables(self, of_states: Array) -> Array:
        """Gradients (…, number of variables) from those with respect to the states."""
        orders = of_states.shape[-3]
        gradient = self._of.series.parameter_gradient(of_states, self._matrices[:orders])
        gradient[..., 0] *= self._of.limits.half
        return gradient.reshape(*gradient.shape[:-2], -1)


def _scaled(z: Array, share: float) -> Array:
    return np.concatenate([z[:, :1], share * z[:, 1:]], axis=1)


def _noise(arm: ElasticArm, given: ArrayLike | None) -> Array:
    """Standard deviations of efforts, up to a factor: given, or the limits of efforts where all joints have one."""
    n = arm.robot.n
    if given is not None:
        noise = np.asarray(given, dtype=float)
        if noise.shape not in ((), (n,)) or not np.all(np.isfinite(noise) & (noise > 0)):
            raise TrajectoryError(f"noise must be one positive number or {n}, in N m or N")
        return np.broadcast_to(noise, (n,))
    efforts = np.array([joint.limits.effort for joint in arm.robot.independent_joints])
    torques = np.abs(arm.gear_ratio) * np.broadcast_to(arm.motor.torque_limit, (len(arm.motor_joint),))
    for joint, torque in zip(arm.motor_joint, torques, strict=True):
        efforts[joint] = min(efforts[joint], torque)
    return efforts if np.all(np.isfinite(efforts)) else np.ones(n)
