# SPDX-License-Identifier: Apache-2.0
"""Choice of the cut-off, and between measured velocities and differences of positions, by the data themselves.

A cut-off that is too low leaves out motion, one that is too high lets noise of accelerations in; either predicts
efforts worse. So each candidate identifies from some blocks of the training data, and predicts the efforts of the
others as they were recorded, not filtered. No data held out for validation are seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np

from ..arrays import Array
from .equations import Equations, equations, predictions
from .estimators import weighted
from .exceptions import IdentificationError
from .filtering import Filter, Samples, prepare
from .recording import Recording
from .regressor import Regressor
from .spectrum import candidates, derivative_noise, noise

FOLDS = 4
"""Blocks of the training data, each held out once."""

# Relative change of the weights of joints that ends their iteration here: errors of a per cent decide nothing.
_ROUGH = 1e-2

# Logarithm of the ratio of errors that makes no difference.
_FLAT = 0.01

# Equations for each parameter below which a cut-off leaves too few samples.
_LEAST_EQUATIONS = 3.0


@dataclass(frozen=True)
class Trial:
    """A candidate: its filter, and the mean logarithm of the RMS error of held-out efforts, in all and by block."""

    cutoff: float
    measured_velocity: bool
    error: float
    by_block: tuple[float, ...] = ()


def choose(
    regressor: Regressor,
    recordings: Sequence[Recording],
    using: Filter,
    *,
    cutoff: float | None = None,
    measured_velocity: bool | None = None,
    progress: Callable[[float], None] | None = None,
) -> tuple[Filter, tuple[Trial, ...]]:
    """Choose the filter.

    Args:
        regressor: of what is identified.
        recordings: for training.
        using: the filter but for what is chosen.
        cutoff: Hz; None to choose it.
        measured_velocity: whether to use recorded velocities; None to choose.
        progress: called with the fraction done.

    Returns:
        The filter, and the candidates that were tried, if any.

    Raises:
        IdentificationError: there are too few data.
    """
    excerpts = [part for recording in recordings for part in recording.excerpts()]
    has_velocity = all(recording.qd is not None for recording in recordings)
    if measured_velocity and not has_velocity:
        raise IdentificationError("velocities were not recorded; choose differences of positions")
    velocities = [measured_velocity] if measured_velocity is not None else [False, True] if has_velocity else [False]
    cutoffs = [cutoff] if cutoff is not None else candidates(excerpts)
    grid = [(f, v) for f in cutoffs for v in velocities]
    trials = []
    if len(grid) > 1:
        for k, (f, v) in enumerate(grid):
            error, by_block = _error(regressor, excerpts, replace(using, cutoff=f, measured_velocity=v))
            trials.append(Trial(f, v, error, by_block))
            if progress:
                progress((k + 1) / len(grid))
        best = _parsimonious(trials)
        if not np.isfinite(best.error):
            raise IdentificationError(
                f"{recordings[0].name}: there are too few samples with motion for {len(regressor.names)} parameters; "
                "record for longer"
            )
        using = replace(using, cutoff=best.cutoff, measured_velocity=best.measured_velocity)
    else:
        using = replace(using, cutoff=grid[0][0], measured_velocity=bool(grid[0][1]))
    qd, _ = noise_of_motion(excerpts, using)
    return replace(using, velocity_noise=qd), tuple(trials)


def noise_of_motion(recordings: Sequence[Recording], using: Filter) -> tuple[Array, Array]:
    """Standard deviations (n,) of the noise of filtered velocities and accelerations, by the spectrum of the data."""
    found = []
    for recording in recordings:
        if using.measured_velocity and recording.qd is not None:
            density = noise(recording, recording.qd, using.cutoff)
            found.append([derivative_noise(density, using.cutoff, k) for k in (0, 1)])
        else:
            density = noise(recording, recording.q, using.cutoff)
            found.append([derivative_noise(density, using.cutoff, k) for k in (1, 2)])
    qd, qdd = np.sqrt(np.mean(np.square(found), axis=0))
    return qd, qdd


def blocks(samples: Sequence[Samples], count: int = FOLDS) -> list[list[Samples]]:
    """Cut samples into blocks of successive ones; each of them has some of each long motion."""
    result: list[list[Samples]] = [[] for _ in range(count)]
    for part in samples:
        edges = np.linspace(0, len(part), count + 1).astype(int)
        for block, start, end in zip(result, edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            if end > start:
                block.append(part[start:end])
    return [block for block in result if block]


def others(parts: Sequence[Equations], left_out: int) -> Equations:
    """The sum of all equations but one."""
    return reduce(add, [part for k, part in enumerate(parts) if k != left_out])


def _parsimonious(trials: Sequence[Trial]) -> Trial:
    """The lowest cut-off whose error is that of the best within the noise, and larger by 1 % at most.

    The noise is one standard deviation of the difference over the blocks.

    The curve is flat near its minimum, and what is identified at a high cut-off has more noise of accelerations.
    """
    best = min(trials, key=lambda trial: trial.error)
    if not best.by_block:
        return best
    for trial in sorted(trials, key=lambda each: (each.cutoff, each.error)):
        if trial.cutoff < best.cutoff and trial.by_block:
            more = np.subtract(trial.by_block, best.by_block)
            if trial.error - best.error <= min(_FLAT, np.std(more, ddof=1) / np.sqrt(len(more))):
                return trial
    return best


def _error(regressor: Regressor, recordings: Sequence[Recording], using: Filter) -> tuple[float, tuple[float, ...]]:
    """Mean logarithm over the joints of the RMS error of held-out efforts, N m or N, in all and by block."""
    samples = [part for recording in recordings for part in prepare(recording, regressor.terms, using)]
    folds = blocks(samples)
    if len(folds) < FOLDS:
        return np.inf, ()
    parts = [equations(regressor, fold) for fold in folds]
    file = np.append(regressor.parameters_of_file, np.zeros(len(regressor.names) - regressor.inertial))
    squares, counts = np.zeros((len(folds), regressor.robot.n)), np.zeros((len(folds), regressor.robot.n))
    for k, fold in enumerate(folds):
        system = others(parts, k)
        if system.counts.sum() < _LEAST_EQUATIONS * system.parameters:
            return np.inf, ()
        x = weighted(system, file, _ROUGH).x
        for part in fold:
            error = np.where(part.used, predictions(regressor, part, x) - part.measured, 0.0)
            squares[k] += np.sum(np.square(error), axis=0)
            counts[k] += np.sum(part.used, axis=0)
    by_block = tuple(_log_rms(*x) for x in zip(squares, counts, strict=True))
    return _log_rms(squares.sum(axis=0), counts.sum(axis=0)), by_block


def _log_rms(squares: Array, counts: Array) -> float:
    known = (counts > 0) & (squares > 0)
    return float(np.mean(0.5 * np.log(squares[known] / counts[known]))) if known.any() else np.inf
