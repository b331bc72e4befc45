# SPDX-License-Identifier: Apache-2.0
"""Planned trajectories out of a bag, interpolated with a motion that has four time derivatives, and sampled.

A trajectory starts at the stamp of its header, or where that is zero when it was recorded, and ends where the next one
starts, as a trajectory controller takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rosbags.serde import SerdeError

from ..bags import Bag, Topic
from ..exceptions import TrajectoryError
from ..stream.conversions import STATE_FIELDS
from ..trajectory import through
from .batch import Batch, Refusals, Stamps

Array = NDArray[np.float64]

TYPE = "trajectory_msgs/msg/JointTrajectory"

# Samples at a time.
_SIZE = 4096

# A day at 1 kHz: more is a mistake in a time.
_LARGEST_COUNT = 86_400_000


class _Planned(NamedTuple):
    """A trajectory: times in ns."""

    motion: Any
    names: list[str]
    frame: str
    recorded: int
    start: int


def trajectory_batches(
    bag: Bag,
    topic: Topic,
    rate: float,
    refusals: Refusals,
    progress: Callable[[float], None] | None = None,
) -> Iterator[Batch]:
    """The states of the trajectories of a topic.

    Args:
        bag, topic: where they are.
        rate: of the states, Hz.
        refusals: takes trajectories that cannot be used.
        progress: is told the share of the bag that is behind.
    """
    store = topic.types()
    before: _Planned | None = None
    for times, messages in bag.messages(topic, progress):
        for recorded, data in zip(times, messages, strict=True):
            try:
                planned = _planned(store.deserialize_cdr(data, topic.type), recorded)
                _count(planned, rate)
            except (TrajectoryError, SerdeError, AttributeError) as error:
                refusals.add(" ".join(str(error).split()), recorded)
                continue
            if before is not None:
                yield from _sampled(before, rate, planned.start)
            before = planned
    if before is not None:
        yield from _sampled(before, rate, None)


def _planned(message: Any, recorded: int) -> _Planned:
    """The motion of a message; TrajectoryError where there is none."""
    names, points = list(message.joint_names), message.points
    if not points:
        raise TrajectoryError("a trajectory without points")
    stamp = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
    times = [point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in points]
    fields: dict[str, Array] = {}
    for name in ("positions", "velocities", "accelerations"):
        lengths = {len(getattr(point, name)) for point in points}
        if lengths == {len(names)}:
            fields[name] = np.array([getattr(point, name) for point in points], dtype=float)
        elif name == "positions" or lengths != {0}:
            told = ", ".join(map(str, sorted(lengths)))
            raise TrajectoryError(f"{name} of points have {told} entries, must all have {len(names)}, one a joint")
    motion = through(
        times, fields["positions"], velocities=fields.get("velocities"), accelerations=fields.get("accelerations")
    )
    return _Planned(motion, names, message.header.frame_id, recorded, stamp or recorded)


def _count(planned: _Planned, rate: float) -> int:
    count = (planned.motion.end - planned.motion.start) * rate
    if not count < _LARGEST_COUNT:
        raise TrajectoryError(f"a trajectory of {planned.motion.end:g} s is too long to sample at {rate:g} Hz")
    return int(np.floor(count + 1e-6)) + 1


def _sampled(planned: _Planned, rate: float, stop: int | None) -> Iterator[Batch]:
    """States at multiples of the period from the start on, before another trajectory starts at ``stop``, ns."""
    motion, count = planned.motion, _count(planned, rate)
    for first in range(0, count, _SIZE):
        t = motion.start + np.arange(first, min(count, first + _SIZE)) / rate
        since = np.round(t * 1e9).astype(np.int64)
        header = planned.start + since
        if stop is not None:
            t, since, header = (x[header < stop] for x in (t, since, header))
        if not len(t):
            return
        stamps = Stamps(
            planned.recorded + since,
            (header // 1_000_000_000).astype(np.int32),
            (header % 1_000_000_000).astype(np.uint32),
        )
        states = motion.derivatives(t, order=4)
        yield Batch(stamps, planned.frame, planned.names, dict(zip(STATE_FIELDS, states, strict=True)))
