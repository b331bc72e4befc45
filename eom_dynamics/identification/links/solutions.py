# SPDX-License-Identifier: Apache-2.0
"""Parameters from training data: the linear estimate, then inertias that are physically consistent.

Residuals determine the weights of the linear estimate of base parameters and terms. Consistent inertias are estimated
for all bodies, or for a payload.

The filter is chosen by cross-validation: cut-off, and measured or differentiated velocities. A low cut-off omits
motion, a high one admits noise of accelerations; either predicts efforts worse. Each candidate identifies from some
blocks of the training data, and predicts the unfiltered efforts of the other blocks. Least squares find the
neighborhood of the best candidate; physically consistent inertias decide within it. Validation data are not used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...correlation import correlation_time
from ...recursion import PARAMETERS
from ..recording import IdentificationError, Recording, TooFewSamplesError
from ..sampling import EDGE, HIGHEST, column_lengths, cutoff_bounds, cutoff_of, decimation, root_mean_square
from .consistent import Unknowns, consistent_solution, free_bodies
from .equations import (
    DEPENDENT,
    FOLDS,
    Equations,
    Estimate,
    TrainingData,
    blocks,
    filter_recordings,
    others,
    predictions,
    scale_sensitivity,
    training_data,
    weighted,
)
from .filtering import Filter, FilteredSamples, default_filter, power, uniform, velocity_noise
from .parameters import Options, lower_bounds, terms_in_effect
from .regressor import Regressor

_FINEST = 1e-6  # residuals below this share of the efforts are of rounding, and count as this

WEIGHTS = tuple(float(10.0**k) for k in range(-1, 4))
"""Weights of the prior that are tried; with 1, the file's inertias are known to a factor of e."""

# A payload to start from: a ball of 1 kg, radius of gyration 5 cm in each direction, at the origin of the body. The
# weight of the distance from it is small, since nothing is known of a payload.
_BALL = np.array([1.0, 0, 0, 0, *0.05**2 * np.array([2.0, 0, 0, 2, 0, 2])])

_PAYLOAD_WEIGHT = 0.1


@dataclass(frozen=True, eq=False)
class WeightedEstimate:
    """A linear estimate of x (P,), and the weights of the joints (n,).

    Weights are 1/(sigma_j sqrt(mean of T)), see :func:`linear_estimate`; 0 without equations.
    """

    estimate: Estimate
    weights: Array


def linear_estimate(data: TrainingData) -> WeightedEstimate:
    """Estimate all parameters, without a prior.

    Standard deviations belong to equations with the weight 1 / (sigma_j sqrt(T_j)), with the standard deviation
    sigma_j of the residuals of joint j and their correlation time T_j in samples. For inertias that all joints share,
    the mean of T_j replaces T_j: a slow residual of a joint is an error of the model rather than noise.
    Errors of the scales of the efforts add to them.
    """
    system = data.system
    estimate = weighted(system, data.file)
    errors = [predictions(data.regressor, part, estimate.x) - part.tau for part in data.samples]
    times = correlation_time([np.where(part.used, x, 0.0) for part, x in zip(data.samples, errors, strict=True)])
    with np.errstate(invalid="ignore"):
        finest = _FINEST * np.sqrt(system.squares(np.zeros(system.parameters)) / system.counts)
    weights = np.nan_to_num(1 / np.maximum(estimate.sigma, finest))
    R = system.weighted(weights / np.sqrt(times))[0]
    mean = np.mean(times[weights > 0]) if weights.any() else 1.0
    scales = [recording.scale_deviation for recording in data.recordings if recording.scale_deviation is not None]
    if np.any(scales):
        estimate = replace(estimate, common=scale_sensitivity(system, weights) * np.max(scales, axis=0))
    return WeightedEstimate(replace(estimate, R=R), weights / np.sqrt(mean))


@dataclass(frozen=True, eq=False)
class Solution:
    """Parameters of a robot with standard deviations.

    Inertial parameters of all bodies (10 B,) are physically consistent; kg, kg m, kg m². Their deviations are NaN
    except for a payload, because errors of the file are unknown. Terms (k n,) are in order of the joints; ``of_file``
    marks unchanged terms. The weight of the distance from the file is 0 without a prior; notes contain further results.
    """

    parameters: Array
    deviations: Array
    terms: Array
    term_deviations: Array
    of_file: NDArray[np.bool_]
    prior_weight: float = 0.0
    notes: tuple[str, ...] = ()


