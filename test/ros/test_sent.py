# SPDX-License-Identifier: Apache-2.0
"""What the node sends to drives under ``safety: strict`` when sources of motion change, and inputs misbehave."""

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from node_client import stamp_of
from sensor_msgs.msg import JointState
from sent_oracle import SentOracle
from std_msgs.msg import Float64

import eom_dynamics as eom
from eom_dynamics.arrays import Array
from eom_dynamics.control.robot_table import limits_of
from eom_dynamics.control.trajectories import write_spline
from eom_dynamics.ros.interfaces import SplineTrajectory
from eom_dynamics.trajectory import through

QUIET = {
    "panda": np.array([0.0, -0.5, 0.0, -1.5, 0.0, 1.5, 0.5]),
    "ur5e": np.array([0, -1.2, 1.3, -1.0, -1.5, 0.0]),
    "vsa_planar_2r": np.array([0.3, 0.4]),
    "sea_planar_2r": np.array([0.2, 0.3]),
}
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
        kinds = {"target": JointState, "spline_trajectory": SplineTrajectory, "speed_scaling": Float64}
        self.publishers = {topic: self.client.publisher(kind, topic) for topic, kind in kinds.items()}
        # Motors of variable stiffness also follow that: their steps are those of one setpoint of a slow ramp.
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

    def aim(self, q: Array) -> None:
        names = list(self.arm.robot.joint_names)
        self.publishers["target"].publish(JointState(name=names, position=[*map(float, q)]))

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


@pytest.mark.parametrize("robot", ["panda", "ur5e"])
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


def test_a_target_after_noisy_rates(start: Any) -> None:
    """Rates are differences of float32, the target is 0.05 rad away: it went 2.4 rad, at 1.9 times its velocity."""
    drives, rng, w, h = Drives(start, "panda"), np.random.default_rng(1), np.pi, 1e-3
    drives.rest(20)
    begin, state = drives.now, np.zeros((5, 7))
    noise = 6e-8 * np.sqrt([1, 2, 6, 20, 70])[:, None] / h ** np.arange(5)[:, None]
    for _ in range(60):
        t = (drives.now - begin) * 1e-9
        rows = [1 - np.cos(w * t), *(w**k * np.sin(w * t + (k - 1) * np.pi / 2) for k in range(1, 5))]
        state = np.outer(0.05 * np.array(rows), np.ones(7)) + noise * rng.normal(size=(5, 7))
        state[0] += drives.home
        drives.setpoint(state)
        drives.client.spin(0.003)
    at = state[0].copy()
    drives.aim(at + 0.05)
    sent = drives.client.motor_setpoint
    drives.client.wait(
        lambda: np.allclose(drives.column("position")[-1], at + 0.05, rtol=0, atol=0.01) and not any(sent[-1].velocity),
        "arrival",
    )
    drives.check()
    assert np.abs(drives.column("position") - at).max() < 0.05 + 0.12  # of the stream before, and its velocity


@pytest.mark.parametrize(("limits", "row", "values"), [("refuse", 4, (1e7, 1e154)), ("clip", 2, (-100.0, 100.0))])
def test_efforts_of_motors_are_within_limits(start: Any, limits: str, row: int, values: tuple[float, ...]) -> None:
    """Of snap that a link hardly feels, and of acceleration: they were 4.8e149 N m and 312."""
    drives = Drives(start, "panda", f"limits:={limits}", *["jump_check:=ignore"] * (limits == "clip"))
    drives.rest(20)
    for value in values:
        state = np.stack([drives.home, *np.zeros((4, 7))])
        state[row, 1] = value
        drives.setpoint(state)
        drives.rest(5)
    drives.client.spin(0.2)
    drives.check()


