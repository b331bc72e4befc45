# SPDX-License-Identifier: Apache-2.0
"""Targets: positions of some joints, chunks, MoveIt Servo's messages, refusals, a measured start, a dead publisher."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from builtin_interfaces.msg import Duration
from node_client import stamp_of
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, Header
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from urdf_arms import urdf_arm

import eom_dynamics as eom

JOINTS = [f"fer_joint{k}" for k in range(1, 8)]
REST = np.array([0.0, -0.5, 0.0, -1.5, 0.0, 1.5, 0.5])
DEFLECTION = 3e-3  # rad, of motors from links at rest


PANDA = ("-p", "robot_file:=panda", "-p", "on_setpoint_loss:=hold", "-p", "setpoint_timeout:=0.2")

# Limits of the motion that take longer than targets may be old.
LATE = """
import time
from eom_dynamics.ros.dynamics import target_topics
prepare = target_topics.motion_limits
def prepare_late(*arguments):
    time.sleep(0.8)
    return prepare(*arguments)
target_topics.motion_limits = prepare_late
"""


@pytest.fixture(scope="module")
def node(start_shared: Any) -> Any:
    return start_shared(*PANDA)


@pytest.fixture
def client(node: Any) -> Any:
    return at_rest(node)


def activate(node: Any) -> None:
    """Activate a node that has commanded nothing."""
    assert node.state == "inactive" or node.transition("deactivate")
    assert node.transition("activate")


def at_rest(node: Any) -> Any:
    """An active node at rest, which takes targets."""
    activate(node)
    state = np.zeros((5, 7))
    state[0] = REST
    node.answers_to(node.publish(state))
    # Messages of a test on other topics must arrive before it.
    aim(node, [JOINTS[0]], [0.0], header=Header(frame_id="first"))
    node.wait(lambda: node.motor_setpoint[-1].header.frame_id == "first", "the first target")
    node.motor_setpoint.clear()
    return node


def aim(client: Any, names: list[str], position: list[float], **fields: Any) -> None:
    message = JointState(name=names, position=position, **fields)
    client.target = getattr(client, "target", None) or client.publisher(JointState, "target")
    client.target.publish(message)


def position(client: Any) -> np.ndarray:
    last = client.motor_setpoint[-1]
    return np.array([last.position[list(last.name).index(name)] for name in JOINTS])


def arrive(client: Any, wanted: Any, joint: Any = slice(None)) -> Any:
    """Wait for a position, and for its report: the previous target was also reached. Returns values of diagnostics."""
    wanted = pytest.approx(wanted, abs=DEFLECTION)
    client.wait(lambda: client.motor_setpoint and position(client)[joint] == wanted, "arrival")
    return client.wait_for_diagnostics(lambda *status: status[2].get("target") == "reached", "a report")[2]


def test_a_subset_of_joints_moves_and_the_end_of_its_publisher_is_no_loss(client: Any) -> None:
    for k in range(1, 6):
        aim(client, [JOINTS[6], JOINTS[0]], [0.5 + 0.02 * k, 0.04 * k])
        client.spin(0.1)
    wanted = REST + np.array([0.2, 0, 0, 0, 0, 0, 0.1])
    arrive(client, wanted)
    steps = np.diff([message.position for message in client.motor_setpoint], axis=0)
    assert 0 < np.abs(steps).max() < 0.02
    client.node.destroy_publisher(client.target)
    client.target, losses = None, client.values.get("setpoints lost")
    client.spin(0.5)
    assert client.next_diagnostics()[2].get("setpoints lost") == losses
    state = np.zeros((5, 7))
    state[0] = wanted
    before = len(client.motor_setpoint)
    client.repeat(lambda: client.publish(state), lambda: len(client.motor_setpoint) > before, "a setpoint")
    client.wait_for_diagnostics(lambda *status: "target" not in status[2], "setpoints that lead again")


def test_chunks_of_a_subset_of_joints_hold_the_others(client: Any) -> None:
    publisher = client.publisher(JointTrajectory, "target_trajectory")
    for k in range(3):
        points = [
            JointTrajectoryPoint(positions=[0.5 + 0.1 * (k + x), 0.1 * (k + x)], time_from_start=duration)
            for x, duration in ((0.5, Duration(nanosec=200_000_000)), (1.0, Duration(nanosec=400_000_000)))
        ]
        publisher.publish(JointTrajectory(joint_names=[JOINTS[6], JOINTS[0]], points=points))
        client.spin(0.4)
    arrive(client, REST + np.array([0.3, 0, 0, 0, 0, 0, 0.3]))
    held = [list(client.motor_setpoint[-1].name).index(name) for name in JOINTS[1:6]]
    rows = np.array([message.position for message in client.motor_setpoint])[:, held]
    # Motors turn with the springs as their load changes.
    assert np.ptp(rows, axis=0).max() < DEFLECTION
    publisher.publish(JointTrajectory(joint_names=[JOINTS[0], "finger"], points=points))
    refused(client, "the robot has no joint 'finger'")


def refused(client: Any, reason: str) -> None:
    client.wait_for_diagnostics(lambda *status: reason in status[2].get("last refused target", ""), reason)


BEYOND = "position of fer_joint4 is -85.9 rad, its range -3.072 to -0.0698 rad, more than a turn"
REFUSED = [
    ([], [0.1], "without names, for each joint"),
    (["elbow"], [0.1], "no joint 'elbow'"),
    ([JOINTS[0]] * 2, [0.1, 0.2], "each name once"),
    ([JOINTS[0]], [], "one position for each name"),
    ([JOINTS[3]], [-85.9], BEYOND),
]


def test_a_refused_target_says_why_and_the_last_one_stays(client: Any) -> None:
    """Without names, the order is the robot's."""
    aim(client, [], [0.1, *REST[1:]])
    for names, positions, reason in REFUSED:
        aim(client, names, positions)
        refused(client, reason)
    client.wait(lambda: client.motor_setpoint and abs(position(client)[0] - 0.1) < DEFLECTION, "the last target")


