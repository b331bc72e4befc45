# SPDX-License-Identifier: Apache-2.0
"""Trajectories on the topic joint_trajectory of a real node: played as a stream, one after another, and refused."""

import time
from array import array

import numpy as np
import pytest
from node_client import CONFIG, PATIENCE

import eom_dynamics as eom
from eom_dynamics.stream.conversions import COMMAND_FIELDS, STATE_FIELDS
from eom_dynamics.trajectory import through

ROBOT = eom.load_robot(CONFIG / "planar_2r.yaml")
NAMES = list(ROBOT.joint_names)
ARM = eom.ElasticArm(ROBOT)
RATE = 200.0
ARGUMENTS = (
    *("--params-file", CONFIG / "planar_2r.yaml", "-p", "planning_services:=true"),
    *("-p", "diagnostic_period:=0.1", "-p", f"stream_rate:={RATE}"),
)
TIMES = np.array([0.0, 0.3, 0.8])

# From the sending of a trajectory to its begin, ns. One that is late is refused, and a shared machine may stall.
LEAD = 2_000_000_000
POSITIONS = np.array([[0.0, 0.5], [0.4, 0.2], [0.3, -0.1]])


@pytest.fixture(params=["events", "single_threaded"])
def node(start, request):
    client = start(*ARGUMENTS, "-p", f"executor:={request.param}")
    client.wait_for_diagnostics(lambda *status: status[2]["planning services"] == "ready", "the services")
    return client


@pytest.fixture
def send(node):
    """Publish a trajectory."""
    from trajectory_msgs.msg import JointTrajectory

    publisher = node.node.create_publisher(JointTrajectory, "joint_trajectory", 10)
    node.wait(publisher.get_subscription_count, "a subscriber of joint_trajectory")
    return lambda *arguments, **options: publisher.publish(message(*arguments, **options))


def message(times=TIMES, positions=POSITIONS, stamp=None, names=NAMES):
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    trajectory = JointTrajectory(joint_names=names)
    trajectory.header.frame_id = "here"
    if stamp is not None:
        trajectory.header.stamp.sec, trajectory.header.stamp.nanosec = divmod(stamp, 10**9)
    for t, row in zip(times, positions, strict=True):
        point = JointTrajectoryPoint(positions=array("d", row))
        point.time_from_start.sec, point.time_from_start.nanosec = divmod(round(t * 1e9), 10**9)
        trajectory.points.append(point)
    return trajectory


def stamp_of(answer):
    return answer.header.stamp.sec * 10**9 + answer.header.stamp.nanosec


def ended(node):
    """Whether what was under way has ended."""
    return "trajectory" not in node.next_diagnostics()[2]


def played(node, count=1):
    """The answers of the node, once the last trajectory has ended, with their times."""
    node.wait(lambda: len(node.feedforward) >= count, "commands")
    before = -1
    # Topics do not wait for each other: commands may come after the news of the end.
    while not ended(node) or before != len(node.feedforward):
        before = len(node.feedforward)
    answers = list(node.feedforward)
    return np.array([stamp_of(answer) for answer in answers], dtype=np.int64), answers


def refusal(node):
    _, _, values = node.wait_for_diagnostics(lambda *s: "last refused trajectory" in s[2], "the refusal")
    return values["last refused trajectory"]


def test_it_is_played_from_its_stamp_on(node, send):
    begin = time.time_ns() + LEAD
    order = [1, 0]
    send(stamp=begin, names=[NAMES[i] for i in order], positions=POSITIONS[:, order])
    stamps, answers = played(node)
    t = (stamps - begin) * 1e-9
    assert 0 <= t[0] <= 0.8
    assert t[-1] == pytest.approx(0.8, abs=1e-8)
    assert np.all(np.diff(t) > 0)
    # A busy machine may leave out some; none is between two periods, but the last.
    steps = np.diff(t[:-1]) * RATE
    np.testing.assert_allclose(steps, np.round(steps), rtol=0, atol=1e-5)
    # Stamps are whole nanoseconds, and so are the times of the waypoints.
    wanted = ARM.feedforward(*through(TIMES, POSITIONS).derivatives(t))
    for field, values in zip(COMMAND_FIELDS, wanted, strict=True):
        got = [getattr(answer, field) for answer in answers]
        np.testing.assert_allclose(got, values, rtol=0, atol=1e-6 * np.abs(values).max())
    assert {answer.header.frame_id for answer in answers} == {"here"}
    assert answers[0].joint_names == NAMES
    assert len(node.effort_command) == len(node.motor_setpoint) == len(answers)


def test_the_next_one_takes_over_smoothly(node, send):
    begin = time.time_ns() + LEAD
    first, at = through(TIMES, POSITIONS), 0.45
    start = first.derivatives(at, 0)[0]
    send(stamp=begin)
    second = np.array([start, start + np.array([0.3, 0.1]), start + np.array([0.1, 0.2])])
    send(TIMES, second, stamp=begin + round(at * 1e9))
    stamps, answers = played(node)
    t = (stamps - begin) * 1e-9
    assert t[-1] == pytest.approx(at + 0.8, abs=1e-8)
    before, after = t < at, t >= at + 0.3
    assert before.any()
    positions = np.array([answer.motor_position for answer in answers])
    for part, motion, shift in ((before, first, 0.0), (after, through(TIMES, second), at)):
        wanted = ARM.feedforward(*motion.derivatives(t[part] - shift)).motor_position
        np.testing.assert_allclose(positions[part], wanted, rtol=0, atol=1e-6)