class Pushed(Drives):
    """An arm on springs, whose measured motors a hand moves.

    Attributes:
        motors: where they are, (m,).
        measured: whether the node is told.
    """

    def __init__(self, start: Any, robot: str, stiffness: float) -> None:
        parameters = f"stiffness:=[{stiffness}]", "setpoint_timeout:=0.0", "on_setpoint_loss:=none"
        super().__init__(start, robot, *parameters)
        self.rest(5)
        self.start = self.motors = self.column("position")[-1]
        self.measured = False
        # The node subscribes to it for a mode that needs it, which ends after 0.1 s without it.
        self._told = self.client.node.create_publisher(JointState, "motor_states", 10)
        self._towards, self._ends = self.start, threading.Event()
        self._thread = threading.Thread(target=self._tell)
        self._thread.start()

    def end(self) -> None:
        self._ends.set()
        self._thread.join()

    def _tell(self) -> None:
        names, rest = list(self.arm.motor_names), [0.0] * len(self.start)
        while not self._ends.wait(0.005):
            if self.measured:
                self.motors = self.motors + np.clip(self._towards - self.motors, -0.005, 0.005)
                message = JointState(name=names, position=[*self.motors], velocity=rest)
                message.header.stamp = self.client.node.get_clock().now().to_msg()
                self._told.publish(message)

    def push(self, way: Array) -> None:
        """Move away on springs; again from the start, where a busy machine has measured no motors for 0.1 s."""
        for _ in range(5):
            self.motors, self._towards, self.measured = self.start, self.start, True
            while self.client.next_diagnostics()[2].get("mode") != "impedance":
                assert not self.client.set_parameter("mode", "impedance")
            self.client.motor_setpoint.clear()
            self._towards = self.start + way
            self.client.wait(lambda: np.allclose(self.motors, self._towards, rtol=0, atol=1e-6), "the push")
            if self.client.next_diagnostics()[2].get("mode") == "impedance":
                return
            assert self.client.transition("deactivate") and self.client.transition("activate")
            self.client.motor_setpoint.clear()
            self.rest(5)
        pytest.skip("motors were not measured for 0.1 s, five times: the machine is too busy")


@pytest.fixture
def pushed(start: Any) -> Iterator[Any]:
    """Start a node of a robot with joints on springs; return its arm."""
    arms: list[Pushed] = []

    def make(*arguments: Any) -> Pushed:
        arms.append(Pushed(start, *arguments))
        return arms[-1]

    yield make
    for arm in arms:
        arm.end()


@pytest.mark.parametrize(
    ("robot", "joint", "way", "ask"),
    [("panda", 3, 1.46, True), ("panda", 0, 1.5, False), ("sea_planar_2r", 0, 1.5, True)],
)
def test_an_arm_that_was_pushed_away_stays_there(pushed: Any, robot: str, joint: int, way: float, ask: bool) -> None:
    """From springs to references, on request or since motors are lost: it was sent 1.5 rad back, at 217 of 87 N m."""
    arm = pushed(robot, 150.0 if robot == "sea_planar_2r" else 100.0)
    arm.push(way * np.eye(len(arm.start))[joint])
    if ask:
        assert not arm.client.set_parameter("mode", "position")
    else:
        arm.measured = False
    arm.client.wait_for_diagnostics(lambda *status: status[2].get("mode") != "impedance", "the mode")
    arm.client.spin(0.5)
    arm.check()
    moved = arm.column("position")[-1] - arm.start
    assert abs(moved[joint] - way) < 0.1, "it is referred to somewhere else"


@pytest.mark.parametrize(
    ("robot", "then"), [("vsa_planar_2r", "setpoints"), ("vsa_planar_2r", "target"), ("panda", "trajectory")]
)
def test_a_wrench_and_a_stiffness_do_not_end_by_a_step(start: Any, robot: str, then: str) -> None:
    """What follows has none: motors stepped by 0.225 rad, efforts by that of the wrench."""
    joints = eom.load_robot(robot).joint_names
    lacking = {"velocity": 1.0, "acceleration": 5.0} if robot == "vsa_planar_2r" else {}
    limits = [f"urdf.joints.{name}.limits.{key}:={value}" for name in joints for key, value in lacking.items()]
    drives = Drives(start, robot, *limits)
    for share in np.linspace(0, 1, 200):
        if robot == "panda":
            drives.rest(1, wrench=share * np.array([[0, 0, 0, 0, 0, 60.0]]))
        else:
            drives.rest(1, stiffness=(1 - share) * np.array([250.0, 120.0]) + share * np.array([600.0, 300.0]))
    before = len(drives.client.motor_setpoint)
    if then == "target":
        drives.aim(drives.home + 0.1)
    elif then == "trajectory":
        drives.play([0.0, 1.0], [drives.home, drives.home + 0.1])
    else:
        drives.rest(40)
    drives.client.wait(lambda: len(drives.client.motor_setpoint) > before + 15 > 150, "commands")
    drives.check()
    if then != "setpoints":
        assert np.abs(np.diff(drives.column("position"), axis=0)).max() < 0.05
        assert np.abs(np.diff(drives.column("effort"), axis=0)).max() < 10.0


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
