# SPDX-License-Identifier: Apache-2.0
"""Payload of a streaming node, by topic and service, and estimated by efforts; test/control has its changes."""

import time
from dataclasses import replace

import numpy as np
import pytest
from eom_dynamics.msg import Payload, SplineTrajectory
from eom_dynamics.srv import SetPayload
from paths import CONFIG
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from setpoint_engines import goal_at, unspun_node
from tool_messages import payload_message, spline_message

import eom_dynamics as eom
from eom_dynamics.control.fields import COMMAND_FIELDS
from eom_dynamics.robot.model import frames_by_name
from eom_dynamics.trajectory import Spline, rest_to_rest

ROBOT = eom.load_robot(CONFIG / "iiwa.yaml")
ARM = eom.ElasticArm(ROBOT)
TOOL = ROBOT.tools[0].name
PAYLOAD = eom.Payload(2.0, [0.02, 0.0, 0.1], [0.02, 0.001, 0.002, 0.03, 0.001, 0.04])


@pytest.fixture(scope="module")
def node(start_shared):
    node = start_shared(
        "--params-file",
        CONFIG / "iiwa.yaml",
        "-p",
        "effort_on_deactivate:=gravity",
        "-p",
        "external_effort.sensors:=torque",
    )
    node.frame = "base"
    return node


@pytest.fixture
def client(node):
    """An active node with the robot as if it had just been loaded."""
    for transition in ("deactivate", "cleanup", "configure", "activate"):
        assert node.transition(transition)
    node.until_silent()
    node.feedforward.clear()
    return node


def set_payload(client, *arguments, **options):
    request = SetPayload.Request(payload=payload_message(*arguments, **options))
    return client.call(SetPayload, "set_payload", request)


def motion(k):
    t, w = k * 1e-3, 3.0
    shape = [np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t), -(w**3) * np.cos(w * t), w**4 * np.sin(w * t)]
    return np.outer(shape, 0.3 * np.ones(7))


def values_of(client, name, value, what):
    return client.wait_for_diagnostics(lambda *status: status[2].get(name, "") == value, what)[2]


def test_a_trajectory_that_cannot_be_held_with_a_payload_says_why_it_stands_and_goes_on_with_a_lighter_one(start):
    node = start("-p", "robot_file:=panda", "-p", "limits:=refuse")
    begin, end = np.array([[0, -0.5, 0, -2.2, 0, 1.7, 0.5], [0, 0.9, 0, -1.0, 0, 1.7, 0.5]])
    publisher = node.publisher(SplineTrajectory, "spline_trajectory")
    node.answers_to(node.publish(np.outer([1, 0, 0, 0, 0], begin)))
    refused = set_payload(node, eom.Payload(60.0, [0.0, 0.0, 0.1]))
    assert not refused.success and refused.message.startswith("effort of fer_joint6 would be 53")
    publisher.publish(spline_message(rest_to_rest(begin, end, 4.0), eom.load_robot("panda").joint_names))
    node.wait_for_diagnostics(lambda *status: "trajectory" in status[2], "the trajectory")
    assert set_payload(node, eom.Payload(7.0, [0.0, 0.0, 0.1]), 0.2).success
    values = node.wait_for_diagnostics(lambda *status: "trajectories" in status[2], "the standstill")[2]
    reason = "limits do not allow the rest of the path; use a lighter payload, or stop the trajectory"
    assert (values["trajectories"], values["speed scaling"]) == (reason, "100 %, limits allow 0 %")
    node.wait(lambda: f"trajectory stands still: {reason}" in node.process.log, "the log")
    assert set_payload(node, eom.Payload(1.0, [0.0, 0.0, 0.1]), 0.2).success
    values = node.wait_for_diagnostics(lambda *status: "trajectory" not in status[2], "the end")[2]
    assert "speed scaling" not in values
    np.testing.assert_allclose(node.motor_setpoint[-1].position, end, atol=0.02)


