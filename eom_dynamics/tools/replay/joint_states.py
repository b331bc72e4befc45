# SPDX-License-Identifier: Apache-2.0
"""Measured joint positions of a bag, fitted by a motion with four time derivatives.

The fit goes through the recording in overlapping windows, of which the inner part is used. A pause of the recording, or
a clock that is set back, separates two motions, each fitted alone. Repeated measurements, of a sensor that is read
faster than it measures, are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...control.fields import STATE_FIELDS
from ...control.joint_order import places
from ...exceptions import StateError, TrajectoryError
from ...recordings.bags import Bag, Topic
from ...recordings.bags.layout import Stamps, read_blocks
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
        repeated: number of samples that repeat the positions of the one before during a motion.
        first_repeated: time of recording of the first of them, ns; None without any.
    """

    def __init__(self, n: int) -> None:
        self.count = self.repeated = 0
        self.squares, self.largest = np.zeros((2, n))
        self.first_repeated: int | None = None

    def add(self, deviation: Array) -> None:
        """Add deviations (N, n)."""
        self.count += len(deviation)
        self.squares += np.sum(deviation**2, axis=0)
        self.largest = np.maximum(self.largest, np.max(np.abs(deviation), axis=0))

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
    blocks = list(_read(bag, topic, robot, sampling.conventions, refusals))
    if not blocks:
        return
    samples = _Samples(*map(np.concatenate, zip(*blocks, strict=True)))
    samples = samples.rows(_increasing(samples, refusals))
    repeated = repeated_positions(samples.position)
    figures.repeated = len(repeated)
    figures.first_repeated = int(samples.recorded[repeated[0]]) if len(repeated) else None
    steps = np.diff(samples.time)
    usual = float(np.median(steps)) if len(steps) else 0.0
    cuts = np.flatnonzero((steps > max(_PAUSE * 1e9, _PAUSE_PERIODS * usual)) | (steps < 0)) + 1
    for start, end in pairwise([0, *cuts.tolist(), len(samples.time)]):
        motion = samples.rows(slice(start, end))
        yield from _fitted(motion, list(robot.joint_names), sampling.cutoff, refusals, figures)


def _read(bag: Bag, topic: Topic, robot: Robot, conventions: Conventions, refusals: Refusals) -> Iterator[_Samples]:
    """The finite measurements of all joints, in blocks."""
    arm = arm_with_own_drives(robot)
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
        _refuse(f"position is not finite, or beyond {_LARGEST_POSITION:g}", stamps.recorded[~finite], refusals)
        yield _Samples(stamps.recorded, stamps.header, stamps.times, position, effort).rows(finite)


def _increasing(samples: _Samples, refusals: Refusals) -> NDArray[np.bool_]:
    """Whether each stamp (N,) is later than all before it; a step back by a pause is a clock that was set anew."""
    forward = np.zeros(len(samples.time), dtype=bool)
    cuts = np.flatnonzero(np.diff(samples.time) < -_PAUSE * 1e9) + 1
    for start, end in pairwise([0, *cuts.tolist(), len(forward)]):
        newest = np.maximum.accumulate(samples.time[start:end])
        forward[start:end] = np.diff(newest, prepend=-(2**62)) > 0
    _refuse("stamp does not increase", samples.recorded[~forward], refusals)
    return forward


def _refuse(reason: str, recorded: NDArray[np.int64], refusals: Refusals) -> None:
    if len(recorded):
        refusals.add(reason, int(recorded[0]), len(recorded))


def _fitted(
    motion: _Samples, names: list[str], cutoff: float, refusals: Refusals, figures: FitFigures
) -> Iterator[Batch]:
    time, count = motion.time, len(motion.time)
    if count < _LEAST_SAMPLES:
        _refuse(f"motion of fewer than {_LEAST_SAMPLES} samples is not fitted", motion.recorded, refusals)
        return
    margin = round(min(_MARGIN_PERIODS / cutoff * 1e9, 2.0**62))
    for start in range(0, count, _WINDOW):
        end = min(start + _WINDOW, count)
        left = int(np.searchsorted(time, time[start] - margin)) if start else 0
        right = int(np.searchsorted(time, time[end] + margin, side="right")) if end < count else count
        # Times relative to the first sample's, so that nothing is rounded.
        seconds, part = (time[left:right] - time[left]) * 1e-9, motion.rows(slice(start, end))
        try:
            fit = fit_trajectory(seconds, motion.position[left:right], cutoff=cutoff).trajectory
            states = fit.derivatives(seconds[start - left : end - left], order=4)
        except TrajectoryError as error:
            refusals.add(str(error), int(part.recorded[0]), end - start)
            continue
        figures.add(part.position - states[0])
        measured = None if np.isnan(part.effort).all() else part.effort
        fields = dict(zip(STATE_FIELDS, states, strict=True))
        yield Batch(Stamps(part.recorded, part.header), "", names, fields, measured)
