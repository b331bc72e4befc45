# SPDX-License-Identifier: Apache-2.0
"""Execution of a goal of follow_joint_trajectory, without control_msgs, whose fields depend on its version."""

import sys
import time
from array import array
from contextlib import suppress
from itertools import zip_longest
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from launching import wait_for

from eom_dynamics.control.fields import STATE_FIELDS
from eom_dynamics.control.measured import JointTolerances, MeasuredJoint
from eom_dynamics.exceptions import EomDynamicsError
from eom_dynamics.trajectory import through

NAMES = ("shoulder", "elbow")
CODES = {"INVALID_GOAL": -1, "PATH_TOLERANCE_VIOLATED": -4, "GOAL_TOLERANCE_VIOLATED": -5}


class Feedback(SimpleNamespace):
    """Feedback of control_msgs as in Jazzy: without ``index``."""

    def __init__(self, **fields):
        super().__init__(header=SimpleNamespace(stamp=None), desired=None, actual=None, error=None, **fields)


class IndexedFeedback(Feedback):
    """Feedback of control_msgs 6."""

    index = -1


def time_of_path(execution, t):
    """Have an execution take a report, ns, at 1 s later on the clock."""
    stamp, time_ref = (SimpleNamespace(sec=sec, nanosec=t) for sec in (1, 0))
    execution.on_path_time(Mock(header=Mock(stamp=stamp), time_ref=time_ref))


@pytest.fixture
def execution(ros):
    """An accepted goal, 0.7 s after its start and past the second of three points."""
    from eom_dynamics.ros.planning.goal_execution import CommandedMotion, GoalContext, GoalExecution, GoalMotion

    def start(feedback):
        node, goal = Mock(arm=None), Mock(is_cancel_requested=False)
        node.get_clock().now.return_value = SimpleNamespace(nanoseconds=10**9 + 7 * 10**8, to_msg=Mock())
        kind = SimpleNamespace(Feedback=feedback, Result=SimpleNamespace(SUCCESSFUL=0, **CODES))
        motion = through([0.0, 0.5, 1.0], np.zeros((3, 2)))
        none = JointTolerances.read("path_tolerance", (), NAMES)
        rest = {"commanded": CommandedMotion(), "is_playing": Mock(return_value=False), "unheard": {}}
        context = GoalContext(node, kind, Mock(read=dict), players=Mock(return_value=1), stop=Mock(), **rest)
        execution = GoalExecution(context, goal, "")
        execution.plan = GoalMotion(NAMES, motion, 10**9, none, none, 1.0, "")
        accepted = SimpleNamespace(status=1, ACCEPTED=1)
        execution.on_status(accepted)
        time_of_path(execution, 7 * 10**8)
        return execution, goal, node

    return start


@pytest.mark.parametrize("feedback", [Feedback, IndexedFeedback])
def test_feedback_has_an_index_where_the_message_has_one(execution, feedback):
    execution, goal, _ = execution(feedback)
    execution.observe()
    assert not execution.done.done()
    (sent,) = goal.publish_feedback.call_args.args
    assert sent.desired.time_from_start.nanosec == 7 * 10**8
    assert getattr(sent, "index", None) == (1 if feedback is IndexedFeedback else None)


def commanded_motion(sec, nanosec, *states):
    """A report of the commanded motion, joints in another order than that of the goal."""
    message = SimpleNamespace(header=SimpleNamespace(stamp=SimpleNamespace(sec=sec, nanosec=nanosec)))
    message.joint_names = NAMES[::-1]
    for field, values in zip_longest(STATE_FIELDS, states, fillvalue=(0.0, 0.0)):
        setattr(message, field, array("d", values[::-1]))
    return message


def test_the_desired_state_is_the_motion_that_the_node_commands(execution):
    """Of the goal before, on the way to the first point, or slowed down: the planning node rebuilds none of it."""
    execution, goal, node = execution(Feedback)
    reports = execution._context.commanded
    # Long before the goal was accepted, and just before it, in the motion of another one.
    for nanosec, positions in ((5 * 10**8, [0.0, 0.0]), (65 * 10**7, [9.0, 9.0])):
        reports.receive(commanded_motion(1, nanosec, (9.0, 9.0)))
        execution.observe()
        (sent,) = goal.publish_feedback.call_args.args
        assert [*sent.desired.positions] == positions
    reports.receive(commanded_motion(1, 7 * 10**8, (1.0, 2.0), (0.1, 0.0), (0.0, 4.0)))
    node.get_clock().now.return_value.nanoseconds += 5 * 10**7
    execution.observe()
    (sent,) = goal.publish_feedback.call_args.args
    np.testing.assert_allclose(sent.desired.positions, [1.005, 2.005])
    np.testing.assert_allclose(sent.desired.velocities, [0.1, 0.2])
    np.testing.assert_allclose(sent.desired.accelerations, [0.0, 4.0])


