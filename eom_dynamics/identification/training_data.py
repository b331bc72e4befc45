# SPDX-License-Identifier: Apache-2.0
"""Training data of an identification: filtered samples, cut into blocks, and the compressed equations of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
from scipy.optimize import minimize_scalar

from ..arrays import Array
from .equations import Equations, equations, predictions
from .estimators import weighted
from .exceptions import IdentificationError
from .filtering import Filter, FilteredSamples, filter_recording
from .joint_terms import TERMS, Motion
from .recording import Recording
from .regressor import Regressor

FOLDS = 4
"""Blocks of the training data, each held out once."""

# Equations for each parameter below which nothing is identified.
_LEAST_EQUATIONS = 1.5

# Range of the Stribeck velocity, in smoothing velocities and in RMS velocities of the joint: below, the law is that of
# Coulomb.
_LOWEST, _HIGHEST = 2.0, 1.0


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Filtered samples and their equations A x = b.

    Attributes:
        regressor: of base parameters and terms.
        file: parameters x (P,) of the robot's file.
        recordings: the samples are of these.
        filter: of the samples.
        samples: of each motion.
        folds: the samples cut into blocks.
        systems: equations of each block.
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
        counts: Counter[str] = Counter()
        for part in self.samples:
            counts.update(part.counts)
        return dict(counts)


def training_data(
    regressor: Regressor,
    file: Array,
    recordings: Sequence[Recording],
    using: Filter,
    *,
    inertia: bool = True,
    samples: Sequence[FilteredSamples] | None = None,
) -> TrainingData:
    """Filter recordings and compress their equations, of base parameters and terms.

    Args:
        regressor: of the parameters.
        file: parameters x (P,) of the robot's file.
        recordings: to fit.
        using: filter; with the term ``stribeck``, its Stribeck velocities are replaced by those of the data.
        inertia: whether base parameters are unknowns; otherwise the right side has their efforts.
        samples: of the recordings, filtered already.

    Raises:
        IdentificationError: there are too few samples.
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
    _require_enough(data.system, recordings[0].name, using.cutoff)
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
    x = weighted(equations(regressor, samples), file).x
    x[regressor.inertial :] = 0.0
    rest = [part.tau - predictions(regressor, part, x) for part in samples]
    return np.array([_stribeck_velocity(regressor.terms, samples, rest, using, j) for j in range(regressor.robot.n)])


def _stribeck_velocity(
    terms: Sequence[str], samples: Sequence[FilteredSamples], rest: Sequence[Array], using: Filter, j: int
) -> float:
    """That of joint j, from what inertias leave of its efforts; the one of the filter if the joint moves too slowly."""

    def of_joint(values: Iterable[Array]) -> Array:
        return np.concatenate([x[part.used[:, j], j] for x, part in zip(values, samples, strict=True)])

    efforts, qd = of_joint(rest), of_joint(using.rates(part.qd) for part in samples)
    fixed = [of_joint(part.bases[name] for part in samples) for name in terms if name != "stribeck"]
    motion = Motion(qd, np.zeros_like(qd), smoothing_velocity=float(using.smoothing_velocity[j]))

    def error(log_velocity: float) -> float:
        own = TERMS["stribeck"].basis(replace(motion, stribeck_velocity=float(np.exp(log_velocity))))
        A = np.column_stack([*fixed, own])
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


def _require_enough(system: Equations, name: str, cutoff: float) -> None:
    """Raise IdentificationError if there are too few equations for the number of parameters."""
    if not np.any(system.counts):
        raise IdentificationError(f"{name}: no joint moves with a recorded effort; nothing can be identified")
    if system.counts.sum() < _LEAST_EQUATIONS * system.parameters:
        raise IdentificationError(
            f"{name}: {int(system.counts.sum()):,} efforts with motion are too few for {system.parameters} parameters "
            f"at a cut-off of {cutoff:.3g} Hz; record for longer, or identify fewer terms"
        )


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
