# SPDX-License-Identifier: Apache-2.0
"""Fit the parameters of a robot to recordings.

Steps, each in a separate module: choose the filter (:mod:`.solutions`), filter samples (:mod:`.filtering`), compress
their equations (:mod:`.equations`), estimate base parameters and terms, then find inertias of all bodies that are
physically consistent, explain the data as well, and are close to the inertias of the file (:mod:`.solutions`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...robot import Robot
from ..recording import IdentificationError, Recording, recording_notes
from ..sampling import root_mean_square
from .checks import contradictions, lost_joints, too_short, unexplained
from .equations import Estimate, TrainingData, predictions, training_data
from .filtering import Filter, FilteredSamples, filter_recording
from .lag import bending_links, delay_test, lag, lag_notes, spring_loops
from .parameters import (
    Options,
    base_parameters_without_data,
    by_term,
    doubtful_terms,
    lower_bounds,
    parameter_vector,
    sensor_bias,
    vector_of_file,
    with_link_parameters,
    without_known_efforts,
)
from .regressor import Regressor, coupled
from .solutions import Trial, WeightedEstimate, choose_filter, find_solution, linear_estimate
from .verification import WORSE, Score, ScoringData

# Functions of OpenBLAS as distributions build it, and as wheels of NumPy and SciPy rename it.
_NAMES = tuple(f"{prefix}openblas_%s_num_threads{suffix}" for prefix in ("", "scipy_") for suffix in ("", "64_"))

# Times that joints with worse predictions are kept before all are: each such time, others that rely on them may follow.
_TRIES = 3
_JUDGED = 2.0  # periods of the cut-off in the validation data that judge, without transients of the filter
_UNEXPLAINED = 0.5  # RMS residual of a joint, relative to its efforts, that needs action


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Context manager: every OpenBLAS of this process uses one thread; other BLAS libraries are unaffected.

    For small matrices, synchronizing threads costs far more than the arithmetic.
    """
    libraries = list(_libraries())
    counts = [get() for get, _ in libraries]
    for _, set_threads in libraries:
        set_threads(1)
    try:
        yield
    finally:
        for (_, set_threads), count in zip(libraries, counts, strict=True):
            set_threads(count)


