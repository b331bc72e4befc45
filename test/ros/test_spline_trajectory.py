# SPDX-License-Identifier: Apache-2.0
"""Splines of a planner: played as they are, or refused, beside the stream."""

import signal
import time
from array import array
from threading import Event, Thread

import numpy as np
import pytest
from eom_dynamics.msg import FeedforwardCommand, JointTrajectorySetpoint, SplineTrajectory, TrajectoryStatus
from node_client import FEW_WARNINGS, stamp_of
from paths import CONFIG
from played import Play
from rclpy.serialization import serialize_message
from rclpy.time import Time
from sensor_msgs.msg import TimeReference
from setpoint_engines import Publisher, identity, kept_commands, unspun_node
from std_msgs.msg import String
from std_srvs.srv import Trigger

import eom_dynamics as eom
from eom_dynamics.arrays import STATE_NAMES
from eom_dynamics.control.fields import COMMAND_FIELDS, STATE_FIELDS
from eom_dynamics.ros.interfaces import nanoseconds, set_stamp, status_qos
from eom_dynamics.trajectory import Spline

ROBOT = eom.load_robot(CONFIG / "planar_2r.yaml")
NAMES = list(ROBOT.joint_names)
ARM = eom.ElasticArm(ROBOT)

RATE = 250.0

# From rest to rest in 1 s: 126 t^5 - 420 t^6 + 540 t^7 - 315 t^8 + 70 t^9, by joint.
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
    """Statuses of trajectories, from now on."""
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
    """Have a setpoint at rest answered, from where the next trajectory is to start."""
    node.answers_to(node.publish(**dict.fromkeys(STATE_FIELDS, np.zeros(2)) | {"position": np.asarray(position)}))


def assert_played(commands, begin):
    """Commands are those of ``rest_to_rest`` from a time on, ns, to its end, each for the middle of its period.

    Returns the time that late cycles have cost, s: a cycle counts at most 20 ms, and the motion continues later.
    """
    stamps = np.array([stamp_of(command) for command in commands])
    steps = np.diff(stamps, prepend=begin)
    t = np.cumsum([steps[0], *np.minimum(steps[1:], 20_000_000)]) * 1e-9
    lost = (stamps[-1] - begin) * 1e-9 - t[-1]
    # The last command is that of the end, unless it is late, or others were.
    late = lost > 0 or steps[-1] > 1e9 / RATE
    assert t[0] >= 0 and -1e-8 <= t[-1] - 1.0 <= (0.02 if late else 1e-8)
    motion, ahead = [], np.minimum(t + 0.5 / RATE, 1.0)
    for k in range(5):
        shape = np.polynomial.Polynomial(SHAPE).deriv(k) if k else np.polynomial.Polynomial(SHAPE)
        motion.append(np.outer(shape(ahead), DISTANCE) + (START if k == 0 else 0.0))
    for field, values in zip(COMMAND_FIELDS, ARM.feedforward(*motion), strict=True):
        got = [getattr(command, field) for command in commands]
        # Stamps are whole nanoseconds.
        np.testing.assert_allclose(got, values, rtol=0, atol=1e-6 * np.abs(values).max())
    return lost


@pytest.fixture
def anew(node):
    """Afterwards, the next test may begin anywhere, since a stop holds the arm where it came to rest."""
    yield
    for name in ("deactivate", "activate"):
        node.transition(name)


def refused(client, text):
    return text in client.values.get("last refused trajectory", "")


def test_splines_are_played_as_they_are(node, publisher, statuses):
    node.feedforward.clear()
    begin = time.time_ns() + 1_000_000_000
    publisher.publish(rest_to_rest(begin))
    finished = begin, TrajectoryStatus.FINISHED
    node.wait(lambda: (stamp_of(statuses[-1]), statuses[-1].status) == finished, "the end")
    node.until_silent()
    assert f"trajectory accepted: 1 s, knots: 2, time 0 at {begin * 1e-9:.3f} s" in node.process.log
    assert_played(node.feedforward, begin)
    # A single knot is a state to be reached: the motion goes on from where the joints are commanded to be.
    node.feedforward.clear()
    goal = {"knots": array("d", [0.5])} | states([0.3, 0.0])
    assert node.call(Trigger, "pause", Trigger.Request()).message == "nothing is played: the next trajectory waits"
    publisher.publish(rest_to_rest(**goal))
    node.wait(lambda: (statuses[-1].status, statuses[-1].message) == (1, "paused: call ~/resume"), "the reason")
    assert node.call(Trigger, "resume", Trigger.Request()).success
    there = ARM.feedforward(np.array([0.3, 0.0]), *np.zeros((4, 2))).motor_position

    def arrived():
        return node.feedforward and np.allclose(node.feedforward[-1].motor_position, there, rtol=0, atol=1e-12)

    node.wait(arrived, "the goal")


