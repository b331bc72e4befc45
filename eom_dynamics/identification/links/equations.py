# SPDX-License-Identifier: Apache-2.0
"""Identification equations of training data, compressed, and their linear estimators.

The rows of joint j are A_j x = b_j. With the QR decomposition [A_j b_j] = Q M_j, where M_j has no more rows than
columns, |A_j x - b_j| = |M_j (x; -1)| for each x: a recording of any length is as small as the number of parameters,
and new samples are added by another QR decomposition (G. Golub, C. Van Loan, Matrix Computations, section 5.3).

Ordinary and weighted least squares, Huber's by reweighting, and total least squares solve for the difference to the
robot's file, so that what is not identifiable stays as in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import minimize_scalar

from ...arrays import Array
from ..recording import IdentificationError, Recording
from ..sampling import column_lengths
from .filtering import Filter, FilteredSamples, filter_recording
from .regressor import Regressor
from .terms import TERMS, Motion

_CHUNK = 4096  # rows of a joint that are compressed at once: enough for speed, few enough for memory
ESTIMATORS = ("huber", "weighted", "ordinary", "total")
HUBER = 3.0
"""Residual in standard deviations beyond which it counts linearly: that of outliers, not of what a model lacks."""

# Ratio of the standard deviation to the one by the median, below which residuals are those of normal noise.
_NORMAL = 1.1

DEPENDENT = 1e-8
"""Singular values of columns of length one, relative to the largest: below, a combination has no effect on efforts."""

_ITERATIONS = 30  # iterations of the weights of joints; they converge to 1e-6 in about five
_REWEIGHTED = 3  # iterations of the weights of equations: each step is far smaller than the one before
FOLDS = 4  # blocks of the training data, each held out once
_LEAST_EQUATIONS = 1.5  # equations for each parameter below which nothing is identified

# Range of the Stribeck velocity, in smoothing velocities and in RMS velocities of the joint: below, the law is that of
# Coulomb.
_LOWEST, _HIGHEST = 2.0, 1.0


@dataclass(frozen=True, eq=False)
class Equations:
    """Compressed equations of n joints in P parameters: factors M_j (rows, P + 1), and counts (n,) of equations."""

    factors: tuple[Array, ...]
    counts: Array

    def __add__(self, other: Equations) -> Equations:
        pairs = zip(self.factors, other.factors, strict=True)
        return Equations(tuple(_triangle(np.concatenate(pair)) for pair in pairs), self.counts + other.counts)

    @property
    def parameters(self) -> int:
        """Number P of parameters."""
        return self.factors[0].shape[1] - 1

    def squares(self, x: Array) -> Array:
        """Sum of squared residuals of each joint (n,), (N m)² or N²."""
        right = np.append(x, -1.0)
        return np.array([np.sum(np.square(M @ right)) for M in self.factors])

    def weighted(self, weights: Array) -> tuple[Array, Array]:
        """All equations, each joint's times its weight: R (rows, P) and right side (rows,)."""
        stacked = _triangle(np.concatenate([w * M for w, M in zip(weights, self.factors, strict=True)]))
        return stacked[:, :-1], stacked[:, -1]


def equations(
    regressor: Regressor, samples: Sequence[FilteredSamples], weights: Sequence[Array] | None = None
) -> Equations:
    """Compress the used samples of motions to equations, with weights (N, n) for each motion."""
    n, P = regressor.robot.n, len(regressor.names)
    factors = [np.zeros((0, P + 1)) for _ in range(n)]
    counts = np.zeros(n)
    for k, part in enumerate(samples):
        for rows, state in _states(part):
            inertial = regressor.inertial_columns(*state)
            for j in range(n):
                used = part.used[rows, j]
                if not used.any():
                    continue
                terms = [part.bases[term][rows, j] for term in regressor.terms]
                block = np.column_stack([inertial[:, j], *terms, part.tau[rows, j]])[used]
                if weights is not None:
                    block = block * weights[k][rows, j][used, np.newaxis]
                columns = [*range(regressor.inertial), *(regressor.column(term, j) for term in regressor.terms), P]
                narrow = np.concatenate([factors[j][:, columns], block])
                factors[j] = np.zeros((min(narrow.shape), P + 1))
                factors[j][:, columns] = _triangle(narrow)
                counts[j] += np.sum(used)
    return Equations(tuple(factors), counts)


