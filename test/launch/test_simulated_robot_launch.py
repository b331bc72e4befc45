# SPDX-License-Identifier: Apache-2.0
"""simulated_robot.launch.py on a ROS 2 installation, which has launch_ros: both nodes, and an arm that is there."""

from __future__ import annotations

import pytest

pytest.importorskip("launch_ros", reason="launch_ros comes with a ROS 2 installation only, not from PyPI")

from launching import declared_arguments, launched, wait_for
from rclpy.node import Node

FILE = "simulated_robot.launch.py"


def test_every_argument_is_described_and_has_a_default() -> None:
    for argument in declared_arguments(FILE):
        assert argument.description, argument.name
        assert argument.default_value is not None, argument.name


def test_without_arguments_the_two_nodes_are_connected(observer: Node) -> None:
    with launched(FILE, nodes=2):
        wait_for(lambda: observer.count_subscribers("/setpoint") == 1)
        wait_for(lambda: observer.count_publishers("/motor_setpoint") == 1)
        wait_for(lambda: observer.count_subscribers("/motor_setpoint") == 1)
        wait_for(lambda: observer.count_publishers("/joint_states") == 1)


def test_arguments_reach_the_nodes(observer: Node) -> None:
    with launched(
        FILE,
        nodes=2,
        namespace="left",
        command="motor_effort",
        command_topic="controller/commands",
        joint_states_topic="/arm_states",
    ):
        wait_for(lambda: observer.count_subscribers("/left/controller/commands") == 1)
        wait_for(lambda: observer.count_publishers("/left/effort_command") == 1)
        wait_for(lambda: observer.count_publishers("/arm_states") == 1)