def test_its_time_is_reported_while_it_waits_and_is_played(node, publisher, statuses):
    """With its identity, so that its sender knows that the node is alive."""
    times = node.collect(TimeReference, "path_time")
    command(node, START)
    begin = time.time_ns() + 500_000_000
    publisher.publish(rest_to_rest(begin, request="timed"))
    node.wait(lambda: (statuses[-1].request, statuses[-1].status) == ("timed", TrajectoryStatus.FINISHED), "the end")
    of_it = [x for x in times if x.source == "timed"]
    stamps = np.array([stamp_of(x) for x in of_it])
    t = np.array([nanoseconds(x.time_ref) for x in of_it])
    assert t[0] < 0 < t[-1] and len(t) > 20
    lost = (stamps - begin) - t  # in late cycles
    assert (lost >= -100_000).all() and lost[0] < 1_000_000


@pytest.mark.parametrize("request_of_stop", ["", "mine", "another"])
def test_an_empty_one_stops_any_or_the_one_of_its_identity(node, publisher, statuses, anew, request_of_stop):
    command(node, START)
    publisher.publish(rest_to_rest(request="mine"))
    node.wait(lambda: (statuses[-1].request, statuses[-1].status) == ("mine", TrajectoryStatus.ACCEPTED), "acceptance")
    publisher.publish(SplineTrajectory(request=request_of_stop))
    node.wait(lambda: statuses[-1].status != TrajectoryStatus.ACCEPTED, "the end")
    expected = TrajectoryStatus.FINISHED if request_of_stop == "another" else TrajectoryStatus.STOPPED
    assert statuses[-1].status == expected


def test_one_of_a_goal_ends_without_any_lease(node, publisher, statuses, anew):
    """The planning node had ended before the middleware knew its lease, and the arm went on."""
    command(node, START)
    request = "follow_joint_trajectory/without"
    publisher.publish(rest_to_rest(request=request, knots=array("d", [0.0, 8.0])))
    node.wait(lambda: (statuses[-1].request, statuses[-1].status) == (request, TrajectoryStatus.STOPPED), "the stop")
    assert "trajectory_lease" in statuses[-1].message


def test_one_of_a_goal_that_comes_twice_is_played_once(node, publisher, statuses, anew):
    """The planning node sends it again where it discovers a subscriber before the answer."""
    command(node, START)
    request, count = "follow_joint_trajectory/twice", len(statuses)
    for _ in range(3):
        publisher.publish(rest_to_rest(request=request))
    node.wait(lambda: (statuses[-1].request, statuses[-1].status) == (request, TrajectoryStatus.FINISHED), "the end")
    assert [x.status for x in statuses[count:]] == [TrajectoryStatus.ACCEPTED, TrajectoryStatus.FINISHED]


@pytest.mark.parametrize("renewed", [True, False])
def test_one_whose_sender_has_a_lease_ends_with_its_sender(node, publisher, statuses, anew, renewed):
    lease = node.publisher(String, "trajectory_lease")
    request = f"leased {renewed}"
    node.wait(lease.get_subscription_count, "the subscription")
    command(node, START)
    lease.publish(String(data=request))
    publisher.publish(rest_to_rest(request=request, knots=array("d", [0.0, 2.0])))
    done = Event()

    def renew():  # in a thread of its own: on a busy machine, an executor is late by the length of a lease
        while not done.wait(0.02):
            lease.publish(String(data=request if renewed else "another"))

    sender = Thread(target=renew)
    sender.start()
    try:
        node.wait(
            lambda: statuses[-1].request == request and statuses[-1].status != TrajectoryStatus.ACCEPTED, "the end"
        )
    finally:
        done.set()
        sender.join()
    if renewed:
        assert statuses[-1].status == TrajectoryStatus.FINISHED
    else:
        assert statuses[-1].status == TrajectoryStatus.STOPPED
        assert statuses[-1].message == "its sender is gone: 0.5 s without its identity on trajectory_lease"
        node.wait(lambda: np.abs(node.feedforward[-1].motor_velocity).max() < 1e-6, "rest")


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
        # A busy machine delays cycles, which is said where it ends.
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


