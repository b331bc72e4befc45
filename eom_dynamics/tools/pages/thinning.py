# SPDX-License-Identifier: Apache-2.0
"""Thin curves for drawing: keep the minimum and the maximum of each run of samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array


def thinned(values: Array, points: int) -> NDArray[np.int_]:
    """Select samples to draw.

    The samples are cut into runs of equal length. The minimum and the maximum of each run are kept, so that no peak is
    lost, and so are the first and the last sample. A run without a number leaves a gap.

    Args:
        values: (N,); NaN if unknown.
        points: maximum number of points, at least 4.

    Returns:
        (K,) increasing indices: all N if N <= points, else K <= points.
    """
    count = len(values)
    if count <= points:
        return np.arange(count)
    runs = (points - 2) // 2
    length = -(-count // runs)
    padded = np.full(-(-count // length) * length, np.nan)
    padded[:count] = values
    table = padded.reshape(-1, length)
    starts = np.arange(len(table)) * length
    unknown = np.isnan(table)
    least = starts + np.argmin(np.where(unknown, np.inf, table), axis=1)
    greatest = starts + np.argmax(np.where(unknown, -np.inf, table), axis=1)
    kept: NDArray[np.int_] = np.unique(np.concatenate([[0], least, greatest, [count - 1]]))
    return kept
