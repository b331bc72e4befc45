# SPDX-License-Identifier: Apache-2.0
"""Delay of recorded efforts, and similar effects: hysteresis of springs, and compliance of links.

Clocks and filters may delay the efforts of a recording. The estimated delay is the shift with the smallest residual of
least squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...arrays import Array
from ...correlation import correlation_time
from ..recording import Recording
from ..sampling import sum_of_squares
from .checks import MUCH_BETTER, SAMPLES, SURE, Contradiction, HypothesisTest, held_out
from .consistent import column_basis, project_out
from .equations import TrainingData, others, predictions, training_data, weighted
from .filtering import Filter, FilteredSamples, filter_recording
from .regressor import Regressor

_LONGEST_LAG, _LEAST_LAG = 0.5, 0.008  # longest delay of the search, and shortest reported delay, s
_WITHOUT_LAG = 0.8  # share of squares that is left without a lag
_REVERSAL = 0.05  # rate of an effort, relative to its RMS, at which a loop reverses
_TOO_LATE = 0.02  # lag that shifts masses and friction by more than the noise, s


def lag(regressor: Regressor, recordings: Sequence[Recording], using: Filter) -> tuple[float, float]:
    """Delay of the efforts, s, and the fraction of squared residuals left when it is removed; 0 and 1 if negligible.

    The delay of all efforts with the smallest residual of least squares, if that is significantly better than without
    delay, given the number of independent samples after the filter.
    """
    nothing, whole = (0.0, 1.0), replace(using, decimate=False)
    excerpts = [part for recording in recordings for part in recording.excerpts()]
    samples = [part for motion in excerpts for part in filter_recording(motion, regressor.terms, whole)]
    part = max(samples, key=len, default=None)
    if part is None or len(part) < 3:
        return nothing
    period = float(part.t[1] - part.t[0])
    reach = min(round(_LONGEST_LAG / period), len(part) // 6)
    rows = np.arange(reach, len(part) - reach)
    if not len(rows) or reach < 2:
        return nothing
    stride = max(1, len(rows) // SAMPLES)
    rows = rows[::stride]
    independent = min(1.0, 2 * using.cutoff * period * stride)  # filtered samples are not
    Y = regressor.inertial_columns(part.q[rows], part.qd[rows], part.qdd[rows])
    steps = np.unique(np.linspace(-reach, reach, 2 * min(reach, 100) + 1).round().astype(int))
    now, squares, likelihood = int(np.argmin(np.abs(steps))), np.zeros(len(steps)), np.zeros(len(steps))
    for j in range(regressor.robot.n):
        used = part.used[rows, j] & np.all([np.isfinite(part.tau[rows + step, j]) for step in steps], axis=0)
        at = rows[used]
        b = np.column_stack([part.tau[at + step, j] for step in steps])
        basis = column_basis(np.column_stack([Y[used, j], *(part.bases[name][at, j] for name in regressor.terms)]))
        free = independent * len(at) - basis.shape[1]
        if free <= 0:
            continue
        rest = np.sum(np.square(b - basis @ (basis.T @ b)), axis=0)
        squares += rest / np.sum(np.square(b - b.mean(axis=0)), axis=0).mean()
        likelihood += free * np.log(np.maximum(rest, 1e-300) / max(rest[now], 1e-300))
    best = int(np.argmin(squares))
    better = squares[best] <= _WITHOUT_LAG * squares[now] and likelihood[best] < -(SURE**2)
    if not 0 < best < len(steps) - 1 or not better:
        return nothing
    left, middle, right = squares[best - 1 : best + 2]
    shift = 0.5 * (left - right) / max(left - 2 * middle + right, 1e-300)
    late = float(period * (steps[best] + shift * (steps[best + 1] - steps[best])))
    return (late, float(squares[best] / squares[now])) if abs(late) > _LEAST_LAG else nothing


def lag_notes(late: float, left: float, test: HypothesisTest | None = None) -> tuple[list[Contradiction], list[str]]:
    """A contradiction or a note on efforts delayed by ``late``, s; ``left`` as from :func:`lag`."""
    if not late or not (test is None or test.holds):
        return [], []
    when = "late" if late > 0 else "early"
    words = f"efforts are {when} by {1e3 * abs(late):.0f} ms; --effort-delay {late:.2g} moves them"
    words += f" ({test})" if test is not None else ""
    return ([Contradiction((), words)], []) if abs(late) > _TOO_LATE and left < MUCH_BETTER else ([], [words])


def delay_test(data: TrainingData, late: float) -> HypothesisTest:
    """Test of efforts that are ``late``, s, by least squares of all joints with and without that delay."""
    moved = [recording.without_delay(late) for recording in data.recordings]
    squares, scale, independent = np.zeros((2, len(data.systems))), np.zeros(data.regressor.robot.n), 0.0
    for which, having in enumerate((data, training_data(data.regressor, data.file, moved, data.filter))):
        whole, count = weighted(having.system, data.file), min(len(data.systems), len(having.systems))
        scale = np.nan_to_num(1 / np.square(whole.sigma)) if not which else scale
        for k in range(count):
            x = weighted(others(having.systems, k), data.file).x
            squares[which, k] = scale @ (having.systems[k].squares(x) / np.maximum(having.systems[k].counts, 1))
        errors = [predictions(data.regressor, part, whole.x) - part.tau for part in having.samples]
        kept = [np.where(part.used, x, 0.0) for part, x in zip(having.samples, errors, strict=True)]
        independent = float(np.sum(having.system.counts / correlation_time(kept)))
    return HypothesisTest(squares[0, :count], squares[1, :count], independent)


def spring_loops(regressor: Regressor, recordings: Sequence[Recording], using: Filter, late: float) -> list[str]:
    """Note on hysteresis that explains efforts as well as a delay of ``late``, s; [] if the delay is better.

    Efforts of springs by their deflections lack the loop between loading and unloading, as if they were late by a part
    of each motion, or early. The loop is a step with the sign of the rate of the efforts.
    """
    excerpts = [part for recording in recordings for part in recording.excerpts()]
    samples = [
        x for motion in excerpts for x in filter_recording(motion, regressor.terms, replace(using, decimate=False))
    ]
    part = max(samples, key=len)
    step = round(late / float(part.t[1] - part.t[0]))
    rows = np.arange(abs(step), len(part) - abs(step))[:: max(1, len(part) // SAMPLES)]
    Y = regressor.inertial_columns(part.q[rows], part.qd[rows], part.qdd[rows])
    delayed, looped, loops = 0.0, 0.0, list[str]()
    for j, name in enumerate(regressor.robot.joint_names):
        rate = np.gradient(np.nan_to_num(part.tau[:, j]))
        loop = np.tanh(rate / max(_REVERSAL * float(np.sqrt(np.mean(rate**2))), 1e-300))
        used = part.used[rows, j] & np.isfinite(part.tau[rows, j]) & np.isfinite(part.tau[rows + step, j])
        at = rows[used]
        A = column_basis(np.column_stack([Y[used, j], *(part.bases[term][at, j] for term in regressor.terms)]))
        if len(at) < 4 * A.shape[1]:
            continue
        now, then, h = project_out(A, np.column_stack([part.tau[at, j], part.tau[at + step, j], loop[at]])).T
        half = float(h @ now / max(sum_of_squares(h), 1e-300))
        spread = max(float(np.var(part.tau[at, j])) * len(at), 1e-300)
        delayed, looped = delayed + sum_of_squares(then) / spread, looped + sum_of_squares(now - half * h) / spread
        if sum_of_squares(now - half * h) < _WITHOUT_LAG * sum_of_squares(now):
            loops.append(f"{name} {2 * abs(half) / float(np.ptp(part.tau[at, j])):.1%}")
    if not loops or looped > delayed:
        return []
    return [
        f"hysteresis of springs, a loop between loading and unloading, explains the efforts better than a delay of "
        f"{1e3 * late:.0f} ms, in shares of the range of efforts: {', '.join(loops)}; robot files do not support it"
    ]


def bending_links(data: TrainingData, x: Array) -> list[str]:
    """A note on links that bend: efforts have -1/w² times the second derivative of the efforts predicted by x."""
    regressor, bending = data.regressor, list[str]()
    samples = [part for part in data.samples if len(part) > 2]
    step = max(1, sum(map(len, samples)) // SAMPLES)
    rigid = [regressor.inertial_efforts(part.q, part.qd, part.qdd, x) for part in samples]
    for _ in range(2):
        rigid = [np.gradient(y, part.t, axis=0) for y, part in zip(rigid, samples, strict=True)]
    part, bends = FilteredSamples.joined(samples)[::step], np.concatenate(rigid)[::step]
    Y = regressor.inertial_columns(part.q, part.qd, part.qdd)
    for j, name in enumerate(regressor.robot.joint_names):
        rows = part.used[:, j]
        A = np.column_stack([Y[rows, j], *(part.bases[term][rows, j] for term in regressor.terms)])
        if rows.sum() < 4 * A.shape[1]:
            continue
        tau = part.tau[rows, j]
        bend, rest = project_out(A, np.column_stack([bends[rows, j], tau])).T
        factor = float(bend @ rest / max(sum_of_squares(bend), 1e-300))
        test = held_out([(rows, A, tau, tau - factor * bends[rows, j])])
        if factor < 0 and test.holds and test.ratio > 1 / _WITHOUT_LAG:
            bending.append(f"{name}, at about {1 / (2 * np.pi * np.sqrt(-factor)):.2g} Hz ({test})")
    return [f"links, or gears, bend behind {'; '.join(bending)}: robot files have rigid links"] if bending else []