def test_diagnostics_say_what_leads_and_warn_of_what_is_refused_or_clamped(client: Any) -> None:
    def reported(level: int, message: str) -> Any:
        said = client.wait_for_diagnostics(
            lambda *status: status[0] == level and status[1].startswith(message), message
        )
        return said[2]

    received = reported(0, "target reached")["received"]
    aim(client, [JOINTS[0]], [0.5])
    reported(0, "target under way")
    assert reported(0, "target reached")["received"] == received
    aim(client, [JOINTS[0]], [np.inf])
    reported(1, f"target refused: position['{JOINTS[0]}']")
    aim(client, [JOINTS[3]], [0.5])
    assert reported(1, f"target clamped to limits: {JOINTS[3]}")["clamped targets"] == JOINTS[3]
    aim(client, [JOINTS[3]], [REST[3]], velocity=[9.0])  # faster than it may be
    assert reported(1, f"target clamped to limits: {JOINTS[3]}")["clamped targets"] == JOINTS[3]


def test_speed_is_scaled_by_the_topic_of_joint_trajectory_controller_also_from_before(start: Any) -> None:
    kind = pytest.importorskip("control_msgs.msg", reason="control_msgs is not installed").SpeedScalingFactor
    client = start("-p", "robot_file:=sea_planar_2r", "-p", "autostart:=false")
    kept = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    publisher = client.node.create_publisher(kind, f"{client.process.name}/speed_scaling_input", kept)
    publisher.publish(kind(factor=0.4))  # a node that starts later also receives it
    for transition in ("configure", "activate"):
        assert client.transition(transition)
    client.wait_for_diagnostics(lambda *status: status[2].get("speed scaling") == "40 %", "the speed")
    publisher.publish(kind(factor=1.6))
    client.wait(lambda: "speed_scaling: it must be 0 to 1, is 1.6" in client.process.log, "the refusal")


