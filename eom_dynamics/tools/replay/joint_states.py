# SPDX-License-Identifier: Apache-2.0
"""Measured joint positions of a bag, fitted by a motion with four time derivatives.

The fit goes through the recording in overlapping windows, so that memory does not grow with its length. Of each window
the inner part is used; the step between neighbours where they meet is measured. A pause of the recording, or a clock
that is set back, separates two motions, each fitted alone. Repeated measurements, of a sensor that is read faster than
it measures, are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...bags import Bag, Topic
from ...bags.layout import Stamps, read_blocks
from ...control.fields import STATE_FIELDS
from ...control.joint_order import places
from ...exceptions import StateError, TrajectoryError
from ...robot import Robot
from ...trajectory import fit_trajectory
from ..recording_options import Conventions, Sampling, renaming_to
from ..recordings import arm_with_own_drives, in_si_units
from .batch import Batch, Refusals

_WINDOW = 16384  # samples in the inner part of a window

# Overlap on each side of a window, in periods of the cut-off: samples further away weigh exp(-0.31 2π 16) = 3e-14.
_MARGIN_PERIODS = 16.0
_PAUSE = 0.5  # time between messages that separates motions, s; it must also be _PAUSE_PERIODS times the usual one
_PAUSE_PERIODS = 20
_LEAST_SAMPLES = 20  # a motion with fewer samples is not fitted

# Positions beyond, rad or m, come from damaged messages; a single one would spoil the fit of all others.
_LARGEST_POSITION = 1e9

CONSEQUENCE = (
    "measurements and stamps are not in step, and time derivatives of the fit have bursts there, which a lower "
    "--cutoff makes smaller"
)
"""What repeated positions during a motion mean."""

_MOVING = 1e-4  # smallest step of a moving joint, rad or m: a sensor at rest may jitter by less
_SPAN = 4  # a position is compared with the one before, and that step with both its neighbours


def repeated_positions(position: Array) -> NDArray[np.intp]:
    """Indices of positions (N, n), rad or m, that equal the ones before to the last bit, between two steps."""
    if len(position) < _SPAN:
        return np.zeros(0, dtype=np.intp)
    step = np.abs(np.diff(position, axis=0)).max(axis=1)
    again = (step[1:-1] == 0) & (step[:-2] > _MOVING) & (step[2:] > _MOVING)
    return np.flatnonzero(again) + 2


class FitFigures:
    """Errors of the fit of n joints, and repeated measurements.

    Attributes:
        count: number of samples.
        squares: (n,) sums of squared deviations from the measured positions, rad² or m².
        largest: (n,) largest deviations, rad or m.
        seam: (n,) largest step in position where two windows meet, rad or m.
        repeated: number of samples that repeat the positions of the one before during a motion.
        first_repeated: time of recording of the first of them, ns; None without any.
    """

    def __init__(self, n: int) -> None:
        self.count = self.repeated = 0
        self.squares, self.largest, self.seam = np.zeros((3, n))
        self.first_repeated: int | None = None
        self._position, self._recorded = np.zeros((0, n)), np.zeros(0, dtype=np.int64)

    def add(self, deviation: Array) -> None:
        """Add deviations (N, n)."""
        self.count += len(deviation)
        self.squares += np.sum(deviation**2, axis=0)
        self.largest = np.maximum(self.largest, np.max(np.abs(deviation), axis=0))

    def count_repeats(self, position: Array, recorded: NDArray[np.int64]) -> None:
        """Take the next measured positions (N, n), rad or m, and their times of recording (N,), ns."""
        position = np.concatenate([self._position, position])
        recorded = np.concatenate([self._recorded, recorded])
        indices = repeated_positions(position)
        if len(indices) and self.first_repeated is None:
            self.first_repeated = int(recorded[indices[0]])
        self.repeated += len(indices)
        # One sample less than a repeat takes, so that none counts twice.
        self._position, self._recorded = position[1 - _SPAN :], recorded[1 - _SPAN :]

    @property
    def rms(self) -> Array:
        """(n,) root mean square of the deviations, rad or m."""
        return np.asarray(np.sqrt(self.squares / max(1, self.count)), dtype=float)


class _Samples(NamedTuple):
    """N samples in the robot's order of joints; effort is NaN where it was not recorded."""

    recorded: NDArray[np.int64]
    header: NDArray[np.int64]
    time: NDArray[np.int64]
    position: Array
    effort: Array

    def rows(self, rows: Any) -> _Samples:
        return _Samples(*(x[rows] for x in self))


def joint_state_batches(
    bag: Bag, topic: Topic, robot: Robot, sampling: Sampling, refusals: Refusals, figures: FitFigures
) -> Iterator[Batch]:
    """Fit the measured motion of a robot's joints, and sample it at the times of the measurements."""
    samples, names = _samples(bag, topic, robot, sampling.conventions, refusals, figures), list(robot.joint_names)
    for _, motion in groupby(_numbered(samples), key=itemgetter(0)):
        yield from _fitted((block for _, block in motion), names, sampling.cutoff, refusals, figures)


