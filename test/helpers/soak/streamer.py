# SPDX-License-Identifier: Apache-2.0
"""Stream setpoints alternately to a node and to an echo node; recompute every answer.

    python streamer.py RESULT.npz --rate 1000 --seconds 600 --node /arm --process 1234 --echo /echo

After every window of setpoints to the node comes one of a quarter of its length to the echo node, so that both are
measured by one process on one machine in one state. Answers are compared with the library, bit by bit, between windows.
RESULT.npz has the round trips of both, s, NaN without an answer, counts, and the time that the streamer lost on a busy
machine. Each window prints a line of JSON.
"""

import argparse
import gc
import json
import math
import os
import signal
import time

import numpy as np
import rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.control.fields import COMMAND_FIELDS, STATE_FIELDS, doubles
from eom_dynamics.ros.executors import make_executor, spin_until
from eom_dynamics.ros.interfaces import FeedforwardCommand, JointTrajectorySetpoint
from eom_dynamics.trajectory import paper_motion

# Longest window, s, and length of one to the echo node, as a fraction of it.
WINDOW, ECHO = 8.0, 0.25

# Wait for discovery and for the last answers of a window, s.
PATIENCE, GRACE = 60.0, 2.0

# A streamer that the machine has held up for longer goes on from there, as a timer does: overdue setpoints are a burst
# that fills the queues of node and streamer, s.
HELD_UP = 0.1

QUEUE = 1000
QUALITY = QoSProfile(depth=QUEUE)

# How often the queue of the node is filled before the stream: the third time takes a tenth of the memory of the first.
FILLS = 3


class Side:
    """Topics of a node, and the answers in a window."""

    def __init__(self, node, namespace):
        self.publisher = node.create_publisher(JointTrajectorySetpoint, f"{namespace}/setpoint", QUALITY)
        node.create_subscription(FeedforwardCommand, f"{namespace}/feedforward", self._on_answer, QUALITY)
        self.answers, self.stamps, self.round_trips = [], {}, []
        self.sent = self.received = self.out_of_order = self.repeated = 0

    def _on_answer(self, answer):
        self.answers.append((time.monotonic(), answer))

    def by_setpoint(self, sent_times):
        """Answers of the window by the number of their setpoints; adds their round trips to those of the run."""
        found, last = {}, -1
        trips = np.full(len(sent_times), np.nan)
        for received, answer in self.answers:
            number = self.stamps.get((answer.header.stamp.sec, answer.header.stamp.nanosec))
            if number is None or answer.held:
                continue
            self.repeated += number in found
            self.out_of_order += number < last
            last = max(last, number)
            if number not in found:
                found[number] = answer
                trips[number] = received - sent_times[number]
        self.answers.clear()
        self.round_trips.append(trips)
        self.sent += len(trips)
        self.received += len(found)
        return found


