# SPDX-License-Identifier: Apache-2.0
"""Instants at which a trajectory is checked."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from .spline import Spline
from .trajectory import Trajectory, sample_times

PER_PIECE = 16
"""Smallest number of instants in a piece of a spline; its velocity has a degree of eight at most."""


def check_times(trajectory: Trajectory, rate: float) -> Array:
    """Increasing times (N,) in s: at a rate in Hz from start to end, and within all pieces of a spline.

    A piece may be shorter than a period, and move a joint there and back between two instants.

    Raises:
        TrajectoryError: as :func:`.sample_times`.
    """
    t = sample_times(trajectory, rate)
    if not isinstance(trajectory, Spline):
        return t
    starts, steps = trajectory.t[:-1], np.diff(trajectory.t)
    short = np.flatnonzero(steps * rate < PER_PIECE)
    if not len(short):
        return t
    within = starts[short, np.newaxis] + steps[short, np.newaxis] * (np.arange(PER_PIECE) / PER_PIECE)
    return np.union1d(t, within)
