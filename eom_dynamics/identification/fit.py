# SPDX-License-Identifier: Apache-2.0
"""Fit the parameters of a robot to recordings.

Steps, each a function of its own: choose the filter (:mod:`.choice`), prepare samples (:mod:`.filtering`), compress
their equations (:mod:`.equations`), estimate base parameters (:mod:`.estimators`), then find inertias of all bodies
that are physically possible, explain the data as well, and are close to those of the file (:mod:`.consistent`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np

from ..arrays import Array
from ..recursion import PARAMETERS
from ..robot import Robot
from . import consistent
from .choice import FOLDS, Trial, blocks, choose, noise_of_motion, others
from .consistent import Consistent, free_bodies
from .equations import Equations, chunks, equations, predictions
from .estimators import ESTIMATORS, Estimate, huber, ordinary, total, weighted
from .exceptions import IdentificationError
from .filtering import REST, Filter, Samples, prepare, settings
from .joint_terms import TERMS
from .payload import find_payload
from .prior import KINDS
from .recording import Recording
from .regressor import Regressor
from .residuals import Score, correlation_time, score
from .sampling import PER_PERIOD
from .stribeck import stribeck_velocities

SIDES = ("joint", "motor")
"""Where efforts were measured: between gear and link, or at the motor, in units of the joint."""

WEIGHTS = tuple(float(10.0**k) for k in range(-1, 4))
"""Weights of the prior that are tried; with 1, the file's inertias are known to a factor of e."""

# Samples beyond which only those that the cut-off needs are judged by; the RMS is the same.
_JUDGED = 20_000

# Equations for each parameter below which nothing is identified.
_LEAST_EQUATIONS = 1.5

# Residuals below this share of the efforts are of rounding, and count as this.
_FINEST = 1e-6

# Share of an effort's standard deviation that is left, beyond which something is wrong.
_UNEXPLAINED = 0.5

_COMMON_TERMS = ("viscous", "coulomb", "offset")

# Terms whose parameters a robot cannot have negative.
_NOT_NEGATIVE = ("viscous", "coulomb", "stribeck", "load", "rotor_inertia")


@dataclass(frozen=True)
class Options:
    """What is identified, and how.

    Attributes:
        side: one of SIDES; None for ``joint`` if the robot has springs, else ``motor``.
        terms: names in :data:`.joint_terms.TERMS`; None for viscous and Coulomb friction and offset, with rotor
            inertia on the motor side.
        inertia: identify the inertias of bodies; else those of the file stay.
        estimator: one of ESTIMATORS.
        prior: distance from the file, one of :data:`.prior.KINDS`.
        prior_weight: of that distance; None to choose it by blocks of the training data that are held out.
        cutoff: of the filter, Hz; None to choose it.
        measured_velocity: use recorded velocities; None to choose.
        payload: joint whose body carries a payload, which is identified alone with the offsets.
    """

    side: str | None = None
    terms: tuple[str, ...] | None = None
    inertia: bool = True
    estimator: str = "weighted"
    prior: str = "entropic"
    prior_weight: float | None = None
    cutoff: float | None = None
    measured_velocity: bool | None = None
    payload: str | None = None

    def __post_init__(self) -> None:
        """Check names; raises IdentificationError."""
        for name, value, known in (
            ("estimator", self.estimator, ESTIMATORS),
            ("prior", self.prior, KINDS),
            ("side", self.side or SIDES[0], SIDES),
        ):
            if value not in known:
                raise IdentificationError(f"{name} must be {' or '.join(known)}, is {value!r}")
        for name in self.terms or ():
            if name not in TERMS:
                raise IdentificationError(f"terms: there is no {name!r}; there are {', '.join(TERMS)}")

    def for_robot(self, robot: Robot) -> Options:
        """These options with what was left to the robot."""
        side = self.side or ("joint" if any(not j.spring.is_rigid for j in robot.independent_joints) else "motor")
        default = (*_COMMON_TERMS, "rotor_inertia") if side == "motor" else _COMMON_TERMS
        return replace(self, side=side, terms=default if self.terms is None else self.terms)


