# SPDX-License-Identifier: Apache-2.0
"""A motion as ROS 2 messages: a stream of setpoints, and one JointTrajectory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...bags import BagWriter, Layout, Storage
from ...bags.types import JOINT_TRAJECTORY, SETPOINT, serialized
from ...messages.fields import STATE_FIELDS
from ...trajectory import Trajectory, sample

START = 1_000_000_000
"""Stamp of the first message, ns; a stamp of zero would stand for the present."""

_SECOND = 1_000_000_000


def write_setpoints(
    folder: Path, motion: Trajectory, joint_names: Sequence[str], rate: float, storage: Storage = Storage.MCAP
) -> None:
    """Write a bag with the topic ``setpoint``.

    Args:
        folder: an empty folder, whose name is that of the bag's file.
        motion: with a start and an end.
        rate: of the setpoints, Hz.
    """
    samples = sample(motion, rate)
    since = np.round((samples.t - motion.start) * 1e9).astype(np.int64)
    still = np.zeros(len(joint_names))
    layout = Layout.of(SETPOINT, joint_names=joint_names, **dict.fromkeys(STATE_FIELDS, still))
    rows = np.tile(layout.template, (len(since), 1))
    layout.set_stamps(rows, START + since)
    for field, values in zip(STATE_FIELDS, samples[1:], strict=True):
        layout.set_numbers(rows, field, values)
    with BagWriter(folder, folder.name, storage, {"/setpoint": SETPOINT}) as writer:
        writer.write(START + since, [rows])


def write_trajectory(
    folder: Path, motion: Trajectory, joint_names: Sequence[str], rate: float, storage: Storage = Storage.MCAP
) -> None:
    """Write a bag with one message on the topic ``joint_trajectory``; arguments as for :func:`write_setpoints`."""
    header = {"stamp": {"sec": START // _SECOND}}
    message = serialized(JOINT_TRAJECTORY, header=header, **trajectory_fields(motion, joint_names, rate))
    with BagWriter(folder, folder.name, storage, {"/joint_trajectory": JOINT_TRAJECTORY}) as writer:
        writer.write(np.array([START]), [np.frombuffer(message, np.uint8)[np.newaxis]])


def trajectory_fields(motion: Trajectory, joint_names: Sequence[str], rate: float) -> dict[str, Any]:
    """Return a JointTrajectory as nested dictionaries, as for ``ros2 topic pub``; positions to accelerations."""
    samples = sample(motion, rate)
    since = np.round((samples.t - motion.start) * 1e9).astype(np.int64)
    points = [
        {
            "positions": q.tolist(),
            "velocities": qd.tolist(),
            "accelerations": qdd.tolist(),
            "time_from_start": {"sec": int(sec), "nanosec": int(nanosec)},
        }
        for q, qd, qdd, sec, nanosec in zip(*samples[1:4], *np.divmod(since, _SECOND), strict=True)
    ]
    return {"joint_names": list(joint_names), "points": points}
