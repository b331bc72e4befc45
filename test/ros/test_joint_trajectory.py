# SPDX-License-Identifier: Apache-2.0
"""Trajectories on the topic joint_trajectory: fitted and played, or refused.

Time comes from a clock of the test, so that nothing depends on the machine's load.
"""

import numpy as np
import pytest
from eom_dynamics.msg import TrajectoryStatus
from node_client import FEW_WARNINGS, joint_trajectory, stamp_of
from paths import CONFIG
from rosgraph_msgs.msg import Clock
from trajectory_msgs.msg import JointTrajectory

import eom_dynamics as eom
from eom_dynamics.control.fields import COMMAND_FIELDS
from eom_dynamics.trajectory import through

ROBOT = eom.load_robot(CONFIG / "planar_2r.yaml")
NAMES = list(ROBOT.joint_names)
ARM = eom.ElasticArm(ROBOT)
RATE = 50
PERIOD = 10**9 // RATE
TIMES = np.array([0.0, 0.3, 0.8])
POSITIONS = np.array([[0.0, 0.5], [0.4, 0.2], [0.3, -0.1]])


class Stack:
    """A dynamics node and its clock."""

    def __init__(self, start):
        arguments = (
            *("--params-file", CONFIG / "planar_2r.yaml", "-p", f"stream_rate:={RATE}.0", FEW_WARNINGS),
            *("-p", "use_sim_time:=true", "-r", "/clock:={namespace}/clock"),
        )
        self.node = start(*arguments)
        self._clock = self.node.publisher(Clock, "clock")
        self._trajectories = self.node.publisher(JointTrajectory, "joint_trajectory")
        self.statuses, self.now = self.node.collect(TrajectoryStatus, "trajectory_status"), 0
        self.node.repeat(
            lambda: self.send(stamp=1),
            lambda: "there is no time on /clock yet" in self.refusal and self.statuses,
            "discovery",
        )

    def send(self, *given, **options):
        self._trajectories.publish(message(*given, **options))

    @property
    def refusal(self):
        """Reason of the last refusal."""
        return self.node.values.get("last refused trajectory", "")

    def told(self, frame):
        """Statuses of the trajectory with a frame, and their messages."""
        return [(status.status, status.message) for status in self.statuses if status.header.frame_id == frame]

    def _clock_at(self, nanoseconds):
        """A function that publishes a time."""
        message, self.now = Clock(), nanoseconds
        message.clock.sec, message.clock.nanosec = divmod(nanoseconds, 10**9)
        return lambda: self._clock.publish(message)

    def tick(self, nanoseconds):
        """Set the clock, and wait until the node has seen it."""
        show = self._clock_at(nanoseconds)
        self.node.repeat(show, lambda: stamp_of(self.node.diagnostics[-1]) == nanoseconds, "time")

    def play(self, until):
        """Advance time in steps of the stream, each after the previous command."""
        while self.now < until:
            self.node.repeat(
                self._clock_at(self.now + PERIOD),
                # The last command has the rounded stamp of the end.
                lambda: self.node.feedforward and stamp_of(self.node.feedforward[-1]) >= self.now - 1000,
                f"the command of {self.now}",
            )

    def wait_until_playing(self):
        self.node.wait_for_diagnostics(lambda *s: "trajectory" in s[2], "the trajectory")

    def restart(self):
        """Reset the positions of the joints in the node; time begins at 100 s."""
        client = self.node
        while client.state != "active":
            assert client.transition("activate")
        assert client.transition("deactivate")
        assert client.transition("activate")
        self.tick(self.now + 10 * 10**9 if self.now else 100 * 10**9)
        for answers in (client.feedforward, client.motor_setpoint, client.effort_command, self.statuses):
            answers.clear()


@pytest.fixture(scope="module")
def shared(start_shared):
    return Stack(start_shared)


@pytest.fixture
def stack(shared):
    shared.restart()
    return shared


def message(times=TIMES, positions=POSITIONS, stamp=None, names=NAMES, frame="here"):
    trajectory = joint_trajectory(names, times, positions)
    trajectory.header.frame_id = frame
    if stamp is not None:
        trajectory.header.stamp.sec, trajectory.header.stamp.nanosec = divmod(stamp, 10**9)
    return trajectory


