# SPDX-License-Identifier: Apache-2.0
"""Payload of a streaming node: between two setpoints, without a step or a loss; by topic and service."""

import time

import numpy as np
import pytest
from node_client import PATIENCE, Search
from paths import CONFIG
from tool_messages import payload_message

import eom_dynamics as eom
from eom_dynamics.messages.fields import COMMAND_FIELDS, STATE_FIELDS
from eom_dynamics.robot.model import frames_by_name

pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from eom_dynamics.msg import JointTrajectorySetpoint, Payload
from eom_dynamics.srv import SetPayload
from rclpy.qos import DurabilityPolicy, QoSProfile

ROBOT = eom.load_robot(CONFIG / "iiwa.yaml")
ARM = eom.ElasticArm(ROBOT)
TOOL = ROBOT.tools[0].name
PAYLOAD = eom.Payload(2.0, [0.02, 0.0, 0.1], [0.02, 0.001, 0.002, 0.03, 0.001, 0.04])


def set_payload(client, *arguments, **options):
    request = SetPayload.Request(payload=payload_message(*arguments, **options))
    return client.call(SetPayload, "set_payload", request)


def setpoint(client, state, stamp):
    client.frame = "base"
    client.publish(at=stamp, **dict(zip(STATE_FIELDS, state, strict=True)))


def answer(client, stamp):
    client.wait(lambda: Search(client.feedforward, stamp).found, f"the answer to {stamp}")


def motion(k):
    """A smooth motion, 1 kHz."""
    t, w = k * 1e-3, 3.0
    shape = [np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t), -(w**3) * np.cos(w * t), w**4 * np.sin(w * t)]
    return np.outer(shape, 0.3 * np.ones(7))


def values_of(client, name, value, what):
    return client.wait_for_diagnostics(lambda *status: status[2].get(name, "") == value, what)[2]


def test_a_payload_begins_and_ends_between_two_setpoints_of_a_stream(start):
    client = start("--params-file", CONFIG / "iiwa.yaml")
    for k in range(20):
        setpoint(client, motion(k), k * 10**6 + 1)
    answer(client, 19 * 10**6 + 1)
    first = set_payload(client, PAYLOAD, 0.05)
    assert first.success, first.message
    assert "takes effect when its code is compiled" in first.message
    values_of(client, "payload", f"2 kg at {TOOL}; changing", "the code")
    for k in range(20, 120):
        setpoint(client, motion(k), k * 10**6 + 1)
        client.spin(1e-3)
        if k == 20:
            answer(client, k * 10**6 + 1)  # the time of the change begins
    answer(client, 119 * 10**6 + 1)
    removed = set_payload(client, eom.Payload(0.0), 0.05, tool=TOOL)
    assert (removed.success, removed.message) == (True, "")
    for k in range(120, 220):
        setpoint(client, motion(k), k * 10**6 + 1)
        client.spin(1e-3)
        if k == 120:
            answer(client, k * 10**6 + 1)
    answer(client, 219 * 10**6 + 1)
    sent = client.feedforward[-220:]
    assert [m.header.stamp.nanosec for m in sent] == [k * 10**6 + 1 for k in range(220)]
    for k, m in enumerate(sent):
        if 70 <= k < 120:
            wanted = ARM.feedforward(*motion(k), payload=PAYLOAD)
        elif k < 20 or k >= 170:
            wanted = ARM.feedforward(*motion(k))
        else:
            continue
        for field, values in zip(COMMAND_FIELDS, wanted, strict=True):
            assert getattr(m, field).tobytes() == values.tobytes(), (k, field)
    # Positions are the integral of velocities, and nothing steps.
    theta, thetad, effort = (
        np.array([getattr(m, field) for m in sent]) for field in ("motor_position", "motor_velocity", "motor_effort")
    )
    step = np.diff(theta, axis=0) - 0.5e-3 * (thetad[1:] + thetad[:-1])
    # The trapezoidal rule is off by h³/12 of the third derivative, that of the change 60/T³ of the change at most.
    change = np.max(np.abs(theta - [motion(k)[0] for k in range(220)]))
    assert np.max(np.abs(step)) < 1e-9 / 12 * (60 / 0.05**3) * 2 * change
    assert np.max(np.abs(np.diff(effort, axis=0))) < 0.1 * np.max(np.abs(effort[100] - effort[10]))
    values = values_of(client, "payload", "", "the end")
    assert (values["stream"], values["refused"]) == ("compiled", "0")