def find_solution(
    data: TrainingData,
    linear: WeightedEstimate,
    options: Options,
    held: NDArray[np.bool_],
    progress: Callable[[float], None],
) -> Solution:
    """Identify a payload, or all inertias and terms, by the options; ``held`` joints (n,) stay as in the file.

    Inertias of all bodies with mass, and terms, minimize |W (A (K pi; x_t) - b)|²/2 + prior_weight (sum of the
    distances from the file) over consistent pi and terms x_t within their bounds. Terms have a distance if they are
    unidentifiable; offsets always have one, or else they would replace masses: an offset as large as the efforts of its
    joint is as far as a mass that is wrong by a factor of e.

    Raises:
        IdentificationError: there is no joint with the payload's name, or no body has mass.
    """
    if held.all():
        return _as_in_file(data)
    if options.payload is not None:
        return _payload_alone(data, options.payload)
    regressor, k = data.regressor, data.regressor.inertial
    robot = regressor.robot
    free = set(range(len(robot.joints))) - {robot.independent[j] for j in np.flatnonzero(held).tolist()}
    bodies = free_bodies(regressor.dynamics.inertial_parameters, sorted(free))
    if not bodies.free:
        if held.any():
            return _as_in_file(data)
        raise IdentificationError(f"{robot.name}: no body has mass; give each body an estimate of its mass")
    identifiable, file = linear.estimate.identifiable[k:], data.file[k:]
    spread, of_file = _spread(data, linear.estimate)
    unknowns = Unknowns(bodies, regressor.base.combinations, lower_bounds(regressor), file, spread)
    weight = options.prior_weight
    weight = _prior_weight(data, linear.weights, unknowns, progress) if weight is None else weight
    R, right = data.system.weighted(linear.weights)
    fixed = np.tile(held, len(regressor.terms))
    file = np.where(fixed, terms_in_effect(regressor, data.file, options.side), file)
    right = right - R[:, k:][:, fixed] @ file[fixed]
    unknowns = replace(unknowns, expected=file, spread=np.where(fixed, 0.0, spread))
    solution = consistent_solution(unknowns, R, right, weight)
    of_file |= fixed
    common = np.linalg.norm(linear.estimate.common[k:], axis=1)
    deviations = np.where(identifiable, np.hypot(solution.term_deviations, common), np.inf)
    terms = np.where(of_file, file, solution.terms)
    deviations = np.where(fixed, 0.0, deviations)
    notes = () if solution.converged else ("the optimizer stopped before it converged",)
    unknown = np.full_like(solution.parameters, np.nan)
    return Solution(solution.parameters, unknown, terms, deviations, of_file, weight, notes)


def held_out_vectors(data: TrainingData, estimate: Estimate, weight: float) -> list[Array]:
    """Cross-validated parameters x (P,): for each block, consistent inertias fitted to all others."""
    regressor, vectors = data.regressor, []
    K, file = regressor.base.combinations, data.file[regressor.inertial :]
    bodies = free_bodies(regressor.dynamics.inertial_parameters)
    unknowns = Unknowns(bodies, K, lower_bounds(regressor), file, _spread(data, estimate)[0])
    weights = np.nan_to_num(1 / estimate.sigma)
    for fold in range(len(data.folds)):
        R, right = others(data.systems, fold).weighted(weights)
        solution = consistent_solution(unknowns, R, right, weight, draft=True)
        vectors.append(np.append(K @ solution.parameters, solution.terms))
    return vectors


def _spread(data: TrainingData, estimate: Estimate) -> tuple[Array, NDArray[np.bool_]]:
    """Spreads (k n,) of the prior of the terms, infinite without one, and whether terms are as in the file."""
    regressor, k = data.regressor, data.regressor.inertial
    identifiable, file = estimate.identifiable[k:], data.file[k:]
    of_file = _of_file(estimate, k)
    spread = np.where(of_file | (~identifiable & (file != 0)), np.abs(file), np.inf)
    unseen: NDArray[np.bool_] = np.all(estimate.R[:, k:] == 0, axis=0)
    # Rotors of the file share the residual with the links that turn with them.
    of_file &= (file == 0) | unseen
    if "offset" in regressor.terms:
        first = regressor.column("offset", 0) - k
        offsets = slice(first, first + regressor.robot.n)
        spread[offsets] = np.where(unseen[offsets], 0.0, _typical_efforts(data))
        of_file[offsets] = unseen[offsets]
    return spread, of_file


