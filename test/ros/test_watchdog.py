# SPDX-License-Identifier: Apache-2.0
"""Setpoints that stop or become invalid: each policy, each cause, and the return of the setpoints."""

import itertools
import re
from contextlib import contextmanager

import numpy as np
import pytest
from eom_dynamics.msg import FeedforwardCommand, JointTrajectorySetpoint, SplineTrajectory
from node_client import EACH_WARNING
from paths import CONFIG, ROOT
from rclpy.duration import Duration
from rclpy.qos import LivelinessPolicy, QoSProfile
from rclpy.serialization import serialize_message
from rclpy.time import Time
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from setpoint_engines import kept_commands, unspun_node
from stopped import stopped
from tool_messages import spline_message
from urdf_arms import urdf_arm

import eom_dynamics as eom
from eom_dynamics.control.fields import STATE_FIELDS, doubles
from eom_dynamics.control.setpoint_loop import SetpointLoop
from eom_dynamics.control.setpoint_to_command import SetpointEvaluator
from eom_dynamics.ros.robot_sources import LoadedRobot
from eom_dynamics.trajectory import rest_to_rest

ARM = eom.ElasticArm(eom.load_robot("panda"))
HOME = np.array([0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0])
FRESH, HELD, STOPPING = range(3)
SLOWLY = ("-p", "stream_rate:=200.0")  # else, commands keep two processes busy
ARGUMENTS = ("--params-file", CONFIG / "panda.yaml", EACH_WARNING, *SLOWLY)

# The last setpoint: in motion, within limits.
STATE = np.zeros((5, 7))
STATE[0], STATE[1], STATE[2] = HOME, 0.3, 0.5


DEFAULTS = {**{"setpoint_timeout": 0.0, "on_setpoint_loss": "none", "stop_duration": 0.3}}


@pytest.fixture(scope="module")
def node(start_shared, tmp_path_factory):
    """With the parameters of the documentation."""
    (text,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "watchdog.md").read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path_factory.mktemp("parameters") / "watchdog.yaml"
    path.write_text(text)
    return start_shared(*ARGUMENTS, "--params-file", path, name="eom_dynamics")


@pytest.fixture
def configure(node):
    """Activate the node with parameters, otherwise with defaults."""

    def set_them(**values):
        node.transition("deactivate")
        assert node.set_parameters(DEFAULTS | values) == ""
        assert node.transition("activate")
        node.feedforward.clear()

    return set_them


_FIRST = itertools.count(10**6)
"""Numbers of frames of setpoints, which separate the commands of successive tests."""


def since(node):
    """Commands from the last setpoint of :func:`publish_until_answered` on; some of the test before may arrive late.

    Each command is checked once: a node that holds sends hundreds a second, and a slow client must keep up.
    """
    messages = node.feedforward
    while node.start < len(messages) and number_of(messages[node.start]) < node.first:
        node.start += 1
    return messages[node.start :]


def number_of(message):
    return int(message.header.frame_id.split()[-1])


def statuses(node):
    return [message.status for message in since(node)]


def wait_for(node, status, count=1):
    node.wait(lambda: statuses(node).count(status) >= count, f"{count} commands of status {status}")


def ended(node):
    """True if a stop has ended: a HELD command without velocity."""
    last = node.feedforward[-1]
    return number_of(last) >= node.first and last.status == HELD and not any(last.motor_velocity)


def publish_until_answered(node, state=STATE):
    """Publish setpoints and wait for an answer to the last of them, which a compiled call computes.

    The watchdog may be faster than this process.
    """
    begin(node, next(_FIRST))
    for _ in range(4):
        node.last = node.publish(state)
    node.wait(lambda: any(m.header.stamp.nanosec == node.last for m in since(node)), "the answer")
    fresh = [m.header.stamp.nanosec == node.last and m.status == FRESH for m in since(node)]
    node.start += fresh.index(True) if True in fresh else 0


def begin(node, first):
    """Receive commands to setpoints with a new number."""
    node.first, node.start, node.frame = first, len(node.feedforward), f"frame {first}"


