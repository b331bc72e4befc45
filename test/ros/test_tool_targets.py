# SPDX-License-Identifier: Apache-2.0
"""Targets of the tool: poses and twists in frames, a publisher that dies, MoveIt Servo's messages, a measured start."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from builtin_interfaces.msg import Duration
from geometry_msgs.msg import PoseStamped, TwistStamped
from node_client import stamp_of
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import eom_dynamics as eom
from eom_dynamics import lie
from eom_dynamics.kinematics import body_poses

JOINTS = [f"fer_joint{k}" for k in range(1, 8)]
REST = np.array([0.0, -0.5, 0.0, -1.5, 0.0, 1.5, 0.5])
PANDA = eom.load_robot("panda")
TOOL = PANDA.tools[0].name
ARM = eom.ElasticArm(PANDA)
AT_REST = np.zeros((4, 7))
# Motors are ahead of the links by the deflection of springs: of the tool, m and rad.
DEFLECTION = 5e-3


def tool(q: np.ndarray) -> np.ndarray:
    """Pose of the tool by the product of exponentials, body by body."""
    frame = PANDA.tools[0]
    return body_poses(PANDA, q)[frame.joint] @ frame.pose


@pytest.fixture(scope="module")
def node(start_shared: Any) -> Any:
    node = start_shared("-p", "robot_file:=panda")
    # To its end: a timer may call once more after it is destroyed.
    node.states = node.node.create_publisher(JointState, "joint_states", 10)
    return node


@pytest.fixture
def client(node: Any) -> Iterator[Any]:
    """An active node that has commanded nothing, of an arm that is measured at rest."""
    for transition in ("deactivate", "activate"):
        assert node.transition(transition)
    node.motor_setpoint.clear()
    message = JointState(name=JOINTS, position=REST.tolist())
    timer = node.node.create_timer(0.02, lambda: node.states.publish(message))
    node.frames = {}
    yield node
    node.node.destroy_timer(timer)
    for publisher in node.frames.values():
        node.node.destroy_publisher(publisher)


def publisher(client: Any, kind: type, topic: str) -> Any:
    if topic not in client.frames:
        client.frames[topic] = client.publisher(kind, topic)
    return client.frames[topic]


def aim_at(client: Any, C: np.ndarray, frame: str = "") -> None:
    message = PoseStamped()
    message.header.frame_id = frame
    p, r = message.pose.position, message.pose.orientation
    p.x, p.y, p.z = C[:3, 3]
    r.x, r.y, r.z, r.w = lie.quaternion(C[:3, :3])
    publisher(client, PoseStamped, "target_pose").publish(message)


def jog(client: Any, angular: Any, linear: Any, frame: str = "") -> None:
    message = TwistStamped()
    message.header.frame_id = frame
    for vector, values in ((message.twist.angular, angular), (message.twist.linear, linear)):
        vector.x, vector.y, vector.z = map(float, values)
    publisher(client, TwistStamped, "target_twist").publish(message)


def positions(client: Any) -> np.ndarray:
    order = [client.motor_setpoint[-1].name.index(name) for name in JOINTS]
    return np.array([message.position for message in client.motor_setpoint])[:, order]


def links_at_rest(motors: np.ndarray) -> np.ndarray:
    """Positions of the links of an arm whose motors rest: each step leaves some thousandths of the error."""
    q = motors
    for _ in range(5):
        q = motors - (ARM.feedforward(q, *AT_REST).motor_position - q)
    return q


def arrive(client: Any) -> np.ndarray:
    """Where the arm rests by a report from after what was sent: a slow machine may let a twist end in between."""
    while client.next_diagnostics()[2].get("target") != "reached":
        pass
    client.wait(lambda: client.motor_setpoint and not any(client.motor_setpoint[-1].velocity), "the last command")
    return positions(client)[-1]


def test_the_first_target_starts_from_the_measured_position(client: Any) -> None:
    refused = client.values.get("targets refused")
    wanted = tool(REST + 0.1)
    aim_at(client, wanted)
    client.wait(lambda: client.motor_setpoint, "a command")
    assert positions(client)[0] == pytest.approx(REST, abs=DEFLECTION)
    found = tool(arrive(client))
    assert found == pytest.approx(wanted, abs=DEFLECTION)
    assert client.values.get("targets refused") == refused
    assert np.abs(np.diff(positions(client), axis=0)).max() < 0.05  # likewise, below


def test_a_pose_in_the_frame_of_the_tool_moves_it_along_its_own_axes(client: Any) -> None:
    step = lie.pose(np.eye(3), [0.0, 0.0, 0.1])
    aim_at(client, step, TOOL)
    assert tool(arrive(client)) == pytest.approx(tool(REST) @ step, abs=DEFLECTION)


@pytest.mark.parametrize("frame", ["", TOOL, "fer_joint4"])
def test_a_twist_moves_the_tool_along_the_axes_of_its_frame_and_ends_with_its_publisher(client: Any, frame: str):
    client.repeat(
        lambda: jog(client, (0, 0, 0), (0, 0, 0)), lambda: "task setpoints of" in client.process.log, "the kinematics"
    )
    for _ in range(10):
        jog(client, (0, 0, 0), (0, 0, -0.1), frame)
        client.spin(0.1)
    client.wait(lambda: client.motor_setpoint, "a command")
    end = arrive(client)
    start, end = tool(REST), tool(links_at_rest(end))
    moved = end[:3, 3] - start[:3, 3]
    axes = {"fer_joint4": body_poses(PANDA, REST)[3], TOOL: start}.get(frame, np.eye(4))
    if frame != "fer_joint4":  # that turns with the arm
        # What steps of up to 20 ms of a busy node leave, and rounding.
        assert np.linalg.norm(np.cross(moved, axes[:3, 2])) < 3e-4
        assert end[:3, :3] == pytest.approx(start[:3, :3], abs=1e-9)
    # At 0.1 m/s while there are messages, some 1.2 s.
    span = 1e-9 * (stamp_of(client.motor_setpoint[-1]) - stamp_of(client.motor_setpoint[0]))
    assert 0.05 < -moved @ axes[:3, 2] < 0.1 * span + DEFLECTION
    velocities = np.array([message.velocity for message in client.motor_setpoint])
    assert not velocities[-1].any()
    assert np.abs(np.diff(positions(client), axis=0)).max() < 0.05  # a busy node leaves commands out, up to 20 ms


def test_a_twist_of_zero_takes_nothing_over(client: Any) -> None:
    for _ in range(5):
        jog(client, (0, 0, 0), (0, 0, 0))
        client.spin(0.05)
    assert not client.motor_setpoint


@pytest.mark.parametrize(
    ("send", "reason"),
    [
        (lambda c: aim_at(c, np.eye(4), "elbow"), "no frame 'elbow'"),
        (lambda c: aim_at(c, lie.pose(np.eye(3), [3.0, 0, 0])), "cannot reach its pose"),
        (lambda c: jog(c, (0, 0, np.nan), (0, 0, 0)), "twist.angular.z is nan"),
        (lambda c: jog(c, (0, 0, 0), (0, 0, 1), "elbow"), "no frame 'elbow'"),
    ],
)
def test_a_refused_target_of_the_tool_says_why(client: Any, send: Callable[[Any], None], reason: str) -> None:
    client.repeat(
        lambda: send(client), lambda: reason in client.values.get("last refused target", ""), f"a refusal: {reason}"
    )
    assert len(np.unique(positions(client), axis=0)) == 1 if client.motor_setpoint else True


def test_the_messages_of_moveit_servo_are_followed_and_their_end_is_rest(client: Any) -> None:
    """Servo (servo_node.cpp, utils/common.cpp): points from 0.1 s before now to 0.1 s after, without the newest one.

    At its halt it slows down to rest, and then publishes nothing.
    """
    period, latency = 0.034, 0.1
    send = publisher(client, JointTrajectory, "target_trajectory")
    window: list[tuple[int, np.ndarray]] = []
    q, rate = REST.copy(), np.zeros(7)
    for cycle in range(60):
        rate = 0.9 * rate + 0.1 * (0.3 * np.eye(7)[0] if cycle < 40 else 0)
        q = q + period * rate
        now = client.node.get_clock().now().nanoseconds
        window = [point for point in window if point[0] >= now - latency * 1e9]
        window.append((now + round(latency * 1e9), q.copy()))
        if len(window) >= 3:
            message = JointTrajectory(joint_names=JOINTS)
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(window[0][0], 10**9)
            for at, position in window[:-1]:
                passed = Duration(sec=0, nanosec=at - window[0][0])
                fields = {"positions": position.tolist(), "velocities": rate.tolist()}
                message.points.append(JointTrajectoryPoint(time_from_start=passed, **fields))
            send.publish(message)
        client.spin(period)
    sent = window[-2][1]
    assert arrive(client) == pytest.approx(sent, abs=DEFLECTION)
    stamps = 1e-9 * np.array([stamp_of(message) for message in client.motor_setpoint])
    steps = np.diff(positions(client), axis=0) / np.diff(stamps)[:, None]
    # No step, also after messages that came late, with which the arm catches up within its limits.
    assert np.abs(steps).max() < PANDA.joints[0].limits.velocity + 0.1
    assert client.values.get("targets refused") is None or "stamp" not in client.values["last refused target"]


def test_without_any_measurement_the_refusal_says_what_to_publish(start: Any) -> None:
    client = start("-p", "robot_file:=panda")
    client.frames = {}
    message = JointState(name=[JOINTS[0]], position=[0.1])
    publisher(client, JointState, "target").publish(message)
    client.wait_for_diagnostics(
        lambda *status: "joint_states has not told" in status[2].get("last refused target", ""), "a refusal"
    )
    assert not client.motor_setpoint


def test_limits_that_a_robot_lacks_are_given_by_parameters(start: Any) -> None:
    limits = [word for k in range(1, 7) for word in ("-p", f"urdf.joints.{name_of_ur5e(k)}.limits.acceleration:=4.0")]
    lacking, given = start("-p", "robot_file:=ur5e"), start("-p", "robot_file:=ur5e", *limits)
    for client in (lacking, given):
        client.frames = {}
        client.publish(np.zeros((5, 6)))
        message = JointState(name=[name_of_ur5e(1)], position=[0.2])
        publisher(client, JointState, "target").publish(message)
    lacking.wait_for_diagnostics(
        lambda *status: (
            "urdf.joints.shoulder_pan_joint.limits.acceleration" in status[2].get("last refused target", "")
        ),
        "a refusal",
    )
    given.wait_for_diagnostics(lambda *status: status[2].get("target") == "reached", "arrival")


def name_of_ur5e(k: int) -> str:
    return eom.load_robot("ur5e").joint_names[k - 1]
