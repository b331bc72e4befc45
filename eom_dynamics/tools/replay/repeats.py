# SPDX-License-Identifier: Apache-2.0
"""Detection of repeated measurements: a sensor that is read faster than it measures."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array

CONSEQUENCE = (
    "measurements and stamps are not in step, and time derivatives of the fit have bursts there, which a lower "
    "--cutoff makes smaller"
)
"""What repeated positions during a motion mean."""

# Smallest step of a moving joint, rad or m: a sensor at rest may jitter by less.
_MOVING = 1e-4

# A position is compared with the one before, and that step with both its neighbours.
_SPAN = 4


def repeated(position: Array) -> NDArray[np.intp]:
    """Indices of positions that equal the ones before to the last bit, between two steps of a motion.

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
    """Counts repeated positions that come in blocks.

    Attributes:
        count: number of them.
        first: time of recording of the first, ns; None without any.
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
        # One sample less than a repeat takes, so that none counts twice.
        self._position, self._recorded = position[1 - _SPAN :], recorded[1 - _SPAN :]