@dataclass(frozen=True, eq=False)
class Fit:
    """Identified parameters, with standard deviations and figures.

    Attributes:
        robot: as described by its file.
        options: what was identified.
        regressor: of base parameters and terms.
        filter: of the samples.
        trials: of filters, if one was chosen.
        estimate: of base parameters and terms by the linear estimator, without a prior.
        base_deviations: standard deviations (P,) of that estimate, infinite where the data do not tell.
        parameters: inertial parameters of all bodies (10 B,), physically possible; kg, kg m, kg m².
        parameter_deviations: (10 B,) of the data and the file together.
        terms: parameters of the terms by name, (n,).
        term_deviations: likewise.
        prior_weight: of the distance from the file.
        training, validation: figures of the data; None without validation.
        counts: of training efforts left out, by reason.
        notes: what the data cannot tell, and what else is to be known, a line each.
    """

    robot: Robot
    options: Options
    regressor: Regressor
    filter: Filter
    trials: tuple[Trial, ...]
    estimate: Estimate
    base_deviations: Array
    parameters: Array
    parameter_deviations: Array
    terms: dict[str, Array]
    term_deviations: dict[str, Array]
    prior_weight: float
    training: Score
    validation: Score | None
    counts: dict[str, int]
    notes: tuple[str, ...]

    @property
    def vector(self) -> Array:
        """Base parameters and terms (P,) of the possible inertias, for :attr:`regressor`."""
        return _vector(self.regressor, self.parameters, self.terms)

    def predict(self, samples: Samples) -> Array:
        """Efforts (N, n) of samples."""
        return predictions(self.regressor, samples, self.vector)

    def prepare(self, recording: Recording, *, decimate: bool = False) -> list[Samples]:
        """Samples of a recording, filtered as for the fit."""
        return prepare(recording, self.regressor.terms, replace(self.filter, decimate=decimate))

    @property
    def term_told(self) -> dict[str, Array]:
        """Whether the data tell each parameter of the terms, (n,) by name."""
        told = {}
        for term in self.regressor.terms:
            columns = [self.regressor.column(term, j) for j in range(self.robot.n)]
            told[term] = self.estimate.told[columns]
        return told