def _typical_efforts(data: TrainingData) -> Array:
    """Larger of the RMS (n,) of measured efforts and of efforts of the file's inertias, N m or N."""
    inertial = np.where(np.arange(len(data.file)) < data.regressor.inertial, data.file, 0.0)
    part = FilteredSamples.joined(data.samples)
    efforts = (part.tau, predictions(data.regressor, part, inertial))
    squares = [np.sum(np.square(x), axis=0, where=part.used) for x in efforts]
    return np.asarray(np.sqrt(np.maximum(*squares) / np.maximum(part.used.sum(axis=0), 1)))


def _of_file(estimate: Estimate, inertial: int) -> NDArray[np.bool_]:
    """Terms (k,) that keep the value of the file: unidentifiable, and the others explain the efforts equally well.

    The first of several terms that are only identifiable together, such as Coulomb friction and offset of a joint that
    turns one way, represents all.
    """
    R = estimate.R / column_lengths(estimate.R)
    unknown = ~estimate.identifiable
    unknown[:inertial] = False
    for column in np.flatnonzero(unknown):
        kept = ~unknown
        rank = np.linalg.matrix_rank(R[:, kept], tol=DEPENDENT)
        kept[column] = True
        unknown[column] = np.linalg.matrix_rank(R[:, kept], tol=DEPENDENT) == rank
    return np.asarray(unknown[inertial:])


def _prior_weight(data: TrainingData, weights: Array, unknowns: Unknowns, progress: Callable[[float], None]) -> float:
    """Weight from WEIGHTS with the best prediction of blocks of data by fits of the other blocks.

    ``weights`` (n,) are by joint.
    """
    systems = data.systems
    errors = np.zeros(len(WEIGHTS))
    for fold, held_out in enumerate(systems if len(systems) > 1 else ()):
        R, right = others(systems, fold).weighted(weights)
        for w, weight in enumerate(WEIGHTS):
            solution = consistent_solution(unknowns, R, right, weight, draft=True)
            x = np.append(unknowns.combinations @ solution.parameters, solution.terms)
            errors[w] += float(np.sum(np.square(weights) * held_out.squares(x)))
            progress((fold * len(WEIGHTS) + w + 1) / (FOLDS * len(WEIGHTS) + 1))
    return WEIGHTS[int(np.argmin(errors))] if errors.any() else 1.0


def _as_in_file(data: TrainingData) -> Solution:
    """All parameters of the file."""
    parameters, terms = data.regressor.dynamics.inertial_parameters, data.file[data.regressor.inertial :].copy()
    none = np.zeros_like(terms)
    return Solution(parameters, np.full_like(parameters, np.nan), terms, none, np.ones(len(terms), dtype=bool))


def _payload_alone(data: TrainingData, joint: str) -> Solution:
    """A payload on the body of a joint, tau - tau_file = Y_body pi_payload + offsets; the rest stays as in the file."""
    regressor, k = data.regressor, data.regressor.inertial
    names = [each.name for each in regressor.robot.joints]
    if joint not in names:
        raise IdentificationError(f"payload: {regressor.robot.name} has no joint {joint!r}; it has {', '.join(names)}")
    body = slice(PARAMETERS * names.index(joint), PARAMETERS * (names.index(joint) + 1))
    offsets = [regressor.column("offset", j) for j in range(regressor.robot.n) if "offset" in regressor.terms]
    K, system, known = regressor.base.combinations[:, body], data.system, data.file.copy()
    known[offsets] = 0.0
    factors = [np.column_stack([M[:, :k] @ K, M[:, offsets], M[:, -1] - M[:, :-1] @ known]) for M in system.factors]
    system = Equations(tuple(factors), system.counts)
    none, free = np.zeros(len(offsets)), np.full(len(offsets), np.inf)
    estimate = weighted(system, np.append(_BALL, none))
    unknowns = Unknowns(free_bodies(_BALL), np.eye(PARAMETERS), -free, none, free)
    payload = consistent_solution(unknowns, *system.weighted(np.nan_to_num(1 / estimate.sigma)), _PAYLOAD_WEIGHT)
    pi, s = payload.parameters, payload.parameter_deviations
    center = ", ".join(f"{x:.4g}" for x in pi[1:4] / pi[0])
    inertia = ", ".join(f"{x:.3g} ± {spread:.1g}" for x, spread in zip(pi[4:], s[4:], strict=True))
    words = (
        f"payload on {joint}: mass {pi[0]:.4g} ± {s[0]:.2g} kg, center of mass [{center}] m, inertia about the origin "
        f"of the body [{inertia}] kg m²"
    )
    result, rows = _as_in_file(data), np.array(offsets, dtype=int) - k
    result.parameters[body] += pi
    result.deviations[body] = s
    result.terms[rows], result.term_deviations[rows] = payload.terms, payload.term_deviations
    result.of_file[rows] = False
    return replace(result, notes=(words,))


