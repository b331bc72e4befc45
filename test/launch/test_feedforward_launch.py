# SPDX-License-Identifier: Apache-2.0
"""feedforward.launch.py on a ROS 2 installation, which has launch_ros: what it offers, and the node it starts."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("launch_ros", reason="launch_ros comes with a ROS 2 installation only, not from PyPI")

from launching import PATIENCE, declared_arguments, launched, wait_for
from lifecycle_msgs.srv import GetState
from rcl_interfaces.srv import GetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

FILE = "feedforward.launch.py"


def ask(observer: Node, service_type: type, name: str, **fields: object) -> object:
    client = observer.create_client(service_type, name)
    assert client.wait_for_service(PATIENCE), name
    executor = SingleThreadedExecutor(context=observer.context)
    executor.add_node(observer)
    future = client.call_async(service_type.Request(**fields))
    executor.spin_until_future_complete(future, PATIENCE)
    executor.remove_node(observer)
    return future.result()


def state(observer: Node, node: str) -> str:
    return ask(observer, GetState, f"{node}/get_state").current_state.label


def test_every_argument_is_described_and_has_a_default() -> None:
    for argument in declared_arguments(FILE):
        assert argument.description, argument.name
        assert argument.default_value is not None, argument.name


def test_without_arguments_the_packaged_robot_is_active(observer: Node) -> None:
    with launched(FILE, nodes=1):
        wait_for(lambda: state(observer, "/eom_dynamics") == "active")
        wait_for(lambda: observer.count_publishers("/feedforward") == 1)


def test_a_description_takes_the_place_of_the_packaged_robot(observer: Node) -> None:
    with launched(FILE, nodes=1, robot_description="<robot/>"):
        wait_for(lambda: observer.count_publishers("/feedforward") == 1)
        (value,) = ask(observer, GetParameters, "/eom_dynamics/get_parameters", names=["robot_description"]).values
        assert value.string_value == "<robot/>"
        assert state(observer, "/eom_dynamics") == "unconfigured"


def test_the_robot_may_come_from_another_node_or_a_topic(observer: Node) -> None:
    with launched(FILE, nodes=1, robot_source_node="/robot_state_publisher"):
        wait_for(lambda: observer.count_clients("/robot_state_publisher/get_parameters") == 1)
    with launched(FILE, nodes=1, robot_description_topic="/elsewhere"):
        wait_for(lambda: observer.count_subscribers("/elsewhere") == 1)


def test_arguments_reach_the_node(observer: Node, tmp_path: Path) -> None:
    params = tmp_path / "params.yaml"
    params.write_text("/**: {ros__parameters: {diagnostic_period: 2.0}}")
    topics = {"setpoint": "planner/setpoint", "feedforward": "a", "motor_setpoint": "b", "effort_command": "/c"}
    with launched(
        FILE,
        nodes=1,
        **{f"{topic}_topic": name for topic, name in topics.items()},
        namespace="left",
        autostart="false",
        use_sim_time="true",
        params_file=str(params),
    ):
        wait_for(lambda: observer.count_subscribers("/left/planner/setpoint") == 1)
        for publisher in ("/left/a", "/left/b", "/c"):
            wait_for(lambda topic=publisher: observer.count_publishers(topic) == 1)
        assert state(observer, "/left/eom_dynamics") == "unconfigured"
        names = ["autostart", "use_sim_time", "diagnostic_period"]
        values = ask(observer, GetParameters, "/left/eom_dynamics/get_parameters", names=names).values
        assert [values[0].bool_value, values[1].bool_value, values[2].double_value] == [False, True, 2.0]
