# SPDX-License-Identifier: Apache-2.0
"""Execution of a goal of follow_joint_trajectory, without control_msgs, whose fields depend on its version."""

import sys
import time
from array import array
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from launching import wait_for

from eom_dynamics.control.measured import JointTolerances, MeasuredJoint
from eom_dynamics.exceptions import EomDynamicsError
from eom_dynamics.trajectory import through

NAMES = ("shoulder", "elbow")
INVALID_GOAL = -1


class Feedback(SimpleNamespace):
    """Feedback of control_msgs as in Jazzy: without ``index``."""

    def __init__(self, **fields):
        super().__init__(header=SimpleNamespace(stamp=None), desired=None, actual=None, error=None, **fields)


class IndexedFeedback(Feedback):
    """Feedback of control_msgs 6."""

    index = -1


@pytest.fixture
def execution(ros):
    """An accepted goal, 0.7 s after its start and past the second of three points."""
    from eom_dynamics.ros.planning.follow_trajectory import GoalMotion, _Execution

    def start(feedback):
        node, goal = Mock(), Mock(is_cancel_requested=False)
        node.get_clock().now.return_value = SimpleNamespace(nanoseconds=10**9 + 7 * 10**8, to_msg=Mock())
        kind = SimpleNamespace(Feedback=feedback, Result=SimpleNamespace(INVALID_GOAL=INVALID_GOAL, SUCCESSFUL=0))
        motion = through([0.0, 0.5, 1.0], np.zeros((3, 2)))
        none = JointTolerances.read("path_tolerance", (), NAMES)
        execution = _Execution(node, Mock(), "", kind, Mock(read=dict), Mock(return_value=1), Mock())
        execution.plan = GoalMotion(NAMES, motion, 10**9, none, none, 1.0)
        accepted = SimpleNamespace(status=1, ACCEPTED=1)
        execution.on_status(accepted)
        return execution, goal, node

    return start


@pytest.mark.parametrize("feedback", [Feedback, IndexedFeedback])
def test_feedback_has_an_index_where_the_message_has_one(execution, feedback):
    execution, goal, _ = execution(feedback)
    execution.observe(goal)
    assert not execution.done.done()
    (sent,) = goal.publish_feedback.call_args.args
    assert sent.desired.time_from_start.nanosec == 7 * 10**8
    assert getattr(sent, "index", None) == (1 if feedback is IndexedFeedback else None)


def test_an_exception_ends_the_goal(execution):
    execution, goal, node = execution(Mock(side_effect=OverflowError("too far")))
    execution.observe(goal)
    assert execution.done.result() == (INVALID_GOAL, "internal error: OverflowError: too far")
    assert "Traceback" in node.get_logger().error.call_args.args[0]


def test_a_goal_that_is_cancelled_at_a_standstill_says_that_this_stays(execution):
    execution, *_ = execution(Feedback)
    for k in range(2):
        stamp = SimpleNamespace(sec=1, nanosec=(k + 1) * 10**8)
        execution.on_path_time(Mock(header=Mock(stamp=stamp), time_ref=SimpleNamespace(sec=0, nanosec=10**8)))
    execution.cancel()
    assert execution.done.result() == (0, "cancelled, at a standstill, in which the next goal waits")


def test_tolerances_name_the_joints_that_are_not_measured(execution):
    execution, goal, _ = execution(Feedback)
    limits = JointTolerances.read(
        "path_tolerance", [SimpleNamespace(name="elbow", position=1.0, velocity=0.0, acceleration=0.0)], NAMES
    )
    execution.plan, execution._since = execution.plan._replace(path=limits), 0
    execution._measured = Mock(
        topic="/joint_states", read=lambda: {"shoulder": MeasuredJoint(0.0, 0.0, time.time_ns())}
    )
    execution.observe(goal)
    reason = "tolerances need joint states on /joint_states; none arrives with a position of 'elbow'"
    assert execution.done.result() == (INVALID_GOAL, reason)


def finished(coroutine):
    """What a coroutine that waits for nothing returns."""
    with pytest.raises(StopIteration) as end:
        coroutine.send(None)
    return end.value.value


@pytest.fixture
def server(ros, monkeypatch):
    """Server of the action, whose worker and publishers are mocks."""
    from eom_dynamics.ros.planning import follow_trajectory

    for name in ("ActionServer", "Worker", "steady_timer"):
        monkeypatch.setattr(follow_trajectory, name, Mock())
    for name in ("control_msgs", "control_msgs.action"):
        monkeypatch.setitem(sys.modules, name, Mock())
    return follow_trajectory.FollowTrajectory(*[Mock() for _ in range(7)])


def goal_of(*points):
    from trajectory_msgs.msg import JointTrajectory

    return Mock(request=SimpleNamespace(trajectory=JointTrajectory(points=[*points])))


def test_a_goal_that_is_cancelled_before_it_is_executed_is_canceled(server):
    from rclpy.action.server import GoalResponse

    goal = goal_of()
    assert finished(server._consider(goal.request)) == GoalResponse.ACCEPT
    server._accepted(goal)
    server._cancel(goal)
    (execute,) = goal.execute.call_args.args
    finished(execute(goal))
    goal.canceled.assert_called_once()


def test_motions_are_sent_in_the_order_of_goals(server, monkeypatch):
    """By the worker, since tasks that await it go on in any order; the executor waits for the plan of one goal only."""
    from rclpy.task import Future
    from trajectory_msgs.msg import JointTrajectoryPoint

    for name in ("_start_time", "_planned"):
        monkeypatch.setattr(server, name, Mock())
    waits = []
    server._worker.compute = lambda job, patience: waits.append(patience > 0) or job() or Future()
    for _ in range(2):
        server._consider(goal_of(JointTrajectoryPoint()).request).send(None)
    assert server._publish.call_count == 2 and waits == [True, False]


def test_a_goal_without_points_stops_one_that_is_being_planned(server, monkeypatch):
    from rclpy.action.server import GoalResponse
    from rclpy.task import Future
    from trajectory_msgs.msg import JointTrajectoryPoint

    for name in ("_start_time", "_planned"):
        monkeypatch.setattr(server, name, Mock())
    future, jobs = Future(), []
    server._worker.compute = lambda job, patience: jobs.append(job) or future
    planned = server._consider(goal_of(JointTrajectoryPoint()).request)
    planned.send(None)
    assert finished(server._consider(goal_of().request)) == GoalResponse.ACCEPT
    server._stop.assert_called_once()
    with pytest.raises(EomDynamicsError, match="a goal without points has stopped it") as error:
        jobs[0]()
    future.set_exception(error.value)
    assert finished(planned) == GoalResponse.REJECT
    server._publish.assert_not_called()


def test_joint_states_of_an_arm_are_not_lost_beside_faster_ones_of_a_gripper(ros):
    """Nor does a state that waits to be read keep the executor busy."""
    from sensor_msgs.msg import JointState

    from eom_dynamics.ros.measured_joints import MeasuredJoints

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