def fit(
    robot: Robot,
    training: Recording | Sequence[Recording],
    validation: Recording | Sequence[Recording] = (),
    options: Options | None = None,
    *,
    progress: Callable[[str, float], None] | None = None,
) -> Fit:
    """Identify a robot.

    Args:
        robot: as its file describes it; its geometry must be right, its inertias are the prior.
        training: recordings to fit.
        validation: recordings to judge by, of which nothing else is used.
        options: what is identified, and how.
        progress: called with the name of the step and the fraction of it that is done.

    Raises:
        IdentificationError: nothing can be identified.
    """
    training = [training] if isinstance(training, Recording) else list(training)
    validation = [validation] if isinstance(validation, Recording) else list(validation)
    options = (options or Options()).for_robot(robot)
    assert options.terms is not None
    if not training:
        raise IdentificationError("there is no recording to train on")
    report = progress or (lambda step, done: None)
    notes = _check(robot, training, validation)
    report("compile the regressor", 0.0)
    regressor = Regressor(robot, options.terms)
    using = settings(robot, options.cutoff or 1.0, motor_side=options.side == "motor")
    using, trials = choose(
        regressor,
        training,
        using,
        cutoff=options.cutoff,
        measured_velocity=options.measured_velocity,
        progress=lambda done: report("choose the cut-off", done),
    )
    report("filter", 0.0)
    samples = _samples(training, regressor, using)
    file = _vector(regressor, regressor.dynamics.inertial_parameters, _terms_of_file(robot, options))
    if "stribeck" in regressor.terms:
        using = replace(using, stribeck_velocity=stribeck_velocities(regressor, samples, using, file))
        samples = _samples(training, regressor, using)
    counts: dict[str, int] = {}
    for part in samples:
        for reason, count in part.counts.items():
            counts[reason] = counts.get(reason, 0) + count
    folds = blocks(samples)
    report("estimate", 0.0)
    systems = [equations(regressor, fold) for fold in folds]
    if not options.inertia:
        systems = [_without_inertia(system, regressor, file) for system in systems]
    system = reduce(add, systems)
    if not system.counts.any():
        raise IdentificationError(
            f"{training[0].name}: no joint moves with a recorded effort; nothing can be identified"
        )
    if system.counts.sum() < _LEAST_EQUATIONS * system.parameters:
        raise IdentificationError(
            f"{training[0].name}: {int(system.counts.sum()):,} efforts with motion are too few for {system.parameters} "
            f"parameters at a cut-off of {using.cutoff:.3g} Hz; record for longer, or identify fewer terms"
        )
    estimate, systems = _estimate(options, regressor, samples, folds, systems, file, training, using)
    residuals = [np.where(part.used, predictions(regressor, part, estimate.x) - part.tau, 0.0) for part in samples]
    # Residuals that depend on each other tell less than as many that do not.
    sigma = estimate.sigma * np.sqrt(correlation_time(residuals))
    with np.errstate(invalid="ignore"):
        finest = _FINEST * np.sqrt(system.squares(np.zeros(system.parameters)) / system.counts)
    white = np.nan_to_num(1 / np.maximum(sigma, finest))
    R = reduce(add, systems).weighted(white)[0]
    estimate = replace(estimate, R=R)
    deviations = estimate.deviations()
    report("possible inertias", 0.0)
    found, weight, k = None, 0.0, regressor.inertial
    if options.inertia and options.payload is None:
        found, weight = _consistent(
            options, regressor, systems, white, estimate, file, lambda done: report("possible inertias", done)
        )
    no_spread: Array = np.zeros(PARAMETERS * len(robot.joints))
    if options.payload is not None:
        payload = find_payload(regressor, systems, file, options.payload)
        parameters, spread = regressor.dynamics.inertial_parameters, no_spread
        body = [joint.name for joint in robot.joints].index(options.payload)
        parameters[PARAMETERS * body : PARAMETERS * (body + 1)] += payload.parameters
        spread[PARAMETERS * body : PARAMETERS * (body + 1)] = payload.deviations
        own, own_spread = file[k:].copy(), np.zeros_like(file[k:])
        if "offset" in regressor.terms:
            at = slice(regressor.column("offset", 0) - k, regressor.column("offset", 0) - k + robot.n)
            own[at], own_spread[at] = payload.offsets, payload.offset_deviations
        notes.append(payload.words)
    elif found is None:
        parameters, spread = regressor.dynamics.inertial_parameters, no_spread
        own, own_spread = np.maximum(estimate.x[k:], _lower(regressor)), deviations[k:]
    else:
        solution, bodies = found
        parameters, spread = solution.parameters, solution.parameter_deviations(bodies)
        own, own_spread = solution.terms, np.where(estimate.told[k:], solution.term_deviations, np.inf)
    terms = {name: own[i * robot.n : (i + 1) * robot.n] for i, name in enumerate(regressor.terms)}
    term_deviations = {name: own_spread[i * robot.n : (i + 1) * robot.n] for i, name in enumerate(regressor.terms)}
    x = _vector(regressor, parameters, terms)
    report("judge", 0.0)
    figures = [_score(regressor, recordings, using, file, x) for recordings in (training, validation)]
    if found is not None and not found[0].converged:
        notes.append("the optimiser stopped before it converged")
    notes += _unexplained(robot, figures)
    if options.payload is None:
        notes += _untold(regressor, deviations, terms, term_deviations, options)
    assert figures[0] is not None
    return Fit(
        robot,
        options,
        regressor,
        using,
        trials,
        estimate,
        deviations,
        parameters,
        spread,
        terms,
        term_deviations,
        weight,
        figures[0],
        figures[1],
        counts,
        tuple(notes),
    )


def _check(robot: Robot, training: Sequence[Recording], validation: Sequence[Recording]) -> list[str]:
    """Notes on recordings; raises IdentificationError for those that are of another robot."""
    notes = []
    for recording in (*training, *validation):
        if recording.joint_names != robot.joint_names:
            raise IdentificationError(
                f"{recording.name}: has the joints {', '.join(recording.joint_names)}, the robot "
                f"{', '.join(robot.joint_names)}"
            )
        clean = recording.cleaned()
        notes += [f"{recording.name}: {note}" for note in clean.notes]
        motions = list(clean.motions())
        if len(motions) > 1:
            notes.append(f"{recording.name}: pauses or jumps of the clock separate {len(motions)} motions")
        moves = np.ptp(clean.q, axis=0) > REST
        silent = np.asarray(np.isnan(clean.tau).all(axis=0))
        if not moves.any():
            raise IdentificationError(f"{recording.name}: no joint moves")
        if silent.all():
            raise IdentificationError(f"{recording.name}: efforts are missing or the same throughout")
        for bad, what in (
            (~moves, "does not move; its friction and what only its motion shows cannot be told"),
            (silent, "has no effort, or the same throughout; its equations are not used"),
        ):
            notes += [
                f"{recording.name}: {name} {what}"
                for name, is_bad in zip(recording.joint_names, bad, strict=True)
                if is_bad
            ]
    return list(dict.fromkeys(notes))


