# SPDX-License-Identifier: Apache-2.0
"""Stream setpoints from a file to the node at a fixed rate, and record its answers with time stamps.

    python -m eom_dynamics.ros.player SETPOINTS.npz ANSWERS.npz --rate 1000

SETPOINTS.npz holds, for N setpoints of a robot with n joints, in SI units:

==============================================  ======  =====================================================
joint_names                                     (n,)    order of the columns; default: the robot's own
q, qd, qdd, qddd, qdddd                         (N, n)  joint variables and their time derivatives
wrench, wrench_rate, wrench_acceleration        (N, 6)  tool wrench, moment first; default: none; (N, 6 k) for
                                                        k tools
stiffness, stiffness_rate,                      (N, n)  commanded stiffness; default: nominal
stiffness_acceleration
==============================================  ======  =====================================================

ANSWERS.npz is written at the end. Row i belongs to setpoint i; it is NaN if there was no answer, or one that holds
the last command because the setpoint was refused:

==============================================  ======  =====================================================
joint_names, motor_names                        (n,)    order of the columns; (m,) for those of motors
stamp                                           (N,)    header stamps of the setpoints, integer ns
sent, received                                  (N,)    times on one monotonic clock, s
round_trip                                      (N,)    received - sent, s
effort … effort_acceleration                    (N, n)  joint arrays of FeedforwardCommand
motor_position … motor_effort                   (N, m)  motor arrays of FeedforwardCommand
backend                                         ()      backend of the node; empty if unknown
sent_count, received_count, lost_count          ()      setpoints sent, answered, not answered
out_of_order_count                              ()      answers received after that of a later setpoint
==============================================  ======  =====================================================

Ten times a second it prints a line of JSON, ``{"sent": 1200, "received": 1199}``, and at the end one with all four
counts. Exit code 0; 1 if the node is missing or does not answer; 2 for wrong use.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.utilities import remove_ros_args, try_shutdown

from ..messages.fields import COMMAND_FIELDS, MOTOR_FIELDS
from ..terminal import prepare_streams, printable
from ..tools.writing import FolderError, check_file
from .dynamics.realtime import HIGHEST, SchedulingError, stream_in_real_time
from .dynamics.statistics import STATUS_NAME
from .executors import make_executor, spin_until
from .interfaces import FeedforwardCommand, JointTrajectorySetpoint
from .setpoint_file import PlayerError, Setpoints, read_setpoints

QOS = QoSProfile(depth=1000)
"""Of all topics of a player."""

ReportCounts: TypeAlias = Callable[[dict[str, int]], None]
"""Called with the numbers of setpoints sent and received so far."""

_PROGRESS_PERIOD = 0.1
_PROBE_PERIOD = 0.05


class Playing(Node):
    """A node that sends setpoints on ``setpoint``; a subclass subscribes to what it records."""

    def __init__(self, name: str, setpoints: Setpoints, report: ReportCounts) -> None:
        """Create the publisher; ``report`` is called periodically with the counts."""
        super().__init__(name)
        self._setpoints, self._report = setpoints, report
        self._message = JointTrajectorySetpoint(joint_names=setpoints.joint_names)
        self._publisher = self.create_publisher(JointTrajectorySetpoint, "setpoint", QOS)
        self._executor = make_executor(events=True)
        self._executor.add_node(self)

    def run(self, options: argparse.Namespace) -> dict[str, Any]:
        """Play all setpoints; returns the arrays of the recording.

        Raises:
            PlayerError: setpoints are not answered.
        """
        raise NotImplementedError

    def counts(self) -> dict[str, int]:
        """Numbers of setpoints by outcome, after playing: all sent and received."""
        return {"sent": self._setpoints.count, "received": self._setpoints.count}

    def close(self) -> None:
        """Destroy the node before shutdown, so that other nodes notice at once."""
        self._executor.remove_node(self)
        self.destroy_node()
        self._executor.shutdown()

    def _send(self, index: int, stamp: int) -> None:
        self._setpoints.fill(self._message, index, stamp)
        self._publisher.publish(self._message)


class Player(Playing):
    """Node that sends setpoints and records the answers on ``feedforward``.

    It has one thread, which receives answers while it waits for the time of the next setpoint.
    """

    def __init__(self, setpoints: Setpoints, report: ReportCounts) -> None:
        """Create publisher and subscriptions; ``report`` is called periodically with the counts."""
        super().__init__("setpoint_player", setpoints, report)
        self._subscription = self.create_subscription(FeedforwardCommand, "feedforward", self._on_answer, QOS)
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        self._index_of_stamp: dict[int, int] = {}
        self._answers: dict[int, Any] = {}
        self._newest_answered_probe = 0
        self._last_index = -1
        self._received_times = np.full(setpoints.count, np.nan)
        self._sent_times = np.full(setpoints.count, np.nan)
        self._stamps = np.zeros(setpoints.count, dtype=np.int64)
        self._out_of_order = 0
        self._backend = ""

    def run(self, options: argparse.Namespace) -> dict[str, Any]:
        """Play all setpoints; returns the content of the answers file."""
        self.wait_for_answers(options.timeout)
        stream_in_real_time(options.realtime_priority)
        gc.disable()  # a collection would lengthen measured round trips
        self.play(options.rate, options.grace)
        return self.record()

    def wait_for_answers(self, timeout: float) -> None:
        """Send the first setpoint repeatedly until it is answered, so that both topics are connected.

        Raises:
            PlayerError: there was no answer in time; the message says what is missing.
        """
        deadline = time.monotonic() + timeout
        probes = 0
        while not self._newest_answered_probe:
            if time.monotonic() > deadline:
                raise PlayerError(f"after {timeout:g} s {self._missing()}")
            if self._publisher.get_subscription_count():
                probes += 1
                self._send(0, -probes)
            spin_until(self._executor, time.monotonic() + _PROBE_PERIOD)
        # Keep late answers to probes out of the measurement; the first ones may have come before the node listened.
        while self._newest_answered_probe < probes and time.monotonic() < deadline:
            spin_until(self._executor, time.monotonic() + _PROBE_PERIOD)

    def play(self, rate: float, grace: float) -> None:
        """Send each setpoint at its time, then wait ``grace``, s, for the last answers and a diagnostic status."""
        count = self._setpoints.count
        first_stamp = self.get_clock().now().nanoseconds
        self._stamps = first_stamp + np.round(np.arange(count) * (1e9 / rate)).astype(np.int64)
        self._index_of_stamp = {int(stamp): i for i, stamp in enumerate(self._stamps)}
        start = time.monotonic()
        next_progress = start + _PROGRESS_PERIOD
        for i in range(count):
            self._sent_times[i] = time.monotonic()
            self._send(i, int(self._stamps[i]))
            if self._sent_times[i] >= next_progress:
                self._report({"sent": i + 1, "received": len(self._answers)})
                next_progress += _PROGRESS_PERIOD
            spin_until(self._executor, start + (i + 1) / rate)
        deadline = time.monotonic() + grace
        # Diagnostics arrive once a second; a short run ends before the first of them.
        while (len(self._answers) < count or not self._backend) and time.monotonic() < deadline:
            spin_until(self._executor, min(deadline, time.monotonic() + _PROGRESS_PERIOD))
            self._report({"sent": count, "received": len(self._answers)})

    def record(self) -> dict[str, Any]:
        """Return the content of the answers file; see the module docstring."""
        count, n = self._setpoints.rows["position"].shape
        joint_names, motor_names = self._setpoints.joint_names, self._setpoints.joint_names
        if self._answers:
            answer = next(iter(self._answers.values()))
            joint_names, motor_names = answer.joint_names, answer.motor_names
        m = len(motor_names) or n
        record: dict[str, Any] = {
            field: np.full((count, m if field in MOTOR_FIELDS else n), np.nan) for field in COMMAND_FIELDS
        }
        for i, answer in self._answers.items():
            for field in COMMAND_FIELDS:
                record[field][i] = getattr(answer, field)
        return {
            **record,
            "joint_names": np.array(joint_names, dtype=str),
            "motor_names": np.array(motor_names, dtype=str),
            "stamp": self._stamps,
            "sent": self._sent_times,
            "received": self._received_times,
            "round_trip": self._received_times - self._sent_times,
            "backend": self._backend,
            **{f"{name}_count": value for name, value in self.counts().items()},
        }

    def counts(self) -> dict[str, int]:
        """Count setpoints sent, answered (received) and not answered (lost), and out-of-order answers."""
        sent, received = self._setpoints.count, len(self._answers)
        return {"sent": sent, "received": received, "lost": sent - received, "out_of_order": self._out_of_order}

    def _on_answer(self, answer: Any) -> None:
        now = time.monotonic()
        stamp = answer.header.stamp.sec * 1_000_000_000 + answer.header.stamp.nanosec
        index = self._index_of_stamp.get(stamp)
        if index is None:
            self._newest_answered_probe = max(self._newest_answered_probe, -stamp)
            return
        if answer.held or index in self._answers:  # held: the setpoint was refused
            return
        self._answers[index] = answer
        self._received_times[index] = now
        self._out_of_order += index < self._last_index
        self._last_index = max(index, self._last_index)

    def _on_diagnostics(self, message: Any) -> None:
        for status in message.status:
            if status.name.endswith(f": {STATUS_NAME}"):
                self._backend = next((pair.value for pair in status.values if pair.key == "backend"), "")

    def _missing(self) -> str:
        topic = self.resolve_topic_name("setpoint")
        if not self._publisher.get_subscription_count():
            return f"no node subscribes to {topic}: is it running, in the same domain and namespace?"
        if not self._subscription.get_publisher_count():
            return f"no node publishes {self.resolve_topic_name('feedforward')}: is it remapped?"
        return f"no answer to setpoints on {topic}: is the node active, with the robot of the file? See its log"


def run_player(
    parser: argparse.ArgumentParser,
    arguments: list[str] | None,
    make: Callable[[Setpoints, ReportCounts, argparse.Namespace], Playing],
) -> int:
    """Play one file and write the recording, with counts as lines of JSON on stdout.

    Args:
        parser: of the arguments; its ``setpoints`` and ``recording`` are paths of .npz files to read and to write.
        arguments: of the process; None for ``sys.argv``.

    Returns:
        Exit code: 0; 1 if the setpoints are not answered, or the recording cannot be written; 2 for wrong use, such as
        a recording that exists, without ``--force``; 130 after Ctrl-C.
    """
    prepare_streams()
    try:
        return _run(parser, sys.argv if arguments is None else arguments, make)
    except (KeyboardInterrupt, ExternalShutdownException):
        print(f"{parser.prog}: interrupted", file=sys.stderr)
        return 130


def _run(
    parser: argparse.ArgumentParser,
    arguments: list[str],
    make: Callable[[Setpoints, ReportCounts, argparse.Namespace], Playing],
) -> int:
    parser.add_argument("--force", action="store_true", help="overwrite a file of answers that exists")
    options = parser.parse_args(remove_ros_args(arguments)[1:])
    # NumPy would add the ending.
    recording = options.recording.with_name(f"{options.recording.name.removesuffix('.npz')}.npz")
    try:
        check_file(recording, force=options.force)
        setpoints = read_setpoints(options.setpoints)
    except (PlayerError, FolderError) as error:
        print(f"{parser.prog}: {printable(str(error))}", file=sys.stderr)
        return 2
    # The middleware prints some warnings on stdout; redirect them to stderr, so that stdout has the counts only.
    stdout = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def report(counts: dict[str, int]) -> None:
        print(json.dumps(counts), file=stdout, flush=True)

    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as it is during imports
        signal.signal(signal.SIGINT, signal.default_int_handler)
    rclpy.init(args=arguments)
    player = make(setpoints, report, options)
    try:
        np.savez(recording, **player.run(options))
        report(player.counts())
    except (PlayerError, SchedulingError, OSError) as error:
        print(f"{parser.prog}: {printable(str(error))}", file=sys.stderr)
        return 1
    finally:
        player.close()
        try_shutdown()
    return 0


def positive(text: str) -> float:
    """Parse a positive number; raises argparse.ArgumentTypeError for anything else."""
    value = float(text)
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"must be greater than 0, is {text}")
    return value


def main(arguments: list[str] | None = None) -> int:
    """Play one file; return the exit code."""
    parser = argparse.ArgumentParser(prog="player", description="play setpoints to the node and record its answers")
    parser.add_argument("setpoints", type=Path, help=".npz with q … qdddd")
    parser.add_argument("recording", metavar="answers", type=Path, help=".npz to write")
    parser.add_argument("--rate", type=positive, default=1000.0, help="setpoints per second; default: %(default)g")
    parser.add_argument(
        "--timeout", type=positive, default=10.0, help="time to wait for the node, in s; default: %(default)g"
    )
    parser.add_argument(
        "--grace",
        type=positive,
        default=2.0,
        help="time to wait for answers after the last setpoint, in s; default: %(default)g",
    )
    parser.add_argument(
        "--realtime-priority",
        type=int,
        choices=range(HIGHEST + 1),
        metavar="N",
        default=0,
        help=f"SCHED_FIFO priority of the player, 1 to {HIGHEST}; default: normal scheduling",
    )
    return run_player(parser, arguments, lambda setpoints, report, _: Player(setpoints, report))


if __name__ == "__main__":
    sys.exit(main())