def test_a_trajectory_that_is_stopped_while_it_is_validated_has_a_status(node, publisher, statuses):
    long = {"knots": array("d", np.linspace(0.0, 300.0, 3001))} | states(*np.zeros((3001, 2)))
    message = rest_to_rest(**long)
    message.header.frame_id = "overtaken"

    reason = ""
    while "ended it before it began" not in reason:  # but played and stopped, validated before its end came
        statuses.clear()
        publisher.publish(message)
        publisher.publish(SplineTrajectory())
        _, reason = ended(node, statuses, "overtaken")


def ended(node, statuses, frame):
    """Final status of the trajectory with a frame, and its reason."""

    def found():
        return [s for s in statuses if s.header.frame_id == frame and s.status != TrajectoryStatus.ACCEPTED]

    node.wait(found, f"the end of the trajectory {frame}")
    return found()[0].status, found()[0].message


# One of each kind; test/control has them all.
BAD = {
    "joint": ({"joint_names": ["joint_1", "wrist"]}, "joint_names[1]: the robot has no joint 'wrist'"),
    "far": ({"knots": array("d", [100.0, 101.0])}, "it starts more than 60.0 s from now"),
    "overflow": ({"velocity": array("d", np.full(4, 1e308))}, "overflow"),
}


@pytest.mark.parametrize(("changes", "reason"), BAD.values(), ids=BAD)
def test_what_cannot_be_played_is_refused_by_name(node, publisher, changes, reason):
    sent = time.time_ns()
    publisher.publish(rest_to_rest(**changes))
    node.wait(lambda: refused(node, reason), reason)
    assert f"trajectory refused: {node.values['last refused trajectory']}" in node.process.log
    assert all(stamp_of(command) < sent for command in node.feedforward), "commands of trajectories before"


def test_large_messages_do_not_disturb_the_stream(node, publisher, tmp_path):
    """The largest allowed is validated beside the stream; a larger one is refused unread."""
    t, omega = np.arange(600)[:, None] * 5e-3, np.array([1.0, 3.0])
    arrays = {name: omega**k * np.cos(omega * t + k * np.pi / 2) for k, name in enumerate(STATE_NAMES)}
    play = Play(node.process.namespace, tmp_path, arrays, rate=200, grace=20)
    node.wait(lambda: play.counts["sent"] > 100, "the stream")
    knots = SplineTrajectory.MAX_ENTRIES // 2
    largest = rest_to_rest(1, knots=array("d", np.linspace(0, 100, knots)), **states(*np.zeros((knots, 2))))
    publisher.publish(rest_to_rest(knots=array("d", [1.0, 0.0])))
    node.wait(lambda: not refused(node, "it has ended"), "another refusal than that of the largest")
    begin = time.monotonic()
    publisher.publish(largest)
    node.wait(lambda: refused(node, "it has ended"), "the refusal")
    end = time.monotonic()
    # This process does not send so many numbers: a message that is too long comes as bytes.
    allowed = serialize_message(SplineTrajectory(knots=array("d", [0.0]), snap=array("d", bytes(8 * 50_000))))
    count, more = (x.to_bytes(4, "little") for x in (50_000, 60_000))
    too_long = allowed.replace(count, more) + bytes(8 * 10_000)
    publisher.publish(too_long)
    node.wait(lambda: refused(node, "may have 50000 entries: send the motion in parts"), "the refusal")
    counts, answers = play.record()
    assert counts == {"sent": 600, "received": 600, "lost": 0, "out_of_order": 0}
    end = min(end, answers["sent"][-1])
    meanwhile = np.count_nonzero((answers["received"] > begin) & (answers["received"] < end))
    # A fraction of 200 Hz, as a busy machine delays both.
    assert meanwhile > 40 * (end - begin)
    assert "Traceback" not in node.process.log


def test_the_size_of_a_message_is_bounded_where_it_is_sent(publisher):
    with pytest.raises(RuntimeError, match="cannot publish data"):
        publisher.publish(rest_to_rest(snap=array("d", bytes(8 * 50_001))))


@pytest.mark.usefixtures("ros")
def test_a_single_waypoint_requires_the_position_of_the_arm():
    with unspun_node("/unknown", robot_file="planar_2r") as node:
        player = node._stream.player
        player.reports._status = Publisher(TrajectoryStatus, sent := [])
        player.play(Spline([0.02], np.zeros((5, 1, 2))), identity())
        time.sleep(0.04)
        player._tick()
    assert [status.status for status in sent] == [TrajectoryStatus.ACCEPTED, TrajectoryStatus.STOPPED]
    assert "the position of the arm is unknown: publish joint_states" in sent[-1].message


