# SPDX-License-Identifier: Apache-2.0
"""A motion as ROS 2 messages: a stream of setpoints, and one JointTrajectory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...messages.fields import STATE_FIELDS
from ...trajectory import Trajectory, sample
from ..bags import Layout, OutputTopic, Storage, open_writer, typestore
from ..bags.layout import Bytes

SETPOINT = "eom_dynamics/msg/JointTrajectorySetpoint"
JOINT_TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"

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
        joint_names: (n,) its joints.
        rate: of the setpoints, Hz.
        storage: format of the bag.

    Raises:
        TrajectoryError: the rate is not positive, or there are too many samples.
        OSError: the folder cannot be written to.
    """
    samples = sample(motion, rate)
    since = np.round((samples.t - motion.start) * 1e9).astype(np.int64)
    layout = _setpoint_layout(joint_names)
    rows = np.tile(layout.template, (len(since), 1))
    sec, nanosec = np.divmod(START + since, _SECOND)
    layout.set_numbers(rows, "header.stamp.sec", sec[:, np.newaxis])
    layout.set_numbers(rows, "header.stamp.nanosec", nanosec[:, np.newaxis])
    for field, values in zip(STATE_FIELDS, samples[1:], strict=True):
        layout.set_numbers(rows, field, values)
    _write(folder, storage, OutputTopic.of("/setpoint", SETPOINT), START + since, rows)


def write_trajectory(
    folder: Path, motion: Trajectory, joint_names: Sequence[str], rate: float, storage: Storage = Storage.MCAP
) -> None:
    """Write a bag with one message on the topic ``joint_trajectory``; arguments as for :func:`write_setpoints`."""
    message = np.frombuffer(_serialized_trajectory(motion, joint_names, rate), np.uint8)
    topic = OutputTopic.of("/joint_trajectory", JOINT_TRAJECTORY)
    _write(folder, storage, topic, np.array([START]), message[np.newaxis])


def _write(folder: Path, storage: Storage, topic: OutputTopic, times: NDArray[np.int64], rows: Bytes) -> None:
    writer = open_writer(folder, folder.name, storage, [topic])
    try:
        writer.write(times, [rows])
        writer.close({})
    except BaseException:
        writer.abort()
        raise


def trajectory_fields(motion: Trajectory, joint_names: Sequence[str], rate: float) -> dict[str, Any]:
    """Return a JointTrajectory as nested dictionaries, as for ``ros2 topic pub``; positions to accelerations."""
    points = [
        {
            "positions": q.tolist(),
            "velocities": qd.tolist(),
            "accelerations": qdd.tolist(),
            "time_from_start": {"sec": int(sec), "nanosec": int(nanosec)},
        }
        for q, qd, qdd, sec, nanosec in zip(*_points(motion, rate), strict=True)
    ]
    return {"joint_names": list(joint_names), "points": points}


def _points(motion: Trajectory, rate: float) -> tuple[Array, ...]:
    samples = sample(motion, rate)
    since = np.round((samples.t - motion.start) * 1e9).astype(np.int64)
    return (*samples[1:4], *np.divmod(since, _SECOND))


def _setpoint_layout(joint_names: Sequence[str]) -> Layout:
    store = typestore(SETPOINT)
    types, n = store.types, len(joint_names)
    empty: dict[str, Any] = {name: np.zeros(0) for name in ("stiffness", "stiffness_rate", "stiffness_acceleration")}
    empty |= {name: [] for name in ("wrench", "wrench_rate", "wrench_acceleration", "base")}
    message = types[SETPOINT](
        header=_header(types),
        joint_names=list(joint_names),
        **{field: np.zeros(n) for field in STATE_FIELDS},
        **empty,
    )
    return Layout(store, SETPOINT, bytes(store.serialize_cdr(message, SETPOINT, little_endian=True)))


def _serialized_trajectory(motion: Trajectory, joint_names: Sequence[str], rate: float) -> bytes:
    store = typestore(JOINT_TRAJECTORY)
    types = store.types
    points = [
        types["trajectory_msgs/msg/JointTrajectoryPoint"](
            positions=q,
            velocities=qd,
            accelerations=qdd,
            effort=np.zeros(0),
            time_from_start=types["builtin_interfaces/msg/Duration"](sec=int(sec), nanosec=int(nanosec)),
        )
        for q, qd, qdd, sec, nanosec in zip(*_points(motion, rate), strict=True)
    ]
    message = types[JOINT_TRAJECTORY](header=_header(types), joint_names=list(joint_names), points=points)
    return bytes(store.serialize_cdr(message, JOINT_TRAJECTORY, little_endian=True))


def _header(types: Any) -> Any:
    sec, nanosec = divmod(START, _SECOND)
    stamp = types["builtin_interfaces/msg/Time"](sec=sec, nanosec=nanosec)
    return types["std_msgs/msg/Header"](stamp=stamp, frame_id="")
