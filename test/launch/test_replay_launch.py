# SPDX-License-Identifier: Apache-2.0
"""replay.launch.py on a ROS 2 installation, which has launch_ros and ros2bag: a bag in, a bag of answers out."""

import os
import re
import signal
import subprocess
from pathlib import Path

import numpy as np
import processes
import pytest

pytest.importorskip("launch_ros", reason="launch_ros comes with a ROS 2 installation only, not from PyPI")
pytest.importorskip("rosbags", reason="reads bags")

from bag_files import COMMAND, SETPOINT, START, read_bag, setpoints, write_bag
from launching import error_line, launch_command, launch_error, node_process, refusal
from paths import CONFIG

import eom_dynamics as eom
from eom_dynamics.tools.cli.main import main
from eom_dynamics.trajectory import paper_motion

FILE = "replay.launch.py"
PATIENCE = 100.0


def test_what_is_recorded_live_is_what_the_offline_replay_gives(tmp_path: Path) -> None:
    pytest.importorskip("ros2bag", reason="ros2bag comes with a ROS 2 installation only, not from PyPI")
    states = np.array(paper_motion(7).derivatives(np.arange(500) * 1e-3))
    names = eom.load_robot("iiwa").joint_names
    bag = write_bag(tmp_path / "bag", {"/setpoint": (SETPOINT, setpoints(names, states))})
    live, offline = tmp_path / "live", tmp_path / "offline"
    subprocess.run(launch_command(FILE, bag=bag, record=live), check=True, timeout=PATIENCE)
    assert len(read_bag(live)["/feedforward"]) == 500
    assert (
        main(["replay", str(bag), "--robot", "iiwa", "-o", str(offline), *f"--compare {live} --match stamp".split()])
        == 0
    )


def test_arguments_reach_player_node_and_recorder(tmp_path: Path) -> None:
    pytest.importorskip("ros2bag", reason="ros2bag comes with a ROS 2 installation only, not from PyPI")
    params = tmp_path / "params.yaml"
    params.write_text("/**: {ros__parameters: {limits: warn}}")
    states = np.full((5, 100, 2), 0.1)
    recorded = setpoints(["joint_1", "joint_2"], states)
    # A command in the bag must not mix with commands of the node; its bytes are never read.
    topics = {"/planner/setpoint": (SETPOINT, recorded), "/left/feedforward": (COMMAND, [(START, bytes(200))])}
    bag = write_bag(tmp_path / "bag", topics)
    arguments = {
        **{"robot_file": CONFIG / "sea_planar_2r.yaml", "params_file": params, "namespace": "left"},
        **{"setpoint_topic": "/planner/setpoint", "storage": "sqlite3", "rate": 0.5, "delay": 3.0, "log_level": "warn"},
    }
    live = tmp_path / "live"
    subprocess.run(launch_command(FILE, bag=bag, record=live, **arguments), check=True, timeout=PATIENCE)
    assert list(live.glob("*.db3"))
    messages = {topic: [message for _, message in pairs] for topic, pairs in read_bag(live).items()}
    assert [len(messages[f"/left/{topic}"]) for topic in ("feedforward", "motor_setpoint")] == [100, 100]
    for command, efforts in zip(messages["/left/feedforward"], messages["/left/effort_command"], strict=True):
        assert list(command.joint_names) == ["joint_1", "joint_2"]
        np.testing.assert_array_equal(efforts.data, command.motor_effort)


def test_a_robot_that_cannot_be_used_ends_the_launch(tmp_path: Path) -> None:
    params = tmp_path / "params.yaml"
    params.write_text("/**: {ros__parameters: {robot.joints.iiwa_joint_1.mass: -1.0}}")
    output = refusal(FILE, bag=tmp_path, params_file=params)
    assert "robot.joints.iiwa_joint_1.mass: must be positive" in output
    assert launch_error(output) == (
        "bag not played: the node could not be configured or activated; its error above says why"
    )
    assert output.count("process has finished cleanly") == 1


def test_a_bag_that_cannot_be_played_ends_the_launch(tmp_path: Path) -> None:
    error = launch_error(refusal(FILE, bag=tmp_path, delay=0.1, record=tmp_path / "live"))
    assert re.fullmatch(r"bag: ros2 bag play ended with exit code [1-9]\d*; its output above says why", error)
    assert not (tmp_path / "live").exists()


def test_a_bag_of_which_nothing_reaches_the_node_is_a_failure(tmp_path: Path) -> None:
    pytest.importorskip("ros2bag", reason="ros2bag comes with a ROS 2 installation only, not from PyPI")
    states = np.array(paper_motion(7).derivatives(np.arange(20) * 1e-3))
    bag = write_bag(tmp_path / "bag", {"/setpoint": (SETPOINT, setpoints(eom.load_robot("iiwa").joint_names, states))})
    error = launch_error(refusal(FILE, bag=bag, setpoint_topic="/elsewhere"))
    assert error.startswith("bag: no setpoint of it has reached the node on /elsewhere: check setpoint_topic, or try")


def test_a_node_that_ends_ends_the_launch(tmp_path: Path) -> None:
    command = launch_command(FILE, bag=tmp_path)
    with processes.popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as launch:
        os.kill(node_process(launch.pid, "dynamics_node"), signal.SIGKILL)
        output, _ = launch.communicate(timeout=PATIENCE)
    assert launch.returncode == 1, output
    # launch_ros may also report that its own request to the node failed.
    assert "the node ended while the bag was played; its output above says why" in output


def test_a_missing_bag_is_refused() -> None:
    error = error_line(refusal(FILE, bag="/nowhere"))
    assert error == "bag: no such folder or file, is '/nowhere'; give the path of a bag"
