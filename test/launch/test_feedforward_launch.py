# SPDX-License-Identifier: Apache-2.0
"""feedforward.launch.py on a ROS 2 installation with launch_ros: its arguments, and the node it starts."""

import os
import signal
from pathlib import Path

import pytest

pytest.importorskip("launch_ros", reason="launch_ros comes with a ROS 2 installation only, not from PyPI")

from eom_dynamics.msg import FeedforwardCommand, JointTrajectorySetpoint
from eom_dynamics.srv import ComputeInverseDynamics
from launching import ask, command_line, launched, node_process, parameters, wait_for
from lifecycle_msgs.srv import GetState
from paths import CONFIG
from rclpy.node import Node

FILE = "feedforward.launch.py"
STATE = ("position", "velocity", "acceleration", "jerk", "snap")


def state(observer: Node, node: str) -> str:
    return ask(observer, GetState, f"{node}/get_state").current_state.label


def plans(observer: Node, joints: int, namespace: str = "") -> bool:
    """True if the planning node answers for a robot with ``joints`` joints."""
    zeros = [0.0] * joints
    name = f"{namespace}/eom_dynamics_planning/inverse_dynamics"
    return ask(observer, ComputeInverseDynamics, name, **dict.fromkeys(STATE, zeros)).success


def test_without_arguments_the_packaged_robot_is_active_and_planned_for(observer: Node) -> None:
    with launched(FILE, nodes=2):
        wait_for(lambda: state(observer, "/eom_dynamics") == "active")
        wait_for(lambda: observer.count_publishers("/feedforward") == 1)
        wait_for(lambda: plans(observer, joints=7))


def test_a_description_takes_the_place_of_the_packaged_robot(observer: Node) -> None:
    with launched(FILE, nodes=2, robot_description="<robot/>"):
        wait_for(lambda: observer.count_publishers("/feedforward") == 1)
        for node in ("/eom_dynamics", "/eom_dynamics_planning"):
            assert parameters(observer, node, "robot_description") == ["<robot/>"]
        assert state(observer, "/eom_dynamics") == "unconfigured"


def test_the_robot_may_come_from_another_node_or_a_topic(observer: Node) -> None:
    with launched(FILE, nodes=2, robot_source_node="/robot_state_publisher"):
        wait_for(lambda: observer.count_clients("/robot_state_publisher/get_parameters") == 2)
    with launched(FILE, nodes=2, robot_description_topic="/elsewhere"):
        wait_for(lambda: observer.count_subscribers("/elsewhere") == 2)


def test_arguments_reach_the_nodes(observer: Node, tmp_path: Path) -> None:
    params = tmp_path / "params.yaml"
    params.write_text("/**: {ros__parameters: {limits: ignore}}")
    topics = {"feedforward": "a", "motor_setpoint": "b", "effort_command": "/c"}
    topics |= {"setpoint": "planner/setpoint", "joint_trajectory": "/moveit/trajectory"}
    topics |= {"target": "to", "payload": "load", "joint_states": "states", "motor_states": "motors"}
    with launched(
        FILE,
        nodes=2,
        **{f"{topic}_topic": name for topic, name in topics.items()},
        namespace="left",
        joint_prefix="left_",
        autostart="false",
        use_sim_time="True",
        stream_rate="250",
        setpoint_timeout="20",
        safety="permissive",
        log_level="warn",
        robot_file=CONFIG / "sea_planar_2r.yaml",
        params_file=params,
    ) as launch:
        wait_for(lambda: observer.count_subscribers("/left/planner/setpoint") == 1)
        wait_for(lambda: observer.count_subscribers("/moveit/trajectory") == 1)
        wait_for(lambda: observer.count_subscribers("/left/to") == 1)
        for publisher in ("/left/a", "/left/b", "/c"):
            wait_for(lambda topic=publisher: observer.count_publishers(topic) == 1)
        assert state(observer, "/left/eom_dynamics") == "unconfigured"
        names = ("use_sim_time", "robot.name", "joint_prefix")
        for node in ("/left/eom_dynamics", "/left/eom_dynamics_planning"):
            assert parameters(observer, node, *names) == [True, "sea_planar_2r", "left_"]
        names = ("limits", "autostart", "stream_rate", "setpoint_timeout", "safety")
        assert parameters(observer, "/left/eom_dynamics", *names) == ["ignore", False, 250.0, 20.0, "permissive"]
        wait_for(lambda: plans(observer, 2, "/left"))
        for executable in ("dynamics_node", "planning_node"):
            assert "warn" in command_line(node_process(launch, executable))


