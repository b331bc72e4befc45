# SPDX-License-Identifier: Apache-2.0
"""Stream setpoints from a file to the node at a fixed rate, and record its answers with time stamps.

    python -m eom_dynamics.ros.player SETPOINTS.npz ANSWERS.npz --rate 1000

SETPOINTS.npz holds q, qd, qdd, qddd, qdddd (N, n), and optionally joint_names (n,), wrench, wrench_rate,
wrench_acceleration (N, 6 k) of k tools, and stiffness, stiffness_rate, stiffness_acceleration (N, n), in SI units.
ANSWERS.npz gets the arrays of FeedforwardCommand, with the names of joints and motors, the stamps, ns, and the times
sent and received and the round trip, s. Rows without an answer, or with a held one, are NaN.

Ten times a second it prints a line of JSON with the counts so far. Exit code 0; 1 if the node does not answer, or the
answers cannot be written; 3 if it does not answer all; 2 for wrong use; 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from zipfile import BadZipFile

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.utilities import remove_ros_args, try_shutdown

from ..arguments import real_array, violation
from ..arrays import STATE_NAMES, Array
from ..control.fields import COMMAND_FIELDS, MOTOR_FIELDS, STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS, doubles
from ..control.spatial import wrench_messages
from ..exceptions import EomDynamicsError
from ..terminal import prepare_streams, printable
from .dynamics.statistics import STATUS_NAME
from .executors import make_executor, spin_until
from .interfaces import FeedforwardCommand, JointTrajectorySetpoint, nanoseconds, set_stamp

QOS = QoSProfile(depth=1000)  # of all topics of a player

# Called with the numbers of setpoints sent and received so far.
ReportCounts: TypeAlias = Callable[[dict[str, int]], None]

_PROGRESS_PERIOD, _PROBE_PERIOD = 0.1, 0.05


class PlayerError(EomDynamicsError):
    """Setpoints cannot be played, or are not answered."""


@dataclass(frozen=True)
class Setpoints:
    """Setpoints of a file.

    Attributes:
        joint_names: order of the joints, empty for the robot's own.
        rows: (N, n) or (N, 6 k) of fields of the message.
        times: (N,) since the first setpoint, s; None for times by the rate.
    """

    joint_names: list[str]
    rows: dict[str, Array]
    times: Array | None = None

    @property
    def count(self) -> int:
        """Number of setpoints N."""
        return len(self.rows["position"])

    def fill(self, message: Any, index: int, stamp: int) -> None:
        """Write setpoint `index` with `stamp`, ns, into a message; its joint names remain."""
        set_stamp(message.header.stamp, stamp)
        for field, values in self.rows.items():
            setattr(message, field, (wrench_messages if field in WRENCH_FIELDS else doubles)(values[index]))


def read_setpoint_file(path: Path) -> Setpoints:
    """Read a file of setpoints; PlayerError if it is not valid."""
    try:
        with path.open("rb") as stream, np.lib.npyio.NpzFile(stream) as file:
            arrays = dict(file)
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise PlayerError(f"{path}: cannot be read as .npz: {error}") from None
    if missing := [name for name in STATE_NAMES if name not in arrays]:
        raise PlayerError(f"{path}: {missing[0]} is missing")
    if arrays["q"].ndim != 2 or not arrays["q"].size:
        raise PlayerError(f"{path}: q must be (N, n), has shape {arrays['q'].shape}")
    (count, n), rows = arrays["q"].shape, {}
    fields = dict(zip(STATE_NAMES, STATE_FIELDS, strict=True))
    fields |= {name: name for name in (*WRENCH_FIELDS, *STIFFNESS_FIELDS) if name in arrays}
    for name, field in fields.items():
        shape = arrays[name].shape
        columns = max(6, math.prod(shape[1:]) // 6 * 6) if field in WRENCH_FIELDS else n  # of several tools
        if shape != (count, columns):
            raise PlayerError(f"{path}: {name} must be {(count, columns)}, has shape {shape}")
        if arrays[name].dtype.kind not in "fiu":
            raise PlayerError(f"{path}: {name} holds no numbers")
        rows[field] = arrays[name].astype(float)
    joint_names = [str(name) for name in arrays.get("joint_names", ())]
    if len(joint_names) not in (0, n):
        raise PlayerError(f"{path}: joint_names has {len(joint_names)} entries, q has {n} columns")
    times = None
    if "t" in arrays:
        t = real_array(arrays["t"], f"{path}: t", (count,), error=PlayerError)
        for k in np.flatnonzero(np.diff(t) <= 0)[:1]:
            raise PlayerError(
                f"{path}: t must increase, is {t[k]:g} s in row {k} and {t[k + 1]:g} s in row {k + 1}: leave one out"
            )
        times = t - t[0]
    return Setpoints(joint_names, rows, times)


class Player(Node):
    """Node that sends setpoints at a rate; its one thread receives answers while it waits for the next time.

    ``report`` is called ten times a second.
    """

    def __init__(self, setpoints: Setpoints, report: ReportCounts) -> None:
        super().__init__("setpoint_player")
        self._setpoints, self._report = setpoints, report
        self._message = JointTrajectorySetpoint(joint_names=setpoints.joint_names)
        self._publisher = self.create_publisher(JointTrajectorySetpoint, "setpoint", QOS)
        self.create_subscription(FeedforwardCommand, "feedforward", self._on_answer, QOS)
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        self._executor = make_executor()
        self._executor.add_node(self)
        self._index_of_stamp: dict[int, int] = {}
        self._probe_of_stamp: dict[int, int] = {}
        self._answers: dict[int, Any] = {}
        self._probes = self._answered_probe = self._out_of_order = self._last = 0
        self._backend = self._refusal = ""
        self._sent, self._received = np.full((2, setpoints.count), np.nan)

    def run(self, options: argparse.Namespace) -> dict[str, Any]:
        """Connect, play all setpoints, and wait for the last answers; returns the arrays of the file."""
        self._connect(options.timeout)
        gc.disable()  # a collection would lengthen measured round trips
        count, rate = self._setpoints.count, options.rate
        times = np.arange(count) / rate if self._setpoints.times is None else self._setpoints.times
        stamps = self.get_clock().now().nanoseconds + np.round(1e9 * times).astype(np.int64)
        self._index_of_stamp = {stamp: i for i, stamp in enumerate(stamps.tolist())}
        start = reported = time.monotonic()
        for stamp, i in self._index_of_stamp.items():
            self._sent[i] = time.monotonic()
            self._send(i, stamp)
            if self._sent[i] >= reported + _PROGRESS_PERIOD:
                self._report({"sent": i + 1, "received": len(self._answers)})
                reported = self._sent[i]
            spin_until(self._executor, start + (times[i + 1] if i + 1 < count else times[i]))
        deadline = time.monotonic() + options.grace
        # Diagnostics arrive once a second; a short run ends before the first of them.
        while (len(self._answers) < count or not self._backend) and time.monotonic() < deadline:
            spin_until(self._executor, min(deadline, time.monotonic() + _PROGRESS_PERIOD))
            self._report({"sent": count, "received": len(self._answers)})
        return self._record(stamps)

    def counts(self) -> dict[str, int]:
        """Numbers of setpoints sent, answered (received) and not answered (lost), and of answers out of order."""
        sent, received = self._setpoints.count, len(self._answers)
        return {"sent": sent, "received": received, "lost": sent - received, "out_of_order": self._out_of_order}

    @property
    def problem(self) -> str:
        """Faults of the answers; empty if none."""
        counts, why = self.counts(), f": {self._refusal}" if self._refusal else ""
        return f"{counts['lost']} of {counts['sent']} setpoints were not answered{why}" if counts["lost"] else ""

    def _send(self, index: int, stamp: int) -> None:
        self._setpoints.fill(self._message, index, stamp)
        self._publisher.publish(self._message)

    def _connect(self, timeout: float) -> None:
        """Send the first setpoint until it is answered; then keep late answers to it out of the measurement."""
        deadline, topic = time.monotonic() + timeout, self.resolve_topic_name("setpoint")
        while not self._answered_probe or (self._answered_probe < self._probes and time.monotonic() < deadline):
            if not self._answered_probe:
                heard = self._publisher.get_subscription_count()
                if time.monotonic() > deadline:
                    missing = "no answer to setpoints on" if heard else "no node subscribes to"
                    remedy = "is the node active, in this domain and namespace, with the robot of the file? See its log"
                    remedy = self._refusal or remedy
                    raise PlayerError(f"after {timeout:g} s {missing} {topic}: {remedy}")
                if heard:
                    self._probes += 1
                    stamp = self.get_clock().now().nanoseconds
                    self._probe_of_stamp[stamp] = self._probes
                    self._send(0, stamp)
            spin_until(self._executor, time.monotonic() + _PROBE_PERIOD)

    def _record(self, stamps: Any) -> dict[str, Any]:
        count, n = self._setpoints.rows["position"].shape
        some = next(iter(self._answers.values()), FeedforwardCommand(joint_names=self._setpoints.joint_names))
        record: dict[str, Any] = {}
        for field in COMMAND_FIELDS:
            record[field] = np.full((count, len(some.motor_names) or n if field in MOTOR_FIELDS else n), np.nan)
            for i, answer in self._answers.items():
                record[field][i] = getattr(answer, field)
        names = {name: np.array(getattr(some, name), dtype=str) for name in ("joint_names", "motor_names")}
        times = {"sent": self._sent, "received": self._received, "round_trip": self._received - self._sent}
        return {**record, **names, **times, "stamp": stamps, "backend": self._backend}

    def _on_answer(self, answer: Any) -> None:
        now = time.monotonic()
        stamp = nanoseconds(answer.header.stamp)
        index = self._index_of_stamp.get(stamp)
        if index is None:
            self._answered_probe = max(self._answered_probe, self._probe_of_stamp.get(stamp, 0))
        elif not answer.held and index not in self._answers:  # held: the setpoint was refused
            self._answers[index], self._received[index] = answer, now
            self._out_of_order += index < self._last
            self._last = max(index, self._last)

    def _on_diagnostics(self, message: Any) -> None:
        for status in message.status:
            if status.name.endswith(f": {STATUS_NAME}"):
                values = {pair.key: pair.value for pair in status.values}
                self._backend, self._refusal = values.get("backend", ""), values.get("last refusal", "")


def run_player(
    parser: argparse.ArgumentParser,
    arguments: list[str] | None,
    make: Callable[[Setpoints, ReportCounts, argparse.Namespace], Any],
) -> int:
    """Play ``setpoints`` of the arguments and write ``recording``, both .npz; returns the exit code.

    ``make`` returns a node in its own executor that has ``run``, ``counts`` and ``problem``, as :class:`Player`.
    """
    prepare_streams()
    arguments = sys.argv if arguments is None else arguments
    parser.add_argument("--force", action="store_true", help="overwrite a file of answers that exists")
    options = parser.parse_args(remove_ros_args(arguments)[1:])
    # The middleware prints some warnings on stdout; redirect them to stderr, so that stdout has the counts only.
    stdout = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    code, player = 2, None
    try:
        # NumPy would add the ending.
        recording = options.recording.with_name(f"{options.recording.name.removesuffix('.npz')}.npz")
        if os.path.lexists(recording) and not options.force:
            raise PlayerError(f"{recording}: exists already; name another file, or use --force to overwrite it")
        setpoints, code = read_setpoint_file(options.setpoints), 1
        rclpy.init(args=arguments)
        report: ReportCounts = lambda counts: print(json.dumps(counts), file=stdout, flush=True)  # noqa: E731
        player = make(setpoints, report, options)
        np.savez(recording, **player.run(options))
        report(player.counts())
        if problem := player.problem:
            print(f"{parser.prog}: {printable(problem)}", file=sys.stderr)
        return 3 if problem else 0
    except (PlayerError, OSError) as error:
        print(f"{parser.prog}: {printable(str(error))}", file=sys.stderr)
        return code
    except (KeyboardInterrupt, ExternalShutdownException):
        print(f"{parser.prog}: interrupted", file=sys.stderr)
        return 130
    finally:
        if player is not None:  # before shutdown, so that other nodes notice the end
            executor = player.executor
            executor.remove_node(player)
            player.destroy_node()
            executor.shutdown()
        try_shutdown()


def positive_number(text: str) -> float:
    """Parse a positive number; raises argparse.ArgumentTypeError for anything else."""
    if problem := violation(float(text), "positive"):
        raise argparse.ArgumentTypeError(problem)
    return float(text)


def main(arguments: list[str] | None = None) -> int:
    """Play one file; return the exit code."""
    parser = argparse.ArgumentParser(prog="player", description="play setpoints to the node and record its answers")
    parser.add_argument("setpoints", type=Path, help=".npz with q … qdddd, and t for times other than by --rate")
    parser.add_argument("recording", metavar="answers", type=Path, help=".npz to write")
    for name, default, what in (
        ("--rate", 1000.0, "setpoints per second"),
        ("--timeout", 10.0, "time to wait for the node, s"),
        ("--grace", 2.0, "time to wait for answers after the last setpoint, s"),
    ):
        parser.add_argument(name, type=positive_number, default=default, help=f"{what}; default: %(default)g")
    return run_player(parser, arguments, lambda setpoints, report, _: Player(setpoints, report))


if __name__ == "__main__":
    sys.exit(main())
