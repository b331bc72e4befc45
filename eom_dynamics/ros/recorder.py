# SPDX-License-Identifier: Apache-2.0
"""Record the topics of the nodes as an MCAP file, as they arrive; ``eom_dynamics record`` runs it.

    python -m eom_dynamics.ros.recorder FILE.mcap [--duration S] [--size MB] [--ros-args -r __ns:=/left]

It ends at a limit, or with SIGINT or SIGTERM, and completes the file. One that is killed outright leaves a file without
an index, whose chunks can be read. Exit code 0; 1 if nothing was recorded or the file cannot be written; 2 for wrong
use.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import IO

import rclpy
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from rclpy.utilities import remove_ros_args, try_shutdown

from ..bags import StreamWriter
from ..terminal import prepare_streams
from .executors import make_executor
from .stopping import StopSignals

TOPICS = {
    "setpoint": "eom_dynamics/msg/JointTrajectorySetpoint",
    "payload": "eom_dynamics/msg/Payload",
    "task_setpoint": "eom_dynamics/msg/TaskSetpoint",
    "joint_trajectory": "trajectory_msgs/msg/JointTrajectory",
    "feedforward": "eom_dynamics/msg/FeedforwardCommand",
    "motor_setpoint": "sensor_msgs/msg/JointState",
    "effort_command": "std_msgs/msg/Float64MultiArray",
    "joint_states": "sensor_msgs/msg/JointState",
    "motor_states": "sensor_msgs/msg/JointState",
    "/diagnostics": "diagnostic_msgs/msg/DiagnosticArray",
}
"""Topics with their types, relative to the namespace."""

DESCRIPTION = "robot_description", "std_msgs/msg/String"

# Messages that await the writer: a busy machine may stall for a second.
_DEPTH = 4000
_PERIOD = 0.1


class Recorder(Node):
    """Node that writes the bytes of messages.

    Attributes:
        count, size: messages and bytes so far.
    """

    def __init__(self, writer: StreamWriter) -> None:
        """Subscribe to all topics, whatever the reliability of their publishers."""
        super().__init__("recorder")
        self.count = self.size = 0
        self._writer = writer
        live = QoSProfile(depth=_DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT)
        kept = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        for topic, kind in (*TOPICS.items(), DESCRIPTION):
            self._record(topic, kind, kept if topic == DESCRIPTION[0] else live)

    def _record(self, topic: str, kind: str, qos: QoSProfile) -> None:
        channel = self._writer.channel(self.resolve_topic_name(topic), kind)

        def write(data: bytes) -> None:
            self._writer.write(channel, time.time_ns(), data)
            self.count += 1
            self.size += len(data)

        package, _, name = kind.split("/")
        message_type = getattr(import_module(f"{package}.msg"), name)
        self.create_subscription(message_type, topic, write, qos, raw=True)


def main(arguments: list[str] | None = None) -> int:
    """Record until a limit or a signal; returns the exit code."""
    prepare_streams()
    every = sys.argv if arguments is None else arguments
    parser = argparse.ArgumentParser(prog="recorder")
    parser.add_argument("path", type=Path)
    parser.add_argument("--duration", type=float, default=float("inf"))
    parser.add_argument("--size", type=float, default=float("inf"))
    options = parser.parse_args(remove_ros_args(every)[1:])
    stop = StopSignals()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        options.path.parent.mkdir(parents=True, exist_ok=True)
        with options.path.open("xb") as file:
            recorder = _record(file, options, every, stop)
    except OSError as error:
        print(f"eom_dynamics record: {options.path}: cannot be written: {error.strerror or error}", file=sys.stderr)
        return 1
    print(f"{recorder.count:,} messages, {1e-6 * recorder.size:.1f} MB: {options.path}")
    if recorder.count:
        return 0
    print("eom_dynamics record: no message came; are the nodes in this namespace and ROS_DOMAIN_ID?", file=sys.stderr)
    return 1


def _record(file: IO[bytes], options: argparse.Namespace, arguments: list[str], stop: StopSignals) -> Recorder:
    writer = StreamWriter(file)
    rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
    recorder = Recorder(writer)
    executor = make_executor(events=True)
    executor.add_node(recorder)
    begin = shown = time.monotonic()
    print("recording; end it with Ctrl-C", file=sys.stderr, flush=True)
    try:
        while not stop.came and time.monotonic() < begin + options.duration and recorder.size < 1e6 * options.size:
            executor.spin_until_future_complete(Future(), timeout_sec=_PERIOD)
            file.flush()  # complete chunks, which may be smaller than the buffer of the file: 128 KiB from Python 3.14
            if sys.stderr.isatty() and time.monotonic() > shown + 1:
                shown = time.monotonic()
                took = f"{shown - begin:.0f} s, {recorder.count:,} messages, {1e-6 * recorder.size:.1f} MB"
                print(f"\r{took}", end="", file=sys.stderr, flush=True)
    finally:
        executor.remove_node(recorder)
        recorder.destroy_node()
        try_shutdown()
        writer.close()
    return recorder


if __name__ == "__main__":
    sys.exit(main())
