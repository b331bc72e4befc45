# SPDX-License-Identifier: Apache-2.0
"""Fast path of setpoints through the node: the bits of the library, held commands, and publishers in turn."""

import numpy as np
import pytest
from node_client import ended
from paths import CONFIG

import eom_dynamics as eom
from eom_dynamics.messages.fields import COMMAND_FIELDS, STATE_FIELDS

ROBOT = eom.load_robot(CONFIG / "iiwa.yaml")
ARM = eom.ElasticArm(ROBOT)
NAMES = list(ROBOT.joint_names)


def command(state):
    return dict(zip(COMMAND_FIELDS, ARM.feedforward(*state), strict=True))


def setpoint(client, state, stamp, **fields):
    client.publish(at=stamp, **dict(zip(STATE_FIELDS, state, strict=True)), **fields)


@pytest.mark.parametrize("executor", ["events", "single_threaded"])
def test_every_bit_is_that_of_the_library(start, rng, executor):
    client = start("--params-file", CONFIG / "iiwa.yaml", "-p", f"executor:={executor}")
    client.frame = "base"
    states = rng.uniform(-1, 1, (300, 5, 7))
    for k, state in enumerate(states):
        setpoint(client, state, k + 1)
        client.spin(1e-3)
    client.answers_to(len(states))
    client.wait(lambda: len(client.effort_command) == len(client.feedforward), "all effort commands")
    assert [m.header.stamp.nanosec for m in client.feedforward[-300:]] == list(range(1, 301))
    for message, state in zip(client.feedforward[-300:], states, strict=True):
        for field, values in command(state).items():
            assert getattr(message, field).tobytes() == values.tobytes()
        assert (message.header.frame_id, message.joint_names, message.motor_names) == ("base", NAMES, NAMES)
        assert (message.status, message.held) == (message.STATUS_FRESH, False)
    efforts = client.effort_command[-300:]
    assert [m.data.tobytes() for m in efforts] == [m.motor_effort.tobytes() for m in client.feedforward[-300:]]
    _, _, values = client.wait_for_diagnostics(lambda *s: int(s[2]["published"]) >= 300, "the count")
    assert (values["refused"], values["stream"]) == ("0", "compiled")


def test_publishers_in_turn_and_messages_that_are_none(start, rng):
    client = start("--params-file", CONFIG / "iiwa.yaml", "-p", "warning_period:=0.0")
    states = rng.uniform(-1, 1, (60, 5, 7))
    for k, state in enumerate(states):
        order = NAMES if k // 2 % 2 else NAMES[::-1]
        client.frame = f"of {k // 2 % 6}"
        setpoint(client, np.ascontiguousarray(state[:, :: 1 if k // 2 % 2 else -1]), k + 1, joint_names=order)
        if k == 30:
            client.publish_serialized(b"\0\1\0\0" + bytes(rng.integers(0, 256, 100, dtype=np.uint8)))
    client.answers_to(len(states))
    answers = {m.header.stamp.nanosec: m for m in client.feedforward}
    for k, state in enumerate(states):
        step = 1 if k // 2 % 2 else -1
        for field, values in command(state).items():
            assert getattr(answers[k + 1], field).tobytes() == values[::step].tobytes()
        assert answers[k + 1].header.frame_id == f"of {k // 2 % 6}"
    assert "Traceback" not in client.process.log


def test_topics_that_nobody_hears_are_heard_again(start, rng):
    """The subscription of one topic ends and begins anew; its messages are those of the setpoints from then on."""
    from std_msgs.msg import Float64MultiArray

    client = start("--params-file", CONFIG / "iiwa.yaml")
    node, got = client.node, []
    for round_ in range(3):
        got.clear()
        subscription = node.create_subscription(
            Float64MultiArray, f"{client.process.namespace}/effort_command", got.append, 1000
        )
        client.wait(lambda s=subscription: s.get_publisher_count(), "the publisher")
        states = rng.uniform(-1, 1, (20, 5, 7))
        for k, state in enumerate(states):
            setpoint(client, state, 100 * round_ + k + 1)
            client.spin(2e-3)
        client.wait(lambda s=states: got and got[-1].data.tobytes() == command(s[-1])["motor_effort"].tobytes(), "it")
        node.destroy_subscription(subscription)


def test_the_callback_allocates_nothing_that_stays_and_logs_nothing(ros, tmp_path):
    program = f"""
import gc, time, tracemalloc
import numpy as np, rclpy
from rclpy.serialization import serialize_message
from eom_dynamics.messages.fields import STATE_FIELDS
from eom_dynamics.messages.fields import doubles
from eom_dynamics.ros.dynamics_node import DynamicsNode
from eom_dynamics.ros.interfaces import JointTrajectorySetpoint
from eom_dynamics.ros.executors import StopSignals
rclpy.init(args=["--ros-args", "--params-file", {str(CONFIG / "iiwa.yaml")!r}, "-p", "setpoint_timeout:=0.5"])
node = DynamicsNode(StopSignals())
node.start_up()
stream = node._stream
messages = []
for k in range(20):
    setpoint = JointTrajectorySetpoint()
    setpoint.header.stamp.sec = k + 1
    for field in STATE_FIELDS:
        setattr(setpoint, field, doubles(np.full(7, 0.01 * k)))
    messages.append(serialize_message(setpoint))
def play(rounds):
    for _ in range(rounds):
        for message in messages:
            stream.answer_bytes(message)
        stream.statistics._times.clear()  # as once in a diagnostic period
play(60)  # Python 3.10 allocates a cache for each function that was called 1,024 times
assert stream._shapes.latest, "no compiled call"
gc.collect()
tracemalloc.start()
play(10)
before = tracemalloc.get_traced_memory()[0]
play(150)
print(tracemalloc.get_traced_memory()[0] - before, stream.statistics.published)
import os, sys
sys.stdout.flush()
os._exit(0)
"""
    code, printed, errors = ended("eom_dynamics.ros.dynamics_node", tmp_path, patch=program)
    assert code == 0, errors
    growth, published = map(int, printed.split())
    assert published == 220 * 20
    assert growth < 1024  # less than a byte a message
    assert errors.count("\n") == 4  # the robot, its watchdog and two transitions: nothing of the stream
