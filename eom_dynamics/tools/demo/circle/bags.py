# SPDX-License-Identifier: Apache-2.0
"""Recordings of the lockstep player as bags, and bags as readings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ....arrays import Array
from ....messages.fields import MEASURED_FIELDS
from ....robot import Robot
from ....simulation.simulated_robot import Readings
from ...bags import Bag, BagError, Layouts, OutputTopic, Rows, Storage, open_writer
from ...excite.messages import SETPOINT
from ...replay.joint_states import TYPE as JOINT_STATE
from ...replay.messages import FEEDFORWARD

_TOPICS = {
    "setpoint": SETPOINT,
    "feedforward": FEEDFORWARD,
    "joint_states": JOINT_STATE,
    "motor_states": JOINT_STATE,
}


def write_bag(folder: Path, recording: Path) -> None:
    """Write a recording of :mod:`eom_dynamics.ros.lockstep_player` as a bag.

    Args:
        folder: made here.
        recording: .npz.

    Raises:
        OSError: a file cannot be read or written.
    """
    folder.mkdir(parents=True)
    with np.load(recording) as arrays:
        rows = [arrays[topic] for topic in _TOPICS]
        topics = [OutputTopic.of(f"/{name}", kind) for name, kind in _TOPICS.items()]
        writer = open_writer(folder, folder.name, Storage.MCAP, topics)
        try:
            writer.write(arrays["stamp"], rows)
            writer.close({})
        except BaseException:
            writer.abort()
            raise


def read_readings(bag: Path, robot: Robot) -> Readings:
    """Read both sides of the springs from a bag.

    Args:
        bag: of :func:`write_bag`.
        robot: whose joints and motors, one each, have the same names.

    Raises:
        BagError: a message is missing or cannot be read.
    """
    with Bag(bag) as opened:
        sides = [_states(opened, topic, robot) for topic in ("/joint_states", "/motor_states")]
    (q, qd, tau), (theta, thetad, effort) = sides
    return Readings(q, qd, tau, theta, thetad, effort)


def _states(bag: Bag, name: str, robot: Robot) -> tuple[Array, ...]:
    topic = next((topic for topic in bag.topics if topic.name == name), None)
    if topic is None:
        raise BagError(f"{bag.path}: has no topic {name}")
    layouts, parts = Layouts(topic.types(), topic.type), []
    for _, messages in bag.messages(topic):
        for part in layouts.rows(messages):
            if not isinstance(part, Rows) or sorted(part.layout.message.name) != sorted(robot.joint_names):
                raise BagError(f"{bag.path}: a message of {name} is not of the joints of {robot.name}")
            names: list[Any] = list(part.layout.message.name)
            order = [names.index(joint) for joint in robot.joint_names]
            parts.append([part.layout.numbers(part.rows, field)[:, order] for field in MEASURED_FIELDS])
    if not parts:
        raise BagError(f"{bag.path}: {name} has no messages")
    return tuple(np.concatenate(columns).astype(float) for columns in zip(*parts, strict=True))
