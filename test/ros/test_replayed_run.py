# SPDX-License-Identifier: Apache-2.0
"""A run of the node, recorded, and replayed to the last bit: refusals, a payload, a loss, a stop, and the return."""

import time

import numpy as np
from bag_files import COMMAND, JOINT_STATE, SETPOINT, read_bag, write_bag
from eom_dynamics.msg import FeedforwardCommand, Payload
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from tool_messages import payload_message

import eom_dynamics as eom
from eom_dynamics.control.fields import COMMAND_FIELDS, MEASURED_FIELDS
from eom_dynamics.tools.options import CommandOptions
from eom_dynamics.tools.replay.bag import Job, replay_bag

HELD, STOPPING = 1, 2
SETTINGS = {"stop_duration": 0.15, "start_tolerance": 10.0}


class Recording:
    """Messages of the topics of a node with the times of sending or receiving, ns."""

    def __init__(self, node):
        self.node, self.topics = node, {name: [] for name in ("setpoint", "payload", "feedforward", "motor_setpoint")}
        self.payloads = node.publisher(Payload, "payload")
        for name, kind in (("feedforward", FeedforwardCommand), ("motor_setpoint", JointState)):
            node._subscribe(kind, name, lambda message, name=name: self._take(name, message))
        node.wait_for_node()
        publish = node._setpoints.publish
        node._setpoints.publish = lambda message: (self._take("setpoint", message), publish(message))

    def _take(self, name, message):
        self.topics[name].append((time.time_ns(), message))

    def carry(self, payload, blend_time):
        message = payload_message(payload, blend_time)
        self._take("payload", message)
        self.payloads.publish(message)
        text = f"{payload.mass:g} kg"
        self.node.wait_for_diagnostics(lambda *status: text in status[2].get("payload", ""), "the payload")

    def statuses(self):
        return [message.status for _, message in self.topics["feedforward"]]

    def write(self, path):
        kinds = (SETPOINT, "eom_dynamics/msg/Payload", COMMAND, JOINT_STATE)
        topics = {
            f"/{name}": (kind, [(at, serialize_message(message)) for at, message in messages])
            for (name, messages), kind in zip(self.topics.items(), kinds, strict=True)
        }
        return write_bag(path, topics)


def states(start, end):
    for t in np.arange(start, end) * 2e-3:
        yield np.array([3.0**k * np.sin(3.0 * t + np.arange(2) + k * np.pi / 2) for k in range(5)]) * 0.2


def by_stamp(messages):
    return {message.header.stamp.sec * 10**9 + message.header.stamp.nanosec: message for _, message in messages}


def test_all_commands_of_a_run_are_replayed_to_the_last_bit(start, tmp_path):
    robot = "sea_planar_2r"
    arguments = {"robot_file": robot, "on_setpoint_loss": "hold", "setpoint_timeout": 1.0, **SETTINGS}
    arguments |= {"limits": "warn"}
    node = start(*(word for name, value in arguments.items() for word in ("-p", f"{name}:={value}")))
    node.frame = "base"
    run = Recording(node)

    refused = 0

    def refuse(state, k):
        nonlocal refused
        refused += 1
        # Readable messages run cycles, also during a stop: after a stall at times that are not recorded.
        state[3:] = np.nan if k % 2 or refused > 30 else 1.7e308
        node.publish(state, at=500_000 * k + 1)
        node.spin(2e-3)

    def stream(first, last):
        # The change of a payload is at most 20 ms of stamps ahead of the clock since its start, at any setpoint: a
        # delayed node would process the next setpoints of a queue at times that no bag has.
        for k, state in enumerate(states(first, last), first):
            if k % 50 in (20, 21):
                refuse(state, k)
                continue
            node.publish(state, at=500_000 * k + 1)
            node.answers_to(500_000 * k + 1)

    tool = eom.load_robot(robot).tools[0].name
    run.carry(eom.Payload(0.2, [0.05, 0.0, 0.0], tool=tool), 0.1)
    stream(0, 120)
    node.answers_to(500_000 * 119 + 1)
    run.carry(eom.Payload(0.4, [0.0, 0.02, 0.0], tool=tool), 0.1)
    stream(120, 200)
    # Setpoints that are refused are held at first, and do not keep the loss away.
    while not (run.statuses().count(STOPPING) > 5 and run.statuses()[-5:] == [HELD] * 5):
        refuse(np.zeros((5, 2)), 200 + refused)
    stream(1500, 1560)
    node.answers_to(500_000 * 1559 + 1)  # the stop before has ended in the same way
    node.wait(lambda: run.statuses()[-5:] == [HELD] * 5, "the end of the second stop")
    node.process.stop(9)
    node.spin(0.2)
    # By the level of safety that the node had.
    options = CommandOptions(safety="permissive", parameters=tuple(SETTINGS.items()))
    report = replay_bag(Job(run.write(tmp_path / "run"), tmp_path / "out", robot, options=options))
    found = read_bag(tmp_path / "out")
    assert report.refusals.total == refused
    for name, fields in (("feedforward", (*COMMAND_FIELDS, "status")), ("motor_setpoint", MEASURED_FIELDS)):
        recorded, replayed = by_stamp(run.topics[name]), by_stamp(found[f"/{name}"])
        # The node may be killed between two topics.
        assert recorded.keys() <= replayed.keys() and len(replayed) <= len(recorded) + 1
        for stamp, message in recorded.items():
            for field in fields:
                np.testing.assert_array_equal(getattr(replayed[stamp], field), getattr(message, field), err_msg=field)
