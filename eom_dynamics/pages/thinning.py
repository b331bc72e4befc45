# SPDX-License-Identifier: Apache-2.0
"""Fewer points for a curve, that look the same: the least and the greatest of each run of samples stay."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def thinned(values: Array, points: int) -> NDArray[np.int_]:
    """Which of the samples to draw.

    The samples are cut into runs of one length; of each run the least and the greatest stay, so that no peak is lost,
    and so do the first and the last of all. A run without a number leaves a gap.

    Args:
        values: (N,); NaN where nothing is known.
        points: about how many may be drawn, at least 4.

    Returns:
        (K,) rising indices; all N where N is no more than ``points``, else K is at most ``points``.
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
