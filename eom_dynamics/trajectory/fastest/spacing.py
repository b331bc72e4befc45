# SPDX-License-Identifier: Apache-2.0
"""Spacing of waypoints along the parameter of the curve through them, for the fastest motion."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from ...arrays import Array
from ...exceptions import TrajectoryError
from .motion import FastestMotion

# First and last change of a logarithm of a distance, and the least relative gain.
_FIRST, _LAST = 0.4, 0.02
_GAIN = 1e-4


def fastest_spacing(
    find: Callable[[Array, FastestMotion | None], FastestMotion], distances: Array, seconds: float
) -> FastestMotion:
    """The fastest motion over distances between waypoints that a compass search tries.

    Each distance in turn grows or shrinks by a factor, which comes closer to 1 when none of them makes the motion
    faster: R. Hooke and T. A. Jeeves, "Direct search" solution of numerical and statistical problems, J. ACM 8, 1961.

    Args:
        find: returns the motion for distances, starting from another motion.
        distances: (K - 1,) to begin with; no result is slower than theirs.
        seconds: time after which no more are tried, s.

    Raises:
        TrajectoryError: no motion meets the limits with the first distances.
    """
    until, best, step = time.perf_counter() + seconds, find(distances, None), _FIRST
    while step > _LAST and len(distances) > 1:
        improved = False
        for change in step * np.eye(len(distances)):
            for tried in (distances * np.exp(change), distances * np.exp(-change)):
                if time.perf_counter() > until:
                    return best
                try:
                    motion = find(tried, best)
                except TrajectoryError:
                    continue
                if motion.duration < best.duration * (1 - _GAIN):
                    distances, best, improved = tried, motion, True
                    break
        if not improved:
            step *= 0.5
    return best
