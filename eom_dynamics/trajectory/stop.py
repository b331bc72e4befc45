# SPDX-License-Identifier: Apache-2.0
"""Stop of a motion within limits."""

from __future__ import annotations

import numpy as np

from ..elastic import ElasticArm
from .limits import check
from .spline import ORDERS, Spline
from .trajectory import Trajectory

# Durations of a stop that are tried, s: each half as long again as the one before.
_DURATIONS = 0.05 * 1.5 ** np.arange(14)

# Samples of each at which limits are checked.
_SAMPLES = 100


def stop(arm: ElasticArm, trajectory: Trajectory, t: float) -> Spline:
    """Motion from a state of a trajectory to rest, continuous from position to snap.

    Of some durations, the shortest that meets the limits of joints and motors, or else the one that exceeds them least.

    Args:
        arm: the arm.
        trajectory: of all its joints.
        t: time of that state, s; the stop begins then.
    """
    start = np.stack(trajectory.derivatives(t, ORDERS - 1))
    best, least = None, np.inf
    for duration in _DURATIONS:
        end = np.zeros_like(start)
        end[0] = start[0] + 0.5 * duration * start[1]
        motion = Spline([t, t + duration], np.stack([start, end], axis=1))
        worst = max((peak.ratio for peak in check(arm, motion, rate=_SAMPLES / duration).exceeded), default=0.0)
        if best is None or worst < least:
            best, least = motion, worst
        if not worst:
            break
    assert best is not None
    return best