def test_a_pause_and_a_scaled_speed_say_that_they_are_for_trajectories(client: Any) -> None:
    scaling, state = client.publisher(Float64, "speed_scaling"), np.zeros((5, 7))
    text = "speed_scaling: it is for trajectories alone, a motion to a target keeps its speed"
    # At a target already reached, there is one command.
    client.wait_for_diagnostics(lambda *status: status[2].get("target") == "reached", "the first target")
    scaling.publish(Float64(data=0.4))
    client.wait_for_diagnostics(lambda *status: status[2].get("speed scaling") == "40 %", "a speed before the target")
    assert text not in client.process.log
    aim(client, [JOINTS[0]], [1.0])
    client.wait(lambda: client.motor_setpoint and position(client)[0] > 0.1, "motion")
    assert text in client.process.log
    scaling.publish(Float64(data=0.5))
    answer = client.call(SetBool, "pause", SetBool.Request(data=True))
    assert not answer.success and "target does not pause" in answer.message
    values = arrive(client, 1.0, 0)
    assert values["speed scaling"] == "50 %" and "trajectories" not in values
    answer = client.call(SetBool, "pause", SetBool.Request(data=True))
    assert answer.success and answer.message == "nothing is played: the next trajectory waits"
    assert client.next_diagnostics()[2]["trajectories"] == "paused: call ~/pause with data: false"
    aim(client, [JOINTS[0]], [0.5])
    refused(client, "the arm is paused: call ~/pause with data: false")
    scaling.publish(Float64(data=1.0))
    state[0] = [1.0, *REST[1:]]
    for _ in range(20):  # until the call comes within 0.1 s of the last setpoint
        assert client.call(SetBool, "pause", SetBool.Request(data=False)).success
        client.answers_to(client.publish(state))
        answer = client.call(SetBool, "pause", SetBool.Request(data=True))
        if not answer.success:
            break
    assert answer.message == "a stream of setpoints does not pause: stop its publisher at rest"


def test_the_first_target_starts_from_the_measured_position(node: Any) -> None:
    activate(node)
    node.motor_setpoint.clear()
    states = node.publisher(JointState, "joint_states")
    aim(node, [JOINTS[0]], [0.1])
    measured = JointState(name=JOINTS, position=REST.tolist())
    node.repeat(lambda: states.publish(measured), lambda: node.motor_setpoint, "a command")
    arrive(node, [0.1, *REST[1:]])
    found = np.array([message.position for message in node.motor_setpoint])
    order = [node.motor_setpoint[-1].name.index(name) for name in JOINTS]
    assert found[0, order] == pytest.approx(REST, abs=DEFLECTION)
    assert np.abs(np.diff(found, axis=0)).max() < 0.05  # a busy node leaves commands out, up to 20 ms
    node.node.destroy_publisher(states)


def test_the_first_target_is_as_old_as_at_its_arrival(start: Any) -> None:
    """It waits for the node's own preparation."""
    client = start(*PANDA, "-p", "safety:=strict", patch=LATE)
    state = np.zeros((5, 7))
    state[0] = REST
    now = client.node.get_clock().now().to_msg()
    client.publish(state, seconds=now.sec, at=now.nanosec)
    client.wait(lambda: client.motor_setpoint, "a command")
    aim(client, [JOINTS[0]], [0.1], header=Header(stamp=client.node.get_clock().now().to_msg()))
    arrive(client, 0.1, 0)
    old = client.node.get_clock().now().to_msg()
    old.sec -= 1
    aim(client, [JOINTS[0]], [0.2], header=Header(stamp=old))
    refused(client, "s old, must be at most 0.5 s")


