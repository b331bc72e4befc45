# SPDX-License-Identifier: Apache-2.0
"""What the simulated robot does when setpoints are lost in motion, by policy, drawn.

``python bench/lost_setpoints.py docs/watchdog.png`` starts dynamics_node and simulated_robot_node for each policy,
streams the first half of a motion, stops, and draws joint and command. Time is that of a /clock that goes on when the
simulated robot has answered, so that a busy machine draws the same. It needs ROS 2.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import rclpy
from eom_dynamics.msg import FeedforwardCommand, JointTrajectorySetpoint
from matplotlib.figure import Figure
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from eom_dynamics import load_robot
from eom_dynamics.messages.fields import STATE_FIELDS
from eom_dynamics.messages.samples import doubles
from eom_dynamics.ros.stream_qos import stream_qos
from eom_dynamics.trajectory import rest_to_rest

ROBOT = "sea_planar_2r"
CONFIG = Path(__file__).parents[1] / "config" / f"{ROBOT}.yaml"
START = np.array([-1.2, 0.4])
MOTION = rest_to_rest(START, START + np.array([1.2, -0.8]), 1.6)

# Ticks of the clock, each with a setpoint, in Hz; times in s.
RATE, LOST, SHOWN = 500, 0.8, 3.0
TIMEOUT, STOP, RAMP = 0.02, 0.4, 1.0

# Policy, input of the drives, and title.
CASES = (
    ("none", "feedforward", "none\n(drives hold after 0.1 s)"),
    ("hold", "feedforward", "hold"),
    ("ramp", "feedforward", "ramp\n(drives with position control)"),
    ("ramp", "joint_effort", "ramp\n(drives with effort control)"),
    ("deactivate", "feedforward", "deactivate\n(drives hold after 0.1 s)"),
)
_PATIENCE = 120.0

# Longest wait for the simulated robot in a tick, and shortest time of one, s.
_TICK, _SHORTEST_TICK = 0.5, 0.003


class Run(NamedTuple):
    """Times since the first setpoint, s, and values of commands and joint states."""

    command_time: Any
    effort: Any
    status: Any
    joint_time: Any
    position: Any
    velocity: Any


class Recorder(Node):
    """Streams setpoints and records commands and joint states, with the time of their stamps."""

    def __init__(self, namespace: str) -> None:
        super().__init__("recorder", namespace=namespace)
        self.commands: list[Any] = []
        self.joints: list[Any] = []
        self.setpoints = self.create_publisher(JointTrajectorySetpoint, "setpoint", 100)
        self.clock = self.create_publisher(Clock, "clock", 100)
        self.create_subscription(FeedforwardCommand, "feedforward", self.commands.append, **stream_qos(1000))
        self.create_subscription(JointState, "joint_states", self.joints.append, **stream_qos(1000))

    def tick(self, ticks: int) -> None:
        """Set the clock."""
        message = Clock()
        message.clock.sec, message.clock.nanosec = _time(ticks)
        self.clock.publish(message)

    def send(self, ticks: int, t: float) -> None:
        """Publish the setpoint of a time of the motion, s."""
        message = JointTrajectorySetpoint()
        message.header.stamp.sec, message.header.stamp.nanosec = _time(ticks)
        for field, values in zip(STATE_FIELDS, MOTION.derivatives(t), strict=True):
            setattr(message, field, doubles(np.ascontiguousarray(values)))
        self.setpoints.publish(message)


def _time(ticks: int) -> tuple[int, int]:
    return divmod(ticks * 10**9 // RATE + 100 * 10**9, 10**9)


def seconds(message: Any) -> float:
    """Time of a stamp since the clock began, s."""
    return float(message.header.stamp.sec - 100 + 1e-9 * message.header.stamp.nanosec)


def run(policy: str, command: str, number: int) -> Run:
    """One motion with its loss."""
    namespace = f"/lost_{number}"
    effort = "joint" if command == "joint_effort" else "motor"
    options = {
        "dynamics_node": (
            f"on_setpoint_loss:={policy}",
            *(f"setpoint_timeout:={TIMEOUT}", f"stop_duration:={STOP}", f"ramp_duration:={RAMP}"),
            f"effort_command:={effort}",
        ),
        "simulated_robot_node": (f"command:={command}", f"initial_position:={START.tolist()}", "rate:=1000.0"),
    }
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", f"eom_dynamics.ros.{node}", "--ros-args", "--params-file", str(CONFIG)]
            + ["-r", f"__ns:={namespace}", "-r", f"/clock:={namespace}/clock", "-p", "use_sim_time:=true"]
            + ["-p", f"{'stream_rate' if node == 'dynamics_node' else 'publish_rate'}:={RATE:.1f}"]
            + [word for option in values for word in ("-p", option)],
            stderr=subprocess.DEVNULL,
        )
        for node, values in options.items()
    ]
    node = Recorder(namespace)
    executor = SingleThreadedExecutor()
    executor.add_node(node)

    ticks = 0

    def advance(t: float | None) -> None:
        """One tick, with a setpoint, until the simulated robot has answered it."""
        nonlocal ticks
        ticks += 1
        node.tick(ticks)
        if t is not None:
            node.send(ticks, t)
        begin = time.monotonic()
        while time.monotonic() < begin + _TICK:
            executor.spin_once(timeout_sec=_SHORTEST_TICK)
            answered = node.joints and seconds(node.joints[-1]) >= (ticks - 1.5) / RATE
            if answered and time.monotonic() > begin + _SHORTEST_TICK:
                break

    try:
        deadline = time.monotonic() + _PATIENCE
        # At rest at the start until it is answered, as the simulated robot holds its position until then.
        while len(node.commands) < 20 or not node.joints:
            assert time.monotonic() < deadline, "the nodes do not answer"
            advance(0.0)
        first = ticks / RATE
        for k in range(round(SHOWN * RATE)):
            advance(k / RATE if k <= LOST * RATE else None)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()
        executor.shutdown()
        node.destroy_node()
    commands = [m for m in node.commands if seconds(m) >= first]
    joints = [m for m in node.joints if seconds(m) >= first]
    status = np.array([m.status for m in commands])
    return Run(
        np.array([seconds(m) - first for m in commands]),
        np.array([m.effort for m in commands]),
        status,
        np.array([seconds(m) - first for m in joints]),
        np.array([m.position for m in joints]),
        np.array([m.velocity for m in joints]),
    )


def main() -> None:
    """Run all policies and draw them; print what the motion was."""
    rclpy.init()
    figure = Figure(figsize=(17, 8.2), layout="constrained")
    axes = figure.subplots(3, len(CASES), sharex=True, sharey="row")
    t = np.linspace(0.0, MOTION.end, 400)
    planned = MOTION.derivatives(t)
    names = load_robot(ROBOT).joint_names
    for number, (column, (policy, command, title)) in enumerate(zip(axes.T, CASES, strict=True)):
        found = run(policy, command, number)
        column[0].set_title(title)
        for axis, plan, measured in zip(column, planned, (found.position, found.velocity), strict=False):
            for j, colour in enumerate(("C0", "C1")):
                axis.plot(t, plan[:, j], colour, linestyle=":", linewidth=1)
                axis.plot(found.joint_time, measured[:, j], colour, label=names[j])
        for j, colour in enumerate(("C0", "C1")):
            column[2].plot(found.command_time, found.effort[:, j], f"{colour}.", markersize=2)
        for axis in column:
            axis.axvline(LOST, color="0.6", linewidth=1)
            axis.axvline(LOST + TIMEOUT, color="C3", linewidth=1)
            axis.grid(alpha=0.3)
        column[2].set_xlabel("time, s")
        after = found.joint_time > LOST
        accelerations = np.abs(np.gradient(found.velocity, found.joint_time, axis=0))[after]
        print(
            f"{policy:10} {command:12} {len(found.status)} commands, statuses {np.unique(found.status).tolist()}; "
            f"end {found.position[-1].round(3).tolist()} rad, "
            f"largest acceleration after the loss {np.max(accelerations):.3g} rad/s^2, "
            f"largest step of effort {np.max(np.abs(np.diff(found.effort, axis=0))):.3g} N m"
        )
    for axis, label in zip(axes[:, 0], ("position, rad", "velocity, rad/s", "commanded effort, N m"), strict=True):
        axis.set_ylabel(label)
    axes[0, 0].legend(loc="lower right")
    axes[0, 0].set_xlim(0.0, SHOWN)
    axes[0, 0].set_ylim(-2.5, 1.0)
    axes[1, 0].set_ylim(-4.0, 4.0)
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "watchdog.png", dpi=90)
    rclpy.try_shutdown()


if __name__ == "__main__":
    main()
