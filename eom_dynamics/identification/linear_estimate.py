# SPDX-License-Identifier: Apache-2.0
"""Linear estimate of base parameters and terms by the chosen estimator, and the weights that residuals give it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np

from ..arrays import Array
from .equations import Equations, predictions
from .estimators import Estimate, huber, ordinary, total, weighted
from .options import Options
from .residuals import correlation_time
from .spectrum import noise_of_motion
from .training_data import TrainingData

# Residuals below this share of the efforts are of rounding, and count as this.
_FINEST = 1e-6

# States of a mean over a motion.
_STATES = 500


@dataclass(frozen=True, eq=False)
class WeightedEstimate:
    """A linear estimate with the equations that it solves in units of the standard deviation.

    Attributes:
        estimate: of x (P,); its R has the weights.
        systems: equations of each block, with the weights that Huber's estimator gave them.
        weights: of the joints (n,), one over the standard deviations of their residuals, and all over the root of the
            mean of their correlation times; 0 without equations.
    """

    estimate: Estimate
    systems: Sequence[Equations]
    weights: Array


def linear_estimate(data: TrainingData, options: Options) -> WeightedEstimate:
    """Estimate all parameters, without a prior.

    Standard deviations are those of equations with the weight 1 / (sigma_j sqrt(T_j)), with the standard deviation
    sigma_j of the residuals of joint j and their correlation time T_j in samples. For inertias that all joints share,
    the mean of T_j stands for all: of a joint whose residual is slow, that is what the model lacks rather than noise.

    Raises:
        IdentificationError: ``huber`` is to identify friction alone.
    """
    estimate, systems = _by_estimator(data, options)
    residuals = [
        np.where(part.used, predictions(data.regressor, part, estimate.x) - part.tau, 0.0) for part in data.samples
    ]
    times = correlation_time(residuals)
    system = data.system
    with np.errstate(invalid="ignore"):
        finest = _FINEST * np.sqrt(system.squares(np.zeros(system.parameters)) / system.counts)
    weights = np.nan_to_num(1 / np.maximum(estimate.sigma, finest))
    R = reduce(add, systems).weighted(weights / np.sqrt(times))[0]
    mean = np.mean(times[weights > 0]) if weights.any() else 1.0
    return WeightedEstimate(replace(estimate, R=R), systems, weights / np.sqrt(mean))


def _by_estimator(data: TrainingData, options: Options) -> tuple[Estimate, Sequence[Equations]]:
    """The linear estimate, and the equations of the blocks with the weights that it gave them."""
    regressor, file, systems = data.regressor, data.file, data.systems
    system = data.system
    if options.estimator == "ordinary":
        return ordinary(system, file), systems
    if options.estimator == "total":
        return total(system, weighted(system, file), _regressor_errors(data)), systems
    if options.estimator == "huber" and options.inertia:
        return huber(regressor, data.folds, systems, file)
    return weighted(system, file), systems


def _regressor_errors(data: TrainingData) -> list[Array]:
    """Mean covariance (P, P) of the errors of the rows of each joint, by the noise of accelerations.

    Rows are linear in qdd: with the variance s_k² of qdd_k, the covariance is the sum of s_k² dY/dqdd_k' dY/dqdd_k.
    """
    regressor = data.regressor
    motions = [motion for recording in data.recordings for motion in recording.cleaned().motions()]
    _, qdd = noise_of_motion(motions, data.filter)
    n, P = regressor.robot.n, len(regressor.names)
    errors: list[Array] = [np.zeros((P, P)) for _ in range(n)]
    part = max(data.samples, key=len)[:: max(1, max(map(len, data.samples)) // _STATES)]
    q, zero = part.q, np.zeros_like(part.q)
    at_rest = regressor.inertial_columns(q, zero, zero)
    ratio = np.eye(n) if regressor.transmission is None else np.linalg.inv(regressor.transmission)
    for k in range(n):
        unit = zero + np.eye(n)[k]
        columns = regressor.inertial_columns(q, zero, unit) - at_rest
        for j in range(n):
            rows = np.zeros((len(at_rest), P))
            rows[:, : regressor.inertial] = columns[:, j]
            if "rotor_inertia" in regressor.terms:
                rows[:, regressor.column("rotor_inertia", j)] = ratio[j, k]
            errors[j] += qdd[k] ** 2 * rows.T @ rows / len(rows)
    return errors
