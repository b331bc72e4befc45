# SPDX-License-Identifier: Apache-2.0
"""A refused setpoint changes nothing: what is sent later has the bits of a stream that never had it.

One whose command cannot be published has been followed nevertheless. For refusals by the control loop, the engines of
test_engines.py agree.
"""

import re
from array import array
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from eom_dynamics.msg import JointTrajectorySetpoint
from rclpy.serialization import serialize_message
from rclpy.time import Time
from setpoint_engines import Publisher, unspun_node
from springs import with_springs

import eom_dynamics as eom
from eom_dynamics.actuators.springs import DampedSpring
from eom_dynamics.control.fields import STATE_FIELDS, doubles
from eom_dynamics.robot.model import Limits
from eom_dynamics.robot.writers.parameters import robot_as_yaml

START, MS = 1_700_000_000 * 10**9, 10**6
LIMITS = Limits(upper=0.85, velocity=3.0, acceleration=20.0, jerk=1000.0, effort=500.0)
ROBOT = with_springs(eom.load_robot("iiwa"), DampedSpring(2e4, 400.0), limits=LIMITS)
PAYLOAD = eom.Payload(10.0, [0.02, 0.0, 0.1], [0.02, 0.001, 0.002, 0.03, 0.001, 0.04])
Q = np.array([0.1, 0.5, 0.2, -1.2, 0.3, 0.8, 0.1])
PARAMETERS = {**{"setpoint_timeout": 0.5, "on_setpoint_loss": "hold"}, **{"limits": "refuse", "use_sim_time": "true"}}


def motion(k):
    """A smooth motion (5, n), 1 kHz."""
    w = 3.0
    return np.outer([np.sin(w * k * 1e-3 + j * np.pi / 2) * w**j for j in range(5)], 0.05 * np.ones(7)) + np.outer(
        np.eye(5)[0], Q
    )


def setpoint(k, *, by=0, **changes):
    """Setpoint of the motion at `k` ms, with its stamp later by `by` ms, and changed fields."""
    message = JointTrajectorySetpoint()
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(START + (k + by) * MS, 10**9)
    for field, values in (dict(zip(STATE_FIELDS, motion(k), strict=True)) | changes).items():
        numbers = isinstance(values, np.ndarray)
        setattr(message, field, doubles(np.ascontiguousarray(values)) if numbers else values)
    return message


class Recorder(Publisher):
    """Keeps the numbers and texts of messages, or fails."""

    fails = False

    def publish(self, message):
        if self.fails:
            raise RuntimeError("publisher is gone")
        super().publish(message)
        message = self.sent.pop()
        values = [getattr(message, name) for name in message.get_fields_and_field_types()]
        self.sent.append([x.tobytes() if isinstance(x, array) else str(x) for x in values])


class Scene:
    """A stream at 1 kHz with a payload that changes, dampers, a watchdog and all checks, from the start on."""

    def __init__(self, node, path):
        self.node, self.stream, self.path, self.k = node, node._stream, path, 0
        self.sent = []
        stream, commands = self.stream, self.stream._commands
        self.publishers = [Recorder(type(message), self.sent) for message in commands._messages]
        commands._publishers = self.publishers
        commands.count_listeners()
        stream.end()
        self.set_time(0)
        stream._lifespan = 0
        stream.take(stream.loop.renewed())
        if path == "field by field":
            stream._shapes.learn = lambda *_: None
        else:
            vars(stream._shapes).pop("learn", None)

    def set_time(self, k):
        self.node.get_clock().set_ros_time_override(Time(nanoseconds=START + k * MS + 300_000))

    @property
    def answered(self):
        return self.stream.statistics.published

    def say(self, message):
        self.stream.answer_bytes(message if isinstance(message, bytes) else serialize_message(message))

    def go_on(self, count):
        """Answer as many setpoints of the stream."""
        for _ in range(count):
            before = self.answered
            self.set_time(self.k)
            self.say(setpoint(self.k))
            assert self.answered == before + 1, (self.k, self.stream.statistics.last_refusal)
            self.k += 1

    def play(self, refuse, reason, later=None):
        """What is sent after a refusal; without it, with the setpoints from ``later`` on."""
        self.go_on(5)
        self.stream.loop.carry(PAYLOAD, 1.0)
        self.go_on(20)
        assert (not self.stream._shapes.calls) == (self.path == "field by field")
        self.set_time(self.k)
        if later is None:
            before, refused = self.answered, self.refused
            refuse(self)
            assert self.answered == before and self.refused > refused
            assert re.search(reason, self.stream.statistics.last_refusal)
        elif reason == GONE:  # the loop has followed it
            self.go_on(1)
            self.set_time(self.k)
        later, sent = self.k, self.sent
        sent.clear()
        invalid = partial(setpoint, jerk=np.full(7, np.nan))
        self.say(invalid(self.k))
        self.go_on(20)
        self.say(invalid(self.k))
        self.stream.supervision._lose("nothing comes")
        for _ in range(20):
            self.set_time(self.k)
            self.stream.stops._tick()
            self.k += 1
        assert len(sent) == 3 * (20 + 21)
        return sent, later

    @property
    def refused(self):
        return self.stream.statistics.refused + self.stream.statistics.expired


