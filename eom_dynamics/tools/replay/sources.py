# SPDX-License-Identifier: Apache-2.0
"""The motion of a bag: choice of its topic, and reading of its setpoints, or of its planned trajectories.

Trajectories are interpolated with four continuous derivatives and sampled. One starts at the stamp of its header, or if
that is zero at its time of recording, and ends where the next one starts, as in a trajectory controller.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...control.fields import BASE_FIELD, BASE_SHAPE, STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS
from ...control.joint_order import JointOrder
from ...control.settings import Status
from ...control.trajectories import read_points, read_positions, read_times
from ...exceptions import StateError, TrajectoryError
from ...recordings.bags import Bag, BagError, Topic
from ...recordings.bags.layout import Stamps, read_blocks, read_messages
from ...recordings.bags.types import COMMAND, JOINT_STATE, JOINT_TRAJECTORY, PAYLOAD, SETPOINT
from ...robot import Robot
from ...spelling import listed
from ...trajectory import Trajectory, through
from ..recording_options import Sampling
from ..recordings import is_motor_topic, only_one
from .batch import Batch, Refusals
from .joint_states import FitFigures, joint_state_batches

# Types of messages that describe a motion; the first one that a bag has is taken.
_INPUT_TYPES = (SETPOINT, JOINT_TRAJECTORY, JOINT_STATE)
_BLOCK = 4096  # samples of a trajectory in a batch
_MOST_SAMPLES = 86_400_000  # a day at 1 kHz; a longer trajectory has a mistake in its times


def read_setpoints(
    bag: Bag, topic: Topic, robot: Robot, sampling: Sampling, refusals: Refusals, figures: FitFigures
) -> Iterator[Batch]:
    """Read the setpoints of a topic, sample its trajectories, or fit its measured positions."""
    if topic.type == JOINT_STATE:
        return joint_state_batches(bag, topic, robot, sampling, refusals, figures)
    if topic.type == SETPOINT:
        batches = _setpoint_batches(bag, topic, refusals)
    else:
        batches = _trajectory_batches(bag, topic, sampling.rate, refusals)
    return (replace(batch, names=sampling.conventions.names(batch.names)) for batch in batches)


def command_lead(bag: Bag, topic: Topic, robot: Robot, given: float | None = None) -> float:
    """Lead of the commands over the motion of a topic, s.

    By default, that of the first command which was recorded with the setpoints, or that of the robot; none for motions
    that were measured or planned.
    """
    if given is not None:
        return given
    if topic.type != SETPOINT:
        return 0.0
    for other in _beside(bag, topic, COMMAND):
        for block in read_blocks(bag, other, lambda reason, time: None):
            return float(block.numbers("command_lead")[0, 0])
    return robot.command_lead


def recorded_payloads(bag: Bag, topic: Topic, refusals: Refusals) -> list[tuple[int, Any]]:
    """Times of recording, ns, and messages of the payloads in the namespace of a motion, in order."""
    payloads: list[tuple[int, Any]] = []
    for other in _beside(bag, topic, PAYLOAD):
        payloads += read_messages(bag, other, lambda why, time: refusals.add(f"payload cannot be read: {why}", time))
    return sorted(payloads, key=lambda pair: pair[0])


def recorded_responses(bag: Bag, topic: Topic) -> NDArray[np.int64]:
    """Recorded commands in the namespace of setpoints, with stamps, that respond to a loss of them, or to a stop.

    Rows (4, N): stamp of the last answer to a setpoint before, time of recording, stamp, all ns, and status.
    """
    parts = [np.empty((3, 0), dtype=np.int64)]
    for other in _beside(bag, topic, COMMAND) if topic.type == SETPOINT else ():
        for block in read_blocks(bag, other, lambda reason, time: None):
            stamps, status = block.stamps(), block.numbers("status")[:, 0].astype(np.int64)
            parts.append(np.stack([stamps.recorded, stamps.header, status]))
    recorded, stamp, status = np.hstack(parts)
    # Commands that are held are part of a response after others of one; else they answer a refused setpoint.
    place = np.arange(len(status))
    kind = status[np.maximum.accumulate(np.where(status != Status.HELD, place, 0))]
    responds = np.isin(kind, (Status.STOPPING, Status.RAMPING))
    after = stamp[np.maximum.accumulate(np.where(responds, 0, place))]
    return np.stack([after, recorded, stamp, status])[:, responds & (after != 0)]


def _beside(bag: Bag, topic: Topic, kind: str) -> list[Topic]:
    space = topic.name.rpartition("/")[0]
    return [other for other in bag.topics if other.type == kind and other.name.rpartition("/")[0] == space]


def choose_topic(bag: Bag, name: str | None = None) -> Topic:
    """Choose the topic to replay: the only one of a name, or of the first type in _INPUT_TYPES, but none of motors.

    Raises BagError if there is no such topic, or more than one.
    """
    usable = [topic for topic in bag.topics if topic.type in _INPUT_TYPES]
    if name is not None:
        named = bag.named(name)
        chosen = [topic for topic in named if topic in usable]
        if named and not chosen:
            raise BagError(f"{bag.path}: topic {name} is of type {named[0].type}, not one of {', '.join(_INPUT_TYPES)}")
    else:
        # Motor positions differ from link positions by the deflection of the springs.
        of_links = [topic for topic in usable if not is_motor_topic(topic)]
        kinds = [kind for kind in _INPUT_TYPES if any(topic.type == kind for topic in of_links)]
        chosen = [topic for topic in of_links if topic.type == kinds[0]] if kinds else []
    if not chosen:
        wanted = f"topic {name}" if name is not None else f"topic of type {' or '.join(_INPUT_TYPES)}"
        motors = listed(topic.name for topic in usable if is_motor_topic(topic)) if name is None else ""
        remedy = f"; {motors}: motor positions, replayed only if named with --topic" if motors else ""
        raise BagError(f"{bag.path}: has no {wanted}; it has {bag.topics_in_words}{remedy}")
    return only_one(bag, chosen, f"of type {chosen[0].type}", "--topic")


def _setpoint_batches(bag: Bag, topic: Topic, refusals: Refusals) -> Iterator[Batch]:
    for block in read_blocks(bag, topic, refusals.add):
        fields = {name: block.numbers(name) for name in (*STATE_FIELDS, *STIFFNESS_FIELDS)}
        # Messages have the force first.
        fields |= {name: block.numbers(name).reshape(len(block), -1, 2, 3)[:, :, ::-1] for name in WRENCH_FIELDS}
        fields |= {name: fields[name].reshape(len(block), -1, 6) for name in WRENCH_FIELDS}
        fields[BASE_FIELD] = block.numbers(BASE_FIELD).reshape(len(block), -1, *BASE_SHAPE)
        yield Batch(block.stamps(), block.message.header.frame_id, list(block.message.joint_names), fields)


class _Planned(NamedTuple):
    """A trajectory; times in ns."""

    motion: Trajectory
    names: list[str]
    frame: str
    recorded: int
    start: int


def _trajectory_batches(bag: Bag, topic: Topic, rate: float, refusals: Refusals) -> Iterator[Batch]:
    before: _Planned | None = None
    for recorded, message in read_messages(bag, topic, refusals.add):
        try:
            planned = _planned(message, recorded)
            _count(planned, rate)
        except (StateError, TrajectoryError) as error:
            refusals.add(" ".join(str(error).split()), recorded)
            continue
        if before is not None:
            yield from _sampled(before, rate, planned.start)
        before = planned
    if before is not None:
        yield from _sampled(before, rate, None)


def _planned(message: Any, recorded: int) -> _Planned:
    names, times = list(message.joint_names), read_times(message)
    order = JointOrder(names, [])
    positions = read_positions(message, order)
    velocities, accelerations = (read_points(message, field, order) for field in ("velocities", "accelerations"))
    motion = through(times, positions, velocities=velocities, accelerations=accelerations)
    stamp = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
    return _Planned(motion, names, message.header.frame_id, recorded, stamp or recorded)


def _count(planned: _Planned, rate: float) -> int:
    count = (planned.motion.end - planned.motion.start) * rate
    if not count < _MOST_SAMPLES:
        raise TrajectoryError(f"trajectory of {planned.motion.end:g} s is too long to sample at {rate:g} Hz")
    return int(np.floor(count + 1e-6)) + 1


def _sampled(planned: _Planned, rate: float, stop: int | None) -> Iterator[Batch]:
    """States at multiples of the sampling period from the start, before ``stop``, ns, where the next one starts."""
    motion, count = planned.motion, _count(planned, rate)
    for first in range(0, count, _BLOCK):
        t = motion.start + np.arange(first, min(count, first + _BLOCK)) / rate
        since = np.round(t * 1e9).astype(np.int64)
        header = planned.start + since
        before = len(t) if stop is None else int(np.searchsorted(header, stop))
        if not before:
            return
        t, since, header = t[:before], since[:before], header[:before]
        stamps = Stamps(planned.recorded + since, header)
        states = motion.derivatives(t, order=4)
        yield Batch(stamps, planned.frame, planned.names, dict(zip(STATE_FIELDS, states, strict=True)))