def test_hold_brings_the_arm_to_rest_without_a_step(node, configure):
    configure(setpoint_timeout=0.05, on_setpoint_loss="hold", stop_duration=0.5)
    publish_until_answered(node)
    wait_for(node, HELD, 20)
    found = [message.status for message in since(node)]
    stopping = found.count(STOPPING)
    assert found == [FRESH] + [STOPPING] * stopping + [HELD] * (len(found) - 1 - stopping)
    assert [message.held for message in since(node)] == [status != FRESH for status in found]
    assert stopping > 20  # each is at most 20 ms late
    # A stop of the requested duration, which meets all limits.
    loop = stopped(ARM, STATE, 0.5)
    end = loop.setpoint["q"]
    np.testing.assert_array_equal(since(node)[-1].motor_position, loop.command["motor_position"])
    level, message, values = node.next_diagnostics()
    assert (level, values["watchdog"]) == (1, "held")
    assert message.startswith("setpoints lost, holding the last position: no valid setpoint for 0.")
    assert values["setpoints lost"] == "1" and "(setpoint_timeout 0.05 s)" in values["last loss"]
    assert "setpoints lost: no valid setpoint for 0." in node.process.log
    assert "the arm stops within 0.5 s" in node.process.log

    # Far from there they are refused, near it they are followed.
    away = STATE * 0.0
    away[0] = end + 0.2 * np.eye(7)[0]
    refused = node.publish(away)
    node.wait(lambda: "fer_joint1 is 0.2 rad from where it is held" in node.process.log, "the reason")
    wait_for(node, HELD, statuses(node).count(HELD) + 20)
    assert all(m.header.stamp.nanosec != refused for m in node.feedforward)
    away[0] = end + 0.05
    near = node.publish(away)
    node.wait(lambda: any(m.header.stamp.nanosec == near and m.status == FRESH for m in node.feedforward), "an answer")
    node.wait(lambda: "setpoints are back" in node.process.log, "the message")


def test_a_stream_that_ends_at_rest_is_not_lost(node, configure):
    configure(setpoint_timeout=0.05, on_setpoint_loss="hold")
    lost = node.next_diagnostics()[2].get("setpoints lost")
    publish_until_answered(node, STATE * np.eye(5, 1))
    wait_for(node, HELD)
    text = "the stream has ended at rest: no valid setpoint for 0."
    values = node.wait_for_diagnostics(lambda level, message, _: level == 0 and message.startswith(text), "the end")[2]
    assert values["watchdog"] == "held" and values.get("setpoints lost") == lost
    assert text in node.process.log
    # A trajectory is no stream that is back.
    back = node.process.log.count("setpoints are back")
    motion = spline_message(rest_to_rest(HOME, HOME + 0.1, 0.5), ARM.robot.joint_names)
    node.publisher(SplineTrajectory, "spline_trajectory").publish(motion)
    node.wait_for_diagnostics(lambda *status: status[2]["watchdog"] == "waiting", "the end of the trajectory")
    assert node.process.log.count("setpoints are back") == back


def test_deactivate_deactivates_the_node(node, configure):
    configure(setpoint_timeout=0.05, on_setpoint_loss="deactivate")
    publish_until_answered(node)
    level, message, _ = node.wait_for_diagnostics(lambda *s: s[2]["state"] == "inactive", "the node to deactivate")
    level, message, _ = node.next_diagnostics()
    assert level == 2 and message.startswith("setpoints lost, deactivated: no valid setpoint for 0.")
    node.wait(lambda: ended(node) and not any(node.feedforward[-1].effort), "the last command")
    assert node.state == "inactive" and set(statuses(node)) == {FRESH, STOPPING, HELD}
    assert node.transition("activate")
    assert not node.next_diagnostics()[1].startswith("setpoints lost")