def tolerate(execution, kind, q):
    """Have a tolerance of 0.1 rad on the path or at the goal, and the arm measured at a position."""
    limits = JointTolerances.read(f"{kind}_tolerance", (), NAMES, dict.fromkeys(NAMES, 0.1))
    execution.plan = execution.plan._replace(**{kind: limits})
    joints = {name: MeasuredJoint(q, 0.0, 0.0, 17 * 10**8) for name in NAMES}
    execution._context = execution._context._replace(measured=Mock(read=lambda: joints))


def test_path_tolerance_is_that_of_the_motion_that_the_node_commands(execution):
    execution, *_ = execution(Feedback)
    tolerate(execution, "path", 1.05)
    execution._context.commanded.receive(commanded_motion(1, 7 * 10**8, (1.0, 1.0)))
    execution.observe()
    assert not execution.done.done()
    execution._context.commanded.receive(commanded_motion(1, 7 * 10**8, (1.0, 1.2)))
    execution.observe()
    assert execution.done.result()[0] == CODES["PATH_TOLERANCE_VIOLATED"] and "elbow" in execution.done.result()[1]


def test_an_exception_ends_the_goal(execution):
    execution, _, node = execution(Mock(side_effect=OverflowError("too far")))
    execution.observe()
    assert execution.done.result() == (CODES["INVALID_GOAL"], "internal error: OverflowError: too far")
    assert "Traceback" in node.get_logger().error.call_args.args[0]


def test_a_refusal_says_that_the_goal_before_goes_on(execution):
    execution, *_ = execution(Feedback)
    execution._context.is_playing.return_value = True
    execution.refuse("why")
    text = "why; the goal before goes on"
    assert execution.done.result() == (CODES["INVALID_GOAL"], text)


def test_what_the_player_remarks_at_the_end_is_the_text_of_the_goal(execution):
    execution, *_ = execution(Feedback)
    late = "0.6 s lost in late cycles"
    execution.on_status(SimpleNamespace(status=3, ACCEPTED=1, FINISHED=3, message=late))
    execution.observe()
    assert execution.done.result() == (0, late)


def test_a_goal_that_is_not_reached_ends_also_where_the_clock_goes_back(execution):
    """As a simulation that is reset has it: within the time for the goal, from then on."""
    execution, _, node = execution(Feedback)
    tolerate(execution, "goal", 1.0)
    execution.on_status(SimpleNamespace(status=3, ACCEPTED=1, FINISHED=3, message=""))
    ended = []
    for now in (25 * 10**8, 0, 9 * 10**8, 11 * 10**8):
        node.get_clock().now.return_value.nanoseconds = now
        execution.observe()
        ended.append(execution.done.done())
    assert ended == [False, False, False, True]
    code, text = execution.done.result()
    assert code == CODES["GOAL_TOLERANCE_VIOLATED"] and text.endswith(", 1.1 s after the end")


def test_a_goal_ends_where_the_node_that_plays_it_is_silent(execution):
    """Only in looks of this process, so that one that was held up ends nothing."""
    execution, *_ = execution(Feedback)
    execution.is_sent = True
    for _ in range(17):
        execution.observe()
    assert not execution.done.done()
    execution.observe()
    assert execution.done.result()[1].startswith("the node that played it is gone")
    execution._context.stop.assert_called_once_with(execution.name)


def test_tolerances_name_the_joints_that_are_not_measured(execution):
    execution, *_ = execution(Feedback)
    limits = JointTolerances.read(
        "path_tolerance", [SimpleNamespace(name="elbow", position=1.0, velocity=0.0, acceleration=0.0)], NAMES
    )
    execution.plan, execution._since = execution.plan._replace(path=limits), -np.inf
    joints = {"shoulder": MeasuredJoint(0.0, 0.0, 0.0, time.time_ns())}
    execution._context = execution._context._replace(measured=Mock(topic="/joint_states", read=lambda: joints))
    execution.observe()
    reason = "tolerances need joint states on /joint_states; none arrives with a position of 'elbow'"
    assert execution.done.result() == (CODES["INVALID_GOAL"], reason)


