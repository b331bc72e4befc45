# SPDX-License-Identifier: Apache-2.0
"""Linear estimators: ordinary and weighted least squares, Huber's by reweighting, and total least squares.

They solve for the difference to the robot's file, so that what is not identifiable stays as in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from ..arrays import Array
from .equations import Equations, equations, predictions
from .filtering import FilteredSamples
from .regressor import Regressor

ESTIMATORS = ("huber", "weighted", "ordinary", "total")
"""Names of the estimators."""

HUBER = 3.0
"""Residual in standard deviations beyond which it counts linearly: that of outliers, not of what a model lacks."""

# Ratio of the standard deviation to the one by the median, below which residuals are those of normal noise.
_NORMAL = 1.1

DEPENDENT = 1e-8
"""Singular values of columns of length one, relative to the largest: below, a combination has no effect on efforts."""

# Iterations of the weights of joints; they converge to 1e-6 in about five.
_ITERATIONS = 30

# Iterations of the weights of equations: each step is far smaller than the one before.
_REWEIGHTED = 3


@dataclass(frozen=True, eq=False)
class Estimate:
    """Linear estimate of P parameters.

    Attributes:
        x: (P,).
        sigma: standard deviation of the residual of each joint (n,), N m or N; NaN for joints without equations.
        R: (rows, P), regressor of all equations in units of the standard deviation.
        identifiable: (P,) whether the data determine the parameter.
    """

    x: Array
    sigma: Array
    R: Array
    identifiable: NDArray[np.bool_]

    def deviations(self) -> Array:
        """Standard deviations (P,); infinite where a parameter is not identifiable."""
        size = _sizes(self.R)
        values, vectors = np.linalg.eigh((self.R / size).T @ (self.R / size))
        known = values > DEPENDENT**2 * values[-1]
        variance = np.sum(np.square(vectors[:, known]) / values[known], axis=1) / size**2
        return np.where(self.identifiable, np.sqrt(variance), np.inf)


def ordinary(system: Equations, file: Array) -> Estimate:
    """Least squares with one weight for all joints; ``file`` are the parameters (P,) of the robot's file."""
    return _solve(system, np.ones(len(system.factors)), file)


def weighted(system: Equations, file: Array, tolerance: float = 1e-6) -> Estimate:
    """Least squares with each joint weighted by the standard deviation of its residual, iterated until both agree."""
    weights: Array = np.ones(len(system.factors))
    for _ in range(_ITERATIONS):
        estimate = _solve(system, weights, file)
        scale = np.nanmean(estimate.sigma)
        new = np.where(estimate.sigma > 0, 1 / np.maximum(np.nan_to_num(estimate.sigma), 1e-9 * scale), 0.0)
        done = np.allclose(new, weights, rtol=tolerance)
        weights = new
        if done:
            break
    return estimate


def huber(
    regressor: Regressor, folds: Sequence[Sequence[FilteredSamples]], systems: Sequence[Equations], file: Array
) -> tuple[Estimate, Sequence[Equations]]:
    """Huber's estimator, by iteratively reweighted least squares, joint by joint.

    A residual r beyond c = HUBER standard deviations has the weight c/|r|. Where all joints have those of normal
    noise, it is :func:`weighted`, at no more cost. Returns the estimate, and the equations of the blocks of samples
    with these weights.
    """
    estimate = weighted(reduce(add, systems), file)
    for _ in range(_REWEIGHTED):
        # Unlike the standard deviation, the median is robust against outliers.
        far = [[np.abs(predictions(regressor, part, estimate.x) - part.tau) for part in fold] for fold in folds]
        sigma = _robust_deviations([part for fold in folds for part in fold], [r for each in far for r in each])
        with np.errstate(invalid="ignore"):
            if not np.any(estimate.sigma > _NORMAL * sigma):
                break
        most = HUBER * sigma
        weights = [[np.sqrt(most / np.fmax(r, most)) for r in each] for each in far]
        systems = [equations(regressor, fold, w) for fold, w in zip(folds, weights, strict=True)]
        estimate = weighted(reduce(add, systems), file)
    return estimate, systems


def total(system: Equations, first: Estimate, errors: Sequence[Array]) -> Estimate:
    """Total least squares, which allows for errors in the regressors.

    With the covariance C of the errors of a row of (A, b) in units of the standard deviation of b, the smallest
    |(dA, db) C^-1/2| that makes the equations solvable has (x; -1) as the generalised eigenvector of (A, b)^T (A, b)
    and C of the smallest eigenvalue (S. Van Huffel, J. Vandewalle, The Total Least Squares Problem, 1991, chapter 10).
    Columns without errors are allowed. Weights are those of a first estimate; ``errors`` has for each joint the
    covariance (P, P) of the errors of a row of its regressor.
    """
    weights = np.nan_to_num(1 / first.sigma)
    R, right = system.weighted(weights)
    rows = np.column_stack([R, right])
    M = rows.T @ rows
    counts = system.counts
    P = system.parameters
    C = np.zeros((P + 1, P + 1))
    for w, count, error in zip(weights, counts, errors, strict=True):
        C[:P, :P] += count * w**2 * error
    C[P, P] = float(np.sum(counts[weights > 0]))
    size = np.sqrt(np.maximum(np.diag(M), np.finfo(float).tiny))
    keep = np.append(first.identifiable, True)
    scaled_M = (M / np.outer(size, size))[np.ix_(keep, keep)]
    scaled_C = (C / np.outer(size, size))[np.ix_(keep, keep)]
    # The largest of C against M, which is definite, rather than the smallest of M against C, which may not be.
    _, vectors = eigh(scaled_C, scaled_M)
    v = vectors[:, -1] / size[keep]
    x = first.x.copy()
    x[keep[:-1]] = -v[:-1] / v[-1]
    return Estimate(x, first.sigma, first.R, first.identifiable)


def _solve(system: Equations, weights: Array, file: Array) -> Estimate:
    R, right = system.weighted(weights)
    size = _sizes(R)
    U, values, Vt = np.linalg.svd(R / size, full_matrices=False)
    known = values > DEPENDENT * values[0] if len(values) else np.zeros(0, dtype=bool)
    rest = right - R @ file
    x = file + (Vt[known].T @ ((U[:, known].T @ rest) / values[known])) / size
    identifiable = np.linalg.norm(Vt[known], axis=0) > 1 - 1e-6 if known.any() else np.zeros(len(file), dtype=bool)
    identifiable &= np.linalg.norm(R, axis=0) > 0
    # Each joint has its share of the parameters as degrees of freedom.
    total = float(system.counts.sum())
    freedom = system.counts * (1 - min(float(known.sum()) / max(total, 1.0), 0.9))
    with np.errstate(invalid="ignore", divide="ignore"):
        sigma = np.sqrt(system.squares(x) / freedom)
    scaled = np.where(weights > 0, 1.0, 0.0) * np.nan_to_num(1 / np.where(sigma > 0, sigma, np.inf))
    return Estimate(x, sigma, system.weighted(scaled)[0], identifiable)


def _sizes(R: Array) -> Array:
    size = np.linalg.norm(R, axis=0)
    return np.where(size > 0, size, 1.0)


def _robust_deviations(samples: Sequence[FilteredSamples], sizes: Sequence[Array]) -> Array:
    """Standard deviations (n,) of residuals of these magnitudes, each (N, n), by their medians; NaN without any."""
    used, size = np.concatenate([part.used for part in samples]), np.concatenate(sizes)
    columns = zip(size.T, used.T, strict=True)
    return np.array([1.4826 * float(np.median(r[rows])) if rows.any() else np.nan for r, rows in columns])