def predictions(regressor: Regressor, samples: FilteredSamples, x: Array) -> Array:
    """Efforts (N, n) by parameters (P,), N m or N."""
    tau = np.concatenate([regressor.inertial_efforts(*state, x) for _, state in _states(samples)])
    for term, values in zip(regressor.terms, x[regressor.inertial :].reshape(-1, regressor.robot.n), strict=True):
        tau += samples.bases[term] * values
    return tau


def _states(samples: FilteredSamples) -> Iterator[tuple[slice, tuple[Array, Array, Array]]]:
    for start in range(0, len(samples), _CHUNK):
        rows = slice(start, start + _CHUNK)
        yield rows, (samples.q[rows], samples.qd[rows], samples.qdd[rows])


def _triangle(rows: Array) -> Array:
    return np.asarray(np.linalg.qr(rows, mode="r")) if len(rows) else rows


@dataclass(frozen=True, eq=False)
class Estimate:
    """Linear estimate x (P,) of parameters, and whether the data determine each of them (P,).

    ``sigma`` are standard deviations of the residuals of the joints (n,), N m or N; NaN for joints without equations. R
    (rows, P) is the regressor of all equations in units of these. ``common`` (P, k) are standard deviations by k
    independent errors that all samples have in common.
    """

    x: Array
    sigma: Array
    R: Array
    identifiable: NDArray[np.bool_]
    common: Array

    def deviations(self) -> Array:
        """Standard deviations (P,); infinite where a parameter is not identifiable."""
        size = column_lengths(self.R)
        values, vectors = np.linalg.eigh((self.R / size).T @ (self.R / size))
        known = values > DEPENDENT**2 * values[-1]
        variance = np.sum(np.square(vectors[:, known]) / values[known], axis=1) / size**2
        variance += np.sum(np.square(self.common), axis=1)
        return np.where(self.identifiable, np.sqrt(variance), np.inf)


def ordinary(system: Equations, file: Array) -> Estimate:
    """Least squares with one weight for all joints; ``file`` are the parameters (P,) of the robot's file."""
    return _solve(system, np.ones(len(system.factors)), file)


def weighted(system: Equations, file: Array, tolerance: float = 1e-6) -> Estimate:
    """Least squares with each joint weighted by the standard deviation of its residual, iterated until both agree."""
    weights: Array = np.ones(len(system.factors))
    for _ in range(_ITERATIONS):
        estimate = _solve(system, weights, file)
        former, least = weights, 1e-9 * np.nanmean(estimate.sigma)
        weights = np.where(estimate.sigma > 0, 1 / np.maximum(np.nan_to_num(estimate.sigma), least), 0.0)
        if np.allclose(weights, former, rtol=tolerance):
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
    used = np.concatenate([part.used for fold in folds for part in fold])
    for _ in range(_REWEIGHTED):
        far = [[np.abs(predictions(regressor, part, estimate.x) - part.tau) for part in fold] for fold in folds]
        # Unlike the standard deviation, the median is robust against outliers.
        columns = zip(np.concatenate([r for fold in far for r in fold]).T, used.T, strict=True)
        sigma = np.array([1.4826 * np.median(r[rows]) if rows.any() else np.nan for r, rows in columns])
        with np.errstate(invalid="ignore"):
            if not np.any(estimate.sigma > _NORMAL * sigma):
                break
        most = HUBER * sigma
        weights = [[np.sqrt(most / np.fmax(r, most)) for r in fold] for fold in far]
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
    rows, P = np.column_stack(system.weighted(weights)), system.parameters
    M, C = rows.T @ rows, np.zeros((P + 1, P + 1))
    for w, count, error in zip(weights, system.counts, errors, strict=True):
        C[:P, :P] += count * w**2 * error
    C[P, P] = float(np.sum(system.counts[weights > 0]))
    size = np.sqrt(np.maximum(np.diag(M), np.finfo(float).tiny))
    keep = np.append(first.identifiable, True)
    scaled_M, scaled_C = ((X / np.outer(size, size))[np.ix_(keep, keep)] for X in (M, C))
    # The largest of C against M, which is definite, rather than the smallest of M against C, which may not be.
    v = eigh(scaled_C, scaled_M)[1][:, -1] / size[keep]
    x = first.x.copy()
    x[keep[:-1]] = -v[:-1] / v[-1]
    return replace(first, x=x)