def test_the_messages_of_moveit_servo_are_followed_and_their_end_is_rest(client: Any) -> None:
    """Servo (servo_node.cpp, utils/common.cpp): points from 0.1 s before now to 0.1 s after, without the newest one.

    At its halt it slows down to rest, and then publishes nothing.
    """
    period, latency = 0.034, 0.1
    send = client.publisher(JointTrajectory, "target_trajectory")
    before = client.next_diagnostics()[2].get("targets refused")
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
    arrive(client, np.array(message.points[-1].positions))
    stamps = 1e-9 * np.array([stamp_of(message) for message in client.motor_setpoint])
    steps = np.diff([message.position for message in client.motor_setpoint], axis=0) / np.diff(stamps)[:, None]
    # No step, also after late messages; the arm catches up within its limits.
    assert np.abs(steps).max() < eom.load_robot("panda").joints[0].limits.velocity + 0.1
    after = client.next_diagnostics()[2]
    assert after.get("targets refused") == before or "stamp" not in after["last refused target"]
    message.header.stamp.sec -= 1
    send.publish(message)
    refused(client, "its stamp is 1 s before the last stamp")


def test_without_any_measurement_the_refusal_says_what_to_publish(start: Any) -> None:
    client = start("-p", "robot_file:=panda")
    aim(client, [JOINTS[0]], [0.1])
    refused(client, "joint_states lacked")
    assert not client.motor_setpoint


def test_limits_that_a_robot_lacks_are_given_by_parameters_or_by_a_file_of_moveit(start: Any, tmp_path: Path) -> None:
    names = eom.load_robot("ur5e").joint_names
    limits = [word for name in names for word in ("-p", f"urdf.joints.{name}.limits.acceleration:=4.0")]
    accelerations = (f"  {name}:\n    has_acceleration_limits: true\n    max_acceleration: 4\n" for name in names)
    file = tmp_path / "joint_limits.yaml"
    file.write_text("joint_limits:\n" + "".join(accelerations), encoding="utf-8")
    sources = ((), limits, ("-p", f"urdf.joint_limits:={file}"))
    lacking, *given = (start("-p", "robot_file:=ur5e", *more) for more in sources)
    for client in (lacking, *given):
        client.answers_to(client.publish(np.zeros((5, 6))))  # before the target, of another topic
        aim(client, [names[0]], [0.2])
    refused(lacking, "urdf.joints.shoulder_pan_joint.limits.acceleration")
    for client in given:
        client.wait_for_diagnostics(lambda *status: status[2].get("target") == "reached", "arrival")


CONTINUOUS = urdf_arm().replace('type="revolute"', 'type="continuous"', 1)
CONTINUOUS = CONTINUOUS.replace('velocity="10"', 'velocity="2" acceleration="20"')


def test_a_target_of_a_continuous_joint_of_a_urdf_is_the_nearest_turn(start: Any, tmp_path: Path) -> None:
    """A policy's angle that is folded into half a turn, from a measured start."""
    file = tmp_path / "arm.urdf"
    file.write_text(CONTINUOUS)
    client = start("-p", f"robot_file:={file}", "-p", "safety:=permissive")
    states = client.publisher(JointState, "joint_states")
    q = [3.0, 0.0]

    def measure() -> None:
        message = JointState(name=["shoulder", "elbow"], position=q)
        message.header.stamp = client.node.get_clock().now().to_msg()
        states.publish(message)

    def lead(target: float, end: float) -> None:
        def step() -> None:
            measure()
            aim(client, ["shoulder"], [target])

        def arrived() -> bool:
            if client.motor_setpoint:
                q[0] = client.motor_setpoint[-1].position[0]
            return abs(q[0] - end) < 1e-3

        client.repeat(step, arrived, "arrival")

    lead(3.1, 3.1)
    lead(-3.1, 2 * np.pi - 3.1)
    sent = [message.position[0] for message in client.motor_setpoint]
    assert min(sent) > 2.99 and max(sent) < 3.2
