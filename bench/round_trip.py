# SPDX-License-Identifier: Apache-2.0
"""Round trip of setpoints through the dynamics node beside a node that only echoes: same messages, one run.

``python bench/round_trip.py [--rate HZ] [--robot FILE] [--beside TREE] [--rounds N]`` starts the echo node of echo.py,
the dynamics node and, with ``--beside``, the dynamics node of another checkout, and streams to them in turn, in windows
of half a second whose order rotates, so that ratios hold on a machine that is not quiet. All nodes run throughout;
those that are not spoken to sleep.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from rclpy.qos import QoSProfile
from report import CONSOLE

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.messages.fields import STATE_FIELDS
from eom_dynamics.messages.samples import doubles
from eom_dynamics.ros.executors import make_executor, spin_until
from eom_dynamics.ros.interfaces import FeedforwardCommand, JointTrajectorySetpoint
from eom_dynamics.trajectory import paper_motion

HERE = Path(__file__).parent
WINDOW = 0.5
# At the start of each window: the first setpoints after a pause are slower with every node.
SETTLE = 50


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="round_trip", description=__doc__)
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--robot", type=Path, default=HERE.parent / "config" / "iiwa.yaml", help="parameter file")
    parser.add_argument("--rounds", type=int, default=10, help="windows of each node; default: %(default)d")
    parser.add_argument("--beside", type=Path, help="root of another checkout")
    parser.add_argument("--executor", default="events")
    parser.add_argument("--realtime", type=int, default=0, help="SCHED_FIFO priority of all processes, echo included")
    options = parser.parse_args()
    if options.realtime:  # threads and processes inherit it: others on the machine then do not count
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(options.realtime))
    os.environ["ROS_DOMAIN_ID"] = str(random.SystemRandom().randrange(1, 102))
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    trees = {"dynamics node": HERE.parent} | ({"other checkout": options.beside.resolve()} if options.beside else {})
    started = {"echo": _start([HERE / "echo.py"], HERE.parent, "/echo")}
    config = options.robot.resolve()
    for name, tree in trees.items():
        arguments = ["-m", "eom_dynamics.ros.dynamics_node", "--ros-args", "--params-file", config]
        arguments += ["-p", f"executor:={options.executor}"]
        started[name] = _start(arguments, tree, _namespace(name))
    try:
        figures = _measure(list(started), config, options.rate, options.rounds)
    finally:
        for process in started.values():
            process.terminate()
        for process in started.values():
            process.wait()
    echo = figures["echo"]
    CONSOLE.print(f"{options.rate:g} Hz, {options.rounds} windows of {WINDOW:g} s each; median of windows (pooled), µs")
    for name, (windows, pooled, lost) in figures.items():
        ratios = windows / echo[0]
        CONSOLE.print(
            f"{name:16s} p50 {windows[0]:7.1f} ({pooled[0]:7.1f})  p99 {windows[1]:7.1f} ({pooled[1]:7.1f})  "
            f"× echo: {ratios[0]:.2f} ({pooled[0] / echo[1][0]:.2f})  {ratios[1]:.2f} ({pooled[1] / echo[1][1]:.2f})"
            f"  lost {lost}"
        )


def _namespace(name: str) -> str:
    return "/" + name.replace(" ", "_")


def _start(arguments: list[Any], tree: Path, namespace: str) -> subprocess.Popen[bytes]:
    if "--ros-args" not in arguments:
        arguments = [*arguments, "--ros-args"]
    environment = os.environ | {"PYTHONPATH": str(tree)}
    command = [sys.executable, *map(str, arguments), "-r", f"__ns:={namespace}"]
    return subprocess.Popen(command, env=environment, cwd=tree, stderr=subprocess.DEVNULL)


def _measure(names: list[str], config: Path, rate: float, rounds: int) -> dict[str, tuple[Any, Any, int]]:
    rclpy.init()
    node = rclpy.create_node("measuring")
    executor = make_executor(events=True)
    executor.add_node(node)
    sent: dict[int, float] = {}
    trips: dict[int, float] = {}

    def answered(command: Any) -> None:
        now = time.monotonic()
        stamp = command.header.stamp.sec * 1_000_000_000 + command.header.stamp.nanosec
        if stamp in sent:
            trips[stamp] = now - sent[stamp]

    publishers, subscriptions = {}, []
    for name in names:
        namespace = _namespace(name)
        publishers[name] = node.create_publisher(
            JointTrajectorySetpoint, f"{namespace}/setpoint", QoSProfile(depth=1000)
        )
        subscriptions.append(
            node.create_subscription(FeedforwardCommand, f"{namespace}/feedforward", answered, QoSProfile(depth=1000))
        )
    robot = load_robot(config)
    message = JointTrajectorySetpoint(joint_names=list(robot.joint_names))
    side = ElasticArm(robot).side
    if side.variable.any():
        message.stiffness = doubles(side.nominal_stiffness)
        message.stiffness_rate = message.stiffness_acceleration = doubles(np.zeros(robot.n))
    count = round(WINDOW * rate) + SETTLE
    states = 0.2 * np.array(paper_motion(robot.n).derivatives(np.arange(count) / rate))
    stamp = 0

    def send(name: str, k: int) -> int:
        nonlocal stamp
        stamp += 1_000_000
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 1_000_000_000)
        for field, row in zip(STATE_FIELDS, states[:, k], strict=True):
            setattr(message, field, doubles(row))
        sent[stamp] = time.monotonic()
        publishers[name].publish(message)
        return stamp

    for name in names:
        deadline = time.monotonic() + 30
        first = send(name, 0)
        while not any(stamp in trips for stamp in range(first, stamp + 1, 1_000_000)):
            send(name, 0)
            spin_until(executor, time.monotonic() + 0.05)
            assert time.monotonic() < deadline, f"{name} does not answer"
    gc.collect()
    gc.freeze()
    gc.disable()
    windows: dict[str, list[Any]] = {name: [] for name in names}
    for round_ in range(rounds):
        for k in range(len(names)):
            name = names[(round_ + k) % len(names)]
            own = []
            start = time.monotonic() + 0.02
            for i in range(count):
                spin_until(executor, start + i / rate)
                own.append(send(name, i))
            spin_until(executor, time.monotonic() + 0.05)
            windows[name].append(np.array([trips.get(stamp, np.nan) for stamp in own[SETTLE:]]) * 1e6)
    node.destroy_node()
    rclpy.try_shutdown()
    figures = {}
    for name, each in windows.items():
        percents = [np.nanpercentile(window, (50, 99)) for window in each]
        pooled = np.concatenate(each)
        figures[name] = (
            np.median(percents, axis=0),
            np.nanpercentile(pooled, (50, 99)),
            int(np.sum(np.isnan(pooled))),
        )
    return figures


if __name__ == "__main__":
    main()
