# SPDX-License-Identifier: Apache-2.0
"""New descriptions on the topic during a stream: exchanged between two setpoints at rest, or refused."""

import time
from contextlib import contextmanager

import numpy as np
import pytest
from node_client import EACH_WARNING
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String
from urdf_arms import fresh_mass, urdf_arm

import eom_dynamics as eom
from eom_dynamics.control.fields import COMMAND_FIELDS


@pytest.fixture(scope="module")
def shared(start_shared, ros):
    """A node that takes its robot from a topic, and a function that publishes there."""
    client = start_shared("-r", "robot_description:=description", EACH_WARNING, "-p", "stream_rate:=200.0")
    quality = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    publisher = client.node.create_publisher(String, "description", quality)
    return client, lambda text: publisher.publish(String(data=text))


@pytest.fixture
def describe(shared):
    return shared[1]


@pytest.fixture
def active(shared):
    """Send a robot to the node, and activate it."""
    client, describe = shared

    def with_robot(urdf):
        describe(urdf)
        name = eom.load_robot(urdf).name
        client.wait_for_diagnostics(lambda *s: s[2]["robot"] == name, "the robot")
        if client.state == "inactive":
            assert client.transition("activate")
        return client

    return with_robot


@contextmanager
def streaming(client, omega=(1.0, 3.0)):
    """Stream setpoints at 200 Hz, at rest where omega is zero.

    Yields rows of setpoints and times of answers, all there at the end, in order.
    """
    omega, rows, received, first = np.array(omega), [], [], len(client.feedforward)

    def publish():
        t = 5e-3 * len(rows)
        rows.append([omega**k * np.cos(omega * t + k * np.pi / 2) for k in range(5)])
        client.publish(rows[-1])
        received.extend([time.monotonic()] * (len(client.feedforward) - first - len(received)))

    timer = client.node.create_timer(5e-3, publish)
    client.wait(lambda: len(received) > 100, "the stream")
    yield rows, received
    client.wait(lambda: len(received) == len(client.feedforward) - first, "the last answer")
    client.node.destroy_timer(timer)
    client.wait(lambda: len(client.feedforward) - first == len(rows), "all answers")
    numbers = [m.header.stamp.nanosec for m in client.feedforward[first:]]
    assert numbers == list(range(numbers[0], numbers[0] + len(rows)))


def answered_by(urdf, rows, answers):
    """For each setpoint, whether its answer belongs to this robot."""
    wanted = eom.ElasticArm(eom.load_robot(urdf)).feedforward(*np.swapaxes(rows, 0, 1))
    return np.all(
        [
            np.abs([getattr(m, name) for m in answers] - values).max(axis=1) <= 1e-12 * np.abs(values).max()
            for name, values in zip(COMMAND_FIELDS, wanted, strict=True)
        ],
        axis=0,
    )


def test_a_new_robot_takes_over_between_two_setpoints_at_rest_and_none_is_lost(active, describe):
    before, after = urdf_arm("before"), urdf_arm("after", mass=fresh_mass())
    client = active(before)
    refused = client.next_diagnostics()[2]["refused"]
    with streaming(client, (0.0, 0.0)) as (rows, received):
        described = time.monotonic()
        describe(after)
        client.wait_for_diagnostics(lambda *s: s[2]["robot"] == "after", "the robot")
        count = len(received)
        client.wait(lambda: len(received) > count + 50, "its answers")
    answers = client.feedforward[-len(rows) :]
    old, new = answered_by(before, rows, answers), answered_by(after, rows, answers)
    assert np.all(old ^ new)
    assert old[0] and new[-1]
    assert np.count_nonzero(np.diff(new.astype(int))) == 1
    # The old robot answers while the new robot is compiled, except in pauses of a busy machine.
    times = np.array(received)
    taken_over = times[new[: len(times)]][0]
    meanwhile = times[(times > described) & (times < taken_over)]
    assert len(meanwhile) > 10 and np.median(np.diff(meanwhile)) < 0.1 * (taken_over - described)
    assert client.process.log.count("robot after with 2 joints") == 1
    assert client.next_diagnostics()[2]["refused"] == refused


BAD = {
    "line 1, column 1: not valid XML": "hello",
    "nested deeper than 100": 1000 * "<robot>",
    "<mass>: value must be finite, is 'nan'": urdf_arm(mass=float("nan")),
}


def test_descriptions_that_cannot_be_used_are_refused_and_the_stream_goes_on(active, describe):
    urdf = urdf_arm("arm")
    client = active(urdf)
    logged = len(client.process.log)

    with streaming(client) as (rows, _):
        for reason, text in BAD.items():
            describe(text)
            wanted = lambda *s, reason=reason: reason in s[2].get("refused robot", "")  # noqa: E731
            client.wait_for_diagnostics(wanted, "the refusal")
    assert np.all(answered_by(urdf, rows, client.feedforward[-len(rows) :]))
    level, message, values = client.wait_for_diagnostics(lambda *s: s[1].startswith("new robot"), "end of the stream")
    assert level == 1
    topic = f"{client.process.namespace}/description"
    assert message.startswith(f"new robot refused, the current one remains: topic {topic}: ")
    assert (values["state"], values["robot"]) == ("active", "arm")
    assert client.process.log[logged:].count("new robot refused, the current one remains: ") == len(BAD)
    assert "Traceback" not in client.process.log
    # The next valid robot is used once the arm rests.
    client.answers_to(client.publish([rows[-1][0], *np.zeros((4, 2))]))
    describe(urdf_arm("better", mass=2.0))
    _, _, values = client.wait_for_diagnostics(lambda *s: s[2]["robot"] == "better", "the next robot")
    assert "refused robot" not in values


def test_of_many_descriptions_the_last_one_stays_while_inactive_and_not_after_a_cleanup(active, describe):
    client = active(urdf_arm("first"))
    taken = client.process.log.count(" with 2 joints: ")
    for i in range(5):
        describe(urdf_arm(f"arm_{i}", mass=fresh_mass()))
    client.wait_for_diagnostics(lambda *s: s[2]["robot"] == "arm_4", "the last one")
    # Robots that are outdated before they are loaded are skipped.
    loaded = client.process.log.count(" with 2 joints: ")
    assert loaded < taken + 5
    # An equal description changes nothing.
    assert client.transition("deactivate")
    for _ in range(2):
        describe(urdf_arm("same"))
        client.spin(0.3)
    assert client.process.log.count(" with 2 joints: ") == loaded + 1
    assert (client.state, client.next_diagnostics()[2]["robot"]) == ("inactive", "same")
    # The node is cleaned up while it loads a robot.
    describe(urdf_arm("last", joints=[f"j{i}" for i in range(8)], mass=fresh_mass()))
    assert client.transition("cleanup")
    client.spin(0.5)
    assert client.state == "unconfigured"
    assert client.next_diagnostics()[2]["robot"] == ""
    assert client.transition("configure")
    assert client.next_diagnostics()[2]["robot"] == "last"
