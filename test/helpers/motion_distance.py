# SPDX-License-Identifier: Apache-2.0
"""Distance of a motion from points of a path."""

import numpy as np
from scipy.spatial import cKDTree

from eom_dynamics.arrays import Array
from eom_dynamics.trajectory import Trajectory

CHORDS = 40_000


def largest_distance(motion: Trajectory, points: Array) -> float:
    """Largest distance of a joint from the motion, at points (K, n), from 40,000 chords of the motion, rad or m."""
    (q,) = motion.derivatives(np.linspace(motion.start, motion.end, CHORDS), 0)
    nearest = np.clip(cKDTree(q).query(points)[1], 1, len(q) - 2)
    best = np.full(len(points), np.inf)
    for first in (nearest - 1, nearest):
        chord, since = q[first + 1] - q[first], points - q[first]
        share = np.clip(np.sum(chord * since, axis=1) / np.maximum(np.sum(chord**2, axis=1), 1e-300), 0.0, 1.0)
        best = np.minimum(best, np.max(np.abs(since - share[:, np.newaxis] * chord), axis=1))
    return float(np.max(best))
