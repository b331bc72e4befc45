# SPDX-License-Identifier: Apache-2.0
"""Splines of a planner: played unchanged, or refused, without effect on the stream."""

import time
from array import array

import numpy as np
import pytest
from eom_dynamics.msg import JointTrajectorySetpoint, SplineTrajectory, TrajectoryStatus
from node_client import FEW_WARNINGS, stamp_of
from paths import CONFIG
from rclpy.time import Time
from setpoint_engines import goal_at, unspun_node
from std_srvs.srv import SetBool

import eom_dynamics as eom
from eom_dynamics.control.fields import COMMAND_FIELDS, STATE_FIELDS
from eom_dynamics.ros.interfaces import set_stamp, status_qos
from eom_dynamics.trajectory import Spline

ROBOT = eom.load_robot(CONFIG / "planar_2r.yaml")
NAMES = list(ROBOT.joint_names)
ARM = eom.ElasticArm(ROBOT)

RATE = 250.0

# Motion of 1 s between states at rest: 126 t^5 - 420 t^6 + 540 t^7 - 315 t^8 + 70 t^9, by joint.
SHAPE = np.array([0, 0, 0, 0, 0, 126.0, -420.0, 540.0, -315.0, 70.0])
START, DISTANCE = np.array([0.1, -0.2]), np.array([0.5, -0.3])


@pytest.fixture(scope="module")
def node(start_shared):
    arguments = (FEW_WARNINGS, "-p", f"stream_rate:={RATE}")
    return start_shared("--params-file", CONFIG / "planar_2r.yaml", *arguments)


@pytest.fixture(scope="module")
def publisher(node):
    publisher = node.publisher(SplineTrajectory, "spline_trajectory")

    node.repeat(lambda: publisher.publish(rest_to_rest(stamp=1)), lambda: refused(node, "it has ended"), "discovery")
    return publisher


@pytest.fixture(scope="module")
def statuses(node, publisher):
    """Statuses of later trajectories."""
    statuses = node.collect(TrajectoryStatus, "trajectory_status")
    node.repeat(lambda: publisher.publish(rest_to_rest(1)), lambda: statuses, "the subscription")
    return statuses


def states(*positions):
    """Fields of states at rest at knots, each with the positions (2,) of the joints in the robot's order."""
    q = np.array(positions)
    rows = [q[:, ::-1], *np.zeros((4, *q.shape))]
    return {field: array("d", row.tobytes()) for field, row in zip(STATE_FIELDS, rows, strict=True)}


def rest_to_rest(stamp=0, **changes):
    fields = {"joint_names": NAMES[::-1], "knots": array("d", [0.0, 1.0])} | states(START, START + DISTANCE)
    message = SplineTrajectory(**fields | changes)
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
    return message


def command(node, position):
    """Send a setpoint at rest, the start of the next trajectory."""
    node.answers_to(node.publish(**dict.fromkeys(STATE_FIELDS, np.zeros(2)) | {"position": np.asarray(position)}))


def assert_played(commands, begin):
    """Commands are those of ``rest_to_rest`` from a time on, ns, to its end.

    A late cycle counts at most 20 ms, and the motion continues later.
    """
    stamps = np.array([stamp_of(command) for command in commands])
    steps = np.diff(stamps, prepend=begin)
    t = np.cumsum([steps[0], *np.minimum(steps[1:], 20_000_000)]) * 1e-9
    # The last command is at the end, unless commands were late.
    late = (stamps[-1] - begin) * 1e-9 > t[-1] or steps[-1] > 1e9 / RATE
    assert t[0] >= 0 and -1e-8 <= t[-1] - 1.0 <= (0.02 if late else 1e-8)
    motion, ahead = [], np.minimum(t, 1.0)
    for k in range(5):
        shape = np.polynomial.Polynomial(SHAPE).deriv(k) if k else np.polynomial.Polynomial(SHAPE)
        motion.append(np.outer(shape(ahead), DISTANCE) + (START if k == 0 else 0.0))
    for field, values in zip(COMMAND_FIELDS, ARM.feedforward(*motion), strict=True):
        got = [getattr(command, field) for command in commands]
        # Stamps are whole nanoseconds.
        np.testing.assert_allclose(got, values, rtol=0, atol=1e-6 * np.abs(values).max())


