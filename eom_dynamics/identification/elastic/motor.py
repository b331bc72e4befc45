# SPDX-License-Identifier: Apache-2.0
"""Rotor inertia, motor friction, gear loss and torque constant from quantities of the motor side.

    u = s (B thetadd + load(tau, v) + D v + E |v| + (c + (S - c) exp(-(v/v_s)²)) tanh(v/v_0)) + o,    v = thetad,

all on the link side of the gear: the motor equation of :class:`.ElasticArm` with the friction of
:class:`.Friction` and the loss of :class:`.Gear`. u is the motor effort, s = 1, or
the current, s = 1/(k_t N) with torque constant k_t and gear ratio N. E is half the difference of viscous friction
between both directions. The difference of dry friction is not identifiable separately from the offset o, and is part
of it.

Without a measured tau, deflections of the spring stand for it: tau = K delta + K3 delta³.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import maximum_filter1d

from ...actuators.actuator import Actuator, Gear
from ...actuators.friction import Friction
from ...arguments import number_by_rule
from ...arrays import Array
from ...robot import Robot
from ..recording import IdentificationError
from ..sampling import LowPass, cutoff_of, even_signals, longest, of_one_motion, rate_of
from .curve_fit import SIGNIFICANT, CurveEstimate, curve_fit
from .options import MOTOR_TERMS
from .springs import with_joints

# First values of v_0 and v_s as shares of the highest velocity.
_SMOOTHING, _STRIBECK = (0.003, 0.02, 0.1), (0.05, 0.2)

_SPEEDS = (0.1, 0.2, 0.3, 0.45, 0.6, 0.8)  # candidate speeds of reversals, relative to the RMS velocity of the motor
_LEAST_AWAY = 0.2  # share of the samples of each direction that must be away from reversals
_HOLDS = 2.0  # maximum ratio of mean squared residuals near reversals to other samples for tanh(v/v_0)
_LEAST_GAIN = 0.1  # least variance of the difference of two estimates, relative to the one by fewer samples


@dataclass(frozen=True)
class MotorModel:
    """Terms of the fit.

    Attributes:
        terms: of the model, from MOTOR_TERMS.
        rotor_inertia: known B, kg m² (kg); fitted by default.
        hardening: whether the spring of a fit with deflections has a cubic term.
        smoothing_power: P_0 of the gear loss, W.
    """

    terms: Collection[str] = ("viscous", "coulomb", "offset")
    rotor_inertia: float | None = None
    hardening: bool = False
    smoothing_power: float = 0.1


@dataclass(frozen=True, eq=False)
class MotorFit:
    """An identified motor.

    Attributes:
        rotor_inertia: B and its standard deviation, kg m² (kg), on the link side of the gear.
        friction: for the robot file.
        gear: for the robot file.
        torque_constant: k_t and its standard deviation, N m/A, of a fit of currents; else None.
        parameters: value and standard deviation by name: ``rotor_inertia``, ``viscous`` D, ``asymmetry`` E,
            ``coulomb`` c, ``stribeck`` S - c, ``stribeck_velocity``, ``smoothing_velocity``, ``efficiency``,
            ``offset`` o (in the unit of u), ``torque_per_current`` k_t N, ``stiffness`` K and ``cubic`` K3, if
            fitted.
        cutoff: of the filter, Hz.
        residual: RMS of u minus model, in the unit of u.
        relative: residual over the RMS of u about its mean.
        samples: number of independent samples.
        undetermined: unidentifiable parameters, a line each.
        of_current: whether u is the current, A.
        spring_covariance: of ``stiffness`` and ``cubic``.
    """

    rotor_inertia: tuple[float, float]
    friction: Friction
    gear: Gear
    torque_constant: tuple[float, float] | None
    parameters: dict[str, tuple[float, float]]
    cutoff: float
    residual: float
    relative: float
    samples: int
    undetermined: tuple[str, ...]
    of_current: bool = False
    spring_covariance: Array = field(default_factory=lambda: np.zeros((0, 0)))

    def actuator(self, before: Actuator) -> Actuator:
        """The actuator with identified friction, gear loss and torque constant; v_0 of the file if it is unknown."""
        motor = before.motor
        if self.torque_constant is not None:
            motor = replace(motor, torque_constant=self.torque_constant[0])
        old, (v_0, deviation) = before.friction, self.parameters.get("smoothing_velocity", (np.nan, np.nan))
        friction = replace(
            self.friction,
            presliding_distance=old.presliding_distance,
            smoothing_velocity=v_0 if np.isfinite(deviation) else old.smoothing_velocity,
        )
        return replace(before, friction=friction, gear=self.gear, motor=motor)


def fit_motor(
    t: ArrayLike,
    theta: ArrayLike,
    *,
    tau: ArrayLike | None = None,
    deflection: ArrayLike | None = None,
    effort: ArrayLike | None = None,
    current: ArrayLike | None = None,
    gear_ratio: float = 1.0,
    model: MotorModel = MotorModel(),
    cutoff: float | None = None,
    starts: Sequence[int] = (),
) -> MotorFit:
    """Fit the motor of one joint.

    All terms pass the same zero-phase low-pass filter, which does not change the parameters of linear terms; nonlinear
    terms are functions of the filtered velocity.

    Args:
        t: times (N,), s, in even steps.
        theta: motor position on the link side of the gear (N,), rad or m.
        tau: effort of the spring on the link (N,), N m or N; or
        deflection: motor minus link (N,), rad or m.
        effort: motor effort on the link side of the gear (N,), N m or N; or
        current: of the motor (N,), A.
        gear_ratio: N, which alone splits k_t from k_t N.
        model: terms, and known parameters.
        cutoff: of the filter, Hz; by default from the noise of the acceleration.
        starts: first samples of the second and further motions of a joined recording.

    Raises:
        IdentificationError: not one each of tau and deflection, of effort and current, is given; a term is unknown;
            times are not even, shapes differ, or a number is not finite; the motor does not move; or current and
            deflections leave the unit of effort unknown.
    """
    if (tau is None) == (deflection is None) or (effort is None) == (current is None):
        raise IdentificationError("give either tau or deflection, and either effort or current")
    if tau is None and current is not None:
        raise IdentificationError("current and deflection alone leave the unit of effort unknown; give tau or effort")
    if unknown := sorted(set(model.terms) - set(MOTOR_TERMS)):
        raise IdentificationError(f"terms must be among {', '.join(MOTOR_TERMS)}; unknown: {', '.join(unknown)}")
    if not (gear_ratio := number_by_rule(gear_ratio, "gear_ratio", IdentificationError, rule="finite")):
        raise IdentificationError("gear_ratio must not be 0")
    recorded = {"theta": theta, "tau": tau, "deflection": deflection, "effort": effort, "current": current}
    period, signals = even_signals(t, {name: x for name, x in recorded.items() if x is not None})
    if signals["theta"].ndim != 1:
        raise IdentificationError(f"theta must be of one joint, (N,), has {signals['theta'].shape}")
    part = longest(len(signals["theta"]), starts)
    low_pass = LowPass(period, cutoff_of(period, signals["theta"][part], 2) if cutoff is None else cutoff)
    equation = _Equation(low_pass, signals, model, starts)
    return _result(equation.fit(), equation, low_pass.cutoff, gear_ratio)


class _Equation:
    """The motor equation, filtered and thinned, as a function of its parameters."""

    def __init__(self, low_pass: LowPass, signals: dict[str, Array], model: MotorModel, starts: Sequence[int]) -> None:
        self._filter, self.model, terms = low_pass, model, set(model.terms)
        margin = 2 * low_pass.reach + 4
        self._rows = of_one_motion(len(signals["theta"]), starts, margin, low_pass.decimation)
        velocity = rate_of(signals["theta"], low_pass.period)
        acceleration = rate_of(velocity, low_pass.period)
        velocity, signals = velocity[2:-2], {name: x[4:-4] for name, x in signals.items()}
        # Nonlinear terms are functions of filtered signals, and so lose the ends of the record twice.
        self._velocity = low_pass(velocity)
        self._fastest = float(np.max(np.abs(self._velocity)))
        if not self._fastest > 0:
            raise IdentificationError("the motor does not move in this recording")
        self.of_current = "current" in signals
        self.target = self._cut(signals["current" if self.of_current else "effort"])
        self._linear, self._known = {"rotor_inertia": self._cut(acceleration)}, np.zeros(1)
        if model.rotor_inertia is not None:
            self._known = model.rotor_inertia * self._linear.pop("rotor_inertia")
        if "viscous" in terms:
            self._linear["viscous"] = self._cut(velocity)
        if "asymmetric" in terms:
            self._linear["asymmetry"] = self._thinned(np.abs(self._velocity))
        self._dry = ["coulomb"] * bool({"coulomb", "stribeck"} & terms) + ["stribeck"] * ("stribeck" in terms)
        self._lossy, self._offset = "efficiency" in terms, "offset" in terms
        springs = {"tau": signals["tau"]} if "tau" in signals else {"stiffness": signals["deflection"]}
        if "deflection" in signals and model.hardening:
            springs["cubic"] = signals["deflection"] ** 3
        self._spring_columns = {name: self._cut(x) for name, x in springs.items()}
        self._springs = {name: low_pass(x) for name, x in springs.items()}
        # Most columns are filtered once per step of the fit: differences by other parameters do not change them.
        self._friction, self._loss = lru_cache(2)(self._dry_friction), lru_cache(2)(self._gear_loss)

    def _cut(self, x: Array) -> Array:
        """Filter a signal like the acceleration once, thin it, and omit samples without nonlinear terms."""
        return self._thinned(x[self._filter.reach : len(x) - self._filter.reach])

    def _thinned(self, x: Array) -> Array:
        return np.asarray(self._filter.thinned(x)[self._rows])

    def fit(self) -> CurveEstimate:
        """Estimate all parameters, from the best of a few first values of the velocities of dry friction."""
        v = self._fastest
        shares = product(
            _SMOOTHING if self._dry else _SMOOTHING[:1], _STRIBECK if "stribeck" in self._dry else _STRIBECK[:1]
        )
        start = min((self._start(v * low, v * high) for low, high in shares), key=lambda x: x[0])[1]
        bounds = {
            "smoothing_velocity": (1e-4 * v, v),
            "stribeck_velocity": (1e-3 * v, 3 * v),
            "efficiency": (0.1, 1.0),
            **dict.fromkeys(("rotor_inertia", "viscous", "coulomb", "stribeck", "stiffness", "cubic"), (0.0, np.inf)),
        }
        first = curve_fit(lambda p: self.target - self._model(dict(zip(start, p, strict=True))), start, bounds)
        return self._without_reversals(first, bounds) if self._dry else first

    def _without_reversals(self, first: CurveEstimate, bounds: Mapping[str, tuple[float, float]]) -> CurveEstimate:
        """Estimate all but v_0 again from samples without a reversal within the reach of the filter.

        A motor sticks at a reversal, with any effort within its dry friction, which would look like inertia. A real
        law that differs from the model at low speed, such as Stribeck's, biases samples next to reversals. The lowest
        speed is used whose estimate agrees with all higher speeds (O. Lepski, Theory Probab. Appl. 35, 1990).
        Squared differences beyond chance, in the mean, are variances of the model's error (R. DerSimonian, N. Laird,
        Controlled Clinical Trials 7, 1986); for the highest speed, differences to the one below. If too few samples of
        a direction are left, parameters are estimated from all samples, and their deviations are unknown, NaN.
        """
        ladder = [x for share in _SPEEDS if (x := self._away_from_reversals(first, bounds, share)) is not None]
        for k, near in enumerate(ladder):
            values, std = np.array([(x.values, x.std) for x in ladder[k:]]).swapaxes(0, 1)
            with np.errstate(invalid="ignore"):  # no effect on one, or both
                chance = np.maximum(np.square(std) - np.square(near.std), _LEAST_GAIN * np.square(std))
                excess = np.where(std > 0, np.square(values - near.values) - chance, 0.0)[1:]
                if np.any(excess > (SIGNIFICANT**2 - 1) * chance[1:]):
                    continue
            if not len(excess):
                excess = np.square([near.values - ladder[max(k - 1, 0)].values])
            error = np.where(near.std > 0, np.nan_to_num(np.mean(np.maximum(excess, 0), axis=0)), 0.0)
            return replace(near, covariance=near.covariance + np.diag(error))
        return replace(first, covariance=np.full_like(first.covariance, np.nan))

    def _away_from_reversals(
        self, first: CurveEstimate, bounds: Mapping[str, tuple[float, float]], share: float
    ) -> CurveEstimate | None:
        """Estimate from samples faster than a share of the RMS velocity; None if there are too few."""
        values = dict(zip(first.names, first.values.tolist(), strict=True))
        v_0 = values.pop("smoothing_velocity")
        reach, v = self._filter.reach, self._velocity
        slow = np.abs(v) < share * np.sqrt(np.mean(np.square(v)))
        near = maximum_filter1d(slow, 2 * reach + 1)[reach : len(v) - reach : self._filter.decimation]
        away, forward = ~near[self._rows], self._thinned(np.sign(v)) > 0
        if any(np.sum(away & side) < _LEAST_AWAY * np.sum(side) for side in (forward, ~forward)):
            return None

        def residual(p: Array) -> Array:
            return self.target - self._model(dict(zip(values, p, strict=True)) | {"smoothing_velocity": v_0})

        again = curve_fit(lambda p: residual(p)[away], values, bounds)
        place, rest = first.names.index("smoothing_velocity"), [first.names.index(name) for name in again.names]
        covariance = np.zeros_like(first.covariance)
        # If a motor sticks, filtered velocities determine v_0.
        squares = np.square(residual(again.values))
        holds = np.sum(squares[~away]) <= _HOLDS * np.sum(~away) * np.mean(squares[away])
        covariance[place, place] = first.covariance[place, place] if holds else np.nan
        covariance[np.ix_(rest, rest)] = again.covariance
        all_values = np.insert(again.values, place, v_0)
        stopped = tuple(name for name in first.at_bound if name == "smoothing_velocity")
        return replace(
            again, names=first.names, values=all_values, covariance=covariance, at_bound=(*again.at_bound, *stopped)
        )

    def _dry_friction(self, v_0: float, v_s: float) -> dict[str, Array]:
        """Terms of dry friction by the name of their factor."""
        if not self._dry:
            return {}
        sign = np.tanh(self._velocity / v_0)
        terms = {"coulomb": sign, "stribeck": np.exp(-np.square(self._velocity / v_s)) * sign}
        return {name: self._thinned(terms[name]) for name in self._dry}

    def _gear_loss(self, efficiency: float, *springs: float) -> Array:
        """Loss of the gear, without the load, by factors of the columns of springs."""
        tau = np.asarray(sum(factor * x for factor, x in zip(springs, self._springs.values(), strict=True)))
        return self._thinned(Gear(efficiency, self.model.smoothing_power).load(tau, self._velocity) - tau)

    def _start(self, v_0: float, v_s: float) -> tuple[float, dict[str, float]]:
        """Sum of squares and parameters by linear least squares, without gear loss."""
        columns, springs, target = self._linear | self._friction(v_0, v_s), dict(self._spring_columns), self.target
        measured = springs.pop("tau", None)
        columns |= springs
        if measured is not None and self.of_current:
            columns["torque_per_current"] = measured + self._known
        else:
            target = target - self._known - (0.0 if measured is None else measured)
        if self._offset:
            columns["offset"] = np.ones_like(target)
        A = np.stack(list(columns.values()), axis=-1)
        factors = np.linalg.lstsq(A, target, rcond=None)[0]
        values = {name: float(x) for name, x in zip(columns, factors, strict=True)}
        if self.of_current:
            if not values["torque_per_current"] > 0:
                raise IdentificationError("current falls as the effort of the spring rises; check signs")
            gain = 1 / values["torque_per_current"]
            values = {name: x if name == "offset" else gain * x for name, x in values.items()}
            values["torque_per_current"] = gain
        values |= {"smoothing_velocity": v_0} if self._dry else {}
        values |= {"stribeck_velocity": v_s} if "stribeck" in self._dry else {}
        values |= {"efficiency": 0.95} if self._lossy else {}
        return float(np.sum((target - A @ factors) ** 2)), values

    def _model(self, values: dict[str, float]) -> Array:
        """u (N,) by the equation of the module."""
        total = np.asarray(self._known + sum(values.get(name, 1.0) * x for name, x in self._spring_columns.items()))
        if self._lossy:
            total = total + self._loss(values["efficiency"], *(values.get(name, 1.0) for name in self._springs))
        friction = self._friction(values.get("smoothing_velocity", 1.0), values.get("stribeck_velocity", 1.0))
        for name, x in (self._linear | friction).items():
            total = total + values[name] * x
        return total / values.get("torque_per_current", 1.0) + values.get("offset", 0.0)


def _result(estimate: CurveEstimate, equation: _Equation, cutoff: float, gear_ratio: float) -> MotorFit:
    estimates, default = estimate.by_name(), Friction()
    value = {"stribeck_velocity": default.stribeck_velocity, "smoothing_velocity": default.smoothing_velocity}
    value |= dict.fromkeys(("viscous", "asymmetry", "coulomb", "stribeck"), 0.0) | {"efficiency": 1.0}
    value |= {name: x for name, (x, _) in estimates.items()}
    half = value["asymmetry"]
    # E |v| is added to D v; it is zero in a direction in which friction would drive the motor.
    friction = Friction(
        viscous=max(value["viscous"] + half, 0.0),
        viscous_negative=max(value["viscous"] - half, 0.0) if half else np.nan,
        coulomb=value["coulomb"],
        static=value["coulomb"] + value["stribeck"],
        stribeck_velocity=value["stribeck_velocity"],
        smoothing_velocity=value["smoothing_velocity"],
    )
    constant, lines = None, list(estimate.undetermined)
    springs = [estimate.names.index(name) for name in ("stiffness", "cubic") if name in estimate.names]
    if equation.of_current:
        gain, std = estimates["torque_per_current"]
        constant = gain / abs(gear_ratio), std / abs(gear_ratio)
        lines.append("torque_constant: only k_t N is measured; k_t is that over the gear ratio given")
    if np.isnan(estimates.get("smoothing_velocity", (0.0, 0.0))[1]):
        lines.append("smoothing_velocity: friction at reversals is not tanh(v/v_0); file value kept")
    if "coulomb" in estimates and "offset" in estimates:
        lines.append("offset: the sum of sensor offset and direction-dependent dry friction")
    return MotorFit(
        estimates["rotor_inertia"] if (known := equation.model.rotor_inertia) is None else (known, 0.0),
        friction,
        Gear(value["efficiency"], equation.model.smoothing_power),
        constant,
        estimates,
        cutoff,
        float(np.sqrt(np.mean(estimate.residual**2))),
        float(np.std(estimate.residual) / np.std(equation.target)),
        int(len(estimate.residual) / estimate.correlation_time),
        tuple(lines),
        equation.of_current,
        estimate.covariance[np.ix_(springs, springs)],
    )


def with_motors(robot: Robot, fits: Mapping[str, MotorFit]) -> Robot:
    """The robot with identified rotors, motor friction, gear loss and torque constants, by joint.

    Raises:
        IdentificationError: the robot has no such independent joint.
    """
    return with_joints(
        robot,
        fits,
        lambda joint, fit: replace(joint, rotor_inertia=fit.rotor_inertia[0], actuator=fit.actuator(joint.actuator)),
    )
