# SPDX-License-Identifier: Apache-2.0
"""Linear estimators: ordinary and iteratively weighted least squares, Huber's, and total least squares.

They solve for the difference to the robot's file, so that what is not identifiable stays as in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import least_squares

from ..arrays import Array
from .equations import Equations, chunks, equations, predictions
from .filtering import FilteredSamples
from .regressor import Regressor

ESTIMATORS = ("weighted", "ordinary", "huber", "total")
"""Names of the estimators."""

HUBER = 1.345
"""Residual in standard deviations beyond which it counts linearly: 95 % efficient for normal noise (Huber, 1981)."""

DEPENDENT = 1e-8
"""Singular values of columns of length one, relative to the largest: below, a combination has no effect on efforts."""

# Iterations of the weights of joints; they converge to 1e-6 in about five.
_ITERATIONS = 30

# Rows of Huber's estimator: more do not change it, and take long.
_HUBER_ROWS = 40_000


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
    identifiable: Array

    def deviations(self) -> Array:
        """Standard deviations (P,); infinite where a parameter is not identifiable."""
        size = _sizes(self.R)
        values, vectors = np.linalg.eigh((self.R / size).T @ (self.R / size))
        known = values > DEPENDENT**2 * values[-1]
        variance = np.sum(np.square(vectors[:, known]) / values[known], axis=1) / size**2
        return np.where(self.identifiable, np.sqrt(variance), np.inf)

    def covariance(self) -> Array:
        """Covariance (P, P) of the identifiable combinations."""
        size = _sizes(self.R)
        scaled = self.R / size
        inverse = np.linalg.pinv(scaled.T @ scaled, rcond=DEPENDENT**2, hermitian=True)
        return np.asarray(inverse / np.outer(size, size))


def ordinary(system: Equations, file: Array) -> Estimate:
    """Least squares with one weight for all joints.

    Args:
        system: equations.
        file: parameters (P,) of the robot's file.
    """
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
    regressor: Regressor, samples: Sequence[FilteredSamples], first: Estimate, file: Array
) -> tuple[Estimate, list[Array]]:
    """Huber's estimator by SciPy, and the weights (N, n) that its residuals give each equation, 1 or less.

    Args:
        regressor: of the samples.
        samples: of motions.
        first: estimate to start from, whose residuals give the scale.
        file: parameters (P,) of the robot's file.
    """
    # A median is not moved by the outliers that the standard deviation is.
    sigma = _robust_deviations(regressor, samples, first.x)
    total = sum(int(part.used.sum()) for part in samples)
    step = max(1, -(-total // _HUBER_ROWS))
    A, b = _rows([part[::step] for part in samples], regressor, sigma)
    size = _sizes(A)
    U, values, Vt = np.linalg.svd(A / size, full_matrices=False)
    known = values > DEPENDENT * values[0]
    # In these coordinates all directions are alike.
    basis = (Vt[known].T / values[known]) / size[:, np.newaxis]
    U, rest = U[:, known], b - A @ file
    found = least_squares(
        lambda z: U @ z - rest,
        values[known] * (Vt[known] @ (size * (first.x - file))),
        lambda z: U,
        loss="huber",
        f_scale=HUBER,
    )
    x = file + basis @ found.x
    weights = []
    for part in samples:
        with np.errstate(invalid="ignore"):
            far = np.abs(predictions(regressor, part, x) - part.tau) / sigma
        weights.append(np.sqrt(np.minimum(1.0, HUBER / np.maximum(np.nan_to_num(far, nan=np.inf), HUBER))))
    reweighted = _solve(equations(regressor, samples, weights), np.nan_to_num(1 / sigma), file)
    return Estimate(x, sigma, reweighted.R, first.identifiable), weights


def total(system: Equations, first: Estimate, errors: Sequence[Array]) -> Estimate:
    """Total least squares: regressors have errors, too.

    With the covariance C of the errors of a row of (A, b) in units of the standard deviation of b, the smallest
    |(dA, db) C^-1/2| that makes the equations solvable has (x; -1) as the generalised eigenvector of (A, b)^T (A, b)
    and C of the smallest eigenvalue (S. Van Huffel, J. Vandewalle, The Total Least Squares Problem, 1991, chapter 10).
    Columns without errors are allowed.

    Args:
        system: equations.
        first: estimate whose weights are used.
        errors: for each joint, the covariance (P, P) of the errors of a row of its regressor.
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
    keep = np.append(first.identifiable.astype(bool), True)
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


def _rows(samples: Sequence[FilteredSamples], regressor: Regressor, sigma: Array) -> tuple[Array, Array]:
    """All used equations in units of the standard deviation."""
    blocks, right = [], []
    n = regressor.robot.n
    for part in samples:
        for rows, inertial in chunks(regressor, part):
            bases = [part.bases[term][rows, :, np.newaxis] * np.eye(n) for term in regressor.terms]
            Y = np.concatenate([inertial, *bases], axis=-1)
            used = part.used[rows] & (sigma > 0)
            scale = np.broadcast_to(sigma, used.shape)[used]
            blocks.append(Y[used] / scale[:, np.newaxis])
            right.append(part.tau[rows][used] / scale)
    return np.concatenate(blocks), np.concatenate(right)


def _robust_deviations(regressor: Regressor, samples: Sequence[FilteredSamples], x: Array) -> Array:
    """Standard deviations (n,) of the residuals by their median."""
    result = np.full(regressor.robot.n, np.nan)
    residuals = [predictions(regressor, part, x) - part.tau for part in samples]
    for j in range(regressor.robot.n):
        own = np.concatenate([r[part.used[:, j], j] for r, part in zip(residuals, samples, strict=True)])
        if len(own):
            result[j] = 1.4826 * float(np.median(np.abs(own)))
    return result