def test_the_node_says_at_activation_what_it_watches(node, configure):
    """At first, with the parameters of the documentation, which are found in a namespace."""
    assert "watchdog: hold after 0.02 s without setpoints or the end of the last publisher" in node.process.log
    for values, line, warned in (
        ({}, "watchdog: off (setpoint_timeout 0, on_setpoint_loss none)", False),
        ({"setpoint_timeout": 0.3}, "watchdog: report after 0.3 s without setpoints or the end of", False),
        ({"on_setpoint_loss": "hold"}, "watchdog: hold after the end of the last publisher", True),
    ):
        node.transition("deactivate")
        begin = len(node.process.log)
        configure(**values)
        node.wait(lambda begin=begin, line=line: line in node.process.log[begin:], "the line")
        assert ("but setpoint_timeout is 0: a publisher that hangs" in node.process.log[begin:]) == warned


def test_the_last_publisher_that_goes_is_a_loss(node, configure):
    configure(on_setpoint_loss="hold")
    publish_until_answered(node)
    node.spin(0.3)
    assert set(statuses(node)) == {FRESH}
    node.node.destroy_publisher(node._setpoints)
    try:
        wait_for(node, STOPPING)
        assert "setpoints lost: the last publisher has gone" in node.process.log
    finally:
        node._setpoints = node.publisher(JointTrajectorySetpoint, "setpoint")


def test_suspect_setpoints_are_refused_or_reported_by_name(start):
    node = start(*ARGUMENTS, "-p", "safety:=strict", "-p", "setpoint_timeout:=0.0", "-p", "on_setpoint_loss:=none")
    begin = node.node.get_clock().now().nanoseconds

    def send(state, k):
        seconds, nanoseconds = divmod(begin + k * 1_000_000, 10**9)
        return node.publish(state, at=nanoseconds, seconds=seconds)

    still = STATE.copy()
    still[1:3] = 0.0
    node.answers_to(send(still, 1))
    node.answers_to(send(still, 2))
    away = still.copy()
    away[0, 2] += 1.0
    send(away, 3)
    send(still, 1)
    moving = still.copy()
    moving[1] = 0.01
    for k in range(4, 60):
        send(moving, k)
    node.wait(lambda: "is not the rate of position" in node.process.log, "the doubts")
    log = node.process.log
    assert "setpoint refused: in doubt: position of fer_joint3 jumps by 1 within 0.001 s" in log
    assert "setpoint refused: in doubt: stamp goes back by 0.001 s" in log
    assert "setpoint in doubt: velocity of fer_joint1 (and 6 more joints) is not the rate of position" in log
    values = node.next_diagnostics()[2]
    assert int(values["in doubt: jumps"]) >= 1 and int(values["in doubt: stamps"]) == 1
    assert int(values["in doubt: consistency"]) >= 1


def start_with_quality(start, policies):
    """A node that requests policies of the quality of service, and a publisher that offers them."""
    requested = "qos_overrides.{namespace}/setpoint.subscription"
    overrides = [word for key, value in policies.items() for word in ("-p", f"{requested}.{key}:={value}")]
    node = start(*ARGUMENTS, "-p", "on_setpoint_loss:=hold", *overrides, discovered=False)
    offered = {key: Duration(nanoseconds=value) for key, value in policies.items() if isinstance(value, int)}
    if "liveliness" in policies:
        offered["liveliness"] = LivelinessPolicy.MANUAL_BY_TOPIC
    node.node.destroy_publisher(node._setpoints)
    node._setpoints = node.node.create_publisher(JointTrajectorySetpoint, "setpoint", QoSProfile(depth=10, **offered))
    node.wait_for_node()
    return node


def assert_lost(node, cause, watched):
    wait_for(node, STOPPING)
    log = node.process.log
    assert f"setpoints lost: {cause}" in log
    assert f"watchdog: hold after {watched} of 0.3 s or the end of the last publisher" in log
    assert "setpoint_timeout is 0" not in log


