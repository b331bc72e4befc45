# SPDX-License-Identifier: Apache-2.0
"""An arm that was moved while nothing was commanded, or that does not follow: nothing leads it back by a jump."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from node_client import joint_trajectory
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

import eom_dynamics as eom
from eom_dynamics.control.trajectories import write_spline
from eom_dynamics.ros.interfaces import SplineTrajectory, TrajectoryStatus
from eom_dynamics.trajectory import through

PANDA = eom.load_robot("panda")
NAMES = list(PANDA.joint_names)
HOME = np.array([0.0, -0.5, 0.0, -1.5, 0.0, 1.5, 0.5])
MOVED = HOME + np.array([0.4, 0.0, 0.0, -0.4, 0.0, 0.0, 0.0])
ONWARD = MOVED + np.array([0.1, 0, 0, 0, 0, 0, 0])

DEFLECTION = 5e-3  # rad, of motors from links at rest


class MovedArm:
    """A node of an arm with positions published by a process, as set by the test.

    Attributes:
        q: position of the arm, (7,).
    """

    def __init__(self, client: Any) -> None:
        self.client, self.q = client, HOME.copy()
        states = client.publisher(JointState, "joint_states")
        self.targets = client.publisher(JointState, "target")
        # As drives have it that follow, unless they are off.
        self.follows = True
        self._timer = client.node.create_timer(0.01, lambda: states.publish(self._state()))

    def _state(self) -> JointState:
        if self.follows and self.client.motor_setpoint:
            self.q = self.commanded[-1]
        return JointState(name=NAMES, position=self.q.tolist())

    @property
    def commanded(self) -> np.ndarray:
        """Positions of all commands so far, (N, 7)."""
        sent = self.client.motor_setpoint
        order = [list(sent[-1].name).index(name) for name in NAMES] if sent else []
        return np.array([message.position for message in sent]).reshape(-1, 7)[:, order or slice(None)]

    def aim(self, q: np.ndarray) -> None:
        self.targets.publish(JointState(name=NAMES, position=q.tolist()))

    def stand(self) -> None:
        """Stream setpoints at rest, for 0.4 s."""
        for _ in range(20):
            self.setpoint(HOME)
            self.client.spin(0.02)

    def arrive(self, q: np.ndarray) -> None:
        """Go to a target, and wait for a report of it."""
        self.client.spin(0.2)
        self.aim(q)
        self.client.wait_for_diagnostics(
            lambda *status: status[2].get("target") == "reached" and self.is_near(q), "arrival at the target"
        )

    def is_near(self, q: np.ndarray) -> bool:
        return bool(len(self.commanded)) and bool(np.abs(self.commanded[-1] - q).max() < 2 * DEFLECTION)

    def set_down(self, q: np.ndarray) -> None:
        """Move the arm with its drives off, and clear the received commands."""
        self.follows = False
        self.q = q
        self.client.spin(0.4)
        self.client.motor_setpoint.clear()

    def setpoint(self, q: np.ndarray) -> None:
        stamp = self.client.node.get_clock().now().nanoseconds
        self.client.publish(np.stack([q, *np.zeros((4, 7))]), at=stamp % 10**9, seconds=stamp // 10**9)

    def refused(self, key: str, text: str) -> None:
        self.client.wait_for_diagnostics(lambda *status: text in status[2].get(key, ""), text)

    def play(self, start: np.ndarray, end: np.ndarray) -> None:
        """Play a trajectory to its end, and wait for the report of it."""
        statuses = self.client.collect(TrajectoryStatus, "trajectory_status")
        assert self.trajectory(start, end).status == TrajectoryStatus.ACCEPTED
        self.client.wait(lambda: [x for x in statuses if x.status == TrajectoryStatus.FINISHED], "the end")

    def trajectory(self, start: np.ndarray, end: np.ndarray) -> TrajectoryStatus:
        """Send one, and return the first status that is not an older one's."""
        statuses = self.client.collect(TrajectoryStatus, "trajectory_status")
        publisher = self.client.publisher(SplineTrajectory, "spline_trajectory")
        self.client.wait(self.client._subscriptions[-1].get_publisher_count, "the node")
        message = SplineTrajectory(joint_names=NAMES)
        write_spline(message, through([0.0, 2.0], [start, end]), NAMES)
        publisher.publish(message)
        self.client.wait(lambda: statuses, "an answer")
        return statuses[0]


@pytest.fixture
def arm(start: Any) -> Iterator[MovedArm]:
    """At a reached target under the defaults, without further commands."""
    arm = MovedArm(start("-p", "robot_file:=panda", "-p", "safety:=strict"))
    arm.arrive(HOME)
    yield arm
    arm.client.node.destroy_timer(arm._timer)


def aimed_elsewhere(arm: MovedArm) -> None:
    arm.follows = True
    arm.aim(ONWARD)
    arm.client.wait(lambda: arm.is_near(ONWARD), "arrival")


def played_from_its_old_command(arm: MovedArm) -> None:
    status = arm.trajectory(HOME, ONWARD)
    assert status.status == TrajectoryStatus.REFUSED
    assert "where it is measured before any command or after a pause" in status.message
    assert arm.trajectory(MOVED, ONWARD).status == TrajectoryStatus.ACCEPTED
    arm.follows = True
    arm.client.wait(lambda: arm.is_near(ONWARD), "arrival")


def streamed(arm: MovedArm) -> None:
    for _ in range(3):
        arm.setpoint(HOME)
        arm.client.spin(0.05)
    arm.refused("last refusal", "fer_joint1 is 0.4 rad from where the arm is, more than 0.01")
    assert not arm.client.motor_setpoint
    arm.client.repeat(lambda: arm.setpoint(MOVED), lambda: arm.is_near(MOVED), "a command")


