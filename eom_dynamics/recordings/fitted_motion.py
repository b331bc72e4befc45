# SPDX-License-Identifier: Apache-2.0
"""Measured joint positions of a bag, fitted by a motion with four time derivatives.

The fit goes through the recording in overlapping windows and uses their inner parts. A pause of the recording, or
a clock that is set back, separates two motions, each fitted alone. Repeated measurements, of a sensor that is read
faster than it measures, are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..control.fields import STATE_FIELDS
from ..control.joint_order import places
from ..exceptions import StateError, TrajectoryError
from ..robot import Robot
from ..trajectory import fit_trajectory
from .one_clock import COMPLETE, on_one_clock, without_turns
from .options import renaming_to
from .streams import Refusals, Stream, TopicReader, joined

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
        notes: on the motion, one line each.
        turns: steps of 2π that were undone, by joint.
        repeated: number of samples that repeat the positions of the one before during a motion.
        first_repeated: time of recording of the first of them, ns; None without any.
    """

    def __init__(self, n: int) -> None:
        self.count = self.repeated = 0
        self.squares, self.largest = np.zeros((2, n))
        self.notes, self.turns = list[str](), dict[str, int]()
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


def fitted_motion(reader: TopicReader, robot: Robot, cutoff: float, figures: FitFigures) -> Iterator[Stream]:
    """Fit the measured motion of a robot's joints, and sample it at the times of the measurements, in blocks.

    Args:
        reader: of joint states.
        robot: robot with the measured joints.
        cutoff: cut-off frequency of the fit, Hz.
        figures: to add errors of the fit to.
    """
    parts, refusals = list(_of_robot(reader, robot)), reader.refusals
    if not parts:
        return
    whole = joined(reader.topic.name, parts)
    # Stamps, or times of recording if all are zero.
    whole = replace(whole, stamp=np.concatenate([part.times for part in parts]))
    position, figures.turns = without_turns(robot, whole.values["position"], whole.names)
    whole = replace(whole, values={**whole.values, "position": position})
    whole, figures.notes = on_one_clock(whole, robot.joint_names)
    samples = whole.ordered(robot.joint_names)
    finite = (np.abs(samples.values["position"]) <= _LARGEST_POSITION).all(axis=1)
    _refuse(f"position is not finite, or beyond {_LARGEST_POSITION:g}", samples[~finite], refusals)
    samples, times = samples[finite], samples[finite].stamp
    if not len(samples):
        return
    forward = _increasing(samples, times, refusals)
    samples, times = samples[forward], times[forward]
    repeated = repeated_positions(samples.values["position"])
    figures.repeated = len(repeated)
    figures.first_repeated = int(samples.recorded[repeated[0]]) if len(repeated) else None
    steps = np.diff(times)
    usual = float(np.median(steps)) if len(steps) else 0.0
    cuts = np.flatnonzero((steps > max(_PAUSE * 1e9, _PAUSE_PERIODS * usual)) | (steps < 0)) + 1
    for start, end in pairwise([0, *cuts.tolist(), len(times)]):
        yield from _fitted(samples[start:end], times[start:end], cutoff, refusals, figures)


def _of_robot(reader: TopicReader, robot: Robot) -> Iterator[Stream]:
    """Measurements of a robot's joints: of all, or of some where separate messages have the others."""
    blocks = list(reader.measured(("position", "effort")))
    names = {*robot.joint_names}
    usable = [stream for _, stream in blocks if "position" in stream.values and names & {*stream.names}]
    whole = sum(len(stream) for stream in usable if names <= {*stream.names})
    complete = names <= {name for stream in usable for name in stream.names}
    separate = complete and whole <= COMPLETE * sum(map(len, usable))
    for block, stream in blocks:
        wanted = [name for name in robot.joint_names if name in stream.names or not separate]
        if complete and not names & {*stream.names}:  # of a gripper, say
            continue
        try:
            places(wanted, stream.names, field="name", kind="joint", others=True)
            if "position" not in stream.values:
                entries = block.layout.fields()["position"]
                raise StateError(f"position has {entries} entries, name has {len(stream.names)}")
        except StateError as error:
            remedy = renaming_to(robot.joint_names, stream.names)
            reader.refusals.add(str(error), int(block.recorded[0]), len(block), remedy)
            continue
        yield stream.ordered(wanted)


def _increasing(samples: Stream, times: NDArray[np.int64], refusals: Refusals) -> NDArray[np.bool_]:
    """Return whether each time (N,) is later than all before it; a step back by a pause is a clock that was reset."""
    forward = np.zeros(len(times), dtype=bool)
    cuts = np.flatnonzero(np.diff(times) < -_PAUSE * 1e9) + 1
    for start, end in pairwise([0, *cuts.tolist(), len(forward)]):
        newest = np.maximum.accumulate(times[start:end])
        forward[start:end] = np.diff(newest, prepend=-(2**62)) > 0
    _refuse("stamp does not increase", samples[~forward], refusals)
    return forward


def _refuse(reason: str, samples: Stream, refusals: Refusals) -> None:
    if len(samples):
        refusals.add(reason, int(samples.recorded[0]), len(samples))


def _fitted(
    motion: Stream, time: NDArray[np.int64], cutoff: float, refusals: Refusals, figures: FitFigures
) -> Iterator[Stream]:
    position, count = motion.values["position"], len(motion)
    if count < _LEAST_SAMPLES:
        _refuse(f"motion of fewer than {_LEAST_SAMPLES} samples is not fitted", motion, refusals)
        return
    margin = round(min(_MARGIN_PERIODS / cutoff * 1e9, 2.0**62))
    for start in range(0, count, _WINDOW):
        end = min(start + _WINDOW, count)
        left = int(np.searchsorted(time, time[start] - margin)) if start else 0
        right = int(np.searchsorted(time, time[end] + margin, side="right")) if end < count else count
        # Times relative to the first sample's, so that nothing is rounded.
        seconds, part = (time[left:right] - time[left]) * 1e-9, motion[start:end]
        try:
            fit = fit_trajectory(seconds, position[left:right], cutoff=cutoff).trajectory
            states = fit.derivatives(seconds[start - left : end - left], order=4)
        except TrajectoryError as error:
            refusals.add(str(error), int(part.recorded[0]), end - start)
            continue
        figures.add(part.values["position"] - states[0])
        effort = part.values.get("effort", np.array(np.nan))
        fields = dict(zip(STATE_FIELDS, states, strict=True)) | ({} if np.isnan(effort).all() else {"effort": effort})
        yield replace(part, values=fields)
