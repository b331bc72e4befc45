# SPDX-License-Identifier: Apache-2.0
"""replay.launch.py on a ROS 2 installation, which has launch_ros and ros2bag: a bag in, a bag of answers out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("launch_ros", reason="launch_ros comes with a ROS 2 installation only, not from PyPI")

from bag_files import SETPOINT, read_bag, setpoints, write_bag
from launching import declared_arguments

import eom_dynamics as eom
from eom_dynamics.tools.cli.main import main
from eom_dynamics.trajectory import paper_motion

FILE = "replay.launch.py"


def test_every_argument_is_described_and_only_the_bag_must_be_given() -> None:
    arguments = declared_arguments(FILE)
    assert all(argument.description for argument in arguments)
    assert [argument.name for argument in arguments if argument.default_value is None] == ["bag"]


def test_what_is_recorded_live_is_what_the_offline_replay_gives(tmp_path: Path) -> None:
    pytest.importorskip("ros2bag", reason="ros2bag comes with a ROS 2 installation only, not from PyPI")
    states = np.array(paper_motion(7).derivatives(np.arange(500) * 1e-3))
    names = eom.load_robot("iiwa").joint_names
    bag = write_bag(tmp_path / "bag", {"/setpoint": (SETPOINT, setpoints(names, states))})
    live, offline = tmp_path / "live", tmp_path / "offline"
    subprocess.run(["ros2", "launch", "eom_dynamics", FILE, f"bag:={bag}", f"record:={live}"], check=True, timeout=120)
    assert len(read_bag(live)["/feedforward"]) == 500
    assert (
        main(["replay", str(bag), "--robot", "iiwa", "-o", str(offline), *f"--compare {live} --match stamp".split()])
        == 0
    )