def test_a_pause_of_the_publisher_and_of_the_node_make_no_step(start):
    """10 kg within 1 s: silent for 0.5 s, then deactivated, with the efforts of gravity, and activated again."""
    client = start("--params-file", CONFIG / "iiwa.yaml", "-p", "effort_on_deactivate:=gravity")
    client.frame, heavy = "base", eom.Payload(10.0, [0.0, 0.0, 0.1])
    rest = np.vstack([np.full((1, 7), 0.6), np.zeros((4, 7))])

    def stream(count):
        for _ in range(count):
            seconds, stamp = divmod(time.time_ns(), 10**9)
            client.publish(at=stamp, seconds=seconds, **dict(zip(STATE_FIELDS, rest, strict=True)))
            answer(client, stamp)

    stream(10)
    assert set_payload(client, heavy, 1.0).success
    values_of(client, "payload", f"10 kg at {TOOL}; changing", "the code")
    first = len(client.feedforward)
    for pause in (0.5, 0.0):
        until = time.monotonic() + 0.25
        while time.monotonic() < until:
            stream(1)
        client.spin(pause)
    sent = len(client.feedforward)
    assert client.transition("deactivate")
    client.wait(lambda: len(client.feedforward) > sent, "the last command")
    assert client.transition("activate")
    client.spin(0.3)
    stream(1)
    carried = client.next_diagnostics()[2]["payload"]
    loaded, empty = ARM.feedforward(*rest, payload=heavy).tau, ARM.feedforward(*rest).tau
    until = time.monotonic() + PATIENCE
    while client.feedforward[-1].effort.tobytes() != loaded.tobytes() and time.monotonic() < until:
        stream(1)
    efforts = np.array([m.effort for m in client.feedforward[first:]])
    assert np.array_equal(efforts[-1], loaded)
    # By 20 ms of the change in each step, which was not over then.
    assert np.max(np.abs(np.diff(efforts[:, 1]))) < 1.875 * 0.0201 * abs(loaded - empty)[1] < 1.2
    assert carried.endswith("; changing")


def test_two_publishers_with_different_clocks_pass_a_change_in_its_time(start):
    """Stamps are 3 s apart: the time of the change is that of the node's clock, by more than 20 ms in no step."""
    client = start("--params-file", CONFIG / "iiwa.yaml")
    client.frame = "base"
    setpoint(client, motion(0), 1)
    assert set_payload(client, PAYLOAD, 0.5).success
    values_of(client, "payload", f"2 kg at {TOOL}; changing", "the code")
    begin, times = time.monotonic(), []
    rest = [motion(0)[0], *np.zeros((4, 7))]
    for k in range(300):
        client.publish(at=k + 2, seconds=1000 + 3 * (k % 2), **dict(zip(STATE_FIELDS, rest, strict=True)))
        answer(client, k + 2)
        times.append(time.monotonic() - begin)
    efforts = np.array([m.effort for m in client.feedforward[-300:]])
    empty, loaded = ARM.feedforward(*rest).tau, ARM.feedforward(*rest, payload=PAYLOAD).tau
    joint = np.argmax(np.abs(loaded - empty))
    share = (efforts[:, joint] - empty[joint]) / (loaded - empty)[joint]
    u = np.minimum((np.array(times) + 0.02) / 0.5, 1.0)
    assert np.all(share <= u**3 * (10 - 15 * u + 6 * u**2) + 1e-9)
    assert share[0] == 0.0 and np.all(np.diff(share) >= -1e-9) and share[-1] > 0.0


def test_the_topic_takes_payloads_too_and_requests_have_the_last_one(start):
    client = start("--params-file", CONFIG / "iiwa.yaml")
    publisher = client.node.create_publisher(Payload, "payload", 10)
    client.wait(lambda: publisher.get_subscription_count(), "the subscription")
    publisher.publish(payload_message(PAYLOAD, 0.0))
    values_of(client, "payload", f"2 kg at {TOOL}; changing", "the payload")
    fields = dict(zip(("position", "velocity", "acceleration", "jerk", "snap"), motion(7), strict=True))
    answered = client.inverse_dynamics(**fields, include_matrices=True)
    wanted = ARM.feedforward(*motion(7), payload=PAYLOAD)
    for field, values in zip(COMMAND_FIELDS, wanted, strict=True):
        assert getattr(answered, field).tobytes() == values.tobytes(), field
    M = ARM.dynamics.mass_matrix(motion(7)[0], payload=PAYLOAD)
    np.testing.assert_allclose(np.reshape(answered.mass_matrix, (7, 7)), M, atol=1e-12)
    # At once, with the next setpoint, unstamped ones, too.
    count = len(client.feedforward)
    client._setpoints.publish(JointTrajectorySetpoint(**{name: row.tolist() for name, row in fields.items()}))
    client.wait(lambda: len(client.feedforward) > count, "the answer")
    assert client.feedforward[-1].motor_effort.tobytes() == wanted.motor_effort.tobytes()
    values_of(client, "payload", f"2 kg at {TOOL}", "the end of the change")


