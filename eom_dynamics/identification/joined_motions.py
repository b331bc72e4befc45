# SPDX-License-Identifier: Apache-2.0
"""Several motions joined to one signal: selection of filtered samples that do not mix them.

A filter of finite length that runs over a joint of two motions makes a sample of neither; all others are as if each
motion was filtered by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def of_one_motion(count: int, starts: Sequence[int], margin: int, step: int) -> NDArray[np.bool_] | slice:
    """Rows of a filtered signal that depend on one motion alone; rows are every ``step``-th sample from ``margin`` on.

    Args:
        count: samples of the joined signal.
        starts: samples at which the second and further motions begin.
        margin: samples that a filtered one depends on before and after itself.
        step: samples from one row to the next.
    """
    if not len(starts):
        return slice(None)
    centers = np.arange(margin, count - margin, step)
    clear = np.ones(len(centers), dtype=bool)
    for start in starts:
        clear &= (centers + margin < start) | (centers - margin >= start)
    return clear


def longest(count: int, starts: Sequence[int]) -> slice:
    """Samples of the longest motion."""
    ends = [0, *starts, count]
    k = int(np.argmax(np.diff(ends)))
    return slice(ends[k], ends[k + 1])
