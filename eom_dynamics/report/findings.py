# SPDX-License-Identifier: Apache-2.0
"""The numbers of a record: how far it is off what was measured, how near to limits, how regular in time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .record import Array, Nanoseconds, Record, Stream

# A measured sample further from all setpoints than this many of their usual intervals has none to be held against.
_REACH = 5.0


@dataclass(frozen=True)
class Deviation:
    """A quantity less the measured one, at the times of the measured ones.

    Attributes:
        t: (N,) s.
        names: of the joints (n,).
        value: (N, n); NaN where one of the two is not known.
        measured: (N, n).
    """

    t: Array
    names: tuple[str, ...]
    value: Array
    measured: Array

    @property
    def rms(self) -> Array:
        """(n,) root of the mean square, NaN of a joint of which nothing is known."""
        return _of_known(self.value, lambda x: np.sqrt(np.mean(x**2)))

    @property
    def peak(self) -> Array:
        """(n,) largest absolute value."""
        return _of_known(self.value, lambda x: np.max(np.abs(x)))

    @property
    def mean(self) -> Array:
        """(n,) what it is off on the average."""
        return _of_known(self.value, np.mean)

    @property
    def spread(self) -> Array:
        """(n,) standard deviation of the measured quantity where the deviation is known."""
        return _of_known(np.where(np.isnan(self.value), np.nan, self.measured), np.std)


def deviation(record: Record, stream: Stream | None, field: str, measured_field: str) -> Deviation | None:
    """A field of a stream less one that was measured; None where either is missing.

    The stream is interpolated linearly at the times of the measured samples: exact where stamps agree, and off by at
    most h²/8 times its second derivative between samples that are h apart.
    """
    measured = record.measured
    if stream is None or measured is None or not len(stream) or not len(measured):
        return None
    if field not in stream.values or measured_field not in measured.values:
        return None
    names = tuple(name for name in stream.names if name in measured.names)
    values, theirs = stream.ordered(names).values[field], measured.ordered(names).values[measured_field]
    difference = _at(record.t(stream), values, record.t(measured)) - theirs
    if np.isnan(difference).all():
        return None
    return Deviation(record.t(measured), names, difference, theirs)


def _at(t: Array, values: Array, wanted: Array) -> Array:
    """Samples (N, n) at times (N,), interpolated at others; NaN outside, and within pauses."""
    result = np.stack([np.interp(wanted, t, x, left=np.nan, right=np.nan) for x in values.T], axis=1)
    if len(t) > 1:
        after = np.clip(np.searchsorted(t, wanted), 1, len(t) - 1)
        pause = t[after] - t[after - 1] > _REACH * np.median(np.diff(t))
        on_sample = (wanted == t[after]) | (wanted == t[after - 1])
        result[pause & ~on_sample] = np.nan
    return result


def spring_deflection(record: Record) -> tuple[Array, tuple[str, ...], Array] | None:
    """Times (N,), joints (n,) and motor less link position (N, n) where both are known at the same stamp; or None."""
    if record.setpoint is None or record.motors is None or "motor_position" not in record.motors.values:
        return None
    names = tuple(name for name in record.setpoint.names if name in record.motors.names)
    links, motors = matched(record.setpoint.stamp, record.motors.stamp)
    if not names or not len(links):
        return None
    theta = record.motors.ordered(names).values["motor_position"][motors]
    q = record.setpoint.ordered(names).values["position"][links]
    return record.t(record.motors)[motors], names, theta - q


def latency(record: Record) -> tuple[Array, Array] | None:
    """Times (N,) and from each setpoint to its command, as they were recorded, s; None where either is missing."""
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
    """Times (N - 1,) and how long after the one before each message was stamped, s."""
    apart: Array = np.diff(stream.stamp) * 1e-9
    return record.t(stream)[1:], apart


def matched(first: Nanoseconds, second: Nanoseconds) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Places in two rising lists of stamps at which they agree; of equal stamps in one list the first."""
    _, of_first, of_second = np.intersect1d(first, second, return_indices=True)
    return of_first, of_second


def _of_known(values: Array, what: Callable[[Array], Any]) -> Array:
    columns = (column[~np.isnan(column)] for column in values.T)
    return np.array([what(column) if len(column) else np.nan for column in columns])