def _samples(recordings: Sequence[Recording], regressor: Regressor, using: Filter) -> list[Samples]:
    samples = [part for recording in recordings for part in prepare(recording, regressor.terms, using)]
    if not samples:
        raise IdentificationError(
            f"{recordings[0].name}: too short for a cut-off of {using.cutoff:.3g} Hz, whose filter needs "
            f"{2 / using.cutoff:.3g} s at least"
        )
    return samples


def _vector(regressor: Regressor, parameters: Array, terms: dict[str, Array]) -> Array:
    inertial = parameters if regressor.full else regressor.base(parameters)
    return np.concatenate([inertial, *(terms[name] for name in regressor.terms)])


def _terms_of_file(robot: Robot, options: Options) -> dict[str, Array]:
    """Parameters of the terms as the file has them, zero where it cannot have them."""
    joints = robot.independent_joints
    laws = [joint.actuator.friction if options.side == "motor" else joint.friction_law for joint in joints]
    values: dict[str, Array] = {name: np.zeros(robot.n) for name in TERMS}
    values["viscous"] = np.array([float(law.viscous) for law in laws])
    values["coulomb"] = np.array([float(law.coulomb) for law in laws])
    values["stribeck"] = np.array([float(law.static) - float(law.coulomb) for law in laws])
    if options.side == "motor":
        values["rotor_inertia"] = np.asarray(robot.rotor_inertia)
    return values


def _lower(regressor: Regressor) -> Array:
    """Lower bounds (k,) of the terms."""
    n = regressor.robot.n
    bounds = [np.full(n, 0.0 if name in _NOT_NEGATIVE else -np.inf) for name in regressor.terms]
    return np.concatenate(bounds) if bounds else np.zeros(0)


def _without_inertia(system: Equations, regressor: Regressor, file: Array) -> Equations:
    """Equations of the terms alone, with the efforts of the file's inertias on the right side."""
    factors = []
    for M in system.factors:
        changed = M.copy()
        changed[:, -1] -= M[:, : regressor.inertial] @ file[: regressor.inertial]
        changed[:, : regressor.inertial] = 0.0
        factors.append(changed)
    return Equations(tuple(factors), system.counts)


def _estimate(
    options: Options,
    regressor: Regressor,
    samples: Sequence[Samples],
    folds: Sequence[Sequence[Samples]],
    systems: list[Equations],
    file: Array,
    training: Sequence[Recording],
    using: Filter,
) -> tuple[Estimate, list[Equations]]:
    """The linear estimate, and the equations of the blocks with the weights that it gave them."""
    system = reduce(add, systems)
    if options.estimator == "ordinary":
        return ordinary(system, file), systems
    first = weighted(system, file)
    if options.estimator == "total":
        return total(system, first, _regressor_errors(regressor, samples, training, using)), systems
    if options.estimator == "huber":
        if not options.inertia:
            raise IdentificationError("estimator huber identifies inertias, too; choose weighted for friction alone")
        result, _ = huber(regressor, samples, first, file)
        weights = [huber(regressor, fold, result, file)[1] for fold in folds]
        return result, [equations(regressor, fold, w) for fold, w in zip(folds, weights, strict=True)]
    return first, systems