def test_the_topic_takes_payloads_too_and_requests_have_the_last_one(client):
    """It outlives a deactivation, but not the robot."""
    publisher = client.publisher(Payload, "payload")
    publisher.publish(payload_message(PAYLOAD, 0.0))
    values_of(client, "payload", f"2 kg at {TOOL}", "the payload")
    state = motion(7)
    answered = client.inverse_dynamics(state, outputs=14)
    loaded, empty = ARM.feedforward(*state, payload=PAYLOAD), ARM.feedforward(*state)
    for field, values in zip(COMMAND_FIELDS, loaded, strict=True):
        assert getattr(answered, field).tobytes() == values.tobytes(), field
    M = ARM.dynamics.mass_matrix(state[0], payload=PAYLOAD)
    np.testing.assert_allclose(np.reshape(answered.mass_matrix, (7, 7)), M, atol=1e-12)

    def effort():
        """That of the next command, here to an unstamped setpoint."""
        count = len(client.feedforward)
        client.publish(state, at=0, seconds=0)
        client.wait(lambda: len(client.feedforward) > count, "the answer")
        return client.feedforward[-1].motor_effort.tobytes()

    assert effort() == loaded.motor_effort.tobytes()
    values_of(client, "payload", f"2 kg at {TOOL}", "the end of the change")
    assert client.transition("deactivate") and client.transition("activate")
    client.until_silent()
    assert effort() == loaded.motor_effort.tobytes()
    assert set_payload(client, eom.Payload(1.0), 30.0).success
    values_of(client, "payload", f"1 kg at {TOOL}; changing", "another change")
    assert client.transition("deactivate") and client.transition("cleanup")
    assert "the payload is forgotten with the robot: set it again" in client.process.log
    assert client.transition("configure") and client.transition("activate")
    client.until_silent()
    assert effort() == empty.motor_effort.tobytes()


def test_a_payload_is_estimated_by_external_efforts_and_then_set(client):
    """In one pose without the center along gravity, which is not determined; after another one, all of it; no push."""
    states = client.publisher(JointState, "joint_states")

    def estimate_at(pose, push=0.0):
        client.spin(0.2)  # a gap, after which the observer starts anew
        tau, end = ARM.dynamics.effort(pose, 0 * pose, 0 * pose, payload=PAYLOAD), time.monotonic() + 1.0
        tau[0] += push
        while time.monotonic() < end:
            message = JointState(name=list(ROBOT.joint_names), position=[*pose], velocity=[0.0] * 7, effort=[*tau])
            message.header.stamp = client.node.get_clock().now().to_msg()
            states.publish(message)
            client.spin(2e-3)
        return client.call(SetPayload, "set_payload", SetPayload.Request(estimate=True))

    pose = np.linspace(0.2, 1.0, 7)
    answer = estimate_at(pose)
    assert not answer.success and "along [" in answer.message and "; turn the tool" in answer.message
    down = eom.Kinematics(ROBOT).pose(pose)[2, :3]
    np.testing.assert_allclose([abs(np.dot([x.x, x.y, x.z], down)) for x in answer.undetermined], [1.0], atol=1e-6)
    answer = estimate_at(-pose)
    assert answer.success and not answer.undetermined and answer.message.startswith(f"{TOOL}: "), answer.message
    assert answer.message.endswith("; without errors of the arm's masses: its file has no uncertainty.mass")
    center, mass = answer.payload.inertia.com, answer.payload.inertia.m
    # Samples that come late leave their share of a filter that has settled to 1 %.
    assert (mass, center.x, center.y, center.z) == pytest.approx([2.0, *PAYLOAD.center_of_mass], abs=2e-3)
    assert "payload" not in client.next_diagnostics()[2]
    assert client.call(SetPayload, "set_payload", SetPayload.Request(payload=answer.payload)).success
    text = f"{mass:.4g} kg at {TOOL}"
    values_of(client, "payload", text, "the payload")
    # It begins with the first setpoint, and goes on at rest.
    rest = np.stack([-pose, *np.zeros((4, 7))])
    client.answers_to(client.publish(rest))
    wanted = ARM.feedforward(*rest, payload=eom.Payload(mass, [center.x, center.y, center.z]))
    end = wanted.motor_effort.tobytes()
    client.wait(lambda: client.feedforward[-1].motor_effort.tobytes() == end, "the end of the change")
    values_of(client, "payload", text, "its report")
    answer = estimate_at(0.5 * pose, push=4.0)
    assert not answer.success and "at iiwa_joint_1, more than the threshold of contact, " in answer.message
    assert answer.message.endswith("; rest without contact, and ask for the time since then")
    assert len(answer.unexplained) == 7 and answer.unexplained[0] > 2.0


