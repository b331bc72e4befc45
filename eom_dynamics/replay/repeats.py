# SPDX-License-Identifier: Apache-2.0
"""Measurements that are not in step with their stamps, as of a sensor that is read faster than it measures."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CONSEQUENCE = (
    "measurements and stamps are not in step, and time derivatives of what is fitted to them have bursts there, which "
    "a lower --cutoff makes smaller"
)
"""What repeated positions amid a motion mean."""

# Steps of a joint, rad or m, above what a sensor at rest may jump to and fro.
_MOVING = 1e-4

# A position is held against the one before, and that step against both its neighbours.
_SPAN = 4


def repeated(position: Array) -> NDArray[np.intp]:
    """Places of positions that are those before, to the last bit, between two steps of a motion.

    Args:
        position: (N, n), rad or m.
    """
    if len(position) < _SPAN:
        return np.zeros(0, dtype=np.intp)
    step = np.abs(np.diff(position, axis=0)).max(axis=1)
    again = (step[1:-1] == 0) & (step[:-2] > _MOVING) & (step[2:] > _MOVING)
    return np.flatnonzero(again) + 2


@dataclass
class Repeats:
    """Counts them in positions that come in blocks.

    Attributes:
        count: how many.
        first: time of recording of the first, ns; None where there is none.
    """

    count: int = 0
    first: int | None = None
    _position: Array = field(default_factory=lambda: np.zeros((0, 0)), init=False)
    _recorded: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64), init=False)

    def add(self, position: Array, recorded: NDArray[np.int64]) -> None:
        """Take the next positions (N, n), rad or m, and their times of recording (N,), ns."""
        if len(self._position):
            position = np.concatenate([self._position, position])
            recorded = np.concatenate([self._recorded, recorded])
        places = repeated(position)
        if len(places) and self.first is None:
            self.first = int(recorded[places[0]])
        self.count += len(places)
        # One less than it takes, so that none counts twice.
        self._position, self._recorded = position[1 - _SPAN :], recorded[1 - _SPAN :]
