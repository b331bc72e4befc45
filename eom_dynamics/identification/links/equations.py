# SPDX-License-Identifier: Apache-2.0
"""Identification equations of training data, compressed, and their weighted least squares.

The rows of joint j are A_j x = b_j. The QR decomposition [A_j b_j] = Q M_j gives M_j with at most as many rows as
columns, and |A_j x - b_j| = |M_j (x; -1)| for each x. A recording of any length is compressed to the number of
parameters, and new samples are added by another QR decomposition (G. Golub, C. Van Loan, Matrix Computations, 5.3).

Least squares solve for the difference to the robot's file, so that unidentifiable parameters stay as in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ..recording import Recording, TooFewSamplesError
from ..sampling import column_lengths
from .filtering import Filter, FilteredSamples, filter_recording
from .regressor import Regressor

_CHUNK = 4096  # rows of a joint that are compressed together, as a compromise of speed and memory

DEPENDENT = 1e-8
"""Singular values of columns of length one, relative to the largest: below, a combination has no effect on efforts."""

_ITERATIONS = 30  # iterations of the weights of joints; they converge to 1e-6 in about five
FOLDS = 4  # blocks of the training data, each held out once
_LEAST_EQUATIONS = 1.5  # minimum number of equations per parameter


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


def equations(regressor: Regressor, samples: Sequence[FilteredSamples]) -> Equations:
    """Compress the used samples of motions to equations."""
    n, P = regressor.robot.n, len(regressor.names)
    factors = [np.zeros((0, P + 1)) for _ in range(n)]
    counts = np.zeros(n)
    for part in samples:
        for rows, state in _states(part):
            inertial = regressor.inertial_columns(*state)
            for j in range(n):
                used = part.used[rows, j]
                if not used.any():
                    continue
                terms = [part.bases[term][rows, j] for term in regressor.terms]
                block = np.column_stack([inertial[:, j], *terms, part.tau[rows, j]])[used]
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
        """Standard deviations (P,); infinite for unidentifiable parameters."""
        size = column_lengths(self.R)
        values, vectors = np.linalg.eigh((self.R / size).T @ (self.R / size))
        known = values > DEPENDENT**2 * values[-1]
        variance = np.sum(np.square(vectors[:, known]) / values[known], axis=1) / size**2
        variance += np.sum(np.square(self.common), axis=1)
        return np.where(self.identifiable, np.sqrt(variance), np.inf)


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

    The regressor has base parameters and terms; ``file`` are the parameters x (P,) of the robot's file.
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
    def counts(self) -> dict[str, Array]:
        """Recorded efforts (n,), used and left out, by reason."""
        parts = [part.counts for part in self.samples]
        return {reason: np.sum([counts[reason] for counts in parts], axis=0) for reason in parts[0]}


def training_data(
    regressor: Regressor,
    file: Array,
    recordings: Sequence[Recording],
    using: Filter,
    samples: Sequence[FilteredSamples] | None = None,
) -> TrainingData:
    """Filter recordings, unless samples are given, and compress their equations, of base parameters and terms.

    Raises IdentificationError for too few samples.
    """
    if samples is None:
        samples = filter_recordings(recordings, regressor, using)
    folds = blocks(samples)
    systems = [equations(regressor, fold) for fold in folds]
    data = TrainingData(regressor, file, recordings, using, samples, folds, systems)
    name, count, parameters = recordings[0].name, int(data.system.counts.sum()), data.system.parameters
    if not count:
        raise TooFewSamplesError(
            f"{name}: no efforts in motion are left at a cut-off of {using.cutoff:.3g} Hz; record a longer motion with "
            "efforts, or set another --cutoff"
        )
    if count < _LEAST_EQUATIONS * parameters:
        raise TooFewSamplesError(
            f"{name}: {count:,} efforts with motion are too few for {parameters} parameters at a cut-off of "
            f"{using.cutoff:.3g} Hz; record for longer, or identify fewer terms"
        )
    return data


def filter_recordings(recordings: Sequence[Recording], regressor: Regressor, using: Filter) -> list[FilteredSamples]:
    """Filtered samples of all motions; raises IdentificationError without samples."""
    samples = [part for recording in recordings for part in filter_recording(recording, regressor.terms, using)]
    if not samples:
        raise TooFewSamplesError(
            f"{recordings[0].name}: too short for a cut-off of {using.cutoff:.3g} Hz; its filter needs "
            f"{2 / using.cutoff:.3g} s at least"
        )
    return samples


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
    """Sum of the equations of all blocks but one."""
    return reduce(add, [part for k, part in enumerate(parts) if k != left_out])
