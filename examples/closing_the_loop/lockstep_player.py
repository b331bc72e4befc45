# SPDX-License-Identifier: Apache-2.0
"""Play setpoints to a dynamics node and a simulated robot in lock step with /clock, and record all topics.

    python -m closing_the_loop.lockstep_player SETPOINTS.npz RECORDING.npz --rate 500

For each setpoint: publish it on ``setpoint``, wait for the command on ``feedforward``, pass it on to the robot on
``applied_feedforward``, advance ``/clock`` by a period, wait for ``joint_states`` and ``motor_states`` of that time.
The simulated robot needs the remapping ``feedforward:=applied_feedforward``, the parameters ``use_sim_time`` and
``command:=feedforward``, and ``rate`` and ``publish_rate`` of the player. No message is lost however slow the machine
is, and since command and time come from one process, neither overtakes the other.

SETPOINTS.npz is a file for :mod:`eom_dynamics.ros.player`. RECORDING.npz holds ``stamp`` (N,), the time of ``/clock``
after each step, ns, and the serialized messages (N, size) of ``setpoint``, ``feedforward``, ``joint_states`` and
``motor_states``.

Ten times a second it prints a line of JSON, ``{"sent": 1200, "received": 1200}``. Exit code 0; 1 if a node is missing
or does not answer; 2 for wrong use.
"""

from __future__ import annotations

import argparse
import gc
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from rclpy.serialization import deserialize_message, serialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from eom_dynamics.ros.executors import make_executor
from eom_dynamics.ros.interfaces import FeedforwardCommand, JointTrajectorySetpoint
from eom_dynamics.ros.player import QOS, PlayerError, ReportCounts, Setpoints, positive_number, run_player
from eom_dynamics.ros.simulated_robot_node import STATUS_NAME

TOPICS = ("setpoint", "feedforward", "joint_states", "motor_states")
"""Topics of a recording."""

_PROGRESS_PERIOD = 0.1

# Time until a message without an answer is repeated, and until the player gives up, s.
_REPEAT, _PATIENCE = 0.2, 60.0

# Time of /clock at the start, ns; zero would stand for no time.
_START = 1_000_000_000

_SECOND = 1_000_000_000


