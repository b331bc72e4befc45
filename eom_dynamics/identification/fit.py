# SPDX-License-Identifier: Apache-2.0
"""Fit the parameters of a robot to recordings.

Steps, each in a module of its own: choose the filter (:mod:`.choice`), filter samples and compress their equations
(:mod:`.training_data`), estimate base parameters and terms (:mod:`.linear_estimate`), then find inertias of all bodies
that are physically possible, explain the data as well, and are close to those of the file (:mod:`.solutions`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..robot import Robot
from .choice import Trial, choose
from .equations import predictions
from .estimators import Estimate
from .exceptions import IdentificationError
from .filtering import Filter, Samples, prepare, settings
from .fit_notes import base_parameters_without_data, doubtful_terms, recording_notes, unexplained_efforts
from .linear_estimate import Weighted, linear_estimate
from .options import Options
from .parameter_vector import by_term, parameter_vector, vector_of_file
from .recording import Recording
from .regressor import Regressor
from .residuals import Score, score
from .sampling import PER_PERIOD
from .solutions import Solution, payload_alone, possible_inertias, terms_alone
from .training_data import TrainingData, prepared, training_data
from .unit_hints import opposite_signs, unit_hints

# Samples beyond which only those that the cut-off needs are judged by; the RMS is the same.
_JUDGED = 20_000


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
        base_deviations: standard deviations (P,) of that estimate, infinite where a parameter is not identifiable.
        parameters: inertial parameters of all bodies (10 B,), physically possible; kg, kg m, kg m².
        parameter_deviations: (10 B,) of the data and the file together.
        terms: parameters of the terms by name, (n,).
        term_deviations: likewise.
        term_of_file: (n,) by name, whether the value is that of the file.
        prior_weight: of the distance from the file.
        training, validation: figures of the data; None without validation.
        counts: of training efforts left out, by reason.
        notes: what is not identifiable from the data, and warnings, a line each.
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
    term_of_file: dict[str, NDArray[np.bool_]]
    prior_weight: float
    training: Score
    validation: Score | None
    counts: dict[str, int]
    notes: tuple[str, ...]

    @property
    def vector(self) -> Array:
        """Base parameters and terms (P,) of the possible inertias, for :attr:`regressor`."""
        return parameter_vector(self.regressor, self.parameters, self.terms)

    def predict(self, samples: Samples) -> Array:
        """Efforts (N, n) of samples."""
        return predictions(self.regressor, samples, self.vector)

    def prepare(self, recording: Recording, *, decimate: bool = False) -> list[Samples]:
        """Samples of a recording, filtered as for the fit."""
        return prepare(recording, self.regressor.terms, replace(self.filter, decimate=decimate))

    @property
    def term_identifiable(self) -> dict[str, Array]:
        """Whether each parameter of the terms is identifiable from the data, (n,) by name."""
        return by_term(self.regressor, self.estimate.identifiable[self.regressor.inertial :])


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
        validation: recordings to judge the result by; they are not used otherwise.
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
    notes = recording_notes(robot, [*training, *validation])
    hints = unit_hints(robot, training)
    report("compile the regressor", 0.0)
    regressor = Regressor(robot, options.terms)
    file = vector_of_file(regressor, options.side)
    try:
        using, trials = choose(
            regressor,
            training,
            settings(robot, options.cutoff or 1.0, motor_side=options.side == "motor"),
            cutoff=options.cutoff,
            measured_velocity=options.measured_velocity,
            progress=lambda done: report("choose the cut-off", done),
        )
        report("filter", 0.0)
        data = training_data(regressor, file, training, using, inertia=options.inertia)
    except IdentificationError as error:
        raise IdentificationError(f"{'; '.join(hints)}; otherwise: {error}" if hints else str(error)) from None
    report("estimate", 0.0)
    linear = linear_estimate(data, options)
    deviations = linear.estimate.deviations()
    report("possible inertias", 0.0)
    solution = _solution(data, linear, options, lambda done: report("possible inertias", done))
    terms, term_deviations = (by_term(regressor, x) for x in (solution.terms, solution.term_deviations))
    of_file = dict(zip(regressor.terms, solution.of_file.reshape(-1, robot.n), strict=True))
    report("judge", 0.0)
    both = np.column_stack([file, parameter_vector(regressor, solution.parameters, terms)])
    judged, validated = (_score(regressor, x, data.filter, both) if x else None for x in (training, validation))
    assert judged is not None
    notes += [*hints, *opposite_signs(robot, data.samples, [predictions(regressor, x, file) for x in data.samples])]
    notes += [*solution.notes, *unexplained_efforts(robot, [x for x in (judged, validated) if x is not None])]
    if options.payload is None:
        notes += base_parameters_without_data(regressor, deviations) if options.inertia else []
        notes += doubtful_terms(robot, terms, term_deviations, of_file)
    return Fit(
        robot=robot,
        options=options,
        regressor=regressor,
        filter=data.filter,
        trials=trials,
        estimate=linear.estimate,
        base_deviations=deviations,
        parameters=solution.parameters,
        parameter_deviations=solution.deviations,
        terms=terms,
        term_deviations=term_deviations,
        term_of_file=of_file,
        prior_weight=solution.prior_weight,
        training=judged,
        validation=validated,
        counts=data.counts,
        notes=tuple(notes),
    )


def _solution(data: TrainingData, linear: Weighted, options: Options, progress: Callable[[float], None]) -> Solution:
    """A payload alone, friction alone, or all inertias, by the options."""
    if options.payload is not None:
        return payload_alone(data, options.payload)
    if not options.inertia:
        return terms_alone(data, linear)
    return possible_inertias(data, linear, options, progress)


def _score(regressor: Regressor, recordings: Sequence[Recording], using: Filter, both: Array) -> Score:
    """Judge parameters (P, 2) of the file and of the fit by recordings."""
    decimate = sum(map(len, recordings)) > _JUDGED
    samples = prepared(recordings, regressor, replace(using, decimate=decimate))
    found = [predictions(regressor, part, both) for part in samples]
    before, after = ([efforts[..., k] for efforts in found] for k in (0, 1))
    rate = (len(samples[0]) - 1) / (samples[0].t[-1] - samples[0].t[0]) if len(samples[0]) > 1 else 0.0
    step = max(1, int(rate / (PER_PERIOD * using.cutoff)))
    return score([part.tau for part in samples], [part.measured for part in samples], before, after, step)