def test_an_empty_one_ends_it_and_setpoints_are_taken_again(node, send):
    send(TIMES * 100)
    node.wait(lambda: node.feedforward, "commands")
    setpoint = dict.fromkeys(STATE_FIELDS, np.zeros(2))
    node.publish(**setpoint)
    reason = "a trajectory is under way; an empty one on joint_trajectory ends it"
    node.wait_for_diagnostics(lambda *s: s[2]["last refusal"] == reason, "the refusal of the setpoint")
    send([], np.zeros((0, 2)))
    while not ended(node):
        pass
    node.answers_to(node.publish(**setpoint))
    # The joints were sent elsewhere: what comes now begins by itself.
    node.feedforward.clear()
    send(positions=POSITIONS + 1.0)
    _, answers = played(node)
    np.testing.assert_allclose(answers[-1].effort_rate, 0.0, atol=1e-9)


def test_it_follows_a_clock_but_not_back(start):
    from rosgraph_msgs.msg import Clock
    from trajectory_msgs.msg import JointTrajectory

    client = start(*ARGUMENTS, "-p", "use_sim_time:=true", "-r", "/clock:={namespace}/clock")
    clock = client.node.create_publisher(Clock, "clock", 10)
    publisher = client.node.create_publisher(JointTrajectory, "joint_trajectory", 10)
    client.wait(clock.get_subscription_count, "a subscriber of clock")
    client.wait(publisher.get_subscription_count, "a subscriber of joint_trajectory")

    def tick(*times):
        for at in times:
            told = Clock()
            told.clock.sec, told.clock.nanosec = divmod(round(at * 1e9), 10**9)
            clock.publish(told)
            client.spin(0.02)

    def wait_for(what, condition):
        client.wait_for_diagnostics(lambda *s: condition(s[2]), what)

    publisher.publish(message())
    wait_for("the refusal", lambda v: v.get("last refused trajectory") == "there is no time on /clock yet")
    tick(100.0)
    publisher.publish(message(TIMES * 10))
    wait_for("the trajectory", lambda v: "trajectory" in v)
    tick(*np.arange(100.1, 102.05, 0.1))
    # At 200 a second and 10 ticks of the clock a second, 19 of 20 are left out.
    wait_for("the count", lambda v: int(v["trajectory commands left out"]) >= 19 * 19)
    # Corrected a little, it stands until time has caught up.
    tick(*np.arange(101.95, 102.45, 0.01))
    stamps = np.array([stamp_of(answer) for answer in client.feedforward])
    assert len(stamps) > 10 and np.all(np.diff(stamps) > 0)
    # One that begins anew ends it.
    tick(5.0, 5.1)
    wait_for("the end", lambda v: "trajectory" not in v)
    assert "trajectory ended: the clock went back by 97" in client.process.log
    client.feedforward.clear()
    publisher.publish(message(positions=POSITIONS + 1.0))
    wait_for("the next trajectory", lambda v: "trajectory" in v)
    tick(*np.arange(5.2, 6.2, 0.1))
    client.wait(lambda: stamp_of(client.feedforward[-1]) == 5_900_000_000, "its end")


def test_what_cannot_be_played_is_refused_and_the_stream_goes_on(node, send):
    send(names=["elbow", "wrist"])
    assert "the robot has no joint 'elbow'" in refusal(node) or "the robot has no joint 'wrist'" in refusal(node)
    send(stamp=time.time_ns() - 5 * 10**9)
    node.wait_for_diagnostics(lambda *s: "it was over 4." in s[2]["last refused trajectory"], "the refusal")
    # On its way already, while nobody knows where the joints are.
    send(stamp=time.time_ns() - 400_000_000)
    node.wait_for_diagnostics(lambda *s: "its first waypoint was due" in s[2]["last refused trajectory"], "the refusal")
    send(positions=POSITIONS * 1e300)
    node.wait_for_diagnostics(lambda *s: "the motion is too fast:" in s[2]["last refused trajectory"], "the refusal")
    assert not node.feedforward
    send(TIMES * 100)
    node.wait(lambda: node.feedforward, "commands")
    send(positions=POSITIONS + 1.0)
    node.wait_for_diagnostics(
        lambda *s: "from where it is commanded to be" in s[2]["last refused trajectory"], "the refusal"
    )
    count = len(node.feedforward)
    node.wait(lambda: len(node.feedforward) > count + 10, "the commands that go on")
    assert node.transition("deactivate")
    send()
    node.wait_for_diagnostics(lambda *s: "the node is inactive" in s[2]["last refused trajectory"], "the refusal")
    assert ended(node)


def test_it_ends_where_a_setpoint_of_it_cannot_be_used(ros):
    from rclpy.executors import SingleThreadedExecutor

    from eom_dynamics.ros.planning.motion_stream import MotionStream

    node = ros.create_node("player_of_a_trajectory")
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    node.declare_parameter("stream_rate", RATE)
    sent = []
    motion = MotionStream(node, lambda setpoint: sent.append(setpoint) or len(sent) < 3)
    motion.play(through(TIMES, POSITIONS), 0, "", NAMES)
    deadline = time.monotonic() + PATIENCE
    while motion.playing and time.monotonic() < deadline:
        executor.spin_once(timeout_sec=0.1)
    assert (motion.playing, len(sent)) == (False, 3)
    executor.shutdown()
    node.destroy_node()
