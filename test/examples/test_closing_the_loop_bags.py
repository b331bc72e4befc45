# SPDX-License-Identifier: Apache-2.0
"""Bags of the closed circle: what is written is what is read, in the robot's order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rosbags", reason="rosbags is not installed")

from bag_files import JOINT_STATE, START, STEP, STORE, header

from closing_the_loop.over_ros import read_readings, write_bag
from eom_dynamics import load_robot
from eom_dynamics.bags import BagError
from eom_dynamics.identification import IdentificationError
from eom_dynamics.simulation.simulated_robot import Readings

ROBOT = "sea_planar_2r"


def rows(names: tuple[str, ...], *columns: np.ndarray) -> np.ndarray:
    """Serialised joint states (N, size)."""
    kind = STORE.types[JOINT_STATE]
    messages = [
        kind(header=header(START + k * STEP), name=list(names), position=q, velocity=qd, effort=tau)
        for k, (q, qd, tau) in enumerate(zip(*columns, strict=True))
    ]
    return np.array([np.frombuffer(bytes(STORE.serialize_cdr(x, JOINT_STATE)), np.uint8) for x in messages])


def written(folder: Path, readings: Readings, names: tuple[str, ...]) -> Path:
    turned = [x[:, ::-1].copy() for x in readings]
    count = len(readings.q)
    unread = np.zeros((count, 8), np.uint8)
    np.savez(
        folder / "recording.npz",
        stamp=START + STEP * np.arange(count),
        setpoint=unread,
        feedforward=unread,
        joint_states=rows(names[::-1], *turned[:3]),
        motor_states=rows(names[::-1], *turned[3:]),
    )
    write_bag(folder / "bag", folder / "recording.npz")
    return folder / "bag"


def test_readings_pass_through_a_bag(tmp_path: Path) -> None:
    robot = load_robot(ROBOT)
    # Far beyond the limits of the joints: positions in rad are not taken for degrees.
    readings = Readings(*np.random.default_rng(0).uniform(-100, 100, (6, 50, robot.n)))
    found = read_readings(written(tmp_path, readings, robot.joint_names), robot)
    for name, ours, desired in zip(Readings._fields, found, readings, strict=True):
        np.testing.assert_array_equal(ours, desired, err_msg=name)


@pytest.mark.parametrize("name", ["qd", "thetad"])
def test_readings_without_velocities_are_refused(tmp_path: Path, name: str) -> None:
    readings = Readings(*np.ones((6, 50, 2)))._replace(**{name: np.zeros((50, 2))})
    with pytest.raises(BagError, match=f"must have positions and velocities of links and motors of {ROBOT}"):
        read_readings(written(tmp_path, readings, ("joint_1", "joint_2")), load_robot(ROBOT))


def test_readings_of_another_robot_are_refused(tmp_path: Path) -> None:
    bag = written(tmp_path, Readings(*np.ones((6, 50, 2))), ("left", "right"))
    with pytest.raises(IdentificationError, match=f"has none of the joints of {ROBOT}"):
        read_readings(bag, load_robot(ROBOT))