@pytest.fixture
def server(ros, monkeypatch):
    """Server of the action, whose publishers and plans are mocks, and whose worker runs jobs when told to."""
    from eom_dynamics.ros.planning import follow_trajectory

    for name in ("ActionServer", "Worker", "steady_timer"):
        monkeypatch.setattr(follow_trajectory, name, Mock())
    for name in ("control_msgs", "control_msgs.action"):
        monkeypatch.setitem(sys.modules, name, Mock())
    node = Mock()
    node.get_clock().now().nanoseconds = 0
    server = follow_trajectory.FollowTrajectory(node, *[Mock(return_value=1) for _ in range(6)])
    for name in ("_start_time", "_planned"):
        monkeypatch.setattr(server, name, Mock())
    server.jobs, server.waits = [], []

    def compute(job, patience):
        from rclpy.task import Future

        future = Future()
        server.waits.append(patience > 0)

        def run():
            try:
                future.set_result(job())
            except EomDynamicsError as error:
                future.set_exception(error)

        server.jobs.append(run)
        return future

    server._worker.compute = compute
    return server


def begun(server, points=1):
    """A goal that was accepted, its execution, and its coroutine, which waits for the end."""
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    goal = Mock(request=SimpleNamespace(trajectory=JointTrajectory(points=[JointTrajectoryPoint()] * points)))
    goal.goal_id.uuid = np.random.default_rng(len(server._executions)).integers(0, 256, 16, dtype=np.uint8)
    server._accepted(goal)
    (execute,) = goal.execute.call_args.args
    execution, coroutine = list(server._executions.values())[-1], execute(goal)
    with suppress(StopIteration):
        coroutine.send(None)
    return goal, execution, coroutine


@pytest.fixture
def clock(server, monkeypatch):
    """The time of the server's looks, as the one entry of a list."""
    from eom_dynamics.ros.planning import follow_trajectory

    now = [100.0]
    monkeypatch.setattr(follow_trajectory, "time", Mock(monotonic=lambda: now[0]))
    server._measured.read, server._since = dict, 0.0
    return now


def end(coroutine):
    """Have a coroutine go on to its end."""
    with pytest.raises(StopIteration):
        coroutine.send(None)


def test_a_goal_that_is_cancelled_while_it_is_planned_is_not_played(server):
    goal, _, coroutine = begun(server)
    server._cancel(goal)
    end(coroutine)
    server.jobs[0]()
    goal.canceled.assert_called_once()
    server._publish.assert_not_called()


def test_a_goal_that_is_cancelled_once_its_motion_was_sent_stops_that_motion(server):
    """By the UUID of the goal: by a number from 1 on, a node that was started again took the answer to another goal."""
    goal, execution, coroutine = begun(server)
    server.jobs[0]()
    assert execution.name == f"follow_joint_trajectory/{bytes(goal.goal_id.uuid).hex()}"
    server._publish.assert_called_once()
    assert server._publish.call_args.args[4] == execution.name
    server._cancel(goal)
    end(coroutine)
    server._stop.assert_called_once_with(execution.name)


def test_a_late_report_of_a_goal_that_has_ended_is_of_no_other_motion(server):
    """After a cancel, the next goal waits until the arm rests, and is not planned from a motion under way."""
    goal, execution, coroutine = begun(server)
    server._cancel(goal)
    end(coroutine)
    for source, others in ((execution.name, False), ("another", True)):
        server._on_path_time(Mock(source=source))
        begun(server)
        server.jobs[-1]()
        assert server._planned.call_args.args[2] is others


def test_an_arm_without_measured_velocities_rests_where_its_positions_do(server):
    """Right after a cancel it brakes still, and a goal from there exceeded limits on its way."""
    nan, now, q = float("nan"), [0], [0.0]
    server._node.get_clock().now = lambda: SimpleNamespace(nanoseconds=now[0])
    server._measured.read = lambda: {name: MeasuredJoint(q[0], nan, nan, now[0]) for name in NAMES}
    server._measured.published = True
    waited = []

    def wait(names, met):
        waited.append(met(server._measured.read()))
        return server._measured.read()

    server._measured.wait = wait
    for moved in (0.0, 0.03, 0.0):  # rad in 0.05 s
        now[0] += 5 * 10**7
        q[0] += moved
        server._listen()
        server._state(NAMES, under_way=False)
    assert waited == [True, False, True]


def test_a_motion_is_sent_again_until_it_is_answered(server, clock):
    """The middleware counts a killed node for seconds, and may lose what it sends to one that starts."""
    _, execution, _ = begun(server)
    server.jobs[0]()
    sent, ends = [], []
    for k in range(1, 60):
        clock[0] = 100.0 + 0.05 * k
        if k == 16:  # another node is known
            server._context.players.return_value = 2
        server._tick()
        sent.append(server._publish.call_count)
        ends.append(execution.done.done())
    assert sent[:13] == [1] * 4 + [2] * 5 + [3] * 4
    first = ends.index(True)
    assert 1.0 <= 0.05 * (first - 15) <= 1.3  # since the node was known, by the next time that it was sent
    assert sent[-1] == sent[first] and "no node has answered" in execution.done.result()[1]


