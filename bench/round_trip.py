# SPDX-License-Identifier: Apache-2.0
"""Round trip of setpoints through the dynamics node beside a node that only echoes: same messages, in one run.

The two nodes are streamed to in turn, in windows of a tenth of a second whose order rotates, so that ratios hold on a
machine that is not quiet. Both run throughout; the one that is not spoken to sleeps. Every number that the dynamics
node answers is compared with that of the library. Needs ROS 2 and the interfaces, as ``make build`` installs them.

    python bench/round_trip.py ROBOT [--rate HZ] [--rounds N] [--realtime PRIORITY]

measures an arm of your own.
"""

import argparse
import gc
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from harness import Section, Settings
from motors import SPRINGS
from motors import arms as iiwa_arms
from rclpy.qos import QoSProfile

from eom_dynamics import ElasticArm, Robot, load_robot
from eom_dynamics.actuators import Transmission
from eom_dynamics.arrays import STATE_NAMES, Array
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.fields import COMMAND_FIELDS, STATE_FIELDS, doubles
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.ros.executors import make_executor, spin_until
from eom_dynamics.ros.interfaces import FeedforwardCommand, JointTrajectorySetpoint
from eom_dynamics.trajectory import paper_motion

HERE = Path(__file__).parent
# Shorter than most stalls of a shared host: with windows of half a second, which of the two is hit is chance.
WINDOW = 0.1
RATES = (1000.0, 2000.0)
ROUNDS = 48
# At the start of each window: the first setpoints after a pause are slower with every node.
SETTLE = 50

P50, P99 = 1.0, 1.2
"""Largest ratios to the echo node."""


@dataclass
class Figures:
    """Figures of an arm at a rate.

    Attributes:
        ours, echo: 50th and 99th percentile of the round trip, median of the windows, µs (2,).
        pooled, echo_pooled: those of all windows as one.
        sent, lost: number of setpoints.
        numbers, different: answered numbers, and those that are not the library's to the bit.
    """

    ours: Array
    echo: Array
    pooled: Array
    echo_pooled: Array
    sent: int
    lost: int
    numbers: int
    different: int


def round_trip(section: Section, settings: Settings) -> None:
    """Stream to every kind of arm at each rate."""
    rounds = 2 if settings.quick else ROUNDS
    every = _measured(section, arms(), RATES, rounds)
    section.text.append(f"{rounds} windows of {WINDOW:g} s for each node, arm and rate.")
    worst = np.max([found.ours / found.echo for found in every], axis=0)
    for k, (what, most) in enumerate((("p50", P50), ("p99", P99))):
        promise = f"{what} of the round trip of any arm at most {most} × that of a node that echoes"
        section.promise(promise, f"{worst[k]:.2f} ×", worst[k] <= most)
    lost, different = sum(x.lost for x in every), sum(x.different for x in every)
    section.promise("no setpoint is lost", f"{lost}", lost == 0)
    section.promise("every bit is that of the library", f"{different} other numbers", different == 0)


def _measured(section: Section, robots: Mapping[str, Robot], rates: Sequence[float], rounds: int) -> list[Figures]:
    """Figures of each robot at each rate, which are rows of a table."""
    table = section.table(
        "median of windows; pooled in brackets",
        *("arm", "Hz", "p50, µs", "× echo", "p99, µs", "× echo", "lost", "other bits than the library"),
    )
    every = []
    for name, robot in robots.items():
        for rate, found in zip(rates, measure(robot, rates, rounds), strict=True):
            every.append(found)
            ratios, pooled = found.ours / found.echo, found.pooled / found.echo_pooled
            cells = [f"{rate:g}"]
            for k in range(2):
                cells += [f"{found.ours[k]:.0f} ({found.pooled[k]:.0f})", f"{ratios[k]:.2f} ({pooled[k]:.2f})"]
            table.add(name, *cells, f"{found.lost} of {found.sent:,}", f"{found.different} of {found.numbers:,}")
    return every


