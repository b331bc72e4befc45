# SPDX-License-Identifier: Apache-2.0
"""What the node sends to drives under ``safety: strict`` when sources of motion change, and inputs misbehave."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from node_client import stamp_of
from sent_oracle import SentOracle
from std_msgs.msg import Float64

import eom_dynamics as eom
from eom_dynamics.arrays import Array
from eom_dynamics.control.robot_table import limits_of
from eom_dynamics.control.trajectories import write_spline
from eom_dynamics.ros.interfaces import SplineTrajectory
from eom_dynamics.trajectory import through

QUIET = {"panda": np.array([0.0, -0.5, 0.0, -1.5, 0.0, 1.5, 0.5]), "ur5e": np.array([0, -1.2, 1.3, -1.0, -1.5, 0.0])}
LATE = 0.03
"""Time that a step may take beyond that between two stamps, s: a cycle is late, and this process, too."""


class Drives:
    """A node under strict, what it is told, and what its motors are sent.

    Attributes:
        home: position at which the stream begins, (n,).
    """

    def __init__(self, start: Any, robot: str, *parameters: str) -> None:
        words = [word for x in (f"robot_file:={robot}", "safety:=strict", *parameters) for word in ("-p", x)]
        self.client, self.arm, self.home = start(*words), eom.ElasticArm(eom.load_robot(robot)), QUIET[robot]
        self._oracle = SentOracle(self.arm)
        # Before a stream, which ends while a subscriber is awaited.
        kinds = {"spline_trajectory": SplineTrajectory, "speed_scaling": Float64}
        self.publishers = {topic: self.client.publisher(kind, topic) for topic, kind in kinds.items()}
        speed = limits_of(self.arm)["motor_speed"]
        self._speed = np.where(np.isfinite(speed), speed, 0.5)

    @property
    def now(self) -> int:
        return int(self.client.node.get_clock().now().nanoseconds)

    def column(self, name: str) -> Array:
        """Positions or efforts of all commands so far, in the order of the arm's motors (N, m)."""
        sent = self.client.motor_setpoint
        order = [list(sent[0].name).index(motor) for motor in self.arm.motor_names]
        return np.array([getattr(message, name) for message in sent])[:, order]

    def setpoint(self, state: Array, stamp: int = 0, **fields: Any) -> None:
        """Send one with a stamp, ns, by default of now."""
        seconds, at = divmod(stamp or self.now, 10**9)
        self.client.publish(state, at=at, seconds=seconds, **fields)

    def rest(self, count: int, **fields: Any) -> None:
        """Stream setpoints at rest at home, of which the first is answered."""
        state = np.stack([self.home, *np.zeros((4, self.arm.robot.n))])
        if not self.client.motor_setpoint:
            self.client.repeat(lambda: self.setpoint(state), lambda: self.client.motor_setpoint, "a command")
        for _ in range(count):
            self.setpoint(state, **fields)
            self.client.spin(0.003)

    def play(self, times: list[float], positions: list[Array]) -> None:
        """Send a trajectory through positions."""
        names = list(self.arm.robot.joint_names)
        message = SplineTrajectory(joint_names=names)
        write_spline(message, through(times, positions), names)
        self.publishers["spline_trajectory"].publish(message)

    def check(self) -> None:
        """All commands are finite, within limits of effort, and steps are those of motors in the time between."""
        position, effort = self.column("position"), self.column("effort")
        assert np.isfinite(position).all() and np.isfinite(effort).all()
        assert (np.abs(effort) <= self._oracle.effort * (1 + 1e-9)).all(), np.abs(effort).max(axis=0)
        for joint in self._oracle.pairs:
            both = effort[:, self._oracle.motor_joint == joint].sum(axis=1)
            assert (np.abs(both) <= self._oracle.joint_effort[joint] * (1 + 1e-9)).all()
        since = np.maximum(np.diff([stamp_of(message) for message in self.client.motor_setpoint]) * 1e-9, 0)
        steps = np.abs(np.diff(position, axis=0))
        beyond = steps - self._speed * (since[:, None] + LATE) - 1e-3
        assert (beyond <= 0).all(), f"steps of {steps.max():.3g} rad, {beyond.max():.3g} too far"


@pytest.mark.parametrize("robot", ["panda"])
def test_a_speed_that_jumps_makes_no_step(start: Any, robot: str) -> None:
    """At 20 Hz, as from a slider: efforts stepped by 341 N m, to twice their limits."""
    drives, rng = Drives(start, robot), np.random.default_rng(3)
    drives.rest(20)
    drives.client.spin(0.3)  # the stream ends
    ends = [drives.home + 0.3 * rng.uniform(-1, 1, drives.arm.robot.n) for _ in range(2)]
    drives.play([0.0, 1.0, 2.0, 3.0], [drives.home, ends[0], ends[1], ends[0]])
    first = len(drives.client.motor_setpoint)
    drives.client.wait(lambda: len(drives.client.motor_setpoint) > first, "the trajectory")
    for _ in range(60):
        drives.publishers["speed_scaling"].publish(Float64(data=float(rng.uniform(0, 1.5))))
        drives.client.spin(0.05)
    drives.check()
    assert np.abs(np.diff(drives.column("position"), axis=0)).max() > 1e-4  # it was played
    assert np.abs(np.diff(drives.column("effort"), axis=0)).max() < 20.0


@pytest.mark.parametrize("robot", ["panda", "ur5e"])
def test_a_setpoint_ahead_of_its_time_waits_for_it(start: Any, robot: str) -> None:
    """Stamped 90 ms ahead, it was answered at once: 250 mrad in a command."""
    drives, w = Drives(start, robot, "setpoint_timeout:=2.0"), 3.0
    amplitude, begin = 0.3 if robot == "panda" else 0.8, drives.now

    def state(stamp: int) -> Array:
        t = (stamp - begin) * 1e-9
        rows = [1 - np.cos(w * t), *(w**k * np.sin(w * t + (k - 1) * np.pi / 2) for k in range(1, 5))]
        return np.outer(amplitude * np.array(rows), np.ones(drives.arm.robot.n)) + np.outer(np.eye(5)[0], drives.home)

    for _ in range(150):
        now = drives.now
        drives.setpoint(state(now), now)
        drives.client.spin(0.004)
    stamp = drives.now + 90_000_000
    there = drives.arm.feedforward(*state(stamp)).motor_position
    drives.setpoint(state(stamp), stamp)
    drives.client.wait(lambda: np.allclose(drives.column("position")[-1], there, rtol=0, atol=1e-7), "the answer")
    assert drives.now > stamp - LATE * 1e9
    assert "early setpoints" in drives.client.next_diagnostics()[2]
    drives.check()
