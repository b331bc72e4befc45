# SPDX-License-Identifier: Apache-2.0
"""The least uniform time scaling at which a motion keeps within the limits of an arm.

Run s times as slowly, the k-th derivative of q falls by s^k. Efforts do not follow a power of s: gravity stays, as in
tau(s) = g + (tau - g)/s² without a wrench; spring deflections, friction and gear losses mix more powers. Slower can be
worse even, where inertia carries part of the weight. So everything is computed anew at each s that is tried.

Few samples decide. Those that are worst at the present s are gathered; the least s for these alone, which can only be
too small, is tried with all samples; and so on until none is left that exceeds a limit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..actuators import ElasticArm
from .quantities import Bounds, Load, all_joints, quantities

Array = NDArray[np.float64]

TOLERANCE = 1e-9
"""A limit is exceeded from this share of it on; less is rounding."""

SLOWEST = 1e4
"""No scaling beyond this is looked for."""

# A search runs over octaves; within one by steps of 1 %, then four times by 1/64 of the step.
_STEPS_AN_OCTAVE = 70
_REFINEMENTS = 4
_PARTS = 64


def least_scaling(arm: ElasticArm, load: Load, limits: Bounds) -> float | None:
    """The least s >= 1 that meets all limits but those of position; None where there is none up to :data:`SLOWEST`.

    Of several ranges of s that meet them the lowest counts; one that is narrower than 1 % may be missed.

    Args:
        arm: the arm.
        load: the motion at s = 1.
        limits: the arm's.
    """
    everything, s = np.arange(len(load.states[0])), _least_for_motion(arm, load, limits)
    deciding = np.zeros(0, dtype=np.intp)
    while True:
        sizes = ratios(quantities(arm, load.at(everything, np.array(s))), limits)
        over = np.max(sizes, axis=0) > 1 + TOLERANCE
        if not np.any(over):
            return s
        found = np.union1d(deciding, np.argmax(sizes[:, over], axis=0))
        if len(found) == len(deciding):
            return s  # at the edge, where rounding differs between few samples and all
        deciding = found
        least = _least_for(arm, load, limits, deciding, s)
        if least is None:
            return None
        s = least


def _least_for_motion(arm: ElasticArm, load: Load, limits: Bounds) -> float:
    """The least scaling for velocity, acceleration and jerk of the joints, which do follow powers of it."""
    least = 1.0
    for k, name in enumerate(("velocity", "acceleration", "jerk"), start=1):
        if np.any(limits.largest[name] < np.inf):
            ratio = np.max(np.abs(all_joints(arm, load.states[k])) / limits.largest[name])
            if ratio > 1 + TOLERANCE:
                least = max(least, float(ratio ** (1 / k)))
    return least


def ratios(values: dict[str, Array], limits: Bounds) -> Array:
    """Sizes over limits (N, all names of all quantities); zero where there is no limit, or nothing known."""
    columns = [np.abs(values[name]) / largest for name, largest in limits.largest.items() if np.any(largest < np.inf)]
    if not columns:
        return np.zeros((len(values["velocity"]), 1))
    return np.nan_to_num(np.concatenate(columns, axis=1), nan=0.0, posinf=np.inf)


def _least_for(arm: ElasticArm, load: Load, limits: Bounds, samples: NDArray[np.intp], s: float) -> float | None:
    """The least scaling above s, which does not do, for these samples."""
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


def _good(arm: ElasticArm, load: Load, limits: Bounds, samples: NDArray[np.intp], tried: Array) -> int | None:
    """Number of the first scaling that meets all limits at all of the samples."""
    each = load.at(np.tile(samples, len(tried)), np.repeat(tried, len(samples)))
    worst = ratios(quantities(arm, each), limits).reshape(len(tried), -1).max(axis=1)
    good = np.flatnonzero(worst <= 1 + TOLERANCE)
    return int(good[0]) if len(good) else None