def bad(**changes):
    return lambda scene: scene.say(setpoint(scene.k, **changes))


def too_old(scene):
    scene.stream._lifespan = 500 * MS
    bad(by=-10_000)(scene)
    scene.stream._lifespan = 0


def failing(which):
    """Refuse a setpoint that the loop has followed, although it was not published."""

    def fail(scene):
        scene.publishers[which].fails = True
        scene.say(setpoint(scene.k))
        scene.publishers[which].fails = False
        scene.k += 1
        scene.set_time(scene.k)

    return fail


HEADER = np.array([0x100, START // 10**9 - 10, 0], dtype="<i4").tobytes()
GONE = "publisher is gone"
REFUSALS = {
    "28 bytes": (lambda scene: scene.say(HEADER + bytes([255] * 16)), "cannot be read"),
    "no bytes": (lambda scene: scene.say(b""), "cannot be read"),
    "of another length": (bad(by=50, velocity=np.zeros(6)), "velocity has 6 entries"),
    "too old": (too_old, ""),
    "not published at all": (failing(0), GONE),
    "published except the last": (failing(2), GONE),
}
PATHS = ("compiled", "field by field")


@pytest.fixture(scope="module")
def node(ros, tmp_path_factory):
    """An active node without a spinning executor, with the compiled calls of its robot."""
    path = tmp_path_factory.mktemp("robot") / "arm.yaml"
    path.write_text(robot_as_yaml(ROBOT).text, encoding="utf-8")
    with unspun_node("/refused", robot_file=path, **PARAMETERS) as node:
        node._stream.loop.loop.table.prepare_payload()
        yield node


WITHOUT_REFUSAL = {}  # what is sent without a refusal, which differs by the way of the stream and by its times alone


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_refused_setpoint_changes_nothing(node, refusal, path):
    sent, later = Scene(node, path).play(*REFUSALS[refusal])
    if (path, later) not in WITHOUT_REFUSAL:
        WITHOUT_REFUSAL[path, later] = Scene(node, path).play(*REFUSALS[refusal], later)[0]
    assert sent == WITHOUT_REFUSAL[path, later]


def test_another_period_than_the_command_period_is_said(tmp_path, capfd):
    """Once a second, by stamps; not while too few have come, and not of a robot without a command period."""
    path = tmp_path / "arm.yaml"
    path.write_text(robot_as_yaml(replace(ROBOT, command_period=1e-3)).text, encoding="utf-8")
    line = "timing: commands come every 4 ms, but command_period of the robot is 1 ms: set it, or send at its rate"
    with unspun_node("/timed", robot_file=path, **PARAMETERS) as node:
        for count, period, said in ((20, 4_000_000, False), (60, 1_000_000, False), (60, 4_000_000, True)):
            for k in range(count):
                node._stream.loop.remember(START + k * period)
            node._stream.report(1.0)
            assert (line in capfd.readouterr().err) == said, (count, period)