def test_a_missed_deadline_is_a_loss_but_not_while_a_trajectory_is_played(start):
    """Then publishers of setpoints are silent, and miss every deadline."""
    node = start_with_quality(start, {"deadline": 300_000_000})
    publisher = node.publisher(SplineTrajectory, "spline_trajectory")
    still = STATE.copy()
    still[1:] = 0.0
    publish_until_answered(node, still)
    publisher.publish(spline_message(rest_to_rest(HOME, HOME + 0.1, 0.8), ARM.robot.joint_names))
    node.wait(lambda: "trajectory accepted" in node.process.log, "the trajectory")
    lost = node.next_diagnostics()[2].get("setpoints lost")  # before it, on a busy machine
    assert node.wait_for_diagnostics(lambda *s: s[2]["watchdog"] == "waiting", "the end of the trajectory")
    assert node.next_diagnostics()[2].get("setpoints lost") == lost
    publish_until_answered(node, np.vstack([still[:1] + 0.1, 0.1 * STATE[1:]]))
    assert_lost(node, "deadline of 0.3 s missed", "a missed deadline")


def test_lost_liveliness_is_a_loss(start):
    node = start_with_quality(start, {"liveliness": "manual_by_topic", "liveliness_lease_duration": 300_000_000})
    publish_until_answered(node)
    assert_lost(node, "no publisher is alive", "an expired lease")


START = 1_700_000_000 * 10**9


class Unspun:
    """A node of a robot file in the time of the test, and the commands that it has published."""

    def __init__(self, node):
        self.node, self.stream, self.now, self.sent = node, node._stream, START, kept_commands(node)
        supervision = self.stream.supervision
        supervision.clock.__init__(supervision.clock._read, lambda: self.now)
        supervision._publishers = lambda: 1
        self.run(0.1)

    @property
    def commands(self):
        return [message for message in self.sent if isinstance(message, FeedforwardCommand)]

    def run(self, seconds):
        for _ in range(round(seconds / 5e-3)):
            self.now += 5_000_000
            self.node.get_clock().set_ros_time_override(Time(nanoseconds=self.now))
            self.stream.supervision._observe()
            self.stream.player._tick()
            self.stream.stops._tick()

    def publish(self, state, names):
        """Send a setpoint; returns the reason of the last refusal."""
        fields = dict(zip(STATE_FIELDS, map(doubles, np.asarray(state, dtype=float)), strict=True))
        self.stream.answer_bytes(serialize_message(JointTrajectorySetpoint(joint_names=names, **fields)))
        return self.stream.statistics.last_refusal

    def describe(self, robot):
        """Send a robot to the node; returns why it was refused."""
        evaluator = SetpointEvaluator(eom.ElasticArm(robot))
        self.node.on_robot(LoadedRobot(None, evaluator, loop=SetpointLoop(evaluator)))
        return self.node.refused_robot


BEFORE, MOVING = ["shoulder", "elbow"], np.zeros((5, 2))
MOVING[1] = 0.2


@pytest.fixture
def described(tmp_path, ros):
    """A node with a moving arm, by its policy after a loss of setpoints, in the time of the test."""

    @contextmanager
    def moving(policy):
        path = tmp_path / "before.urdf"
        path.write_text(urdf_arm("before"))
        given = {"robot_file": str(path), "on_setpoint_loss": policy, "setpoint_timeout": "0.1", "stop_duration": "4.0"}
        with unspun_node("/replaced", **given, use_sim_time="true") as node:
            client = Unspun(node)
            for _ in range(3):
                assert client.publish(MOVING, BEFORE) == ""
            yield client

    return moving


def test_a_new_robot_is_refused_until_a_stop_has_ended(described):
    """Then the first setpoint near the held position is answered by the new robot."""
    robot = eom.load_robot(urdf_arm("after", mass=2.0))
    with described("hold") as client:
        assert client.describe(robot).endswith("the arm moves, the robot is used once it rests")
        client.run(0.5)
        assert client.commands[-1].status == STOPPING
        client.node.report(1.0)
        assert client.node.arm.robot.name == "before" and client.node.refused_robot
        client.run(4.5)
        end = stopped(eom.ElasticArm(eom.load_robot(urdf_arm("before"))), MOVING, 4.0).setpoint["q"]
        client.node.report(1.0)
        assert client.node.arm.robot.name == "after" and not client.node.refused_robot
        client.run(4.5)
        assert client.commands[-1].status == HELD and client.node.report(1.0).values["watchdog"] == "held"
        still = np.array([end, *np.zeros((4, 2))])
        assert "rad from where it is held" in client.publish(still + np.eye(5)[:, :1], BEFORE)
        client.publish(still, BEFORE)
        assert client.commands[-1].status == FRESH
        np.testing.assert_allclose(client.commands[-1].effort, client.node.arm.feedforward(*still).tau, rtol=1e-12)
        other = eom.load_robot(urdf_arm("other", ["a", "b", "c"]))
        reason = "it has other joints or motors than the arm that is commanded: deactivate the node first"
        assert client.describe(other).endswith(reason)


