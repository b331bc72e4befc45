# SPDX-License-Identifier: Apache-2.0
"""From the linear estimate to parameters that a robot can have: inertias of all bodies, of a payload, or none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from ..arrays import Array
from ..recursion import PARAMETERS
from . import consistent
from .choice import FOLDS, others
from .consistent import Bodies, free_bodies
from .exceptions import IdentificationError
from .linear_estimate import Weighted
from .options import Options
from .parameter_vector import lower_bounds
from .payload import find_payload
from .training_data import TrainingData

WEIGHTS = tuple(float(10.0**k) for k in range(-1, 4))
"""Weights of the prior that are tried; with 1, the file's inertias are known to a factor of e."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Parameters of a robot with standard deviations.

    Attributes:
        parameters, deviations: inertial parameters of all bodies (10 B,), physically possible; kg, kg m, kg m².
        terms, term_deviations: parameters (k n,) of the terms, joint by joint.
        prior_weight: of the distance from the file; 0 without a prior.
        notes: what else is to be known, a line each.
    """

    parameters: Array
    deviations: Array
    terms: Array
    term_deviations: Array
    prior_weight: float = 0.0
    notes: tuple[str, ...] = ()


def possible_inertias(
    data: TrainingData, linear: Weighted, options: Options, progress: Callable[[float], None]
) -> Solution:
    """Possible inertias of all bodies with mass, and terms.

    They minimise |W (A (K pi; x_t) - b)|²/2 + prior_weight (sum of the distances of the bodies from the file) over
    possible pi and terms x_t within their bounds.

    Raises:
        IdentificationError: no body has mass.
    """
    regressor, k = data.regressor, data.regressor.inertial
    bodies = free_bodies(regressor.dynamics.inertial_parameters, options.prior)
    if not bodies.free:
        raise IdentificationError(f"{regressor.robot.name}: no body has mass; give each body an estimate of its mass")
    identifiable = linear.estimate.identifiable[k:]
    likely = np.where(identifiable, np.nan, data.file[k:])
    weight = options.prior_weight
    if weight is None:
        weight = _prior_weight(data, linear, bodies, likely, progress)
    R, right = reduce(add, linear.systems).weighted(linear.weights)
    if options.estimator == "total":
        right = R @ linear.estimate.x
    K, lower = regressor.base.combinations, lower_bounds(regressor)
    found = consistent.solve(bodies, R, right, K, lower, weight, likely=likely)
    return Solution(
        found.parameters,
        found.parameter_deviations(bodies),
        found.terms,
        np.where(identifiable, found.term_deviations, np.inf),
        weight,
        () if found.converged else ("the optimiser stopped before it converged",),
    )


def _prior_weight(
    data: TrainingData, linear: Weighted, bodies: Bodies, likely: Array, progress: Callable[[float], None]
) -> float:
    """The weight of WEIGHTS with which blocks of data are predicted best by a fit of the others."""
    K, lower = data.regressor.base.combinations, lower_bounds(data.regressor)
    systems = linear.systems
    errors = np.zeros(len(WEIGHTS))
    for fold, held_out in enumerate(systems if len(systems) > 1 else ()):
        R, right = others(systems, fold).weighted(linear.weights)
        start = None
        for w in reversed(range(len(WEIGHTS))):  # from the file to the data, each step from the last solution
            found = consistent.solve(bodies, R, right, K, lower, WEIGHTS[w], start, likely=likely, draft=True)
            start = found.theta
            x = np.append(K @ found.parameters, found.terms)
            errors[w] += float(np.sum(np.square(linear.weights) * held_out.squares(x)))
            progress((fold * len(WEIGHTS) + len(WEIGHTS) - w) / (FOLDS * len(WEIGHTS) + 1))
    return WEIGHTS[int(np.argmin(errors))] if errors.any() else 1.0


def terms_alone(data: TrainingData, linear: Weighted) -> Solution:
    """Terms of the linear estimate within their bounds, and the inertias of the file."""
    k = data.regressor.inertial
    parameters = data.regressor.dynamics.inertial_parameters
    terms = np.maximum(linear.estimate.x[k:], lower_bounds(data.regressor))
    return Solution(parameters, np.zeros_like(parameters), terms, linear.estimate.deviations()[k:])


def payload_alone(data: TrainingData, joint: str) -> Solution:
    """A payload on the body of a joint, pi = pi_file + pi_payload, and offsets; the rest is that of the file.

    Raises:
        IdentificationError: there is no such joint.
    """
    regressor = data.regressor
    payload = find_payload(regressor, data.systems, data.file, joint)
    parameters: Array = regressor.dynamics.inertial_parameters
    deviations = np.zeros_like(parameters)
    body = [each.name for each in regressor.robot.joints].index(joint)
    rows = slice(PARAMETERS * body, PARAMETERS * (body + 1))
    parameters[rows] += payload.parameters
    deviations[rows] = payload.deviations
    terms = data.file[regressor.inertial :].copy()
    term_deviations = np.zeros_like(terms)
    if "offset" in regressor.terms:
        first = regressor.column("offset", 0) - regressor.inertial
        offsets = slice(first, first + regressor.robot.n)
        terms[offsets], term_deviations[offsets] = payload.offsets, payload.offset_deviations
    return Solution(parameters, deviations, terms, term_deviations, notes=(payload.words,))
