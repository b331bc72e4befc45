# SPDX-License-Identifier: Apache-2.0
"""Motion of a bag, in blocks of setpoints: recorded setpoints, samples of trajectories, or fitted measurements.

Measured positions are fitted by a motion with four time derivatives. The fit goes through the recording in overlapping
windows and uses their inner parts. A pause of the recording, or a clock that is set back, separates two motions, each
fitted alone. Repeated measurements, of a sensor that is read faster than it measures, are counted.

Trajectories are interpolated with four continuous derivatives and sampled. A trajectory starts at the stamp of its
header (zero: its time of recording), and ends at the start of the next trajectory, as in a trajectory controller.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..control.fields import BASE_FIELD, BASE_SHAPE, STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS
from ..control.joint_order import JointOrder, places
from ..control.settings import Status
from ..control.trajectories import read_points, read_positions, read_times
from ..exceptions import StateError, TrajectoryError
from ..robot import Robot
from ..trajectory import Trajectory, fit_trajectory, through
from . import Sampling, renaming_to
from .bags import Bag, Topic
from .bags.layout import MessageBlock, read_blocks, read_messages
from .bags.types import COMMAND, JOINT_STATE, PAYLOAD, SETPOINT
from .joint_recordings import COMPLETE, on_one_clock
from .streams import Refusals, Stream, TopicReader, beside, joined
from .turns import without_turns, without_turns_between

_WINDOW = 16384  # samples in the inner part of a window

# Overlap on each side of a window, in periods of the cut-off: samples further away weigh exp(-0.31 2π 16) = 3e-14.
_MARGIN_PERIODS = 16.0
_PAUSE = 0.5  # time between messages that separates motions, s; it must also be _PAUSE_PERIODS times the usual one
_PAUSE_PERIODS = 20
_LEAST_SAMPLES = 20  # a motion with fewer samples is not fitted

# Positions beyond, rad or m, come from damaged messages; a single one would spoil the fit.
_LARGEST_POSITION = 1e9

CONSEQUENCE = (
    "measurements and stamps are not in step, and time derivatives of the fit have bursts there, which a lower "
    "--cutoff makes smaller"
)
"""Explanation of repeated positions during a motion."""

_MOVING = 1e-4  # minimum step of a moving joint, rad or m; jitter of a sensor at rest is smaller
_SPAN = 4  # a position is compared with the one before, and that step with both its neighbors


def repeated_positions(position: Array) -> NDArray[np.intp]:
    """Indices of positions (N, n), rad or m, that equal the previous positions to the last bit, between two steps."""
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
    """Measurements of a robot's joints; some may be missing if separate messages contain them."""
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


_BLOCK = 4096  # samples of a trajectory in a batch
_MOST_SAMPLES = 86_400_000  # a day at 1 kHz; a longer trajectory has a mistake in its times


def read_setpoints(
    bag: Bag, topic: Topic, robot: Robot, sampling: Sampling, refusals: Refusals, figures: FitFigures
) -> Iterator[Stream]:
    """Read the setpoints of a topic, sample its trajectories, or fit its measured positions.

    Yields blocks of equal joint names and frame, in order; measured blocks include the recorded ``effort``.
    """
    reader = TopicReader(bag, topic, sampling.conventions, robot, refusals)
    if topic.type == JOINT_STATE:
        return fitted_motion(reader, robot, sampling.cutoff, figures)
    return _setpoints(reader) if topic.type == SETPOINT else _planned_setpoints(reader, robot, sampling.rate, figures)


def recorded_payloads(bag: Bag, topic: Topic, refusals: Refusals) -> list[tuple[int, Any]]:
    """Times of recording, ns, and messages of the payloads in the namespace of a motion, in order."""
    payloads: list[tuple[int, Any]] = []
    for other in beside(bag, topic, PAYLOAD):
        payloads += read_messages(bag, other, lambda why, time: refusals.add(f"payload cannot be read: {why}", time))
    return sorted(payloads, key=lambda pair: pair[0])