def _solve(system: Equations, weights: Array, file: Array) -> Estimate:
    R, right = system.weighted(weights)
    size = column_lengths(R)
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
    return Estimate(x, sigma, system.weighted(scaled)[0], identifiable, np.zeros((len(x), 0)))


def scale_sensitivity(system: Equations, weights: Array) -> Array:
    """Derivatives (P, n) of least squares with weights (n,) with respect to factors of the efforts of each joint."""
    R = system.weighted(weights)[0]
    size = column_lengths(R)
    right = np.stack([w**2 * M[:, :-1].T @ M[:, -1] for w, M in zip(weights, system.factors, strict=True)], axis=1)
    inverse = np.linalg.pinv(R / size, rcond=DEPENDENT)
    return np.asarray(inverse @ (inverse.T @ (right / size[:, np.newaxis])) / size[:, np.newaxis])


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Filtered samples of recordings by motion, cut into blocks, and the equations A x = b of each block.

    The regressor is that of base parameters and terms, ``file`` are the parameters x (P,) of the robot's file.
    """

    regressor: Regressor
    file: Array
    recordings: Sequence[Recording]
    filter: Filter
    samples: Sequence[FilteredSamples]
    folds: Sequence[Sequence[FilteredSamples]]
    systems: Sequence[Equations]

    @property
    def system(self) -> Equations:
        """Equations of all blocks."""
        return reduce(add, self.systems)

    @property
    def counts(self) -> dict[str, int]:
        """Efforts left out, by reason."""
        return {reason: sum(part.counts[reason] for part in self.samples) for reason in self.samples[0].counts}


def training_data(
    regressor: Regressor,
    file: Array,
    recordings: Sequence[Recording],
    using: Filter,
    *,
    inertia: bool = True,
    samples: Sequence[FilteredSamples] | None = None,
) -> TrainingData:
    """Filter recordings, unless samples are given, and compress their equations, of base parameters and terms.

    With the term ``stribeck``, the filter's Stribeck velocities are replaced by those of the data. Without ``inertia``,
    the right side has the efforts of the file's base parameters, of x (P,). Raises IdentificationError for too few
    samples.
    """
    if samples is None:
        samples = filter_recordings(recordings, regressor, using)
        if "stribeck" in regressor.terms:
            using = replace(using, stribeck_velocity=_stribeck_velocities(regressor, samples, using, file))
            samples = filter_recordings(recordings, regressor, using)
    folds = blocks(samples)
    systems = [equations(regressor, fold) for fold in folds]
    if not inertia:
        systems = [_of_terms_alone(system, regressor.inertial, file) for system in systems]
    data = TrainingData(regressor, file, recordings, using, samples, folds, systems)
    name, count, parameters = recordings[0].name, int(data.system.counts.sum()), data.system.parameters
    if not count:
        raise IdentificationError(
            f"{name}: no efforts in motion are left at a cut-off of {using.cutoff:.3g} Hz; record a longer motion with "
            "efforts, or set another --cutoff"
        )
    if count < _LEAST_EQUATIONS * parameters:
        raise IdentificationError(
            f"{name}: {count:,} efforts with motion are too few for {parameters} parameters at a cut-off of "
            f"{using.cutoff:.3g} Hz; record for longer, or identify fewer terms"
        )
    return data


def filter_recordings(recordings: Sequence[Recording], regressor: Regressor, using: Filter) -> list[FilteredSamples]:
    """Filtered samples of all motions; raises IdentificationError if there are none."""
    samples = [part for recording in recordings for part in filter_recording(recording, regressor.terms, using)]
    if not samples:
        raise IdentificationError(
            f"{recordings[0].name}: too short for a cut-off of {using.cutoff:.3g} Hz, whose filter needs "
            f"{2 / using.cutoff:.3g} s at least"
        )
    return samples


def _stribeck_velocities(regressor: Regressor, samples: Sequence[FilteredSamples], using: Filter, file: Array) -> Array:
    """Best-fit Stribeck velocities v_s (n,), the only nonlinear parameter of friction, joint by joint; rad/s or m/s.

    For each v_s the other parameters of the joint follow by least squares (variable projection, G. Golub, V. Pereyra,
    1973); inertial parameters are those of a fit without the Stribeck term, which they hardly depend on.
    """
    x, part = weighted(equations(regressor, samples), file).x, FilteredSamples.joined(samples)
    x[regressor.inertial :] = 0.0
    rest = part.tau - predictions(regressor, part, x)
    return np.array([_stribeck_velocity(regressor.terms, part, rest, using, j) for j in range(regressor.robot.n)])


def _stribeck_velocity(terms: Sequence[str], part: FilteredSamples, rest: Array, using: Filter, j: int) -> float:
    """That of joint j, from what inertias leave of its efforts; the one of the filter if the joint moves too slowly."""
    rows = part.used[:, j]
    efforts, qd = rest[rows, j], using.rates(part.qd)[rows, j]
    fixed = [part.bases[name][rows, j] for name in terms if name != "stribeck"]
    motion = Motion(qd, np.zeros_like(qd), smoothing_velocity=float(using.smoothing_velocity[j]))

    def error(log_velocity: float) -> float:
        stribeck = TERMS["stribeck"].basis(replace(motion, stribeck_velocity=float(np.exp(log_velocity))))
        A = np.column_stack([*fixed, stribeck])
        solution = np.linalg.lstsq(A, efforts, rcond=None)[0]
        return float(np.sum(np.square(A @ solution - efforts)))

    low, high = _LOWEST * using.smoothing_velocity[j], _HIGHEST * np.sqrt(np.mean(np.square(qd))) if len(qd) else 0.0
    if not high > low:
        return float(using.stribeck_velocity[j])
    return float(np.exp(minimize_scalar(error, bounds=(np.log(low), np.log(high)), method="bounded").x))


def _of_terms_alone(system: Equations, inertial: int, file: Array) -> Equations:
    """The same equations without inertial columns, A_t x_t = b - A_b beta with beta of the file."""
    factors = []
    for M in system.factors:
        changed = M.copy()
        changed[:, -1] -= M[:, :inertial] @ file[:inertial]
        changed[:, :inertial] = 0.0
        factors.append(changed)
    return Equations(tuple(factors), system.counts)


def blocks(samples: Sequence[FilteredSamples], count: int = FOLDS) -> list[list[FilteredSamples]]:
    """Cut samples into blocks of consecutive samples, each with a part of every long motion."""
    result: list[list[FilteredSamples]] = [[] for _ in range(count)]
    for part in samples:
        edges = np.linspace(0, len(part), count + 1).astype(int)
        for block, (start, end) in zip(result, pairwise(edges.tolist()), strict=True):
            if end > start:
                block.append(part[start:end])
    return [block for block in result if block]


def others(parts: Sequence[Equations], left_out: int) -> Equations:
    """Sum of all equations but those of one block."""
    return reduce(add, [part for k, part in enumerate(parts) if k != left_out])
