# SPDX-License-Identifier: Apache-2.0
"""Round trip of setpoints through the dynamics node and through an echo node: equal messages, in one run.

Both nodes are streamed to alternately, in windows of a tenth of a second with rotating order, so that ratios hold on a
busy machine. Both run throughout; the idle node sleeps. Every number of the dynamics node's answers is
compared with the library's. Needs ROS 2 and the interfaces, as installed by ``make build``.
"""

import gc
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import rclpy
from harness import Section, Settings
from motors import SPRINGS
from motors import arms as iiwa_arms
from soak.streamer import Side, Streamer

from eom_dynamics import ElasticArm, Robot, load_robot
from eom_dynamics.actuators import Transmission
from eom_dynamics.actuators.springs import AntagonisticPair
from eom_dynamics.arrays import STATE_NAMES, Array
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.fields import COMMAND_FIELDS, doubles
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.trajectory import paper_motion

HERE = Path(__file__).parent
WINDOW = 0.1  # s, shorter than most stalls of a shared host: in half a second, which of the two is hit is chance
RATES = (1000.0, 2000.0)
ROUNDS = 48
HELD = 1.2e4  # stiffness of antagonistic springs with a pretension within limits of all iiwa motors, N m/rad
SETTLE = 50  # setpoints at the start of each window: after a pause, the first setpoints are slower with every node
P50, P99 = 1.0, 1.2  # largest ratios to the echo node


class Figures(NamedTuple):
    """Figures of an arm at a rate."""

    ours: Array  # 50th and 99th percentile of the round trip, median of the windows, µs (2,)
    echo: Array
    pooled: Array  # percentiles of all windows together
    echo_pooled: Array
    sent: int
    lost: int
    numbers: int  # numbers in the answers
    different: int  # numbers that differ from the library's in a bit


def round_trip(section: Section, settings: Settings) -> None:
    """Stream to every kind of arm, or to the arm of the command, at each rate."""
    rounds, every = 2 if settings.quick else ROUNDS, []
    table = section.table(
        "median of windows; pooled in brackets",
        *("arm", "Hz", "p50, µs", "× echo", "p99, µs", "× echo", "lost", "other bits than the library"),
    )
    for name, robot in (arms() if settings.robot is None else {settings.robot: load_robot(settings.robot)}).items():
        for rate, found in zip(RATES, measure(robot, rounds), strict=True):
            every.append(found)
            ratios, pooled = found.ours / found.echo, found.pooled / found.echo_pooled
            cells = [f"{rate:g}"]
            for k in range(2):
                cells += [f"{found.ours[k]:.0f} ({found.pooled[k]:.0f})", f"{ratios[k]:.2f} ({pooled[k]:.2f})"]
            table.add(name, *cells, f"{found.lost} of {found.sent:,}", f"{found.different} of {found.numbers:,}")
    section.text.append(f"{rounds} windows of {WINDOW:g} s for each node, arm and rate.")
    worst = np.max([found.ours / found.echo for found in every], axis=0)
    for what, ratio, most in zip(("p50", "p99"), worst, (P50, P99), strict=True):
        promise = f"{what} of the round trip at most {most} × the echo node, for every arm"
        section.promise(promise, f"{ratio:.2f} ×", ratio <= most)
    lost, different = sum(x.lost for x in every), sum(x.different for x in every)
    section.promise("no setpoint is lost", f"{lost}", lost == 0)
    section.promise("every bit equals the library's", f"{different} other numbers", different == 0)


def arms() -> dict[str, Robot]:
    """Packaged arms with springs, and the iiwa with each kind of spring and loss."""
    found = {name: load_robot(name) for name in ("sea_planar_2r", "vsa_planar_2r", "iiwa")}
    loss = "friction and gear loss"
    for spring in SPRINGS:
        if isinstance(spring, AntagonisticPair):
            spring = replace(spring, nominal=HELD)
        found[f"iiwa, {spring.kind.replace('_', ' ')}, {loss}"] = iiwa_arms(spring)[loss]
    found["iiwa, linear, joint friction"] = iiwa_arms(SPRINGS[0])["joint friction"]
    differential = (0, 1), Transmission(np.array([[0.5, 0.5], [0.5, -0.5]]))
    found["iiwa, linear, differential"] = replace(found["iiwa"], transmission=differential)
    return found


