# SPDX-License-Identifier: Apache-2.0
"""Deviations from measurements, and interruptions of commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ...arrays import Array
from ...stream.watchdog import Status

# A measured sample is compared if it is within this many usual intervals of a setpoint.
_REACH = 5.0

DOING = {
    Status.STOPPING: "bring the arm to rest",
    Status.RAMPING: "fade efforts to zero",
    Status.HELD: "repeat an earlier one",
}
"""What commands of a status do after a loss of setpoints."""

_ANSWERING_NONE = [status.value for status in DOING]


@dataclass(frozen=True)
class Deviation:
    """A quantity minus its measurement, at the times of measurement.

    Attributes:
        t: (N,) s.
        names: of the joints (n,).
        value: (N, n); NaN where either is unknown.
        measured: (N, n).
    """

    t: Array
    names: tuple[str, ...]
    value: Array
    measured: Array

    @property
    def rms(self) -> Array:
        """(n,) root mean square; NaN for a joint without a known deviation."""
        return _of_known(self.value, lambda x: np.sqrt(np.mean(x**2)))

    @property
    def peak(self) -> Array:
        """(n,) largest absolute value."""
        return _of_known(self.value, lambda x: np.max(np.abs(x)))

    @property
    def mean(self) -> Array:
        """(n,) mean."""
        return _of_known(self.value, np.mean)

    @property
    def spread(self) -> Array:
        """(n,) standard deviation of the measured quantity, where the deviation is known."""
        return _of_known(np.where(np.isnan(self.value), np.nan, self.measured), np.std)


def interpolated(t: Array, values: Array, wanted: Array) -> Array:
    """Interpolate samples (N, n) at times t (N,) to others; NaN outside, and within pauses."""
    result = np.stack([np.interp(wanted, t, x, left=np.nan, right=np.nan) for x in values.T], axis=1)
    if len(t) > 1:
        after = np.clip(np.searchsorted(t, wanted), 1, len(t) - 1)
        pause = t[after] - t[after - 1] > _REACH * np.median(np.diff(t))
        on_sample = (wanted == t[after]) | (wanted == t[after - 1])
        result[pause & ~on_sample] = np.nan
    return result


@dataclass(frozen=True)
class Interruption:
    """Consecutive commands that do not answer setpoints, for one reason.

    Attributes:
        status: of the commands.
        start, end: times of the first of them and of the command after them, s.
        count: number of commands.
        lost: whether setpoints were lost: the arm is brought to rest in this phase, or in one that joins it.
        begins: whether it is the first phase of a loss.
    """

    status: Status
    start: float
    end: float
    count: int
    lost: bool
    begins: bool


def interruptions(t: Array, status: Array) -> list[Interruption]:
    """Find the phases in which commands (N,) do not answer setpoints, in order."""
    starts = [0, *(np.flatnonzero(np.diff(status)) + 1).tolist(), len(status)]
    found: list[Interruption] = []
    joining: list[tuple[int, int]] = []  # phases without a fresh command between them

    def add() -> None:
        lost = any(status[start] != Status.HELD.value for start, _ in joining)
        for k, (start, end) in enumerate(joining):
            until = t[min(end, len(t) - 1)]
            own = Status(int(status[start]))
            found.append(Interruption(own, float(t[start]), float(until), end - start, lost, lost and k == 0))
        joining.clear()

    for start, end in pairwise(starts):
        if status[start] in _ANSWERING_NONE:
            joining.append((start, end))
        else:
            add()
    add()
    return found


def _of_known(values: Array, what: Callable[[Array], Any]) -> Array:
    columns = (column[~np.isnan(column)] for column in values.T)
    return np.array([what(column) if len(column) else np.nan for column in columns])
