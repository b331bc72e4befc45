# SPDX-License-Identifier: Apache-2.0
"""Recordings of the lockstep player as bags, and bags as readings."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ....robot import Robot
from ....simulation.simulated_robot import Readings
from ...bags import BagError, OutputTopic, Storage, open_writer
from ...excite.messages import SETPOINT
from ...identify.read import Source
from ...identify.sides import read_sides
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
        BagError: the bag cannot be read, or lacks a topic or velocities.
        IdentificationError: it is of another robot.
    """
    sides = read_sides(bag, robot, Source(position_unit="rad"))
    links, motors = sides.links, sides.motors
    if links is None or motors is None or links.qd is None or motors.qd is None:
        raise BagError(f"{bag}: must have positions and velocities of links and motors of {robot.name}")
    return Readings(links.q, links.qd, links.tau, motors.q, motors.qd, motors.tau)