# Minimum candidate of the cut-off, relative to the frequency that halves the power of velocities.
_LOWEST = 2.0
RATIO = 1.5  # ratio of neighboring cut-offs
_ROUGH = 1e-2  # relative change of the weights of joints that ends their iteration
_NEAR = 0.1  # logarithm of the ratio of errors that is worth a closer look
_ENDS = 0.1  # share of a motion that is omitted at each end, so that all candidates are compared on equal samples
_CLOSE_LOOKS = 6  # candidates that are compared closely without leaving out every second one
_JUDGING = 8000  # samples that judge a candidate
_WEIGHT = 1.0  # weight of the prior while candidates are compared: inertias are known to a factor of e
_LEAST_EQUATIONS = 3.0  # minimum number of equations per parameter at a cut-off


def candidates(recordings: Sequence[Recording]) -> list[float]:
    """Cut-off candidates, Hz, from the lowest that keeps most of the motion.

    The highest candidate is just below Nyquist, or lower if the noise of accelerations would bias parameters: held-out
    efforts do not show this if they oscillate at higher frequencies, as with stick-slip of motors.
    """
    lowest, highest = np.inf, np.inf
    for recording in recordings:
        for motion in recording.motions():
            samples = uniform(motion)[0]
            f, density = power(samples, samples.q)
            velocity = density * np.square(f)[:, np.newaxis]
            total = np.cumsum(velocity, axis=0)
            moving = total[-1] > 1e-3 * np.max(total[-1])
            share = total[:, moving] / total[-1, moving]
            lowest = min(lowest, float(np.min(f[np.argmax(share > 0.5, axis=0)])))
            signals = [(samples.q, 2)] if samples.qd is None else [(samples.q, 2), (samples.qd, 1)]
            clear = [[cutoff_of(motion.period, x, order) for x in y.T[moving]] for y, order in signals]
            limit = float(np.min(np.max(clear, axis=0)))
            least, most = cutoff_bounds(motion.period, len(samples))
            # At a bound, as of a recording without a floor of noise, there is no such limit.
            highest = min(highest, limit if 1.01 * least < limit < most else HIGHEST * float(f[-1]))
    lowest = min(_LOWEST * max(lowest, 0.1), highest / 2)
    count = int(np.log(highest / lowest) / np.log(RATIO)) + 1
    return [float(lowest * RATIO**k) for k in range(count)]


@dataclass(frozen=True)
class Trial:
    """A candidate filter, with the mean logarithm of the RMS error of held-out efforts."""

    cutoff: float
    measured_velocity: bool
    error: float