class LockstepPlayer(Node):
    """Node that sends setpoints and time, and records the answers."""

    def __init__(self, setpoints: Setpoints, rate: float, phase: float, report: ReportCounts) -> None:
        """Create publishers and subscriptions.

        Args:
            setpoints: to play.
            rate: of steps, Hz.
            phase: of the stamp of a setpoint in its step, 0 to 1.
            report: called periodically with the counts.
        """
        super().__init__("lockstep_player")
        self.problem = ""
        self._setpoints, self._report = setpoints, report
        self._message = JointTrajectorySetpoint(joint_names=setpoints.joint_names)
        self._publisher = self.create_publisher(JointTrajectorySetpoint, "setpoint", QOS)
        self._executor = make_executor()
        self._executor.add_node(self)
        self._period = round(_SECOND / rate)
        self._before = round((1 - phase) * self._period)
        self._clock_publisher = self.create_publisher(Clock, "/clock", QOS)
        self._command_publisher = self.create_publisher(FeedforwardCommand, "applied_feedforward", QOS)
        # Newest message of each topic, and its stamp, ns.
        self._newest: dict[str, tuple[int, bytes]] = {}
        for topic, kind in zip(TOPICS[1:], (FeedforwardCommand, JointState, JointState), strict=True):
            self.create_subscription(kind, topic, self._keeper(topic), QOS, raw=True)
        self._robot: dict[str, str] = {}
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        self._now = _START

    def run(self, options: argparse.Namespace) -> dict[str, Any]:
        """Play all setpoints; returns the recording."""
        self.connect(options.timeout)
        gc.disable()
        return self.play()

    def counts(self) -> dict[str, int]:
        """Numbers of setpoints, after playing: all are sent and answered."""
        return dict.fromkeys(("sent", "received"), self._setpoints.count)

    def connect(self, timeout: float) -> None:
        """Wait until setpoints are answered, and commands and time reach the robot.

        Args:
            timeout: s.

        Raises:
            PlayerError: a node is missing; the message says which.
        """
        deadline = time.monotonic() + timeout
        while not self._answered("feedforward", _START):
            self._check(deadline, "the dynamics node does not answer setpoints")
            self._send(0, _START)
            self._spin(lambda: self._answered("feedforward", _START), _REPEAT)
        while self._robot.get("commands", "0") == "0":
            self._check(deadline, "the simulated robot does not receive commands")
            self._command_publisher.publish(self._newest["feedforward"][1])
            self._spin(lambda: False, _REPEAT)
        while not self._moved():
            self._check(deadline, "the simulated robot does not follow /clock")
            self._now += self._period
            self._tick()
            self._spin(self._moved, _REPEAT)

    def play(self) -> dict[str, Any]:
        """Play all setpoints; returns the recording.

        Raises:
            PlayerError: an answer is missing, or a setpoint was refused.
        """
        count = self._setpoints.count
        stamps = self._now + self._period * np.arange(1, count + 1)
        kept: dict[str, list[bytes]] = {topic: [] for topic in TOPICS}
        next_progress = 0.0
        for k, stamp in enumerate(stamps.tolist()):
            self._step(k, stamp)
            kept["setpoint"].append(bytes(serialize_message(self._message)))
            for topic in TOPICS[1:]:
                kept[topic].append(self._newest[topic][1])
            if time.monotonic() >= next_progress:
                self._report({"sent": k + 1, "received": k + 1})
                next_progress = time.monotonic() + _PROGRESS_PERIOD
        for k, data in enumerate(kept["feedforward"]):
            if deserialize_message(data, FeedforwardCommand).held:
                raise PlayerError(f"setpoint {k} of {count} was refused by the dynamics node; see its log")
        rows = {
            topic: np.array([np.frombuffer(data, np.uint8) for data in messages]) for topic, messages in kept.items()
        }
        return {"stamp": stamps, **rows}

    def _step(self, index: int, stamp: int) -> None:
        """Send a setpoint, stamped by the phase, and when it is answered the time of the end of its step, ns."""
        own = stamp - self._before
        self._until(lambda: self._answered("feedforward", own), lambda: self._send(index, own), "feedforward")
        self._command_publisher.publish(self._newest["feedforward"][1])
        self._now = stamp
        self._until(self._moved, self._tick, "joint_states and motor_states")

    def _keeper(self, topic: str) -> Callable[[bytes], None]:
        def keep(data: bytes) -> None:
            # After the encapsulation header: seconds and nanoseconds of the header's stamp, little-endian.
            sec, nanosec = struct.unpack_from("<iI", data, 4)
            self._newest[topic] = sec * _SECOND + nanosec, bytes(data)

        return keep

    def _on_diagnostics(self, message: Any) -> None:
        for status in message.status:
            if status.name.endswith(f": {STATUS_NAME}"):
                self._robot = {pair.key: pair.value for pair in status.values}

    def _answered(self, topic: str, stamp: int) -> bool:
        return topic in self._newest and self._newest[topic][0] == stamp

    def _moved(self) -> bool:
        return self._answered("joint_states", self._now) and self._answered("motor_states", self._now)

    def _tick(self) -> None:
        clock = Clock()
        clock.clock.sec, clock.clock.nanosec = divmod(self._now, _SECOND)
        self._clock_publisher.publish(clock)

    def _until(self, condition: Callable[[], bool], send: Callable[[], None], what: str) -> None:
        """Send, and again while there is no answer, until the condition holds."""
        deadline = time.monotonic() + _PATIENCE
        send()
        while not self._spin(condition, _REPEAT):
            self._check(deadline, f"no {what} after {_PATIENCE:g} s")
            send()

    def _send(self, index: int, stamp: int) -> None:
        self._setpoints.fill(self._message, index, stamp)
        self._publisher.publish(self._message)

    def _check(self, deadline: float, what: str) -> None:
        if time.monotonic() > deadline:
            raise PlayerError(f"{what}; is it running, in the same domain and namespace? See its log")

    def _spin(self, condition: Callable[[], bool], duration: float) -> bool:
        """Process callbacks until the condition holds or time is over; returns whether it holds."""
        deadline = time.monotonic() + duration
        while not condition():
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            self._executor.spin_once(timeout_sec=remaining)
        return True


def main(arguments: list[str] | None = None) -> int:
    """Play one file; return the exit code."""
    parser = argparse.ArgumentParser(prog="lockstep_player", description="play setpoints in lock step with /clock")
    parser.add_argument("setpoints", type=Path, help=".npz with q … qdddd")
    parser.add_argument("recording", type=Path, help=".npz to write")
    parser.add_argument("--rate", type=positive_number, default=500.0, help="steps per second; default: %(default)g")
    parser.add_argument(
        "--phase", type=float, default=0.5, help="of the stamp of a setpoint in its step, 0 to 1; default: %(default)g"
    )
    parser.add_argument(
        "--timeout", type=positive_number, default=60.0, help="time to wait for the nodes, in s; default: %(default)g"
    )
    return run_player(
        parser,
        arguments,
        lambda setpoints, report, options: LockstepPlayer(setpoints, options.rate, options.phase, report),
    )


if __name__ == "__main__":
    sys.exit(main())