def arms() -> dict[str, Robot]:
    """Packaged arms with springs, and the iiwa with each kind of spring and loss."""
    found = {name: load_robot(name) for name in ("sea_planar_2r", "vsa_planar_2r", "iiwa")}
    loss = "friction and gear loss"
    for spring in SPRINGS:
        found[f"iiwa, {spring.kind.replace('_', ' ')}, {loss}"] = iiwa_arms(spring)[loss]
    found["iiwa, linear, joint friction"] = iiwa_arms(SPRINGS[0])["joint friction"]
    differential = (0, 1), Transmission(np.array([[0.5, 0.5], [0.5, -0.5]]))
    found["iiwa, linear, differential"] = replace(found["iiwa"], transmission=differential)
    return found


def main() -> None:
    """Measure an arm and print."""
    parser = argparse.ArgumentParser(
        prog="round_trip", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("robot", help="a packaged robot or a file")
    parser.add_argument("--rate", type=float, nargs="+", default=RATES, metavar="HZ")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="windows of each node; default: %(default)d")
    parser.add_argument("--realtime", type=int, default=0, help="SCHED_FIFO priority of all processes, echo included")
    options = parser.parse_args()
    if options.realtime:  # threads and processes inherit it: others on the machine then do not count
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(options.realtime))
    section = Section("round_trip", "Round trip of a setpoint beside a node that echoes")
    _measured(section, {options.robot: load_robot(options.robot)}, options.rate, options.rounds)
    section.show()


def measure(robot: Robot, rates: Sequence[float], rounds: int) -> list[Figures]:
    """Start both nodes, and stream at each rate."""
    os.environ["ROS_DOMAIN_ID"] = str(random.SystemRandom().randrange(1, 102))
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "robot.yaml"
        config.write_text(robot_as_yaml(robot).text, encoding="utf-8")
        node = ["-m", "eom_dynamics.ros.dynamics_node", "--ros-args", "--params-file", config]
        node += ["-p", "safety:=permissive"]
        with _started("echo", HERE / "echo.py", "--ros-args"), _started("ours", *node):
            client = _Client(load_robot(config))
            try:
                return [client.measure(rate, rounds) for rate in rates]
            finally:
                client.end()


@contextmanager
def _started(name: str, *arguments: Any) -> Iterator[None]:
    command = [sys.executable, *map(str, arguments), "-r", f"__ns:=/{name}"]
    environment = os.environ | {"PYTHONPATH": str(HERE.parent)}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