def _libraries() -> Iterator[tuple[ctypes._NamedFuncPointer, ctypes._NamedFuncPointer]]:
    """Functions of each loaded OpenBLAS that get and set its number of threads."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        return
    paths = {line.split(maxsplit=5)[-1] for line in lines if "openblas" in line}
    for path in sorted(path for path in paths if path.startswith("/") and Path(path).exists()):
        library = ctypes.CDLL(path)
        for name in _NAMES:
            if hasattr(library, name % "set"):
                yield getattr(library, name % "get"), getattr(library, name % "set")
                break


@dataclass(frozen=True, eq=False)
class Fit:
    """Identified parameters, with standard deviations and residual statistics.

    Attributes:
        robot: as described by its file.
        options: of the identification.
        regressor: of base parameters and terms.
        filter: of the samples.
        estimate: of base parameters and terms by weighted least squares, without a prior.
        base_deviations: standard deviations (P,) of that estimate, infinite for unidentifiable parameters.
        parameters: inertial parameters of all bodies (10 B,), physically consistent; kg, kg m, kg m².
        parameter_deviations: (10 B,) of a payload; otherwise NaN, because the file affects the result.
        terms: parameters of the terms by name, (n,).
        term_deviations: standard deviations of ``terms``.
        term_of_file: (n,) by name, whether the file's value stays.
        prior_weight: of the distance from the file.
        training, validation: figures of the identified robot, by its feedforward; None without validation.
        kept: joints that were predicted worse than by the file, and keep the parameters of the file.
        rejected: figures of the robot before joints were kept, for each joint of its own rejection; on validation, or
            else on training; or None.
        counts: (n,) of training efforts, used and left out, by reason.
        notes: unidentifiable parameters, and warnings, a line each.
        trials: of filters, if one was chosen.
        contradictions: of the recordings and the file, a line each; see :attr:`Options.suspect`.
        lost: joints with efforts, but without usable efforts, a line each.
    """

    robot: Robot
    options: Options
    regressor: Regressor
    filter: Filter
    estimate: Estimate
    base_deviations: Array
    parameters: Array
    parameter_deviations: Array
    terms: dict[str, Array]
    term_deviations: dict[str, Array]
    term_of_file: dict[str, NDArray[np.bool_]]
    prior_weight: float
    training: Score
    validation: Score | None
    kept: tuple[str, ...]
    rejected: Score | None
    counts: dict[str, Array]
    notes: tuple[str, ...]
    trials: tuple[Trial, ...] = ()
    contradictions: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        """True if all joints keep the parameters of the file."""
        return len(self.kept) == self.robot.n

    @property
    def judged(self) -> Score:
        """Figures of the validation, or else of the training."""
        return self.validation or self.training

    @property
    def unexplained(self) -> tuple[str, ...]:
        """Kept joints whose efforts neither the file nor identified parameters explain."""
        with np.errstate(invalid="ignore"):
            left = self.judged.relative > _UNEXPLAINED
        return tuple(name for name in compress(self.robot.joint_names, left) if name in self.kept)

    @property
    def vector(self) -> Array:
        """Base parameters and terms (P,) of the consistent inertias, for :attr:`regressor`."""
        return parameter_vector(self.regressor, self.parameters, self.terms)

    def predict(self, samples: FilteredSamples) -> Array:
        """Predicted efforts (N, n) of samples, including terms that only the fit has, such as offsets."""
        return predictions(self.regressor, samples, self.vector)

    def prepare(self, recording: Recording, *, decimate: bool = False) -> list[FilteredSamples]:
        """Samples of a recording, filtered as for the fit, without efforts known from the file."""
        reduced = without_known_efforts(self.regressor, recording)
        return filter_recording(reduced, self.regressor.terms, replace(self.filter, decimate=decimate))

    @property
    def sensor_bias(self) -> Array:
        """Sensor bias (n,), removed before efforts are compared; zero if offsets belong to the arm."""
        return sensor_bias(self.regressor, self.options, self.terms)

    @property
    def term_identifiable(self) -> dict[str, NDArray[np.bool_]]:
        """Identifiable parameters of the terms, (n,) by name."""
        return by_term(self.regressor, self.estimate.identifiable[self.regressor.inertial :])


@one_blas_thread()
def fit(
    robot: Robot,
    training: Recording | Sequence[Recording],
    validation: Recording | Sequence[Recording] = (),
    options: Options | None = None,
    *,
    progress: Callable[[str, float], None] | None = None,
) -> Fit:
    """Identify a robot's parameters from recordings.

    Args:
        robot: as its file describes it; its geometry must be right, its inertias are the prior.
        training: recordings to fit.
        validation: recordings to judge the result by; they are not used otherwise.
        options: of the identification.
        progress: called with the name of the step and the fraction of it that is done.

    Raises:
        IdentificationError: nothing can be identified.
    """
    progress = progress or (lambda step, done: None)
    training, validation = ([x] if isinstance(x, Recording) else list(x) for x in (training, validation))
    options = (options or Options()).for_robot(robot)
    assert options.terms is not None
    if not training:
        raise IdentificationError("there is no recording to train on")
    notes = recording_notes(robot, training, validation)
    progress("compile the regressor", 0.0)
    regressor = Regressor(robot, options.terms, motor_side=options.side == "motor")
    reduced = [without_known_efforts(regressor, recording) for recording in training]
    file = vector_of_file(regressor, options.side)
    using, trials = choose_filter(regressor, reduced, file, options, lambda done: progress("choose the cut-off", done))
    progress("filter", 0.0)
    data = training_data(regressor, file, reduced, using)
    progress("compare with the file", 0.0)
    wrong = contradictions(regressor, data.samples, file, options.payload) or too_short(training, validation)
    late, left = (0.0, 1.0) if wrong else lag(regressor, reduced, data.filter)
    lines = spring_loops(regressor, reduced, data.filter, late) if late else []
    if late and not lines:
        more, lines = lag_notes(late, left, delay_test(data, late))
        wrong += more
    progress("estimate", 0.0)
    linear = linear_estimate(data)
    progress("physically consistent inertias", 0.0)
    kept = np.full(robot.n, bool(wrong) and options.suspect == "keep")
    scoring = _scoring_data(robot, options, data.filter, training, validation)
    best = _best(data, linear, options, kept, scoring, progress)
    if not kept.any() and (noise := unexplained(best.training, options.payload)):
        wrong += noise
        if options.suspect == "keep":
            best = _best(data, linear, options, np.ones_like(kept), scoring, progress)
    notes += [*lines, *([] if wrong else bending_links(data, linear.estimate.x)), *_notes(best)]
    lost = tuple(lost_joints(regressor, data.samples, data.system.counts))
    refused = wrong and options.suspect == "keep"
    if not refused and options.payload is None:
        notes += _better_least_squares(best, data, linear, validation)
    best = replace(best, trials=trials, lost=lost, notes=tuple(notes))
    return replace(best, contradictions=tuple(x.words for x in wrong))


def _better_least_squares(
    fit: Fit, data: TrainingData, linear: WeightedEstimate, validation: Sequence[Recording]
) -> list[str]:
    """Note on joints that plain least squares predict better than the fit, with the likely cause."""
    samples = [part for recording in validation for part in fit.prepare(recording, decimate=True)] or data.samples
    part = FilteredSamples.joined(samples)
    ours, plain = (
        root_mean_square(np.where(part.used, predictions(data.regressor, part, x) - part.tau, np.nan))
        for x in (fit.vector, linear.estimate.x)
    )
    with np.errstate(invalid="ignore"):
        better = (ours > WORSE * plain) & ~np.isin(fit.robot.joint_names, fit.kept)
    if not better.any():
        return []
    negative = linear.estimate.x[data.regressor.inertial :] < lower_bounds(data.regressor)
    causes = ("unmodeled friction", "elasticity or another mounting")
    cause = causes[not any(x[better].any() for x in by_term(data.regressor, negative).values())]
    rows = zip(fit.robot.joint_names, plain, ours, strict=True)
    listed = ", ".join(f"{name} ({a:.3g} instead of {b:.3g})" for name, a, b in compress(rows, better))
    return [f"plain least squares, which allow impossible parameters, predict {listed} better; likely cause: {cause}"]


def _notes(links: Fit) -> list[str]:
    """Notes of the solution, of joints with unchanged parameters, and of unidentifiable parameters."""
    lines = list(links.notes)
    if links.options.payload is None and not links.refused:
        lines += base_parameters_without_data(links.regressor, links.base_deviations)
        lines += doubtful_terms(links.robot, links.terms, links.term_deviations, links.term_of_file)
    return lines


def _best(
    data: TrainingData,
    linear: WeightedEstimate,
    options: Options,
    kept: NDArray[np.bool_],
    scoring: Sequence[ScoringData],
    progress: Callable[[str, float], None],
) -> Fit:
    """Fit; joints with worse predictions than by the file keep its parameters, all joints if the arm is not better.

    Joints (n,) in ``kept`` keep them from the start. Notes are copied from the solution.
    """
    regressor, robot = data.regressor, data.regressor.robot
    rejected, requested = None, options
    for attempt in range(_TRIES + 1):
        kept = np.ones_like(kept) if attempt == _TRIES else kept
        solution = find_solution(
            data, linear, options, kept, lambda done: progress("physically consistent inertias", done)
        )
        terms = by_term(regressor, solution.terms)
        progress("verify", 0.0)
        names = tuple(compress(robot.joint_names, kept))
        identified = with_link_parameters(robot, options, data.filter, solution.parameters, terms, names)
        scored, bias = robot if kept.all() else identified, sensor_bias(regressor, options, terms)
        scores = [part.score(scored, bias) for part in scoring]
        judged = scores[-1]
        if kept.all() or (judged.ratio < 1 and not judged.worse.any()):
            break
        rejected = judged if rejected is None else _at_kept_joints(rejected, judged, kept)
        worse = judged.worse & ~kept
        if np.all(worse | kept):  # one joint with wrong efforts makes the efforts of all others worse
            ratio = np.where(worse, judged.after / np.maximum(judged.before, 1e-300), 0.0)
            worse = ratio == np.max(ratio)
        # A payload is one body, and its parameters determine the efforts of all joints before it. Keeping a joint does
        # not help either if the bodies of others make it worse.
        everything = options.payload is not None or not worse.any()
        kept = np.ones_like(kept) if everything else kept | worse
        if (T := regressor.transmission) is not None and kept[coupled(T)].any():
            kept = kept | coupled(T)  # the efforts of its motors depend on all of its joints
        options = replace(options, prior_weight=solution.prior_weight or None)
    return Fit(
        robot=robot,
        options=requested,
        regressor=regressor,
        filter=data.filter,
        estimate=linear.estimate,
        base_deviations=linear.estimate.deviations(),
        parameters=solution.parameters,
        parameter_deviations=solution.deviations,
        terms=terms,
        term_deviations=by_term(regressor, solution.term_deviations),
        term_of_file=by_term(regressor, solution.of_file),
        prior_weight=solution.prior_weight,
        training=scores[0],
        validation=scores[1] if len(scores) > 1 else None,
        kept=names,
        rejected=rejected,
        counts=data.counts,
        notes=solution.notes,
    )


def _at_kept_joints(first: Score, latest: Score, kept: NDArray[np.bool_]) -> Score:
    """The latest figures, with the first RMS errors of joints that were kept since."""
    return replace(latest, after=np.where(kept, first.after, latest.after))


def verified(fit: Fit, robot: Robot, training: Sequence[Recording], validation: Sequence[Recording]) -> Fit:
    """The fit with the figures of another robot, for example of the reloaded file.

    If the feedforward of that robot predicts the efforts of a joint worse than the given file, or of the arm no better,
    all joints count as kept, and the caller must not write that robot.
    """
    scoring = _scoring_data(fit.robot, fit.options, fit.filter, training, validation)
    scores = [part.score(robot, fit.sensor_bias) for part in scoring]
    if not fit.refused and (not scores[-1].ratio < 1 or scores[-1].worse.any()):
        rejected = scores[-1]
        if fit.rejected is not None:
            rejected = _at_kept_joints(fit.rejected, rejected, np.isin(fit.robot.joint_names, fit.kept))
        fit = replace(fit, kept=fit.robot.joint_names, rejected=rejected)
        scores = [part.score(fit.robot, np.zeros(robot.n)) for part in scoring]
    return replace(fit, training=scores[0], validation=scores[1] if len(scores) > 1 else None)


def _scoring_data(
    reference: Robot, options: Options, using: Filter, training: Sequence[Recording], validation: Sequence[Recording]
) -> list[ScoringData]:
    """Excerpts of the recordings for training, and recordings for validation if there are any."""
    motor_side = options.side == "motor"
    excerpts = [part for recording in training for part in recording.excerpts()]
    scoring = [ScoringData(excerpts, using, reference, motor_side=motor_side)]
    if validation:
        scoring.append(ScoringData(validation, using, reference, motor_side=motor_side, periods=_JUDGED))
    return scoring


def identified_robot(fit: Fit) -> Robot:
    """The robot with identified inertias, friction and rotors, see :func:`.parameters.with_link_parameters`.

    The spread of the efforts of a joint is the larger one of training and validation.
    """
    robot = with_link_parameters(fit.robot, fit.options, fit.filter, fit.parameters, fit.terms, fit.kept)
    joints, scores = list(robot.joints), [score for score in (fit.training, fit.validation) if score is not None]
    for k, i in enumerate(robot.independent):
        sizes = [float(np.nan_to_num(score.unfiltered[k])) for score in scores]
        spread = scores[int(np.argmax(sizes))].spreads[k]
        joints[i] = replace(joints[i], effort_spread=spread or joints[i].effort_spread)
    return replace(robot, joints=tuple(joints))