def choose_filter(
    regressor: Regressor,
    recordings: Sequence[Recording],
    file: Array,
    options: Options,
    progress: Callable[[float], None],
) -> tuple[Filter, tuple[Trial, ...]]:
    """Choose the filter by the prediction of held-out efforts, and list the candidates that were compared.

    ``file`` are the parameters x (P,) of the robot's file; ``progress`` is called with the fraction done. Raises
    IdentificationError for too few data.
    """
    excerpts = [part for recording in recordings for part in recording.excerpts()]
    if not excerpts:
        raise recordings[0].no_motion
    has_velocity = all(recording.qd is not None for recording in recordings)
    velocities = [False, True][: 1 + has_velocity]
    cutoffs = candidates(excerpts) if options.cutoff is None else [options.cutoff]
    trials: list[Trial] = []
    using = default_filter(regressor.robot, cutoffs[0], motor_side=options.side == "motor")
    if len(cutoffs) * len(velocities) > 1:

        def compared(candidates: Sequence[tuple[float, bool]], before: float, *, consistent: bool) -> list[Trial]:
            trials = []
            for k, (f, v) in enumerate(candidates):
                progress(before + 0.5 * k / len(candidates))
                parts = [_without_ends(part, f, cutoffs[0]) for part in excerpts]
                candidate = replace(using, cutoff=f, measured_velocity=v)
                trials.append(_trial(regressor, parts, candidate, file, consistent=consistent))
            return trials

        coarse = compared([(f, v) for f in cutoffs[::2] for v in velocities], 0.0, consistent=False)
        least = min(coarse, key=lambda trial: trial.error)
        if not np.isfinite(least.error):
            raise TooFewSamplesError(
                f"{recordings[0].name}: there are too few samples with motion for {len(regressor.names)} parameters; "
                "record for longer"
            )
        near = [trial.cutoff for trial in coarse if trial.error < least.error + _NEAR]
        fine = [f for f in cutoffs if min(near) / RATIO < 1.01 * f < 1.02 * max(near) * RATIO]
        fine = fine[:: 1 + (len(fine) > _CLOSE_LOOKS)]  # neighbors tell nothing more of a flat curve
        # If all bodies are identified, physically consistent inertias decide.
        trials = compared([(f, least.measured_velocity) for f in fine], 0.5, consistent=options.payload is None)
        best = min(trials, key=lambda trial: trial.error)
        using = replace(using, cutoff=best.cutoff, measured_velocity=best.measured_velocity)
    return replace(using, velocity_noise=velocity_noise(excerpts, using)), tuple(trials)


def _without_ends(motion: Recording, cutoff: float, lowest: float) -> Recording:
    """Shorten a motion so that any filter leaves the same samples of it as the filter of the lowest cut-off.

    Errors of different parts of a recording differ by more than errors of different filters.
    """
    most = min(EDGE / lowest, _ENDS * float(motion.t[-1] - motion.t[0]))
    # In whole samples, as the filter counts: by other samples, noise alone differs by more than filters do.
    count = max(0, round(most / motion.period) - round(EDGE / (cutoff * motion.period)))
    return motion[count : len(motion) - count]


def _trial(
    regressor: Regressor, recordings: Sequence[Recording], using: Filter, file: Array, *, consistent: bool
) -> Trial:
    """A candidate, judged by least squares or by physically consistent inertias."""
    nothing = Trial(using.cutoff, using.measured_velocity, np.inf)
    try:
        whole = filter_recordings(recordings, regressor, replace(using, decimate=False))
        steps = [decimation(float(part.t[1] - part.t[0]), using.cutoff) if len(part) > 1 else 1 for part in whole]
        samples = [part[::step] for part, step in zip(whole, steps, strict=True)]
        data = training_data(regressor, file, recordings, using, samples=samples)
    except IdentificationError:
        return nothing
    if len(data.folds) < FOLDS or data.system.counts.sum() < _LEAST_EQUATIONS * data.system.parameters:
        return nothing
    if consistent:
        vectors = held_out_vectors(data, weighted(data.system, file, _ROUGH), _WEIGHT)
    else:
        vectors = [weighted(others(data.systems, k), file, _ROUGH).x for k in range(FOLDS)]
    # Equal samples for all candidates, and more than a low cut-off leaves.
    step = max(1, sum(map(len, whole)) // _JUDGING)
    held_out = [FilteredSamples.joined(fold) for fold in blocks([part[::step] for part in whole])]
    errors = [unfiltered_errors(regressor, fold, using, x) for fold, x in zip(held_out, vectors, strict=True)]
    rms = root_mean_square(np.concatenate(errors))
    known = np.nan_to_num(rms) > 0
    return replace(nothing, error=float(np.mean(np.log(rms[known]))) if known.any() else np.inf)


def unfiltered_errors(regressor: Regressor, part: FilteredSamples, using: Filter, x: Array) -> Array:
    """Errors (N, n) of efforts as recorded, predicted as by a feedforward, with unfiltered dry friction."""
    state = using.motion((part.q, part.qd, part.qdd))
    bases = dict(zip(regressor.terms, regressor.bases(state), strict=True))
    return predictions(regressor, replace(part, bases=bases), x) - part.measured