@pytest.mark.parametrize("act", [aimed_elsewhere, played_from_its_old_command, streamed])
def test_an_arm_that_was_moved_while_nothing_was_commanded_is_not_thrown_back(
    arm: MovedArm, act: Callable[[MovedArm], None]
) -> None:
    arm.set_down(MOVED)
    level, message, _ = arm.client.next_diagnostics()
    assert level == 1 and not arm.client.motor_setpoint
    assert message == "target commanded, not reached: fer_joint1 is measured 0.4 rad from where it was commanded"
    act(arm)
    path = np.vstack([MOVED, arm.commanded])
    assert len(path) > 1 and np.abs(np.diff(path, axis=0)).max() < 0.05
    assert "fer_joint1 is measured 0.4 rad from where it was commanded" in arm.client.process.log


def test_an_arm_that_does_not_follow_takes_no_target_and_no_trajectory_until_it_does(start: Any) -> None:
    """Commands go on, since the stream has ended, and the node holds the arm."""
    arm = MovedArm(start("-p", "robot_file:=panda", "-p", "safety:=strict", "-p", "stop_duration:=0.05"))
    arm.client.spin(0.2)
    arm.stand()
    arm.client.wait(lambda: arm.client.values["watchdog"] == "held", "the end of the stream")
    arm.set_down(HOME + np.array([1.5, 0, 0, 0, 0, 0, 0]))
    arm.client.wait(lambda: arm.client.motor_setpoint, "commands")
    arm.aim(ONWARD)
    arm.refused("last refused target", "further than 0.05 rad or m, and start_tolerance, from its command")
    status = arm.trajectory(HOME, ONWARD)
    assert status.status == TrajectoryStatus.REFUSED and "have its drives follow" in status.message
    assert "have its drives follow" in arm.client.call(SetBool, "pause", SetBool.Request(data=False)).message
    assert np.abs(arm.commanded - HOME).max() < DEFLECTION
    arm.follows = True
    arm.client.spin(0.3)
    arm.aim(ONWARD)
    arm.client.wait(lambda: arm.is_near(ONWARD), "arrival")


def test_without_joint_states_commands_count_as_where_the_arm_is_and_that_is_said_once(start: Any) -> None:
    client = start("-p", "robot_file:=panda", "-p", "safety:=strict")
    arm = MovedArm(client)
    client.node.destroy_timer(arm._timer)
    for _ in range(3):
        client.repeat(lambda: arm.setpoint(HOME), lambda: client.motor_setpoint, "a command")
    client.spin(1.2)
    for q in (ONWARD, HOME):
        arm.aim(q)
        client.wait(lambda q=q: arm.is_near(q), "arrival")
        client.spin(0.3)
    for text in ("the start is not compared with the measured position", "the last command counts as the position"):
        assert client.process.log.count(text) == 1


def spline(arm: MovedArm, start: Any) -> None:
    arm.play(HOME, ONWARD)


def fitted(arm: MovedArm, start: Any) -> None:
    """A trajectory of a planner."""
    statuses = arm.client.collect(TrajectoryStatus, "trajectory_status")
    publisher = arm.client.publisher(JointTrajectory, "joint_trajectory")
    publisher.publish(joint_trajectory(NAMES, [0.0, 1.0], [HOME, HOME + 0.1]))
    arm.client.wait(lambda: [x for x in statuses if x.status == TrajectoryStatus.FINISHED], "the end")


def chunk(arm: MovedArm, start: Any) -> None:
    publisher = arm.client.publisher(JointTrajectory, "target_trajectory")
    publisher.publish(joint_trajectory(NAMES, [0.1, 0.2, 0.3], [HOME, HOME + 0.02, HOME + 0.04]))
    arm.client.wait_for_diagnostics(
        lambda *status: status[2].get("target") == "reached" and arm.is_near(HOME + 0.04), "arrival"
    )


def target(arm: MovedArm, start: Any) -> None:
    arm.arrive(HOME + 0.05)


def empty_trajectory(arm: MovedArm, start: Any) -> None:
    """A stop at rest."""
    arm.client.publisher(SplineTrajectory, "spline_trajectory").publish(SplineTrajectory())
    arm.client.wait_for_diagnostics(lambda *status: "target" not in status[2], "the end of the target")


def lost_stream(arm: MovedArm, start: Any) -> None:
    """Without further commands: on_setpoint_loss none."""
    assert arm.client.transition("deactivate")
    assert arm.client.set_parameter("on_setpoint_loss", "none") == ""
    assert arm.client.transition("activate")
    arm.client.spin(0.2)
    arm.stand()
    arm.client.wait(lambda: arm.client.values["watchdog"] == "lost", "the end of the stream")


@pytest.mark.parametrize("source", [spline, fitted, chunk, target, empty_trajectory, lost_stream])
def test_an_arm_that_is_moved_after_the_end_of_any_source_is_located_again(
    arm: MovedArm, source: Callable[[MovedArm, Any], None], start: Any
) -> None:
    """Each time: once by a trajectory, and then by a target."""
    source(arm, start)
    arm.set_down(MOVED)
    arm.follows = True
    arm.play(MOVED, ONWARD)
    arm.set_down(MOVED)
    arm.follows = True
    arm.aim(HOME)
    arm.client.wait(lambda: arm.is_near(HOME), "arrival")
    path = np.vstack([MOVED, arm.commanded])
    assert np.abs(np.diff(path, axis=0)).max() < 0.05