class _Client:
    """Streams to both nodes and takes their answers."""

    def __init__(self, robot: Robot) -> None:
        rclpy.init()
        self._arm, self._node = ElasticArm(robot), rclpy.create_node("measuring")
        self._executor = make_executor(events=True)
        self._executor.add_node(self._node)
        self._sent: dict[int, tuple[float, int]] = {}  # time and number of the state, by stamp
        self._answers: dict[int, tuple[float, Any]] = {}
        self._stamp, self._kept = 0, []
        self._publishers = {}
        for name in ("echo", "ours"):
            quality = QoSProfile(depth=1000)
            self._publishers[name] = self._node.create_publisher(JointTrajectorySetpoint, f"/{name}/setpoint", quality)
            self._kept.append(
                self._node.create_subscription(FeedforwardCommand, f"/{name}/feedforward", self._answered, quality)
            )
        self._message = JointTrajectorySetpoint(joint_names=list(robot.joint_names))
        side = self._arm.side
        if side.variable.any():
            self._message.stiffness = doubles(side.nominal_stiffness)
            self._message.stiffness_rate = self._message.stiffness_acceleration = doubles(np.zeros(robot.n))
        for name in self._publishers:
            deadline = time.monotonic() + 60
            self._states = np.zeros((5, 1, robot.n))
            first = self._send(name, 0)
            while not any(stamp in self._answers for stamp in range(first, self._stamp + 1, 1_000_000)):
                self._send(name, 0)
                spin_until(self._executor, time.monotonic() + 0.05)
                assert time.monotonic() < deadline, f"{name} does not answer"

    def end(self) -> None:
        self._node.destroy_node()
        rclpy.try_shutdown()

    def _answered(self, command: Any) -> None:
        now = time.monotonic()
        self._answers[command.header.stamp.sec * 1_000_000_000 + command.header.stamp.nanosec] = now, command

    def _send(self, name: str, k: int) -> int:
        self._stamp += 1_000_000
        message = self._message
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(self._stamp, 1_000_000_000)
        for field, row in zip(STATE_FIELDS, self._states[:, k], strict=True):
            setattr(message, field, doubles(row))
        self._sent[self._stamp] = time.monotonic(), k
        self._publishers[name].publish(message)
        return self._stamp

    def measure(self, rate: float, rounds: int) -> Figures:
        """Stream to both in turn."""
        count = round(WINDOW * rate) + SETTLE
        motion = paper_motion(self._arm.robot.n)
        self._states = 0.2 * np.array(motion.derivatives(np.arange(count) / rate))
        windows: dict[str, list[list[int]]] = {"echo": [], "ours": []}
        self._answers.clear()
        gc.collect()
        gc.freeze()
        gc.disable()
        for round_ in range(rounds):
            for name in sorted(windows, reverse=bool(round_ % 2)):
                stamps, start = [], time.monotonic() + 0.02
                for k in range(count):
                    spin_until(self._executor, start + k / rate)
                    stamps.append(self._send(name, k))
                spin_until(self._executor, time.monotonic() + 0.05)
                windows[name].append(stamps)
        gc.enable()
        numbers, different = self._compared([stamp for stamps in windows["ours"] for stamp in stamps])
        trips = {name: [self._trips(stamps[SETTLE:]) for stamps in each] for name, each in windows.items()}
        medians = {name: np.median([_percentiles(x) for x in each], axis=0) for name, each in trips.items()}
        pooled = {name: np.concatenate(each) for name, each in trips.items()}
        return Figures(
            *(medians["ours"], medians["echo"], _percentiles(pooled["ours"]), _percentiles(pooled["echo"])),
            *(pooled["ours"].size, int(np.sum(np.isnan(pooled["ours"]))), numbers, different),
        )

    def _trips(self, stamps: list[int]) -> Array:
        """Round trips, µs; NaN for setpoints without an answer."""
        answers = (self._answers.get(stamp, (np.nan,))[0] for stamp in stamps)
        return 1e6 * np.array([at - self._sent[x][0] for at, x in zip(answers, stamps, strict=True)])

    def _compared(self, stamps: list[int]) -> tuple[int, int]:
        """Numbers of the answers, and how many are not those of the library to the bit."""
        loop = ControlLoop(RobotTable(self._arm))
        loop.configure(safety="permissive")
        wanted = [self._arm.feedforward(*state) for state in self._states.swapaxes(0, 1)]
        numbers = different = 0
        for stamp in stamps:
            if stamp not in self._answers:
                loop.restart()
                continue
            k = self._sent[stamp][1]
            own = wanted[k]
            if self._arm.has_memory:
                loop.rest()
                for name, row in zip(STATE_NAMES, self._states[:, k], strict=True):
                    loop.given[name][:] = row
                loop.refer(stamp)
                loop.update(stamp)
                own = tuple(loop.command.values())
            answer = self._answers[stamp][1]
            for field, value in zip(COMMAND_FIELDS, own, strict=True):
                got = np.frombuffer(getattr(answer, field))
                numbers += got.size
                different += int(np.sum(got.view(np.int64) != value.view(np.int64)))
        return numbers, different


def _percentiles(trips: Array) -> Array:
    return np.nanpercentile(trips, (50, 99))


if __name__ == "__main__":
    main()