@pytest.fixture
def older_and_newer(server, clock, monkeypatch):
    """Two goals whose motions were sent 0.05 s apart; and functions that accept one, and that look for 0.5 s and return
    which motions were sent until then.
    """
    server._planned.return_value = SimpleNamespace(names=NAMES, motion=through([0.0, 1.0], np.zeros((2, 2))), digest="")
    goals = []
    for _ in range(2):
        _, execution, _ = begun(server)
        monkeypatch.setattr(execution, "observe", Mock())
        server.jobs[-1]()
        goals.append(execution)
        clock[0] += 0.05

    def accept(execution):
        server._on_status(SimpleNamespace(request=execution.name, status=1, ACCEPTED=1, FINISHED=3, message=""))

    def look():
        for _ in range(10):
            clock[0] += 0.05
            server._tick()
        return [{x.name: x for x in goals}[call.args[4]] for call in server._publish.call_args_list]

    return *goals, accept, look


def test_a_lost_motion_is_replaced_by_a_newer_one_that_is_accepted(server, older_and_newer):
    """It was sent again after the newer one, and took its place."""
    older, newer, accept, look = older_and_newer
    accept(newer)
    assert older.done.result() == (server.kind.Result.INVALID_GOAL, "replaced by another trajectory")
    assert newer.is_playing and look() == [older, newer]


def test_only_the_newest_motion_is_sent_again(older_and_newer):
    """The newer one may have arrived, and its acceptance be on the way, where the older one is lost."""
    older, newer, accept, look = older_and_newer
    assert look() == [older, newer, newer, newer]
    accept(older)
    assert older.is_playing and newer.is_sent and not newer.done.done()  # the newer one is lost, or will be accepted


def test_a_motion_is_not_sent_again_after_a_newer_one_that_is_cancelled(server, older_and_newer):
    older, newer, _, look = older_and_newer
    server._cancel(newer.goal)
    assert look() == [older, newer]


def test_a_goal_that_is_refused_while_it_is_planned_is_replaced_by_none(server, older_and_newer):
    """Its reason may wait for its turn while a newer goal is accepted."""
    *_, accept, _ = older_and_newer
    _, refused, _ = begun(server)
    _, last, _ = begun(server)
    server.jobs[-1]()
    accept(last)
    assert not refused.done.done()


def test_statuses_of_the_longest_burst_reach_a_node_that_is_held_up(ros):
    """With a queue of ten, the acceptance of a motion was lost, and its goal aborted as if no node had answered."""
    from eom_dynamics.ros.interfaces import GOALS_AT_ONCE, TrajectoryStatus, status_qos

    node, received = ros.create_node("held_up"), []
    node.create_subscription(TrajectoryStatus, "trajectory_status", received.append, status_qos())
    publisher = node.create_publisher(TrajectoryStatus, "trajectory_status", status_qos())
    wait_for(publisher.get_subscription_count)
    sent = [TrajectoryStatus(request=str(k // 2)) for k in range(2 * GOALS_AT_ONCE)]
    for status in sent:
        publisher.publish(status)
    wait_for(lambda: len(received) == len(sent), node)
    node.destroy_node()
    assert received == sent


def test_the_executor_waits_for_the_plan_of_one_goal_only(server):
    for _ in range(2):
        begun(server)
    assert server.waits == [True, False]


def test_a_goal_without_points_stops_one_that_is_being_planned(server):
    _, execution, _ = begun(server)
    begun(server, points=0)
    server._stop.assert_called_once_with("")
    assert execution.done.result() == (server.kind.Result.INVALID_GOAL, "a goal without points has stopped it")
    server.jobs[0]()
    server._publish.assert_not_called()


def test_joint_states_of_an_arm_are_not_lost_beside_faster_ones_of_a_gripper(ros):
    """Nor does a state that waits to be read keep the executor busy."""
    from sensor_msgs.msg import JointState

    from eom_dynamics.ros.robot_node import MeasuredJoints

    node = ros.create_node("measuring")
    measured, arrived = MeasuredJoints(node), {}
    publisher = node.create_publisher(JointState, "joint_states", 100)
    wait_for(lambda: measured.published)
    for name in ("elbow", *["gripper"] * 50):
        publisher.publish(JointState(name=[name], position=array("d", [0.1])))
    busy, since = time.thread_time(), time.monotonic()
    while time.monotonic() < since + 0.5:  # a first spin may find something else to do, and end at once
        ros.spin_once(node, timeout_sec=0.5)
    assert time.thread_time() - busy < 0.1 * (time.monotonic() - since)
    wait_for(lambda: arrived.update(measured.read()) or "gripper" in arrived)
    node.destroy_node()
    assert "elbow" in arrived