def measure(robot: Robot, rounds: int) -> list[Figures]:
    """Start both nodes, and stream at each rate."""
    os.environ["ROS_DOMAIN_ID"] = str(random.SystemRandom().randrange(1, 102))
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "robot.yaml"
        config.write_text(robot_as_yaml(robot).text, encoding="utf-8")
        node = ["-m", "eom_dynamics.ros.dynamics_node", "--ros-args", "--params-file", config]
        node += ["-p", "safety:=permissive"]
        motors = f"motors_per_joint:={len(ElasticArm(robot).motor_names) // robot.n}"
        with _started("echo", HERE / "echo.py", "--ros-args", "-p", motors), _started("ours", *node):
            rclpy.init()
            client = _Client(load_robot(config))
            try:
                return [client.measure(rate, rounds) for rate in RATES]
            finally:
                client.destroy_node()
                rclpy.try_shutdown()


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


class _Client(Streamer):
    """Streams to both nodes alternately, and receives their answers."""

    def __init__(self, robot: Robot) -> None:
        super().__init__(robot)
        motion, self._first = paper_motion(robot.n), np.zeros((5, robot.n))
        self._motion = SimpleNamespace(derivatives=lambda t: 0.2 * np.array(motion.derivatives(t)))
        side = self.arm.side
        if side.variable.any():
            self.message.stiffness = doubles(side.nominal_stiffness)
            self.message.stiffness_rate = self.message.stiffness_acceleration = doubles(np.zeros(robot.n))
        self._sides = {name: Side(self, f"/{name}") for name in ("echo", "ours")}
        for each in self._sides.values():
            self.connect(each)

    def measure(self, rate: float, rounds: int) -> Figures:
        """Stream to both alternately, and compare all answers of the dynamics node."""
        count, answers = round(WINDOW * rate) + SETTLE, []
        self.numbers = self.different = 0
        gc.collect()
        gc.freeze()
        for side in self._sides.values():
            side.round_trips.clear()
        for k in range(rounds):
            for name in sorted(self._sides, reverse=bool(k % 2)):
                states, found = self.window(self._sides[name], 0.0, count, rate)
                if name == "ours":
                    answers.append((self._sides[name].stamps, found))
        self._compare(states, answers)
        trips = {name: 1e6 * np.array(side.round_trips)[:, SETTLE:] for name, side in self._sides.items()}
        medians, pooled = (
            [
                np.nanmedian(np.nanpercentile(trips[name].reshape(rows, -1), (50, 99), axis=1), axis=1)
                for name in ("ours", "echo")
            ]
            for rows in (rounds, 1)
        )
        lost = int(np.sum(np.isnan(trips["ours"])))
        return Figures(*medians, *pooled, trips["ours"].size, lost, self.numbers, self.different)

    def _compare(self, states: Array, answers: list[tuple[dict[Any, int], dict[int, Any]]]) -> None:
        """Compare answers with the library: for springs with a memory, with its control loop."""
        loop = ControlLoop(RobotTable(self.arm))
        loop.configure(safety="permissive")
        wanted = [self.arm.feedforward(*state) for state in states.swapaxes(0, 1)]
        for stamps, found in answers:
            for (seconds, nanoseconds), k in stamps.items():
                if k not in found:
                    loop.restart()
                    continue
                own = wanted[k]
                if self.arm.has_memory:
                    loop.rest()
                    for name, row in zip(STATE_NAMES, states[:, k], strict=True):
                        loop.given[name][:] = row
                    loop.refer(stamp := 1_000_000_000 * seconds + nanoseconds)
                    loop.update(stamp)
                    own = tuple(loop.command.values())
                for field, value in zip(COMMAND_FIELDS, own, strict=True):
                    answered = np.frombuffer(getattr(found[k], field))
                    self.numbers += answered.size
                    self.different += int(np.sum(answered.view(np.int64) != value.view(np.int64)))
