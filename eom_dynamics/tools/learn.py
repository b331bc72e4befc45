# SPDX-License-Identifier: Apache-2.0
"""Measured positions of a run, at the times of its motion."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

from ..arrays import Array
from ..bags import Bag, BagError
from ..bags.types import SETPOINT
from ..learning import Correction
from ..robot import Robot
from ..spelling import listed
from ..units import unit
from .identify.read import read_stamped
from .recording_options import Source
from .recordings import joined, read_streams

# Measurements may begin and end by this much inside the motion, s; the nearest one counts. So may setpoints end.
_MISSING = 0.05
_SAME = 1e-6  # setpoints may differ from their motion by this much, rad or m: numbers of 32 bits do by less
_LATE = 2  # stamps of setpoints may be off by this many samples of the motion


class MeasuredRun(NamedTuple):
    """A recorded run.

    Attributes:
        positions: (N, n) of the links at the times of the motion, rad or m.
        efforts: whether efforts were recorded, too.
        notes: on the recording, one line each.
    """

    positions: Array
    efforts: bool
    notes: tuple[str, ...]


def measured_run(path: Path, robot: Robot, commanded: Correction, topic: str | None = None) -> MeasuredRun:
    """Read a run of a motion from a bag, whose first setpoint is at the motion's first time.

    ``topic`` is that of the positions, by default the only one of the links.
    """
    with Bag(path) as bag:
        start = _start_of_setpoints(bag, robot, commanded)
        recording, first = read_stamped(bag, robot, Source(topic))
    efforts, recording = bool(np.isfinite(recording.tau).any()), recording.cleaned()
    t = recording.t + (first - start) * 1e-9
    times = commanded.t - commanded.t[0]
    if len(t) < 2:
        raise BagError(f"{path}: has fewer than two messages with finite positions; record the whole run")
    if np.any(np.diff(t) < 0):
        raise BagError(f"{path}: the clock was set back while positions were recorded; record the run again")
    if t[0] > times[0] + _MISSING or t[-1] < times[-1] - _MISSING:
        raise BagError(
            f"{path}: positions were measured from {t[0]:.3g} to {t[-1]:.3g} s of the motion, which takes "
            f"{times[-1]:.3g} s; record the whole run"
        )
    q = CubicSpline(t, recording.q)(np.clip(times, t[0], t[-1]))
    return MeasuredRun(q, efforts, recording.notes)


def _start_of_setpoints(bag: Bag, robot: Robot, commanded: Correction) -> int:
    path, topics = bag.path, [topic for topic in bag.topics if topic.type == SETPOINT]
    if len(topics) != 1:
        raise BagError(
            f"{path}: has {len(topics)} topics of type {SETPOINT}; it must have one, of the motion's setpoints"
        )
    streams, _ = read_streams(bag, topics[0], lambda names: names or robot.joint_names)
    sent = streams.get("setpoint", joined("", ()))
    known = np.isfinite(sent.values.get("position", np.empty((len(sent), 0)))).any(axis=1)
    sent = sent[known & (sent.stamp > 0)]  # players send stamps below zero until they are answered
    if not len(sent):
        raise BagError(f"{path}: topic {topics[0].name} has no setpoints that can be read")
    if missing := [name for name in robot.joint_names if name not in sent.names]:
        raise BagError(f"{path}: topic {topics[0].name} has no setpoints of {listed(missing)}")
    q = sent.ordered(robot.joint_names).values["position"]
    _refuse_other_motion(path, robot, commanded, sent.seconds(int(sent.stamp[0])), q)
    return int(sent.stamp[0])


def _refuse_other_motion(path: Path, robot: Robot, commanded: Correction, at: Array, q: Array) -> None:
    """Raise BagError if setpoints q (M, n) at times (M,), s after the first, are not those of the motion."""
    times, motion = commanded.t - commanded.t[0], commanded.motion[0]
    if at[-1] < times[-1] - _MISSING:
        raise BagError(
            f"{path}: setpoints span {at[-1]:.3g} s of the motion, which takes {times[-1]:.3g} s; record the whole run"
        )
    within = at <= times[-1]
    at, q = at[within], q[within]
    miss = np.abs(q - CubicSpline(times, motion)(at))
    nearest = np.rint(at / times[1]).astype(int)
    rows = [np.clip(nearest + k, 0, len(times) - 1) for k in range(-_LATE, _LATE + 1)]
    least = np.min([miss.max(axis=1), *(np.abs(q - motion[row]).max(axis=1) for row in rows)], axis=0)
    if least.max() > _SAME:
        k = int(np.argmax(least))
        i = int(np.argmax(miss[k]))
        joint = robot.joints[i]
        raise BagError(
            f"{path}: plays another motion: largest difference {miss[k, i]:.3g} {unit('position', joint.type)} of "
            f"{joint.name} at {at[k]:.3g} s; name the file that this run was commanded with"
        )