def recorded_responses(bag: Bag, topic: Topic) -> NDArray[np.int64]:
    """Recorded commands in the namespace of setpoints, with stamps, that respond to a loss of them, or to a stop.

    Rows (4, N): stamp of the last answer to a setpoint before, time of recording, stamp, all ns, and status.
    """
    parts = [np.empty((3, 0), dtype=np.int64)]
    for block in _commands(bag, topic) if topic.type == SETPOINT else ():
        parts.append(np.stack([block.recorded, block.stamp, block.numbers("status")[:, 0].astype(np.int64)]))
    recorded, stamp, status = np.hstack(parts)
    # Commands that are held are part of a response after others of one; else they answer a refused setpoint.
    place = np.arange(len(status))
    kind = status[np.maximum.accumulate(np.where(status != Status.HELD, place, 0))]
    responds = kind == Status.STOPPING
    after = stamp[np.maximum.accumulate(np.where(responds, 0, place))]
    return np.stack([after, recorded, stamp, status])[:, responds & (after != 0)]


def _commands(bag: Bag, topic: Topic) -> Iterator[MessageBlock]:
    """Recorded commands in the namespace of setpoints, as far as they are readable."""
    for other in beside(bag, topic, COMMAND):
        yield from read_blocks(bag, other, lambda reason, time: None)


def _setpoints(reader: TopicReader) -> Iterator[Stream]:
    for block in reader.blocks():
        fields = {name: block.numbers(name) for name in (*STATE_FIELDS, *STIFFNESS_FIELDS)}
        # Messages have the force first.
        fields |= {name: block.numbers(name).reshape(len(block), -1, 2, 3)[:, :, ::-1] for name in WRENCH_FIELDS}
        fields |= {name: fields[name].reshape(len(block), -1, 6) for name in WRENCH_FIELDS}
        fields[BASE_FIELD] = block.numbers(BASE_FIELD).reshape(len(block), -1, *BASE_SHAPE)
        yield replace(reader.stream(block, "joint_names"), values=fields)


class _Planned(NamedTuple):
    """Trajectory with its number of samples and its start times; the motion is missing."""

    motion: Trajectory
    samples: int
    start: Stream


def _planned_setpoints(reader: TopicReader, robot: Robot, rate: float, figures: FitFigures) -> Iterator[Stream]:
    before: _Planned | None = None
    for recorded, message in reader.messages():
        try:
            planned = _planned(reader, message, recorded, robot, rate, figures)
        except (StateError, TrajectoryError) as error:
            reader.refusals.add(" ".join(str(error).split()), recorded)
            continue
        if before is not None:
            yield from _sampled(before, rate, int(planned.start.stamp[0]))
        before = planned
    if before is not None:
        yield from _sampled(before, rate, None)


def _planned(
    reader: TopicReader, message: Any, recorded: int, robot: Robot, rate: float, figures: FitFigures
) -> _Planned:
    times, order = read_times(message), JointOrder(list(message.joint_names), [])
    positions = read_positions(message, order)
    velocities, accelerations = (read_points(message, field, order) for field in ("velocities", "accelerations"))
    names = reader.names(message.joint_names)
    positions, turns = without_turns_between(robot, positions, names)
    figures.turns = {x: turns.get(x, 0) + figures.turns.get(x, 0) for x in {**figures.turns, **turns}}
    motion = through(times, positions, velocities=velocities, accelerations=accelerations)
    count = (motion.end - motion.start) * rate
    if not count < _MOST_SAMPLES:
        raise TrajectoryError(f"trajectory of {motion.end:g} s is too long to sample at {rate:g} Hz")
    header = message.header
    stamp = (header.stamp.sec * 1_000_000_000 + header.stamp.nanosec) or recorded
    start = Stream(reader.topic.name, np.array([stamp]), np.array([recorded]), names, {}, header.frame_id)
    return _Planned(motion, int(np.floor(count + 1e-6)) + 1, start)


def _sampled(planned: _Planned, rate: float, stop: int | None) -> Iterator[Stream]:
    """States at multiples of the sampling period from the start, before ``stop``, ns, the start of the next one."""
    motion, count, start = planned
    for first in range(0, count, _BLOCK):
        t = motion.start + np.arange(first, min(count, first + _BLOCK)) / rate
        since = np.round(t * 1e9).astype(np.int64)
        before = len(t) if stop is None else int(np.searchsorted(start.stamp + since, stop))
        if not before:
            return
        t, since = t[:before], since[:before]
        fields = dict(zip(STATE_FIELDS, motion.derivatives(t, order=4), strict=True))
        yield replace(start, stamp=start.stamp + since, recorded=start.recorded + since, values=fields)