def _samples(
    bag: Bag, topic: Topic, robot: Robot, conventions: Conventions, refusals: Refusals, figures: FitFigures
) -> Iterator[_Samples]:
    """The usable measurements in blocks; their times increase, except where a clock was set back."""
    clock, arm = _Clock(), arm_with_own_drives(robot)
    for block in read_blocks(bag, topic, refusals.add):
        stamps = block.stamps()
        names, numbers = conventions.names(block.message.name), block.numbers("position")
        try:
            columns = places(robot.joint_names, names, field="name", kind="joint", others=True)
            if numbers.shape[1] != len(names):
                raise StateError(f"position has {numbers.shape[1]} entries, name has {len(names)}")
        except StateError as error:
            remedy = renaming_to(robot.joint_names, names)
            refusals.add(str(error), int(stamps.recorded[0]), len(block), remedy)
            continue
        values = in_si_units(arm, topic, names, {"position": numbers, **block.values(("effort",), len(names))})
        position = values["position"][:, columns]
        effort: Array = np.full(position.shape, np.nan)
        if "effort" in values:
            effort = conventions.efforts(robot.joint_names, values["effort"][:, columns])
        finite = (np.abs(position) <= _LARGEST_POSITION).all(axis=1)
        forward = np.ones(len(block), dtype=bool)
        forward[finite] = clock.forward(stamps.times[finite])
        for bad, reason in (
            (~finite, f"position is not finite, or beyond {_LARGEST_POSITION:g}"),
            (~forward, "stamp does not increase"),
        ):
            if bad.any():
                refusals.add(reason, int(stamps.recorded[bad][0]), int(bad.sum()))
        if (finite & forward).any():
            samples = _Samples(stamps.recorded, stamps.header, stamps.times, position, effort).rows(finite & forward)
            figures.count_repeats(samples.position, samples.recorded)
            yield samples


class _Clock:
    """Recognises stamps that increase; a step back by a pause is a clock that was set, and starts again."""

    def __init__(self) -> None:
        self._last: int | None = None
        self._newest = -(2**63)

    def forward(self, time: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each of the next stamps (N,), ns, is later than all others since the clock was last set."""
        forward = np.zeros(len(time), dtype=bool)
        if not len(time):
            return forward
        steps = np.diff(time, prepend=time[0] if self._last is None else self._last)
        jumps = np.flatnonzero(steps < -_PAUSE * 1e9).tolist()
        for start, end in zip([0, *jumps], [*jumps, len(time)], strict=True):
            if start in jumps:
                self._newest = -(2**63)
            newest = np.maximum.accumulate(np.concatenate([[self._newest], time[start:end]]))
            forward[start:end] = time[start:end] > newest[:-1]
            self._newest = int(newest[-1])
        self._last = int(time[-1])
        return forward


def _numbered(blocks: Iterator[_Samples]) -> Iterator[tuple[int, _Samples]]:
    """Blocks with the number of their motion, cut at pauses and where a clock was set back."""
    number, last, usual = 0, None, 0.0
    for block in blocks:
        steps = np.diff(block.time, prepend=block.time[0] if last is None else last)
        last = int(block.time[-1])
        if len(steps) > 1:
            usual = float(np.median(steps[1:]))
        pauses = np.flatnonzero((steps > max(_PAUSE * 1e9, _PAUSE_PERIODS * usual)) | (steps < 0)).tolist()
        for start, end in zip([0, *pauses], [*pauses, len(steps)], strict=True):
            number += start in pauses
            if start < end:
                yield number, block.rows(slice(start, end))


def _fitted(
    blocks: Iterator[_Samples], names: list[str], cutoff: float, refusals: Refusals, figures: FitFigures
) -> Iterator[Batch]:
    margin = round(min(_MARGIN_PERIODS / cutoff * 1e9, 2.0**62))
    before: _Window | None = None
    held: list[_Samples] = []
    inner, count = 0, 0
    for block in chain(blocks, [None]):
        if block is not None:
            held.append(block)
            count += len(block.time)
            if count <= inner + _WINDOW or block.time[-1] < held[0].time[0] + margin:
                continue
        samples = _Samples(*map(np.concatenate, zip(*held, strict=True)))
        if count < _LEAST_SAMPLES:
            refusals.add(
                f"motion of fewer than {_LEAST_SAMPLES} samples is not fitted", int(samples.recorded[0]), count
            )
            return
        while True:
            time, end = samples.time, inner + _WINDOW
            right = len(time)
            if end < len(time) and (block is None or time[-1] >= time[end] + margin):
                right = int(np.searchsorted(time, time[end] + margin, side="right"))
            elif block is None:
                end = len(time)
            else:
                break
            part = samples.rows(slice(inner, end))
            try:
                window = _Window(samples.rows(slice(right)), cutoff)
                states = window.states(part.time)
            except TrajectoryError as error:
                refusals.add(str(error), int(part.recorded[0]), len(part.time))
            else:
                figures.add(part.position - states[0])
                if before is not None:
                    step = np.abs(before.states(part.time[:1])[0][0] - states[0][0])
                    figures.seam = np.maximum(figures.seam, step)
                before = window
                measured = None if np.isnan(part.effort).all() else part.effort
                fields = dict(zip(STATE_FIELDS, states, strict=True))
                yield Batch(Stamps(part.recorded, part.header), "", names, fields, measured)
            if end == len(time):
                return
            left = int(np.searchsorted(time, time[end] - margin))
            samples, inner = samples.rows(slice(left, None)), end - left
        held, count = [samples], len(samples.time)


class _Window:
    """The motion fitted to some samples; times in ns, relative to the first sample's so that nothing is rounded."""

    def __init__(self, samples: _Samples, cutoff: float) -> None:
        self._origin = samples.time[0]
        self._motion = fit_trajectory(self._seconds(samples.time), samples.position, cutoff=cutoff).trajectory

    def states(self, time: NDArray[np.int64]) -> tuple[Array, ...]:
        """q to qdddd, each (N, n), at times (N,)."""
        return tuple(self._motion.derivatives(self._seconds(time), order=4))

    def _seconds(self, time: NDArray[np.int64]) -> Array:
        return (time - self._origin) * 1e-9