class Streamer(Node):
    """Node that streams windows of setpoints to one side at a time."""

    def __init__(self, robot):
        super().__init__("streamer")
        self.arm = ElasticArm(robot)
        self._motion = paper_motion(robot.n)
        self._first = self._motion.derivatives(0.0)
        self.message = JointTrajectorySetpoint(joint_names=list(robot.joint_names))
        self._executor = make_executor()
        self._executor.add_node(self)
        # Numbers that differ from those of the library, and the largest difference relative to the largest number.
        self.numbers = self.different = 0
        self.deviation = 0.0
        # Time by which the machine has put setpoints off, s.
        self.held_up = 0.0

    def connect(self, side):
        deadline = time.monotonic() + PATIENCE
        while not side.answers:
            if time.monotonic() > deadline:
                raise SystemExit(f"no answer on {side.publisher.topic_name} within {PATIENCE:g} s")
            self.send(side, self._first, (0, 0))
            self.take_answers_until(time.monotonic() + 0.05)
        self.take_answers_until(time.monotonic() + 0.5)
        side.answers.clear()

    def fill(self, side, process):
        """Have the queue of a node full before it is measured: the middleware keeps that memory, 1 MB."""
        for _ in range(FILLS):
            os.kill(process, signal.SIGSTOP)
            try:
                for _ in range(QUEUE):
                    self.send(side, self._first, (0, 0))
            finally:
                os.kill(process, signal.SIGCONT)
            self.take_answers_until(time.monotonic() + GRACE)
        side.answers.clear()

    def window(self, side, begin, count, rate):
        """Stream setpoints of the motion from a time on; returns states and answers."""
        states = self._motion.derivatives(begin + np.arange(count) / rate)
        first = time.time_ns()
        stamps = [divmod(first + round(k * 1e9 / rate), 10**9) for k in range(count)]
        side.stamps = {stamp: k for k, stamp in enumerate(stamps)}
        sent = np.empty(count)
        gc.disable()
        for k in self.paced(count, rate):
            sent[k] = time.monotonic()
            self.send(side, [x[k] for x in states], stamps[k])
        deadline = time.monotonic() + GRACE
        while len(side.answers) < count and time.monotonic() < deadline:
            self.take_answers_until(time.monotonic() + 0.02)
        gc.enable()
        return states, side.by_setpoint(sent)

    def paced(self, count, rate):
        """Numbers of setpoints, each at its time; takes answers until then."""
        start = time.monotonic()
        for k in range(count):
            due = start + k / rate
            self.take_answers_until(due)
            late = time.monotonic() - due
            if late > HELD_UP:
                start += late
                self.held_up += late
            yield k

    def check(self, states, found):
        rows = sorted(found)
        wanted = self.arm.feedforward(*(x[rows] for x in states))
        for field, values in zip(COMMAND_FIELDS, wanted, strict=True):
            answered = np.array([getattr(found[k], field) for k in rows]).reshape(values.shape)
            self.numbers += values.size
            self.different += int(np.count_nonzero(answered.view(np.int64) != values.view(np.int64)))
            if values.size:
                scale = max(float(np.abs(values).max()), np.finfo(float).tiny)
                self.deviation = max(self.deviation, float(np.abs(answered - values).max()) / scale)

    def send(self, side, state, stamp):
        message = self.message
        message.header.stamp.sec, message.header.stamp.nanosec = stamp
        for field, values in zip(STATE_FIELDS, state, strict=True):
            setattr(message, field, doubles(np.ascontiguousarray(values)))
        side.publisher.publish(message)

    def take_answers_until(self, deadline):
        spin_until(self._executor, deadline)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("result")
    parser.add_argument("--robot", default="iiwa")
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--node", required=True)
    parser.add_argument("--echo", required=True)
    parser.add_argument("--process", type=int, required=True, metavar="PID", help="process of the node")
    options, ros_arguments = parser.parse_known_args()
    rclpy.init(args=ros_arguments)
    streamer = Streamer(load_robot(options.robot))
    node, echo = Side(streamer, options.node), Side(streamer, options.echo)
    for side in (node, echo):
        streamer.connect(side)
    streamer.fill(node, options.process)
    windows = math.ceil(options.seconds / WINDOW)
    count = round(options.seconds / windows * options.rate)
    for window in range(windows):
        begin = window * count / options.rate
        streamer.check(*streamer.window(node, begin, count, options.rate))
        streamer.window(echo, begin, round(ECHO * count), options.rate)
        print(json.dumps({"sent": node.sent, "received": node.received}), flush=True)
    np.savez(
        options.result,
        round_trip=np.concatenate(node.round_trips),
        echo=np.concatenate(echo.round_trips),
        **{name: getattr(node, name) for name in ("sent", "received", "out_of_order", "repeated")},
        **{name: getattr(streamer, name) for name in ("numbers", "different", "deviation", "held_up")},
    )
    os._exit(0)


if __name__ == "__main__":
    main()