@pytest.mark.usefixtures("ros")
def test_stamps_do_not_go_back_where_a_trajectory_begins_amid_a_stream():
    """Its commands are whole periods after its stamp, of which the last may be before that of the stream."""
    begin = 10**9
    with unspun_node("/stamps", robot_file="planar_2r", use_sim_time="true") as node:
        sent, stream, rest = kept_commands(node), node._stream, dict.fromkeys(STATE_FIELDS, np.zeros(2))

        def at(offset):
            node.get_clock().set_ros_time_override(Time(nanoseconds=begin + offset))

        def answer(offset):
            at(offset)
            setpoint = JointTrajectorySetpoint(**{name: array("d", row) for name, row in rest.items()})
            set_stamp(setpoint.header.stamp, begin + offset)
            assert stream.answer(setpoint)

        answer(-5_000_000)
        stream.player.play(Spline([0.0, 1.0], np.zeros((5, 2, 2))), identity(begin))
        answer(700_000)
        for offset in (900_000, 2_000_000, 3_000_000):
            at(offset)
            stream.player._tick()
        stamps = [stamp_of(message) - begin for message in sent if isinstance(message, FeedforwardCommand)]
    assert stamps == [-5_000_000, 700_000, 900_000, 1_900_000, 2_900_000]


@pytest.mark.usefixtures("ros")
def test_a_stream_goes_on_where_the_clock_ends_a_trajectory_that_waits():
    """Its setpoints were refused, until the arm was at rest."""
    begin, v = 10**9, np.array([0.1, 0.1])
    with unspun_node("/behind", robot_file="planar_2r", use_sim_time="true") as node:
        stream = node._stream
        stream.player.reports._status = Publisher(TrajectoryStatus, sent := [])

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
        stream.player.play(Spline([0.0, 1.0], np.zeros((5, 2, 2))), identity(2 * begin))
        assert all(answer(k, back=3 * 10**8 * (k > 7)) for k in range(5, 20))
    assert [x.status for x in sent] == [TrajectoryStatus.ACCEPTED, TrajectoryStatus.STOPPED]
    assert sent[-1].message.startswith("the clock went back by 0.29")


def test_a_process_that_was_held_up_continues_later_and_says_so(node, publisher, statuses):
    """It moved by what the time had been for, 0.3 rad and more in a command, and said nothing."""
    command(node, START)
    node.spin(0.3)  # the stream ends
    del statuses[:], node.feedforward[:]
    begin = time.time_ns() + 200_000_000
    publisher.publish(rest_to_rest(begin))
    node.wait(
        lambda: node.feedforward and abs(node.feedforward[-1].motor_velocity[0]) > 0.5, "the middle of the motion"
    )
    node.process.process.send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    node.process.process.send_signal(signal.SIGCONT)
    node.wait(lambda: statuses and statuses[-1].status == TrajectoryStatus.FINISHED, "the end")
    assert "s lost in late cycles: the process was held up, or the clock has jumped" in statuses[-1].message
    assert "trajectory late: 0." in node.process.log
    node.until_silent()
    assert assert_played(node.feedforward, begin) > 0.4
    stamps = np.array([stamp_of(message) for message in node.feedforward])
    fields = ([getattr(x, f"motor_{name}") for x in node.feedforward] for name in ("position", "velocity"))
    positions, velocities = map(np.array, fields)
    stall = int(np.argmax(np.diff(stamps)))
    assert np.diff(stamps)[stall] > 0.4e9
    # 20 ms, and what this process may have missed.
    assert np.abs(positions[stall + 1] - positions[stall]).max() <= 0.04 * np.abs(velocities).max()
    there = ARM.feedforward(START + DISTANCE, *np.zeros((4, 2))).motor_position
    np.testing.assert_allclose(positions[-1], there, rtol=0, atol=1e-9)


@pytest.mark.usefixtures("ros")
def test_a_trajectory_that_is_refused_midway_says_why():
    """Efforts beyond what can be computed, where limits are ignored."""
    fast = np.zeros((5, 3, 2))
    fast[2, 2] = 1e140
    with unspun_node("/midway", robot_file="planar_2r", limits="ignore") as node:
        player = node._stream.player
        player.reports._status = Publisher(TrajectoryStatus, sent := [])
        player.play(Spline([0.0, 0.1, 0.2], fast), identity())
        for _ in range(20):
            time.sleep(0.02)
            player._tick()
    assert sent[-1].status == TrajectoryStatus.STOPPED
    assert "s after its start: refused: numbers too large: effort_rate of joint 'joint_1'" in sent[-1].message
