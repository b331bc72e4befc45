# SPDX-License-Identifier: Apache-2.0
"""Evaluate a record: deviations from measurements, spring deflection, latency, intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...stream.watchdog import Status
from .record import Nanoseconds, Record, Stream

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


def deviation(record: Record, stream: Stream | None, field: str) -> Deviation | None:
    """Compute a field of a stream minus the measured one; None if either is missing.

    The stream is interpolated linearly at the times of measurement: exact where stamps agree, else with an error of at
    most h²/8 times the second derivative, for samples h apart.
    """
    measured = record.measured
    if stream is None or measured is None or not len(stream) or not len(measured):
        return None
    if field not in stream.values or field not in measured.values:
        return None
    names = tuple(name for name in stream.names if name in measured.names)
    values, theirs = stream.ordered(names).values[field], measured.ordered(names).values[field]
    difference = _at(record.t(stream), values, record.t(measured)) - theirs
    if np.isnan(difference).all():
        return None
    return Deviation(record.t(measured), names, difference, theirs)


def _at(t: Array, values: Array, wanted: Array) -> Array:
    """Interpolate samples (N, n) at times (N,) to other times; NaN outside, and within pauses."""
    result = np.stack([np.interp(wanted, t, x, left=np.nan, right=np.nan) for x in values.T], axis=1)
    if len(t) > 1:
        after = np.clip(np.searchsorted(t, wanted), 1, len(t) - 1)
        pause = t[after] - t[after - 1] > _REACH * np.median(np.diff(t))
        on_sample = (wanted == t[after]) | (wanted == t[after - 1])
        result[pause & ~on_sample] = np.nan
    return result


def spring_deflection(record: Record) -> tuple[Array, tuple[str, ...], Array] | None:
    """Compute times (N,), joints (n,) and motor minus link position (N, n) at common stamps; None if there are none."""
    if record.setpoint is None or record.motors is None:
        return None
    if "position" not in record.setpoint.values or "motor_position" not in record.motors.values:
        return None
    names = tuple(name for name in record.setpoint.names if name in record.motors.names)
    links, motors = matched(record.setpoint.stamp, record.motors.stamp)
    if not names or not len(links):
        return None
    theta = record.motors.ordered(names).values["motor_position"][motors]
    q = record.setpoint.ordered(names).values["position"][links]
    return record.t(record.motors)[motors], names, theta - q


def latency(record: Record) -> tuple[Array, Array] | None:
    """Compute times (N,) and recorded delays from setpoint to command (N,), s; None if either is missing."""
    if record.setpoint is None or record.command is None:
        return None
    if not (record.setpoint.is_recorded and record.command.is_recorded):
        return None
    setpoints, commands = matched(record.setpoint.stamp, record.command.stamp)
    if not len(setpoints):
        return None
    taken = record.command.recorded[commands] - record.setpoint.recorded[setpoints]
    return record.t(record.setpoint)[setpoints], np.multiply(taken, 1e-9, dtype=float)


def intervals(record: Record, stream: Stream) -> tuple[Array, Array]:
    """Compute times (N - 1,) and the differences of stamps to the previous message (N - 1,), s."""
    apart: Array = np.diff(stream.stamp) * 1e-9
    return record.t(stream)[1:], apart


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


def interruptions(record: Record) -> list[Interruption]:
    """Find the phases in which commands do not answer setpoints, in order."""
    stream = record.status
    if stream is None or stream.names[0] not in stream.values:
        return []
    t, status = record.t(stream), stream.values[stream.names[0]][:, 0]
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


def matched(first: Nanoseconds, second: Nanoseconds) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Find the indices of common stamps of two increasing arrays; the first of equal stamps."""
    _, of_first, of_second = np.intersect1d(first, second, return_indices=True)
    return of_first, of_second


def _of_known(values: Array, what: Callable[[Array], Any]) -> Array:
    columns = (column[~np.isnan(column)] for column in values.T)
    return np.array([what(column) if len(column) else np.nan for column in columns])
