# SPDX-License-Identifier: Apache-2.0
"""Measured positions of a run, at the times of its motion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline

from ..arrays import Array
from ..robot import Robot
from .bags import Bag, BagError
from .bags.message_blocks import read_blocks
from .bags.types import SETPOINT
from .identify.read import Source, read_stamped

# Measurements may begin and end by this much inside the motion, s; the nearest one counts.
_MISSING = 0.05


def measured_run(path: Path, robot: Robot, t: Array, topic: str | None = None) -> Array:
    """Positions (N, n) of the links in a run at the times (N,) of its motion, s, rad or m.

    Args:
        path: of the bag, with setpoints, the first of which is at the motion's first time.
        robot: whose joints moved.
        t: times, s.
        topic: of the positions; by default the only one of the links.

    Raises:
        BagError: the bag has no setpoints, or its measurements do not span the motion.
        IdentificationError: nothing of the robot was recorded.
    """
    with Bag(path) as bag:
        recording, first = read_stamped(bag, robot, Source(topic))
        start = _first_setpoint(bag)
    own = recording.t - recording.t[0] + (first - start) * 1e-9
    times = t - t[0]
    forward = np.concatenate([[True], np.diff(own) > 0])
    own, q = own[forward], recording.q[forward]
    if own[0] > times[0] + _MISSING or own[-1] < times[-1] - _MISSING:
        raise BagError(
            f"{path}: positions were measured from {own[0]:.3g} to {own[-1]:.3g} s of the motion, which takes "
            f"{times[-1]:.3g} s; record the whole run"
        )
    found: Array = CubicSpline(own, q)(np.clip(times, own[0], own[-1]))
    return found


def _first_setpoint(bag: Bag) -> int:
    """Stamp of the first setpoint, ns."""
    topics = [topic for topic in bag.topics if topic.type == SETPOINT]
    if len(topics) != 1:
        raise BagError(
            f"{bag.path}: has {len(topics)} topics of type {SETPOINT}; it must have one, of the motion's setpoints"
        )
    for block in read_blocks(bag, topics[0], lambda reason, time: None):
        return int(block.stamps().header[0])
    raise BagError(f"{bag.path}: topic {topics[0].name} has no setpoints that can be read")
