# SPDX-License-Identifier: Apache-2.0
"""Goals of follow_joint_trajectory, without control_msgs: its fields depend on its version."""

import time
from array import array
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from launching import wait_for

from eom_dynamics.control.measured import JointTolerances, MeasuredJoint
from eom_dynamics.trajectory import through

NAMES = ("shoulder", "elbow")


class Result(SimpleNamespace):
    SUCCESSFUL, INVALID_GOAL, PATH_TOLERANCE_VIOLATED, GOAL_TOLERANCE_VIOLATED = 0, -1, -4, -5


class Feedback(SimpleNamespace):
    """Feedback of control_msgs as in Jazzy: without ``index``."""

    def __init__(self, **fields):
        super().__init__(header=SimpleNamespace(stamp=None), desired=None, actual=None, error=None, **fields)


class IndexedFeedback(Feedback):
    """Feedback of control_msgs 6."""

    index = -1


@pytest.fixture
def goal(ros):
    """A goal 0.7 s after its start and past the second of three points, with an arm commanded at 1 rad."""
    from action_msgs.msg import GoalInfo

    from eom_dynamics.ros.dynamics.goal_action import GoalAction
    from eom_dynamics.ros.dynamics.goals import ActionGoal, Phase

    robot = SimpleNamespace(joint_names=NAMES[::-1], continuous=np.array([False, False]))
    record = SimpleNamespace(path_time=0.7)
    loop = SimpleNamespace(arm=SimpleNamespace(robot=robot), loop=SimpleNamespace(state=np.ones((5, 2))), record=record)
    clock = SimpleNamespace(nanoseconds=10**9, to_msg=Mock())
    action = GoalAction.__new__(GoalAction)
    action.node, action.kind = Mock(arm=None), SimpleNamespace(Feedback=Feedback, Result=Result, Impl=Mock())
    action.node.get_clock().now.return_value = action.clock = clock
    action.stream = SimpleNamespace(loop=loop, player=Mock(goal=None), measured=Mock(topic="/joint_states"))
    action._feedback, action.statuses, action.answer, action.unheard = Mock(), [], Mock(), {}
    action.publish = action.statuses.append
    goal = ActionGoal(action, GoalInfo())
    goal.names, goal.motion, goal.phase = NAMES, through([0.0, 0.5, 1.0], np.zeros((3, 2))), Phase.PLAYING
    goal._path = goal._tolerance = JointTolerances.read("path_tolerance", (), NAMES)
    goal._goal_time = 1.0
    return goal


def measured(*positions):
    return {name: MeasuredJoint(q, 0.0, 0.0, 0) for name, q in zip(NAMES, positions, strict=False)}


def tolerances():
    return JointTolerances.read("goal_tolerance", (), NAMES, dict.fromkeys(NAMES, 0.1))


def finish(goal, remark=""):
    from eom_dynamics.ros.interfaces import TrajectoryStatus

    goal.tell(TrajectoryStatus.FINISHED, remark)


def outcome(goal):
    return goal.result.error_code, goal.result.error_string


@pytest.mark.parametrize("feedback", [Feedback, IndexedFeedback])
def test_feedback_has_an_index_where_the_message_has_one(goal, feedback):
    goal._action.kind.Feedback = feedback
    goal.observe(measured(1.0, 1.1))
    goal._action.answer.assert_not_called()
    sent = goal._action.kind.Impl.FeedbackMessage.call_args.kwargs["feedback"]
    assert sent.desired.time_from_start.nanosec == 7 * 10**8
    assert [*sent.desired.positions] == [1.0, 1.0]
    np.testing.assert_allclose(sent.error.positions, [0.0, -0.1])
    assert getattr(sent, "index", None) == (1 if feedback is IndexedFeedback else None)


def test_the_deviation_on_the_path_is_that_from_the_command(goal):
    goal._path = tolerances()
    goal.observe(measured(1.0, 1.05))
    goal._action.answer.assert_not_called()
    goal.observe(measured(1.0, 1.2))
    code, text = outcome(goal)
    assert code == Result.PATH_TOLERANCE_VIOLATED and "elbow" in text and text.endswith(", at 0.7 s")
    assert [x.status for x in goal._action.statuses] == [4]