def test_a_payload_is_taken_while_the_clock_stands_still(start):
    client = start("--params-file", CONFIG / "iiwa.yaml", "-p", "use_sim_time:=true", "-r", "/clock:={namespace}/clock")
    assert set_payload(client, PAYLOAD, 0.01).success
    unstamped = JointTrajectorySetpoint(
        **{name: row.tolist() for name, row in zip(STATE_FIELDS, motion(7), strict=True)}
    )

    def taken():
        return bool(client.feedforward) and client.feedforward[-1].motor_effort.tobytes() == wanted

    wanted = ARM.feedforward(*motion(7), payload=PAYLOAD).motor_effort.tobytes()
    client.repeat(lambda: client._setpoints.publish(unstamped), taken, "the payload")


@pytest.mark.parametrize(
    ("payload", "blend_time", "tool", "reason"),
    [
        (-1.0, 0.1, "", "payload: mass must not be negative, is -1 kg"),
        (1e300, 0.1, "", "payload: mass must not exceed 1e+12 in SI units, is 1e+300"),
        (PAYLOAD, -1.0, "", "blend_time must be from 0 to 60 s, is -1"),
        (
            PAYLOAD,
            0.1,
            "hand",
            f"payload: {ROBOT.name} has no frame 'hand'; known are {', '.join(frames_by_name(ROBOT))}",
        ),
    ],
)
def test_what_cannot_be_carried_is_refused_on_one_line(iiwa, payload, blend_time, tool, reason):
    wrong = payload_message(PAYLOAD, blend_time, tool)
    if payload is not PAYLOAD:
        wrong.inertia.m = payload
    answered = iiwa.call(SetPayload, "set_payload", SetPayload.Request(payload=wrong))
    assert (answered.success, answered.message) == (False, reason)
    values_of(iiwa, "last refused payload", reason, "the refusal")
    assert "refused: payload:" not in iiwa.process.log
    iiwa.answers_to(iiwa.publish(**dict(zip(STATE_FIELDS, motion(1), strict=True))))


def test_a_payload_outlives_a_deactivation_but_not_the_robot(start):
    client = start("--params-file", CONFIG / "iiwa.yaml")

    def answered(stamp):
        setpoint(client, motion(3), stamp)
        answer(client, stamp)
        return client.feedforward[-1].motor_effort.tobytes()

    assert set_payload(client, PAYLOAD, 0.0).success
    values_of(client, "payload", f"2 kg at {TOOL}; changing", "the code")
    loaded, empty = ARM.feedforward(*motion(3), payload=PAYLOAD), ARM.feedforward(*motion(3))
    assert answered(1) == loaded.motor_effort.tobytes()
    assert client.transition("deactivate") and client.transition("activate")
    assert answered(2) == loaded.motor_effort.tobytes()
    assert client.transition("deactivate") and client.transition("cleanup")
    assert client.process.log.count("the payload is forgotten with the robot: set it again") == 1
    assert client.transition("configure") and client.transition("activate")
    assert answered(3) == empty.motor_effort.tobytes()


def test_a_node_that_starts_later_gets_payloads_that_are_kept_for_it(start, ros):
    gripper = ros.create_node("gripper")
    kept = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    gripper.create_publisher(Payload, "/gripper/payload", kept).publish(payload_message(PAYLOAD, 0.0))
    durable = "qos_overrides./gripper/payload.subscription.durability:=transient_local"
    robot = ("--params-file", CONFIG / "iiwa.yaml", "-r", "payload:=/gripper/payload")
    try:
        client = start(*robot, "-p", durable)
        values_of(client, "payload", f"2 kg at {TOOL}; changing", "the payload")
    finally:
        gripper.destroy_node()