@pytest.fixture
def anew(node):
    """Afterwards, the next test may begin anywhere, since a stop holds the arm."""
    yield
    for name in ("deactivate", "activate"):
        node.transition(name)


def refused(client, text):
    return text in client.values.get("last refused trajectory", "")


def test_joints_that_a_spline_does_not_name_are_held_where_they_are_commanded(node, publisher, statuses, anew):
    command(node, START)
    statuses.clear()
    node.feedforward.clear()
    name, end = NAMES[0], START[0] + 0.3
    fields = {x: array("d", [0.0, 0.0]) for x in STATE_FIELDS} | {"position": array("d", [START[0], end])}
    publisher.publish(SplineTrajectory(joint_names=[name], knots=array("d", [0.0, 1.0]), **fields))
    node.wait(lambda: statuses and statuses[-1].status == TrajectoryStatus.FINISHED, "the end")
    assert len(node.feedforward) > RATE / 2
    last = ARM.feedforward(np.array([end, START[1]]), np.zeros(2), np.zeros(2)).motor_position
    np.testing.assert_allclose(node.feedforward[-1].motor_position, last, rtol=0, atol=1e-9)
    publisher.publish(SplineTrajectory(joint_names=["finger"], knots=array("d", [0.0, 1.0]), **fields))
    node.wait(lambda: refused(node, "the robot has no joint 'finger'"), "the refusal")


def test_splines_are_played_as_they_are(node, publisher, statuses):
    node.feedforward.clear()
    begin = time.time_ns() + 1_000_000_000
    publisher.publish(rest_to_rest(begin))
    finished = begin, TrajectoryStatus.FINISHED
    node.wait(lambda: (stamp_of(statuses[-1]), statuses[-1].status) == finished, "the end")
    node.until_silent()
    assert f"trajectory accepted: 1 s, knots: 2, time 0 at {begin * 1e-9:.3f} s" in node.process.log
    assert_played(node.feedforward, begin)
    # A single knot is a state to be reached: the motion continues from the commanded positions.
    node.feedforward.clear()
    goal = {"knots": array("d", [0.5])} | states([0.3, 0.0])
    assert (
        node.call(SetBool, "pause", SetBool.Request(data=True)).message
        == "nothing is played: the next trajectory waits"
    )
    publisher.publish(rest_to_rest(**goal))
    node.wait(
        lambda: (statuses[-1].status, statuses[-1].message) == (1, "paused: call ~/pause with data: false"),
        "the reason",
    )
    assert node.call(SetBool, "pause", SetBool.Request(data=False)).success
    there = ARM.feedforward(np.array([0.3, 0.0]), *np.zeros((4, 2))).motor_position

    def arrived():
        return node.feedforward and np.allclose(node.feedforward[-1].motor_position, there, rtol=0, atol=1e-12)

    node.wait(arrived, "the goal")


def test_who_comes_late_knows_what_became_of_the_last_ones(node, statuses):
    late = []
    node.node.create_subscription(TrajectoryStatus, "trajectory_status", late.append, status_qos())
    node.wait(lambda: late and late[-1] == statuses[-1], "the last status")


def test_what_becomes_of_a_trajectory_is_published(node, publisher, statuses):
    command(node, [0.0, 0.0])
    now = time.time_ns()
    first, second, third = now + 10**9, now + 10**9 + 1, now + 2 * 10**9
    quick = {"knots": array("d", [0.0, 0.2])} | states(*np.zeros((2, 2)))

    def told():
        of_these = [status for status in statuses if stamp_of(status) in (first, second, third)]
        # A busy machine delays cycles, which the end reports.
        texts = ["" if "lost in late cycles" in status.message else status.message for status in of_these]
        return [(stamp_of(status), status.status, text) for status, text in zip(of_these, texts, strict=True)]

    for stamp in (first, second):
        publisher.publish(rest_to_rest(stamp, **quick))
    node.wait(lambda: told() and told()[-1] == (second, TrajectoryStatus.FINISHED, ""), "the end")
    publisher.publish(rest_to_rest(third, **quick))
    node.wait(lambda: told()[-1] == (third, TrajectoryStatus.ACCEPTED, ""), "the acceptance")
    publisher.publish(SplineTrajectory())
    node.wait(lambda: told()[-1][1] == TrajectoryStatus.STOPPED, "the stop")
    assert told() == [
        (first, TrajectoryStatus.ACCEPTED, ""),
        (first, TrajectoryStatus.STOPPED, "replaced by another trajectory"),
        (second, TrajectoryStatus.ACCEPTED, ""),
        (second, TrajectoryStatus.FINISHED, ""),
        (third, TrajectoryStatus.ACCEPTED, ""),
        (third, TrajectoryStatus.STOPPED, "stopped by an empty trajectory"),
    ]


