# SPDX-License-Identifier: Apache-2.0
"""The gripper as an eighth name, chunks without times, and publishers that are not reliable."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from eom_dynamics.msg import TrajectoryStatus
from node_client import joint_trajectory
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from eom_dynamics.exceptions import StateError
from eom_dynamics.ros.ignored_joints import remove_ignored

JOINTS = [f"fer_joint{k}" for k in range(1, 8)]
REST = np.array([0.0, -0.5, 0.0, -1.5, 0.0, 1.5, 0.5])
GRIPPER = "gripper"
PANDA = ("-p", "robot_file:=panda", "-p", "on_setpoint_loss:=hold", "-p", "setpoint_timeout:=0.2")


@pytest.fixture(scope="module")
def node(start_shared: Any) -> Any:
    client = start_shared(*PANDA, "-p", f"ignored_joints:=['{GRIPPER}','finger']", "-p", "chunk_rate:=20.0")
    state = np.zeros((5, 7))
    state[0] = REST
    client.answers_to(client.publish(state))
    return client


def is_near(client: Any, wanted: Any) -> bool:
    last = client.motor_setpoint[-1]
    position = [last.position[list(last.name).index(name)] for name in JOINTS]
    return bool(np.abs(np.subtract(position, wanted)).max() < 3e-3)


def test_targets(node: Any) -> None:
    publisher = node.publisher(JointState, "target")
    wanted = REST + 0.1
    node.repeat(
        lambda: publisher.publish(
            JointState(name=[*JOINTS[:3], GRIPPER, *JOINTS[3:]], position=[*wanted[:3], 9.0, *wanted[3:]])
        ),
        lambda: is_near(node, wanted),
        "the target",
    )
    publisher.publish(JointState(name=[GRIPPER], position=[0.0]))
    node.wait(lambda: "name has ignored joints alone (parameter ignored_joints)" in node.process.log, "the refusal")
    publisher.publish(JointState(name=[JOINTS[0], "thumb"], position=[0.0, 0.0]))
    reason = "name[1]: the robot has no joint 'thumb'; known are fer_joint1, "
    node.wait(lambda: reason in node.process.log, "the refusal")
    assert "; remove it, or add it to the parameter ignored_joints" in node.process.log


def test_chunks_without_times(node: Any) -> None:
    publisher = node.publisher(JointTrajectory, "target_trajectory")
    node.wait(publisher.get_subscription_count, "the subscription")
    node.spin(0.2)
    wanted = REST - 0.05
    rows = np.linspace(REST + 0.1, wanted, 10)
    points = [JointTrajectoryPoint(positions=[*row, 1.0]) for row in rows]
    publisher.publish(JointTrajectory(joint_names=[*JOINTS, GRIPPER], points=points))
    node.wait(lambda: is_near(node, wanted), "the end of the chunk")
    assert node.set_parameter("chunk_rate", 0.0) == ""
    publisher.publish(JointTrajectory(joint_names=[*JOINTS, GRIPPER], points=points))
    reason = "its points have no time_from_start; write times, or set the parameter chunk_rate, in Hz"
    node.wait(lambda: reason in node.process.log, "the refusal")


def test_trajectories(node: Any) -> None:
    statuses = node.collect(TrajectoryStatus, "trajectory_status")
    publisher = node.publisher(JointTrajectory, "joint_trajectory")
    node.wait(publisher.get_subscription_count, "the subscription")
    node.spin(0.2)
    start, wanted = REST - 0.05, REST
    rows = [[*start, 0.0], [*wanted, 1.0]]
    publisher.publish(joint_trajectory([*JOINTS, GRIPPER], [0.0, 1.5], rows))
    node.wait(lambda: any(x.status == TrajectoryStatus.FINISHED for x in statuses), "the end of the trajectory")
    node.wait(lambda: is_near(node, wanted), "the end")
    publisher.publish(joint_trajectory([*JOINTS, "thumb"], [0.0, 1.5], rows))
    reason = "joint_names[7]: the robot has no joint 'thumb'; "
    node.wait(lambda: any(reason in x.message for x in statuses), "the refusal")


@pytest.mark.parametrize("topic", ["target", "target_trajectory", "joint_trajectory"])
def test_publishers_that_are_not_reliable_are_reported(node: Any, topic: str) -> None:
    kind = JointState if topic == "target" else JointTrajectory
    quality = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    publisher = node.node.create_publisher(kind, topic, quality)
    name = node.node.resolve_topic_name(topic)
    report = (
        f"no messages of a publisher on {name} are received, by their quality of service: publish reliably, or set "
    )
    remedy = f"qos_overrides.{name}.subscription.reliability to best_effort"
    node.wait(lambda: report + remedy in node.process.log, "the report")
    node.node.destroy_publisher(publisher)


def test_entries_of_all_fields_are_removed() -> None:
    state = JointState(name=["a", GRIPPER, "b"], position=[1.0, 2.0, 3.0], velocity=[4.0, 5.0, 6.0], effort=[7.0])
    remove_ignored(state, ("a", "b"), [GRIPPER])
    assert list(state.name) == ["a", "b"]
    assert [list(x) for x in (state.position, state.velocity, state.effort)] == [[1.0, 3.0], [4.0, 6.0], [7.0]]
    points = [JointTrajectoryPoint(positions=[1.0, 2.0], velocities=[3.0, 4.0], accelerations=[5.0, 6.0])]
    plan = JointTrajectory(joint_names=[GRIPPER, "a"], points=points)
    remove_ignored(plan, ("a", "b"), [GRIPPER])
    (point,) = plan.points
    assert [list(x) for x in (point.positions, point.velocities, point.accelerations)] == [[2.0], [4.0], [6.0]]
    with pytest.raises(StateError, match=r"joint_names\[0\]: the robot has no joint 'gripper'; .*ignored_joints"):
        remove_ignored(JointTrajectory(joint_names=[GRIPPER]), ("a", "b"), [""])