def assert_commands(answers, begin, motion):
    """The answers are the feedforward of a motion that started at `begin`, ns."""
    t = np.array([stamp_of(answer) - begin for answer in answers]) * 1e-9
    # Stamps are whole nanoseconds, and so are the times of the waypoints.
    ahead = motion.derivatives(np.minimum(t, motion.end))
    for field, values in zip(COMMAND_FIELDS, ARM.feedforward(*ahead), strict=True):
        got = [getattr(answer, field) for answer in answers]
        np.testing.assert_allclose(got, values, rtol=0, atol=1e-6 * np.abs(values).max())
    return t


def test_two_are_played_from_their_stamps_on_the_second_in_place_of_the_first(stack):
    """A jump of the clock before the start does not end them."""
    begin, at, order = stack.now + 20 * 10**9, 0.46, [1, 0]
    first = through(TIMES, POSITIONS)
    stack.send(stamp=begin, names=[NAMES[i] for i in order], positions=POSITIONS[:, order])
    stack.wait_until_playing()
    stack.tick(begin - PERIOD)
    node = stack.node
    assert not node.feedforward
    stack.play(begin + PERIOD)
    positions = first.derivatives(at, 0)[0] + np.array([[0.0, 0.0], [0.3, 0.1], [0.1, 0.2]])
    stack.send(TIMES, positions, stamp=begin + round(at * 1e9))
    node.wait(lambda: stack.told("here").count((TrajectoryStatus.ACCEPTED, "")) == 2, "the second one")
    stack.play(begin + round((at + 0.8) * 1e9))
    t = assert_commands(node.feedforward[: int(at * RATE)], begin, first)
    np.testing.assert_allclose(t, np.arange(int(at * RATE)) / RATE, rtol=0, atol=1e-8)
    after = node.feedforward[int((at + 0.3) * RATE) + 1 :]
    assert_commands(after, begin + round(at * 1e9), through(TIMES, positions))
    assert {answer.header.frame_id for answer in node.feedforward} == {"here"}
    assert node.feedforward[0].joint_names == NAMES
    assert "trajectory" not in node.next_diagnostics()[2]
    assert len(node.effort_command) == len(node.motor_setpoint) == len(node.feedforward)


def test_it_goes_on_later_after_a_jump_of_the_clock_and_ends_where_the_clock_goes_back(stack):
    node, begin = stack.node, stack.now
    left_out = int(node.next_diagnostics()[2].get("trajectory commands left out", 0))
    stack.send(TIMES * 10)
    stack.wait_until_playing()
    stack.play(begin + PERIOD)
    stack.tick(begin + 10 * PERIOD)
    node.wait_for_diagnostics(lambda *s: int(s[2].get("trajectory commands left out", 0)) == left_out + 8, "commands")
    stack.tick(begin + 10 * PERIOD + 15 * 10**8)
    # Each of both late cycles counts 20 ms.
    late = "1.64 s lost in late cycles"
    node.wait_for_diagnostics(lambda *s: s[2].get("trajectory late", "").startswith(late), "the time that is lost")
    assert "trajectory late: 0.16 s lost" in node.process.log and len(stack.told("here")) == 1
    stack.tick(5 * 10**9)
    node.wait_for_diagnostics(lambda *s: "trajectory" not in s[2], "the end")
    assert "trajectory stopped: the clock went back by " in node.process.log


def test_what_cannot_be_played_is_refused_and_the_stream_goes_on(stack):
    def refused(*texts):
        stack.node.wait(lambda: any(text in stack.refusal for text in texts), texts[0])

    node = stack.node
    stack.send(names=["elbow", "wrist"])
    refused("the robot has no joint 'elbow'", "the robot has no joint 'wrist'")
    stack.send(positions=POSITIONS * 1e300)
    refused("the motion is too fast:")
    stack.send(stamp=stack.now - 5 * 10**9)
    refused("it ended 4.2 s ago")
    assert not any(x.goal_id for x in stack.statuses)
    assert not node.feedforward
    stack.send(TIMES * 100)
    stack.wait_until_playing()
    stack.play(stack.now + PERIOD)
    stack.send(positions=POSITIONS + 1.0)
    refused("from its commanded position")
    stack.play(stack.now + 3 * PERIOD)
    assert node.transition("deactivate")
    stack.send()
    refused("the node is inactive; it plays trajectories only when active")
    assert "trajectory" not in node.next_diagnostics()[2]
