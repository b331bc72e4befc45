# SPDX-License-Identifier: Apache-2.0
"""Choice of the filter by cross-validation: cut-off, and measured or differentiated velocities.

A cut-off that is too low leaves out motion, one that is too high lets noise of accelerations in; either predicts
efforts worse. Each candidate identifies from some blocks of the training data, and predicts the efforts of the
others as they were recorded, not filtered. Least squares find the neighbourhood of the best one; consistent inertias,
as they are written, decide within it. No data held out for validation are seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...arrays import Array
from ..recording import IdentificationError, Recording, TooFewSamplesError
from ..sampling import EDGE, HIGHEST, cutoff_bounds, cutoff_of, decimation, root_mean_square
from .equations import FOLDS, blocks, filter_recordings, others, predictions, training_data, weighted
from .filtering import Filter, FilteredSamples, default_filter, power, uniform, velocity_noise
from .parameters import Options
from .regressor import Regressor
from .solutions import held_out_vectors

# The lowest cut-off that is tried, in frequencies below which half of the power of velocities is.
_LOWEST = 2.0
RATIO = 1.5  # ratio of neighbouring cut-offs
_ROUGH = 1e-2  # relative change of the weights of joints that ends their iteration
_NEAR = 0.1  # logarithm of the ratio of errors that is worth a closer look
_ENDS = 0.1  # share of a motion that is left out at each end, for all candidates to be judged by the same samples
_CLOSE_LOOKS = 6  # candidates that are compared closely without leaving out every second one
_JUDGING = 8000  # samples that judge a candidate
_WEIGHT = 1.0  # weight of the prior while candidates are compared: inertias are known to a factor of e
_LEAST_EQUATIONS = 3.0  # equations for each parameter below which a cut-off leaves too few samples


def candidates(recordings: Sequence[Recording]) -> list[float]:
    """Cut-off candidates, Hz, from the lowest that keeps most of the motion.

    The highest is just below Nyquist, or lower where the noise of accelerations would bias parameters: held-out efforts
    do not show that if they oscillate at higher frequencies, as with motors that stick and slip.
    """
    lowest, highest = np.inf, np.inf
    for recording in recordings:
        for motion in recording.motions():
            samples = uniform(motion)[0]
            f, density = power(samples, samples.q)
            velocity = density * np.square(f)[:, np.newaxis]
            total = np.cumsum(velocity, axis=0)
            moving = total[-1] > 1e-3 * np.max(total[-1])
            share = total[:, moving] / total[-1, moving]
            lowest = min(lowest, float(np.min(f[np.argmax(share > 0.5, axis=0)])))
            signals = [(samples.q, 2)] if samples.qd is None else [(samples.q, 2), (samples.qd, 1)]
            clear = [[cutoff_of(motion.period, x, order) for x in y.T[moving]] for y, order in signals]
            limit = float(np.min(np.max(clear, axis=0)))
            least, most = cutoff_bounds(motion.period, len(samples))
            # At a bound, as of a recording without a floor of noise, there is no such limit.
            highest = min(highest, limit if 1.01 * least < limit < most else HIGHEST * float(f[-1]))
    lowest = min(_LOWEST * max(lowest, 0.1), highest / 2)
    count = int(np.log(highest / lowest) / np.log(RATIO)) + 1
    return [float(lowest * RATIO**k) for k in range(count)]


@dataclass(frozen=True)
class Trial:
    """A candidate filter, with the mean logarithm of the RMS error of held-out efforts."""

    cutoff: float
    measured_velocity: bool
    error: float


def choose_filter(
    regressor: Regressor,
    recordings: Sequence[Recording],
    file: Array,
    options: Options,
    progress: Callable[[float], None],
) -> tuple[Filter, tuple[Trial, ...]]:
    """Choose the filter by the prediction of held-out efforts, and list the candidates that were compared.

    ``file`` are the parameters x (P,) of the robot's file; ``progress`` is called with the fraction done. Raises
    IdentificationError for too few data.
    """
    excerpts = [part for recording in recordings for part in recording.excerpts()]
    if not excerpts:
        raise recordings[0].no_motion
    has_velocity = all(recording.qd is not None for recording in recordings)
    velocities = [False, True][: 1 + has_velocity]
    cutoffs = candidates(excerpts) if options.cutoff is None else [options.cutoff]
    trials: list[Trial] = []
    using = default_filter(regressor.robot, cutoffs[0], motor_side=options.side == "motor")
    if len(cutoffs) * len(velocities) > 1:

        def compared(candidates: Sequence[tuple[float, bool]], before: float, *, consistent: bool) -> list[Trial]:
            trials = []
            for k, (f, v) in enumerate(candidates):
                progress(before + 0.5 * k / len(candidates))
                parts = [_without_ends(part, f, cutoffs[0]) for part in excerpts]
                candidate = replace(using, cutoff=f, measured_velocity=v)
                trials.append(_trial(regressor, parts, candidate, file, consistent=consistent))
            return trials

        coarse = compared([(f, v) for f in cutoffs[::2] for v in velocities], 0.0, consistent=False)
        least = min(coarse, key=lambda trial: trial.error)
        if not np.isfinite(least.error):
            raise TooFewSamplesError(
                f"{recordings[0].name}: there are too few samples with motion for {len(regressor.names)} parameters; "
                "record for longer"
            )
        near = [trial.cutoff for trial in coarse if trial.error < least.error + _NEAR]
        fine = [f for f in cutoffs if min(near) / RATIO < 1.01 * f < 1.02 * max(near) * RATIO]
        fine = fine[:: 1 + (len(fine) > _CLOSE_LOOKS)]  # neighbours tell nothing more of a flat curve
        # Physically consistent inertias decide where all bodies are identified.
        trials = compared([(f, least.measured_velocity) for f in fine], 0.5, consistent=options.payload is None)
        best = min(trials, key=lambda trial: trial.error)
        using = replace(using, cutoff=best.cutoff, measured_velocity=best.measured_velocity)
    return replace(using, velocity_noise=velocity_noise(excerpts, using)), tuple(trials)


def _without_ends(motion: Recording, cutoff: float, lowest: float) -> Recording:
    """Shorten a motion so that any filter leaves the same samples of it as the filter of the lowest cut-off.

    Errors of different parts of a recording differ by more than errors of different filters.
    """
    most = min(EDGE / lowest, _ENDS * float(motion.t[-1] - motion.t[0]))
    # In whole samples, as the filter counts: by other samples, noise alone differs by more than filters do.
    count = max(0, round(most / motion.period) - round(EDGE / (cutoff * motion.period)))
    return motion[count : len(motion) - count]


def _trial(
    regressor: Regressor, recordings: Sequence[Recording], using: Filter, file: Array, *, consistent: bool
) -> Trial:
    """A candidate, judged by least squares or by physically consistent inertias."""
    nothing = Trial(using.cutoff, using.measured_velocity, np.inf)
    try:
        whole = filter_recordings(recordings, regressor, replace(using, decimate=False))
        steps = [decimation(float(part.t[1] - part.t[0]), using.cutoff) if len(part) > 1 else 1 for part in whole]
        samples = [part[::step] for part, step in zip(whole, steps, strict=True)]
        data = training_data(regressor, file, recordings, using, samples=samples)
    except IdentificationError:
        return nothing
    if len(data.folds) < FOLDS or data.system.counts.sum() < _LEAST_EQUATIONS * data.system.parameters:
        return nothing
    if consistent:
        vectors = held_out_vectors(data, weighted(data.system, file, _ROUGH), _WEIGHT)
    else:
        vectors = [weighted(others(data.systems, k), file, _ROUGH).x for k in range(FOLDS)]
    # The same samples for all candidates, and more than a low cut-off leaves.
    step = max(1, sum(map(len, whole)) // _JUDGING)
    held_out = [FilteredSamples.joined(fold) for fold in blocks([part[::step] for part in whole])]
    errors = [unfiltered_errors(regressor, fold, using, x) for fold, x in zip(held_out, vectors, strict=True)]
    rms = root_mean_square(np.concatenate(errors))
    known = np.nan_to_num(rms) > 0
    return replace(nothing, error=float(np.mean(np.log(rms[known]))) if known.any() else np.inf)


def unfiltered_errors(regressor: Regressor, part: FilteredSamples, using: Filter, x: Array) -> Array:
    """Errors (N, n) of efforts as recorded, predicted as by a feedforward, with unfiltered dry friction."""
    state = using.motion((part.q, part.qd, part.qdd))
    bases = dict(zip(regressor.terms, regressor.bases(state), strict=True))
    return predictions(regressor, replace(part, bases=bases), x) - part.measured