REFUSED = [
    (-1.0, 0.1, "", "payload: mass must not be negative, is -1 kg"),
    (2.0, -1.0, "", "blend_time must be from 0 to 60 s, is -1"),
    (2.0, 0.1, "hand", f"payload: iiwa has no frame 'hand'; known are {', '.join(frames_by_name(ROBOT))}"),
]


def test_what_cannot_be_carried_is_refused_on_one_line(node):
    for mass, blend_time, tool, reason in REFUSED:
        wrong = payload_message(PAYLOAD, blend_time, tool)
        wrong.inertia.m = mass
        answered = node.call(SetPayload, "set_payload", SetPayload.Request(payload=wrong))
        assert (answered.success, answered.message) == (False, reason)
        values_of(node, "last refused payload", reason, "the refusal")
    assert "refused: payload:" not in node.process.log
    node.answers_to(node.publish(motion(1)))


def test_a_node_whose_robot_comes_later_gets_the_last_payload_while_the_clock_stands_still(start, ros):
    gripper = ros.create_node("gripper")
    kept = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    publisher = gripper.create_publisher(Payload, "/gripper/payload", kept)
    for mass in (7.0, PAYLOAD.mass):
        publisher.publish(payload_message(replace(PAYLOAD, mass=mass), 0.01))
    arguments = ("-r", "payload:=/gripper/payload", "-p", "use_sim_time:=true", "-p", "autostart:=false")
    client = start("--params-file", CONFIG / "iiwa.yaml", *arguments, "-r", "/clock:={namespace}/clock")
    client.wait(publisher.get_subscription_count, "the subscription")
    client.spin(0.5)
    assert client.transition("configure") and client.transition("activate")
    state = motion(7)
    wanted = ARM.feedforward(*state, payload=PAYLOAD).motor_effort.tobytes()
    client.repeat(
        lambda: client.publish(state, at=0, seconds=0),
        lambda: client.feedforward and client.feedforward[-1].motor_effort.tobytes() == wanted,
        "the payload",
    )
    answer = client.call(SetPayload, "set_payload", SetPayload.Request(estimate=True))
    assert answer.message == "external efforts are not observed: set external_effort.sensors"
    gripper.destroy_node()


@pytest.mark.usefixtures("ros")
@pytest.mark.parametrize(
    ("mass", "T", "reason"),
    [
        (0.1, 0.3, "on the way from the commanded state: fer_joint6: acceleration 52"),
        (5.0, 1.0, "limits with the payload"),
    ],
)
def test_a_transition_that_is_too_fast_or_too_heavy_is_refused_by_its_limits(mass, T, reason):
    q = np.array([0.0, -0.5, 0.0, -1.5, 0.0, 1.5, 0.5])
    with unspun_node("/loaded", robot_file="panda", safety="strict") as node:
        loop = node._stream.loop
        loop.loop.restart(q)
        loop.carry(eom.Payload(mass, [0.0, 0.0, 0.1]), 0.3)
        states = np.zeros((5, 1, 7))
        states[0, 0] = q + 0.5 * np.eye(7)[5]
        with pytest.raises(eom.TrajectoryError, match=reason):
            node._stream.player.play(Spline([T], states), goal_at())
        assert loop.loop.number("refused") == 1
