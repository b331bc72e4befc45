# SPDX-License-Identifier: Apache-2.0
"""Least uniform time scaling for which a motion meets the limits of an arm.

Slowed down by the factor s, the k-th derivative of q decreases by s^k. Efforts are not a power of s: gravity remains,
as in tau(s) = g + (tau - g)/s² without a wrench, and spring deflections, friction and gear losses have other powers.
They may even increase with s if inertial forces support part of the weight. Therefore, all quantities are computed for
each s.

Few samples are critical. Starting with the worst samples at the present s, the least s for these alone, a lower bound,
is checked with all samples; the samples that then violate a limit are added until there are none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..elastic import ElasticArm
from ..elastic.bounds import TOLERANCE, Bounds
from .quantities import SampledLoad, all_joints, effort_rms, quantities

SLOWEST = 1e4
"""Largest time scaling in the search."""

# The search takes steps of 1 % within octaves, and refines the step four times by a factor of 64.
_STEPS_AN_OCTAVE = 70
_REFINEMENTS = 4
_PARTS = 64


def least_time_scaling(arm: ElasticArm, load: SampledLoad, limits: Bounds) -> float | None:
    """Least s >= 1 that meets all limits except those of positions; None if there is none up to :data:`SLOWEST`.

    If several ranges of s meet the limits, the lowest is taken; a range narrower than 1 % may be missed.

    Args:
        arm: the arm.
        load: the motion at s = 1.
        limits: limits of the arm.
    """
    s = _least_for_motion(arm, load, limits)
    deciding: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
    while True:
        largest, worst = _largest(arm, load, limits, s)
        over = largest > 1 + TOLERANCE
        if not np.any(over):
            return s
        found = np.union1d(deciding, worst[over])
        if len(found) == len(deciding):
            return s  # at the limit, where rounding errors of few and all samples differ
        deciding = found
        least = _least_for(arm, load, limits, deciding, s)
        if least is None:
            return None
        s = least


def fastest_time_scaling(arm: ElasticArm, load: SampledLoad, limits: Bounds) -> float:
    """Least s <= 1 that meets all limits, at least 1/:data:`SLOWEST`, for a motion that meets them at s = 1.

    Where limits are met at some s below one that violates them, the search by halves may find either.

    Args:
        arm, load, limits: as for :func:`least_time_scaling`.
    """

    def is_met(s: float) -> bool:
        has_rms = np.any(np.isfinite(limits.effort_rms))
        if has_rms and np.any(effort_rms(arm, load, np.array(s)) > (1 + TOLERANCE) * limits.effort_rms):
            return False
        return bool(np.max(_largest(arm, load, limits, s)[0]) <= 1 + TOLERANCE)

    good, bad = 1.0, 0.5
    while is_met(bad):
        if bad < 1 / SLOWEST:
            return 1 / SLOWEST
        good, bad = bad, bad / 2
    while good - bad > 1e-9 * good:
        middle = 0.5 * (good + bad)
        good, bad = (middle, bad) if is_met(middle) else (good, middle)
    return good


def _largest(arm: ElasticArm, load: SampledLoad, limits: Bounds, s: float) -> tuple[Array, NDArray[np.intp]]:
    """Largest ratio of each column of :func:`ratios` over all samples at a scaling, and its sample."""
    largest, worst = np.zeros(0), np.zeros(0, dtype=np.intp)
    for part, slower in load.parts(np.array(s)):
        sizes = ratios(quantities(arm, slower, limits), limits)
        found, rows = np.max(sizes, axis=0), part.start + np.argmax(sizes, axis=0)
        if part.start == 0:
            largest, worst = found, rows
        else:
            worst = np.where(found > largest, rows, worst)
            largest = np.maximum(largest, found)
    return largest, worst


def _least_for_motion(arm: ElasticArm, load: SampledLoad, limits: Bounds) -> float:
    """Least s for velocity, acceleration and jerk of the joints, which are powers of it."""
    least = 1.0
    limited = [(k, x) for k, x in enumerate(("velocity", "acceleration", "jerk"), start=1) if limits.limited(x)]
    for _, part in load.parts() if limited else ():
        for k, name in limited:
            ratio = np.max(np.abs(all_joints(arm, part.states[k])) / limits.largest[name])
            if ratio > 1 + TOLERANCE:
                least = max(least, float(ratio ** (1 / k)))
    return least


def ratios(values: dict[str, Array], limits: Bounds) -> Array:
    """Ratios of magnitudes to limits (N, all names of all quantities); zero if limit or value is unknown."""
    columns = [np.abs(values[name]) / limits.largest[name] for name in limits.quantities]
    if not columns:
        return np.zeros((len(values["velocity"]), 1))
    found = np.concatenate(columns, axis=1)
    found[np.isnan(found)] = 0.0
    return found


def _least_for(arm: ElasticArm, load: SampledLoad, limits: Bounds, samples: NDArray[np.intp], s: float) -> float | None:
    """Least scaling above s, at which limits are violated, for some samples."""
    while s < SLOWEST:
        tried = s * 2.0 ** (np.arange(_STEPS_AN_OCTAVE + 1) / _STEPS_AN_OCTAVE)
        good = _good(arm, load, limits, samples, tried)
        if good is None:
            s = float(tried[-1])
            continue
        for _ in range(_REFINEMENTS):
            if good == 0:
                break
            tried = np.linspace(tried[good - 1], tried[good], _PARTS + 1)
            good = _good(arm, load, limits, samples, tried) or _PARTS
        return float(tried[good])
    return None


def _good(arm: ElasticArm, load: SampledLoad, limits: Bounds, samples: NDArray[np.intp], tried: Array) -> int | None:
    """Index of the first scaling that meets all limits for some samples."""
    each = load.at(np.tile(samples, len(tried)), np.repeat(tried, len(samples)))
    worst = ratios(quantities(arm, each, limits), limits).reshape(len(tried), -1).max(axis=1)
    good = np.flatnonzero(worst <= 1 + TOLERANCE)
    return int(good[0]) if len(good) else None