def test_an_exception_ends_the_goal(goal):
    goal._action.kind.Feedback = Mock(side_effect=OverflowError("too far"))
    goal.observe({})
    assert outcome(goal) == (Result.INVALID_GOAL, "internal error: OverflowError: too far")
    assert "Traceback" in goal._node.get_logger().error.call_args.args[0]


def test_a_refusal_says_that_the_goal_before_goes_on(goal):
    goal._action.stream.player.goal = Mock()
    goal.tell(2, "why")
    assert outcome(goal) == (Result.INVALID_GOAL, "why; the goal before goes on")
    assert goal._action.statuses[0].message == "why"


def test_the_remark_of_the_player_is_the_text_of_the_goal(goal):
    finish(goal, "0.6 s lost in late cycles")
    goal.observe(measured(0.0, 0.0))
    assert outcome(goal) == (0, "0.6 s lost in late cycles")


def test_a_goal_that_is_not_reached_ends_also_where_the_clock_goes_back(goal):
    """Within the time for the goal after a reset of a simulation."""
    goal._tolerance, ended = tolerances(), []
    goal._action.clock.nanoseconds = 10**10
    finish(goal)
    for now in (105 * 10**8, 0, 9 * 10**8, 11 * 10**8):
        goal._action.clock.nanoseconds = now
        goal.observe(measured(1.0, 1.0))
        ended.append(goal._action.answer.called)
    assert ended == [False, False, False, True]
    code, text = outcome(goal)
    assert code == Result.GOAL_TOLERANCE_VIOLATED and text.endswith(", 1.1 s after the end")


def test_a_finished_goal_that_is_replaced_may_be_reached_by_now(goal):
    goal._tolerance = tolerances()
    finish(goal)
    goal._action.stream.measured.joints.return_value = measured(0.0, 0.0)
    goal.withdraw("replaced by another trajectory")
    assert outcome(goal) == (0, "")
    goal._action.answer.assert_called_once()


def test_tolerances_name_the_joints_that_are_not_measured(goal):
    goal._path = tolerances()
    goal._action.clock.nanoseconds += 2 * 10**9
    goal.observe(measured(0.0))
    reason = "tolerances need joint states on /joint_states; none arrives with a position of 'elbow'"
    assert outcome(goal) == (Result.INVALID_GOAL, reason)


def test_a_goal_ends_with_the_joint_states(goal):
    for now in range(25):
        goal._action.clock.nanoseconds = 10**9 + now * 50_000_000
        goal._action._heard = {"elbow": 0} if now else {}
        goal._action._looked = goal._action.clock.nanoseconds - 50_000_000
        goal._action._listen(measured(1.0, 1.0))
        goal.observe(measured(1.0, 1.0))
    assert outcome(goal) == (-1, "'elbow' has no new states on /joint_states: is the robot running?")


def test_joint_states_of_an_arm_are_not_lost_beside_faster_ones_of_a_gripper(ros):
    """A state that waits does not keep the executor busy."""
    from sensor_msgs.msg import JointState

    from eom_dynamics.ros.robot_node import MeasuredJoints

    node = ros.create_node("measuring")
    measured, arrived = MeasuredJoints(node), {}
    publisher = node.create_publisher(JointState, "joint_states", 100)
    wait_for(publisher.get_subscription_count)
    for name in ("elbow", *["gripper"] * 50):
        publisher.publish(JointState(name=[name], position=array("d", [0.1])))
    busy, since = time.thread_time(), time.monotonic()
    while time.monotonic() < since + 0.5:  # a first spin may do something else and end early
        ros.spin_once(node, timeout_sec=0.5)
    assert time.thread_time() - busy < 0.1 * (time.monotonic() - since)
    wait_for(lambda: arrived.update(measured.read()) or "gripper" in arrived)
    node.destroy_node()
    assert "elbow" in arrived
