# SPDX-License-Identifier: Apache-2.0
"""The motion of a bag, in blocks of setpoints: recorded ones, samples of planned trajectories, or fitted measurements.

Trajectories are interpolated with four continuous derivatives and sampled. One starts at the stamp of its header, or if
that is zero at its time of recording, and ends where the next one starts, as in a trajectory controller.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..control.fields import BASE_FIELD, BASE_SHAPE, STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS
from ..control.joint_order import JointOrder
from ..control.settings import Status
from ..control.trajectories import read_points, read_positions, read_times
from ..exceptions import StateError, TrajectoryError
from ..robot import Robot
from ..trajectory import Trajectory, through
from .bags import Bag, Topic
from .bags.layout import MessageBlock, read_blocks, read_messages
from .bags.types import COMMAND, JOINT_STATE, PAYLOAD, SETPOINT
from .fitted_motion import FitFigures, fitted_motion
from .one_clock import without_turns_between
from .options import Sampling
from .streams import Refusals, Stream, TopicReader
from .topics import beside

_BLOCK = 4096  # samples of a trajectory in a batch
_MOST_SAMPLES = 86_400_000  # a day at 1 kHz; a longer trajectory has a mistake in its times


def read_setpoints(
    bag: Bag, topic: Topic, robot: Robot, sampling: Sampling, refusals: Refusals, figures: FitFigures
) -> Iterator[Stream]:
    """Read the setpoints of a topic, sample its trajectories, or fit its measured positions.

    Yields blocks of the same joint names and frame, in order; measured ones have the ``effort`` that was recorded.
    """
    reader = TopicReader(bag, topic, sampling.conventions, robot, refusals)
    if topic.type == JOINT_STATE:
        return fitted_motion(reader, robot, sampling.cutoff, figures)
    return _setpoints(reader) if topic.type == SETPOINT else _planned_setpoints(reader, robot, sampling.rate, figures)


def command_lead(bag: Bag, topic: Topic, robot: Robot, override: float | None = None) -> float:
    """Lead of the commands over the motion of a topic, s.

    By default, the lead of the first command recorded with the setpoints, or the lead of the robot; none for motions
    that were measured or planned.
    """
    if override is not None:
        return override
    if topic.type != SETPOINT:
        return 0.0
    first = next(_commands(bag, topic), None)
    return robot.command_lead if first is None else float(first.numbers("command_lead")[0, 0])


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
    responds = np.isin(kind, (Status.STOPPING, Status.RAMPING))
    after = stamp[np.maximum.accumulate(np.where(responds, 0, place))]
    return np.stack([after, recorded, stamp, status])[:, responds & (after != 0)]


def _commands(bag: Bag, topic: Topic) -> Iterator[MessageBlock]:
    """The commands that were recorded in the namespace of setpoints, as far as they can be read."""
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
    """A trajectory, the number of its samples, and the times at which it starts, without a motion."""

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
    """States at multiples of the sampling period from the start, before ``stop``, ns, where the next one starts."""
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
