# SPDX-License-Identifier: Apache-2.0
"""Planned trajectories of a bag, interpolated with four continuous derivatives and sampled.

A trajectory starts at the stamp of its header, or if that is zero at its time of recording, and ends where the next one
starts, as in a trajectory controller.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...bags import Bag, Topic
from ...bags.message_blocks import Stamps, read_messages
from ...exceptions import StateError, TrajectoryError
from ...messages.fields import STATE_FIELDS
from ...messages.joint_order import JointOrder
from ...messages.waypoints import read_points, read_positions, read_times
from ...trajectory import Trajectory, through
from .batch import Batch, Refusals

_BLOCK = 4096

# A day at 1 kHz; a longer trajectory has a mistake in its times.
_MOST_SAMPLES = 86_400_000


class _Planned(NamedTuple):
    """A trajectory; times in ns."""

    motion: Trajectory
    names: list[str]
    frame: str
    recorded: int
    start: int


def trajectory_batches(bag: Bag, topic: Topic, rate: float, refusals: Refusals) -> Iterator[Batch]:
    """Sample the trajectories of a topic."""
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
    """The motion of a message; StateError or TrajectoryError if it has none."""
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
