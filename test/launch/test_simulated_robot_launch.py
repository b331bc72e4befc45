# SPDX-License-Identifier: Apache-2.0
"""simulated_robot.launch.py on a ROS 2 installation, which has launch_ros: its nodes, and how they are connected."""

import os
import signal
from pathlib import Path

import pytest

pytest.importorskip("launch_ros", reason="launch_ros comes with a ROS 2 installation only, not from PyPI")

from launching import command_line, launched, node_process, parameters, wait_for
from paths import CONFIG
from rclpy.node import Node

FILE = "simulated_robot.launch.py"


def test_without_arguments_the_nodes_are_connected(observer: Node) -> None:
    with launched(FILE, nodes=3):
        for topic in ("setpoint", "motor_setpoint", "joint_trajectory", "spline_trajectory"):
            wait_for(lambda topic=topic: observer.count_subscribers(f"/{topic}") == 1)
        for topic in ("motor_setpoint", "joint_states"):
            wait_for(lambda topic=topic: observer.count_publishers(f"/{topic}") == 1)


def test_arguments_reach_the_nodes(observer: Node, tmp_path: Path) -> None:
    params, simulated = tmp_path / "params.yaml", tmp_path / "simulated_robot.yaml"
    params.write_text("/**: {ros__parameters: {joint_prefix: left_}}")
    simulated.write_text("/**: {ros__parameters: {publish_rate: 100.0}}")
    with launched(
        FILE,
        nodes=3,
        namespace="left",
        robot_file=CONFIG / "sea_planar_2r.yaml",
        params_file=params,
        simulated_robot_params_file=simulated,
        command="motor_effort",
        command_topic="controller/commands",
        joint_states_topic="/arm_states",
        use_sim_time="true",
        log_level="warn",
    ) as launch:
        wait_for(lambda: observer.count_subscribers("/left/controller/commands") == 1)
        wait_for(lambda: observer.count_publishers("/left/effort_command") == 1)
        wait_for(lambda: observer.count_publishers("/arm_states") == 1)
        # Also of the nodes that measure.
        wait_for(lambda: observer.count_subscribers("/arm_states") >= 2)
        names = ("use_sim_time", "robot.name", "joint_prefix")
        for node in ("eom_dynamics", "eom_dynamics_planning", "simulated_robot"):
            assert parameters(observer, f"/left/{node}", *names) == [True, "sea_planar_2r", "left_"]
        assert parameters(observer, "/left/simulated_robot", "publish_rate", "command") == [100.0, "motor_effort"]
        for executable in ("dynamics_node", "planning_node", "simulated_robot_node"):
            assert "warn" in command_line(node_process(launch, executable))


@pytest.mark.parametrize(("command", "topic"), [("feedforward", "feedforward"), ("motor_effort", "effort_command")])
def test_the_simulated_robot_follows_the_command(observer: Node, command: str, topic: str) -> None:
    with launched(FILE, nodes=2, command=command, planning="false"):
        wait_for(lambda: observer.count_publishers(f"/{topic}") == 1)
        wait_for(lambda: observer.count_subscribers(f"/{topic}") == 1)
        assert "eom_dynamics_planning" not in observer.get_node_names()


@pytest.mark.parametrize("executable", ["dynamics_node", "simulated_robot_node"])
def test_the_launch_ends_with_each_node_that_the_others_need(observer: Node, executable: str) -> None:
    with launched(FILE, nodes=2, code=1) as launch:
        # Only a node that is up exits cleanly.
        for node in ("eom_dynamics", "eom_dynamics_planning", "simulated_robot"):
            assert parameters(observer, f"/{node}", "robot.name") == ["iiwa"]
        os.kill(node_process(launch, executable), signal.SIGKILL)
        wait_for(lambda: not command_line(launch))