BY_CLOCK = ("-p", "use_sim_time:=true", "-r", "/clock:={namespace}/clock", "-p", "setpoint_timeout:=0.1")


def test_setpoints_are_lost_while_the_clock_stands_still(start):
    """By the steady clock: without /clock, with a negative time, and with one that stays."""
    node = start(*ARGUMENTS, *BY_CLOCK, "-p", "on_setpoint_loss:=hold")
    clock, time = node.publisher(Clock, "clock"), Clock()
    for reading in (None, -5, 5):

        def tick(reading=reading):
            if reading is not None:
                time.clock.sec = reading
                clock.publish(time)

        publish_until_answered(node)
        node.repeat(tick, lambda: STOPPING in statuses(node), "the stop")
        level, message, _ = node.wait_for_diagnostics(lambda *s: s[2]["watchdog"] == "held", "the end of the stop")
        assert level == 1 and "no valid setpoint" in message
        node.wait(lambda: "the node's clock stands still" in node.process.log, "the warning")
        assert node.transition("deactivate") and node.transition("activate")
    assert "a time of /clock is ignored: Seconds value must not be negative" in node.process.log
    assert "Traceback" not in node.process.log


def test_a_clock_that_stalls_amid_a_stream_and_one_that_begins_anew_are_followed_again(start):
    """The arm stops by the steady clock; targets of a new simulation are not old."""
    node = start(*ARGUMENTS, *BY_CLOCK, "-p", "on_setpoint_loss:=hold")
    clock, targets = node.publisher(Clock, "clock"), node.publisher(JointState, "target")
    now, state = 100.0, np.zeros((5, 7))
    state[0] = HOME

    def stamp():
        return Time(nanoseconds=round(now * 1e9)).to_msg()

    def tick():
        nonlocal now
        now += 0.01
        clock.publish(Clock(clock=stamp()))
        node.spin(0.01)

    def run_until(is_done, act=lambda: None):
        deadline = now + 60.0
        while not is_done() and now < deadline:
            tick()
            act()
        assert is_done(), node.process.log

    def stream(velocity, is_done):
        def publish():
            state[0] += 0.01 * velocity
            node.publish(state, at=stamp().nanosec, seconds=stamp().sec)

        state[1] = velocity
        run_until(is_done, publish)

    def is_answered():
        return bool(node.feedforward) and node.feedforward[-1].status == FRESH

    def is_near(q):
        return bool(np.abs(node.feedforward[-1].motor_position - q).max() < 5e-3)

    def aim(offset):
        message = JointState(name=ARM.robot.joint_names, position=(state[0] + offset).tolist())
        message.header.stamp = stamp()
        targets.publish(message)

    begin = len(node.feedforward)
    stream(0.3, lambda: len(node.feedforward) > begin + 30)
    node.wait(lambda: node.feedforward[-1].status == HELD, "the end of the stop")
    assert STOPPING in [m.status for m in node.feedforward]
    node.wait(lambda: "the node's clock stands still" in node.process.log, "a report")
    state[0] = node.feedforward[-1].motor_position
    for reading in (now, 0.0):
        now = reading
        node.feedforward.clear()
        stream(0.0, is_answered)
        aim(0.02)
        run_until(lambda: node.values.get("target") == "reached" and is_near(state[0] + 0.02))
        assert "targets refused" not in node.values
        state[0] += 0.02
    assert node.values["clock resets"] == "1"
    assert "clock: it went back, and is followed from there on" in node.process.log