def test_the_robot_s_file_does_not_overrule_the_arguments(observer: Node, tmp_path: Path) -> None:
    file = tmp_path / "arm.yaml"
    text = (CONFIG / "sea_planar_2r.yaml").read_text(encoding="utf-8")
    head = "  ros__parameters:\n"
    file.write_text(
        text.replace(head, f"{head}    use_sim_time: true\n    autostart: true\n    start_tolerance: 3.0\n")
    )
    with launched(FILE, nodes=2, robot_file=file, autostart="false"):
        names = ("use_sim_time", "autostart", "start_tolerance", "robot.name")
        assert parameters(observer, "/eom_dynamics", *names) == [False, False, 3.0, "sea_planar_2r"]
        assert parameters(observer, "/eom_dynamics_planning", "use_sim_time") == [False]


def test_a_killed_planning_node_is_respawned_while_the_stream_goes_on(observer: Node) -> None:
    commands, sent = [], []
    setpoint = JointTrajectorySetpoint(**{name: [0.0] * 7 for name in STATE})
    publisher = observer.create_publisher(JointTrajectorySetpoint, "/setpoint", 1000)
    observer.create_subscription(FeedforwardCommand, "/feedforward", commands.append, 1000)
    with launched(FILE, nodes=2) as launch:
        wait_for(lambda: state(observer, "/eom_dynamics") == "active")
        wait_for(lambda: plans(observer, joints=7))
        wait_for(lambda: publisher.get_subscription_count() == observer.count_publishers("/feedforward") == 1)

        killed = node_process(launch, "planning_node")
        timer = observer.create_timer(0.01, lambda: (publisher.publish(setpoint), sent.append(1)))
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda: node_process(launch, "planning_node") != killed)
        wait_for(lambda: plans(observer, joints=7))
        timer.cancel()

        wait_for(lambda: len(commands) == len(sent), observer)
        assert len(sent) > 50


def test_the_launch_ends_with_the_feedforward_node_and_fails_with_it(observer: Node) -> None:
    with launched(FILE, nodes=1, code=1) as launch:
        wait_for(lambda: plans(observer, joints=7))
        os.kill(node_process(launch, "dynamics_node"), signal.SIGKILL)
        wait_for(lambda: not command_line(launch))


def test_a_node_that_is_not_required_leaves_the_others_alone(observer: Node) -> None:
    with launched(FILE, nodes=1, required="false") as launch:
        wait_for(lambda: plans(observer, joints=7))
        os.kill(node_process(launch, "dynamics_node"), signal.SIGKILL)
        wait_for(lambda: observer.count_publishers("/feedforward") == 0)
        assert plans(observer, joints=7) and command_line(launch)


def test_a_feedforward_node_is_restarted_on_request(observer: Node) -> None:
    with launched(FILE, nodes=2, respawn="true", robot_file="sea_planar_2r") as launch:
        wait_for(lambda: state(observer, "/eom_dynamics") == "active")
        killed = node_process(launch, "dynamics_node")
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda: node_process(launch, "dynamics_node") != killed)
        wait_for(lambda: state(observer, "/eom_dynamics") == "active")
        assert parameters(observer, "/eom_dynamics", "robot.name") == ["sea_planar_2r"]