def _regressor_errors(
    regressor: Regressor, samples: Sequence[Samples], training: Sequence[Recording], using: Filter
) -> list[Array]:
    """Mean covariance (P, P) of the errors of the rows of each joint, by the noise of accelerations."""
    motions = [motion for recording in training for motion in recording.cleaned().motions()]
    _, qdd = noise_of_motion(motions, using)
    n, P = regressor.robot.n, len(regressor.names)
    errors: list[Array] = [np.zeros((P, P)) for _ in range(n)]
    # A few states are enough for a mean.
    part = max(samples, key=len)[:: max(1, max(map(len, samples)) // 500)]
    q, zero = part.q, np.zeros_like(part.q)
    (_, at_rest), *_ = chunks(regressor, replace(part, qd=zero, qdd=zero))
    for k in range(n):
        unit = zero + np.eye(n)[k]
        columns = regressor.inertial_columns(q, zero, unit)[: len(at_rest)] - at_rest
        for j in range(n):
            rows = np.zeros((len(at_rest), P))
            rows[:, : regressor.inertial] = columns[:, j]
            if j == k and "rotor_inertia" in regressor.terms:
                rows[:, regressor.column("rotor_inertia", j)] = 1.0
            errors[j] += qdd[k] ** 2 * rows.T @ rows / len(rows)
    return errors


def _consistent(
    options: Options,
    regressor: Regressor,
    systems: Sequence[Equations],
    white: Array,
    estimate: Estimate,
    file: Array,
    progress: Callable[[float], None],
) -> tuple[tuple[Consistent, consistent.Bodies], float]:
    """Possible inertias, and the weight of the prior."""
    bodies = free_bodies(regressor.dynamics.inertial_parameters, options.prior)
    if not bodies.free:
        raise IdentificationError(f"{regressor.robot.name}: no body has mass; give each a guess of it")
    K, lower, k = regressor.base.combinations, _lower(regressor), regressor.inertial
    likely = np.where(estimate.told[k:], np.nan, file[k:])
    weight = options.prior_weight
    if weight is None:
        errors = np.zeros(len(WEIGHTS))
        for fold, held_out in enumerate(systems if len(systems) > 1 else ()):
            R, right = others(systems, fold).weighted(white)
            start = None
            for w in reversed(range(len(WEIGHTS))):  # from the file to the data, each step from the last solution
                found = consistent.solve(bodies, R, right, K, lower, WEIGHTS[w], start, likely=likely, draft=True)
                start = found.theta
                x = np.append(K @ found.parameters, found.terms)
                errors[w] += float(np.sum(np.square(white) * held_out.squares(x)))
                progress((fold * len(WEIGHTS) + len(WEIGHTS) - w) / (FOLDS * len(WEIGHTS) + 1))
        weight = WEIGHTS[int(np.argmin(errors))] if errors.any() else 1.0
    R, right = reduce(add, systems).weighted(white)
    if options.estimator == "total":
        right = R @ estimate.x
    solution = consistent.solve(bodies, R, right, K, lower, weight, likely=likely)
    return (solution, bodies), weight


def _score(regressor: Regressor, recordings: Sequence[Recording], using: Filter, file: Array, x: Array) -> Score | None:
    if not recordings:
        return None
    decimate = sum(map(len, recordings)) > _JUDGED
    samples = _samples(recordings, regressor, replace(using, decimate=decimate))
    both = [predictions(regressor, part, np.column_stack([file, x])) for part in samples]
    before, after = ([efforts[..., k] for efforts in both] for k in (0, 1))
    rate = (len(samples[0]) - 1) / (samples[0].t[-1] - samples[0].t[0]) if len(samples[0]) > 1 else 0.0
    step = max(1, int(rate / (PER_PERIOD * using.cutoff)))
    return score([part.tau for part in samples], [part.measured for part in samples], before, after, step)


def _unexplained(robot: Robot, figures: Sequence[Score | None]) -> list[str]:
    """A line on joints whose efforts stay unexplained."""
    with np.errstate(invalid="ignore"):
        bad = np.asarray(np.any([score.relative > _UNEXPLAINED for score in figures if score is not None], axis=0))
    if not bad.any():
        return []
    names = ", ".join(name for name, is_bad in zip(robot.joint_names, bad, strict=True) if is_bad)
    return [f"most of the effort of {names} stays unexplained; check signs, units, topic and geometry, or move more"]


def _untold(
    regressor: Regressor,
    deviations: Array,
    terms: dict[str, Array],
    term_deviations: dict[str, Array],
    options: Options,
) -> list[str]:
    """Lines on what the data cannot tell."""
    lines = []
    names = regressor.names
    if options.inertia:
        unseen = [names[k] for k in range(regressor.inertial) if not np.isfinite(deviations[k])]
        if unseen:
            lines.append(
                f"the data do not tell {len(unseen)} of {regressor.inertial} base parameters, which stay close to the "
                f"file: {'; '.join(unseen[:6])}{' …' if len(unseen) > 6 else ''}"
            )
    for name in regressor.terms:
        values, spread = terms[name], term_deviations[name]
        unknown = [j for j, s in zip(regressor.robot.joint_names, spread, strict=True) if not np.isfinite(s)]
        weak = [
            j
            for j, v, s in zip(regressor.robot.joint_names, values, spread, strict=True)
            if np.isfinite(s) and abs(v) < s
        ]
        if unknown:
            lines.append(f"the data do not tell {name} of {', '.join(unknown)}")
        if weak:
            lines.append(f"{name} of {', '.join(weak)} is within one standard deviation of zero")
    return lines