# One of each kind; test/control has them all.
BAD = [
    ({"joint_names": ["joint_1", "wrist"]}, "joint_names[1]: the robot has no joint 'wrist'"),
    ({"knots": array("d", [100.0, 101.0])}, "it starts more than 60.0 s from now"),
    ({"velocity": array("d", np.full(4, 1e308))}, "overflow"),
]


def test_what_cannot_be_played_is_refused_by_name(node, publisher):
    sent = time.time_ns()
    for changes, reason in BAD:
        publisher.publish(rest_to_rest(**changes))
        node.wait(lambda reason=reason: refused(node, reason), reason)
        assert f"trajectory refused: {node.values['last refused trajectory']}" in node.process.log
    assert all(stamp_of(command) < sent for command in node.feedforward), "commands of trajectories before"


@pytest.mark.usefixtures("ros")
def test_a_single_waypoint_requires_the_position_of_the_arm():
    with unspun_node("/unknown", robot_file="planar_2r") as node:
        player = node._stream.player
        player.play(Spline([0.02], np.zeros((5, 1, 2))), goal_at(statuses=(sent := [])))
        time.sleep(0.04)
        player._tick()
    assert [status.status for status in sent] == [TrajectoryStatus.ACCEPTED, TrajectoryStatus.STOPPED]
    assert "the position of the arm is unknown: publish joint_states" in sent[-1].message


@pytest.mark.usefixtures("ros")
def test_a_stream_goes_on_where_the_clock_ends_a_trajectory_that_waits():
    """Its setpoints were refused, until the arm was at rest."""
    begin, v = 10**9, np.array([0.1, 0.1])
    with unspun_node("/behind", robot_file="planar_2r", use_sim_time="true") as node:
        stream = node._stream

        def answer(k, back=0):
            now = begin + 5_000_000 * k - back
            node.get_clock().set_ros_time_override(Time(nanoseconds=now))
            stream.player._tick()
            rows = (5e-3 * k * v, v, *np.zeros((3, 2)))
            fields = {name: array("d", row) for name, row in zip(STATE_FIELDS, rows, strict=True)}
            setpoint = JointTrajectorySetpoint(**fields)
            set_stamp(setpoint.header.stamp, now)
            return stream.answer(setpoint)

        assert all(answer(k) for k in range(5))
        stream.player.play(Spline([0.0, 1.0], np.zeros((5, 2, 2))), goal_at(2 * begin, sent := []))
        assert all(answer(k, back=3 * 10**8 * (k > 7)) for k in range(5, 20))
    assert [x.status for x in sent] == [TrajectoryStatus.ACCEPTED, TrajectoryStatus.STOPPED]
    assert sent[-1].message.startswith("the clock went back by 0.29")


@pytest.mark.usefixtures("ros")
def test_a_trajectory_that_is_refused_midway_says_why():
    """Efforts that overflow, with ignored limits."""
    fast = np.zeros((5, 3, 2))
    fast[2, 2] = 1e140
    with unspun_node("/midway", robot_file="planar_2r", limits="ignore") as node:
        player = node._stream.player
        player.play(Spline([0.0, 0.1, 0.2], fast), goal_at(statuses=(sent := [])))
        for _ in range(20):
            time.sleep(0.02)
            player._tick()
    assert sent[-1].status == TrajectoryStatus.STOPPED
    assert "s after its start: refused: numbers too large: effort_rate of joint 'joint_1'" in sent[-1].message
