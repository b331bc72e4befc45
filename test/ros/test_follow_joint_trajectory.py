# SPDX-License-Identifier: Apache-2.0
"""Action follow_joint_trajectory: goals are played, observed, cancelled and refused as by a trajectory controller."""

import re
import signal
import time

import numpy as np
import pytest
from control_msgs.action import FollowJointTrajectory
from eom_dynamics.msg import SplineTrajectory, TrajectoryStatus
from following_arm import ABORTED, CANCELED, CODES, HOME, NAMES, SUCCEEDED, TARGET, FollowingArm
from node_client import assert_no_step, joint_trajectory, stamp_of
from paths import CONFIG
from rclpy.action import ActionClient
from std_srvs.srv import Trigger


@pytest.fixture(scope="module")
def arm(start_shared):
    arm = FollowingArm(start_shared)
    # Discovery: without it the planning node finds nobody who plays.
    for _ in range(20):
        if arm.ask([0.0, 0.1], [HOME, HOME])[1] == CODES.SUCCESSFUL:
            return arm
    pytest.fail("the nodes do not discover each other")


@pytest.fixture
def at_home(arm):
    arm.follows = True
    arm.node.catch_up()
    last = arm.node.feedforward[-1:]  # none after a test that has failed
    if not last or np.max(np.abs(last[0].motor_position - HOME)) > 0.02:
        arm.node.transition("deactivate")
        arm.node.transition("activate")
        arm.forget()
        assert any(arm.ask([0.0, 0.1], [HOME, HOME])[1] == CODES.SUCCESSFUL for _ in range(5))
    arm.feedback.clear()
    del arm.node.feedforward[:-1]
    return arm


def assert_succeeded(result):
    """With nothing to say, but of late cycles, as a busy machine has them."""
    status, code, text = result
    assert (status, code) == (SUCCEEDED, 0) and (text == "" or "s lost in late cycles" in text), result


def test_a_goal_is_followed_with_feedback(at_home):
    assert_succeeded(at_home.ask([0.0, 0.4, 1.0], [HOME, HOME + 0.1, TARGET], path=0.1, goal=0.02))
    commands = at_home.node.feedforward
    at_home.node.wait(lambda: np.allclose(commands[-1].motor_position, TARGET, rtol=0, atol=0.01), "the last command")
    assert len(at_home.feedback) >= 5
    middle = at_home.feedback[len(at_home.feedback) // 2]
    assert middle.joint_names == NAMES
    np.testing.assert_allclose(
        middle.actual.positions, np.add(middle.desired.positions, -np.array(middle.error.positions))
    )
    if hasattr(middle, "index"):  # since control_msgs 6
        assert {point.index for point in at_home.feedback} >= {0, 1}


def test_a_goal_that_is_paused_is_finished_within_tolerances(at_home):
    node = at_home.node
    handle = at_home.send([0.0, 0.5, 2.0], [HOME, HOME + 0.1, TARGET], path=0.1, goal=0.02)
    node.wait(lambda: len(at_home.feedback) > 10, "feedback")
    assert node.call(Trigger, "pause", Trigger.Request()).success
    node.spin(10.0)
    # Where the process was held up meanwhile, diagnostics say so first.
    node.wait_for_diagnostics(lambda *status: status[1] == "paused: call ~/resume", "the pause")
    assert node.call(Trigger, "resume", Trigger.Request()).success
    assert_succeeded(at_home.result(handle))
    t = [x.desired.time_from_start.sec + 1e-9 * x.desired.time_from_start.nanosec for x in at_home.feedback]
    assert np.max(np.abs([x.error.positions for x in at_home.feedback])) < 0.1
    assert sum(np.diff(t) < 1e-3) > 100 and 2.0 - 0.2 < max(t) < 2.5


@pytest.mark.parametrize("held_up", [0.0, 0.3])
def test_each_goal_of_a_burst_is_answered(at_home, held_up):
    """Of 20, six were not. A dynamics node that is held up keeps the last ten; the others were sent again, and won."""
    goal = FollowJointTrajectory.Goal(trajectory=joint_trajectory(NAMES, [0.0, 0.5], [HOME, HOME]))
    if held_up:
        at_home.node.process.process.send_signal(signal.SIGSTOP)
    futures = [at_home.send_async(goal) for _ in range(20)]
    at_home.node.spin(held_up)
    at_home.node.process.process.send_signal(signal.SIGCONT)
    at_home.node.wait(lambda: all(future.done() for future in futures), "answers")
    results = [future.result().get_result_async() for future in futures if future.result().accepted]
    at_home.node.wait(lambda: all(future.done() for future in results), "results")
    assert results[-1].result().status == SUCCEEDED


def test_a_goal_that_is_answered_too_late_does_not_stop_the_next_one(at_home):
    node = at_home.node
    node.spin(3.0)  # in which a planning node has patience, so that both discover each other
    at_home.statuses.clear()
    goal = FollowJointTrajectory.Goal(trajectory=joint_trajectory(NAMES, [0.0, 0.5], [HOME, HOME]))
    node.process.process.send_signal(signal.SIGSTOP)
    late = at_home.send_async(goal)
    node.spin(0.9)
    following = at_home.send_async(goal)
    assert at_home.result(late.result())[:2] == (ABORTED, CODES.INVALID_GOAL)
    node.process.process.send_signal(signal.SIGCONT)
    assert_succeeded(at_home.result(following.result()))


def test_a_deviation_stops_the_motion_at_rest(at_home):
    at_home.follows, at_home.position = False, HOME
    status, code, text = at_home.ask([0.0, 2.0], [HOME, TARGET], path=0.05)
    assert (status, code) == (ABORTED, CODES.PATH_TOLERANCE_VIOLATED)
    assert text.startswith("position of fer_joint") and "tolerance 0.05" in text
    assert_stopped_before_the_target(at_home)


def test_a_goal_that_is_not_reached_is_aborted(at_home):
    at_home.follows, at_home.position = False, HOME
    status, code, text = at_home.ask([0.0, 0.8], [HOME, TARGET], goal=0.05)
    assert (status, code) == (ABORTED, CODES.GOAL_TOLERANCE_VIOLATED), text
    assert text.startswith("position of fer_joint") and text.endswith("s after the end")


def test_a_goal_without_a_limit_of_time_waits_until_it_is_reached(at_home):
    at_home.follows, at_home.position = False, HOME
    del at_home.statuses[:]
    handle = at_home.send([0.0, 0.8], [HOME, TARGET], goal=0.05, goal_time=-1)
    at_home.node.wait(lambda: any(x.status == x.FINISHED for x in at_home.statuses), "the end of the motion")
    at_home.node.spin(0.5)
    at_home.follows = True
    assert_succeeded(at_home.result(handle))


@pytest.mark.parametrize("end", ["replaced by another trajectory", "the node that played it is gone"])
def test_a_goal_without_a_limit_of_time_ends_with_another_or_the_node(start, end):
    arm = FollowingArm(start)
    assert any(arm.ask([0.0, 0.1], [HOME, HOME])[0] == SUCCEEDED for _ in range(20))
    arm.follows, arm.position = False, HOME
    del arm.statuses[:]
    handle = arm.send([0.0, 0.8], [HOME, TARGET], goal=0.05, goal_time=-1)
    arm.node.wait(lambda: any(x.status == x.FINISHED for x in arm.statuses), "the end of the motion")
    if end.startswith("replaced"):
        assert arm.node.set_parameter("start_tolerance", 1.0) == ""
        arm.send([0.0, 0.8], [TARGET, HOME])
    else:
        arm.planning.join(arm.node)
        arm.node.process.process.send_signal(signal.SIGINT)
        arm.node = arm.planning
    status, code, text = arm.result(handle)
    assert (status, code) == (ABORTED, CODES.INVALID_GOAL) and text.startswith(end)


def assert_stopped_before_the_target(arm):
    commands = arm.node.feedforward
    # The stop is held by further commands.
    arm.node.wait(lambda: np.max(np.abs(commands[-1].motor_velocity)) < 1e-6, "rest")
    position, velocity = (np.array([getattr(m, f"motor_{x}") for m in commands]) for x in ("position", "velocity"))
    assert np.all(position[-1] < TARGET - 0.05) and np.max(np.abs(velocity[-1])) < 1e-6
    assert_no_step(commands[-500:])


def test_a_new_goal_from_the_measured_state_replaces_the_current_one(at_home):
    """As MoveIt replans on the move: at once, from where the moving arm was measured."""
    handles, node = [at_home.send([0.0, 2.0], [HOME, TARGET])], at_home.node
    with at_home.setting("start_tolerance", 0.5):  # on a busy machine, states and goals take long
        for _ in range(3):
            node.wait(lambda: np.max(np.abs(node.feedforward[-1].motor_velocity)) > 0.2, "motion")
            node.spin(0.1)
            here = np.array(at_home.position)
            handles.append(at_home.send([0.0, 2.0], [here, TARGET]))
        for handle in handles[:-1]:
            assert at_home.result(handle) == (ABORTED, CODES.INVALID_GOAL, "replaced by another trajectory")
        assert_succeeded(at_home.result(handles[-1]))
    assert_no_step(node.feedforward[1:])


def test_a_new_goal_that_is_refused_stops_the_current_one_on_request(at_home):
    reason = "stopped, as another trajectory was refused (on_refused_trajectory: stop)"
    with at_home.setting("on_refused_trajectory", "stop"):
        for times in ([0.0, 0.02], [0.1, 1.5]):  # refused by the planning node, and by the dynamics node
            first = at_home.send([0.0, 2.0], [HOME, TARGET])
            at_home.node.wait(lambda: len(at_home.feedback) > 5, "feedback")
            assert at_home.ask(times, [HOME - 0.3, HOME])[0] == ABORTED
            assert at_home.result(first) == (ABORTED, CODES.INVALID_GOAL, reason)
            assert_stopped_before_the_target(at_home)
            assert at_home.ask([1.0], [HOME])[0] == SUCCEEDED
            at_home.feedback.clear()


def test_a_new_goal_that_cannot_be_followed_leaves_the_current_one_alone(at_home):
    first = at_home.send([0.0, 1.0], [HOME, TARGET])
    at_home.node.wait(lambda: len(at_home.feedback) > 5, "feedback")
    reason = at_home.refusal([0.1, 1.5], [HOME - 0.3, HOME])
    assert reason.startswith("exceeds limits on the way from the commanded state: fer_joint")
    assert reason.endswith("; the goal before goes on, unless on_refused_trajectory is stop")
    assert_succeeded(at_home.result(first))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"names": ["elbow", *NAMES[1:]]}, "joint_names[0]: the robot has no joint 'elbow'"),
        ({"times": [0.0, 0.02]}, "exceeds limits: fer_joint"),
        ({"stamp": 1}, "it ended "),
        ({"positions": [TARGET, HOME]}, "rad from its commanded position at that time, or where it is measured"),
        ({"velocity": 0.1}, "points[1].velocities[0] (joint 'fer_joint1') is 0.1 rad/s or m/s, must be 0 at the end"),
    ],
)
def test_goals_that_cannot_be_followed_are_aborted(at_home, options, reason):
    given = {"times": [0.0, 1.0], "positions": [HOME, TARGET], **options}
    assert reason in at_home.refusal(given.pop("times"), given.pop("positions"), **given)


@pytest.mark.parametrize("names", [NAMES, []])
def test_a_later_first_point_is_reached_from_the_measured_position(at_home, names):
    at_home.node.transition("deactivate")
    at_home.node.transition("activate")  # nothing is commanded from which to start
    at_home.forget()
    assert_succeeded(at_home.ask([1.0], [TARGET], names=names))
    commanded = np.array([m.motor_position for m in at_home.node.feedforward])
    t = np.array([m.header.stamp.sec + m.header.stamp.nanosec * 1e-9 for m in at_home.node.feedforward])
    assert np.max(np.abs(commanded[0] - HOME)) < 0.02
    # No jump, also where a busy machine leaves out commands.
    assert np.all(np.max(np.abs(np.diff(commanded, axis=0)), axis=1) < 0.02 + 1.0 * np.diff(t))


@pytest.mark.parametrize("first", [[], [0.0]], ids=["to a later point", "from its first point"])
def test_a_goal_of_continuous_joints_leads_to_the_nearest_turn(start, first):
    """Planners fold angles to half a turn; the arm stands at 3.1 rad, and passes it."""
    home, folded = np.array([3.1, 0.5]), np.array([-3.2 + 0.2, 0.6])
    arm = FollowingArm(start, "planar_2r", ("joint_1", "joint_2"), home)
    times, points = [*first, 1.0], [*[home - [2 * np.pi, 0.0]] * len(first), folded]
    assert_succeeded(arm.ask(times, points, path=0.5, goal=0.3, goal_time=1))
    commanded = np.array([m.motor_position for m in arm.node.feedforward])
    assert np.max(np.abs(commanded[-1] - folded - [2 * np.pi, 0.0])) < 0.2
    assert np.max(np.abs(np.diff(commanded, axis=0))) < 0.1
    assert all(abs(x) < 0.5 for m in arm.feedback for x in m.error.positions)


def test_a_rejected_goal_is_not_played_later(at_home):
    at_home.node.process.process.send_signal(signal.SIGSTOP)
    try:
        assert "no node has answered" in at_home.refusal([0.0, 1.0], [HOME, TARGET])
    finally:
        at_home.node.process.process.send_signal(signal.SIGCONT)
    at_home.node.spin(1.0)
    assert (
        not at_home.node.feedforward
        or np.max(np.abs(np.subtract(at_home.node.feedforward[-1].motor_position, HOME))) < 0.02
    )


def test_a_goal_ends_with_the_node_that_plays_it(start):
    arm = FollowingArm(start)
    assert any(arm.ask([0.0, 0.1], [HOME, HOME])[0] == SUCCEEDED for _ in range(20))
    arm.feedback.clear()
    future = arm.send([0.0, 20.0], [HOME, HOME]).get_result_async()
    arm.node.wait(lambda: len(arm.feedback) > 5, "feedback")
    arm.planning.join(arm.node)
    arm.node.process.process.kill()
    killed = time.monotonic()
    arm.planning.wait(future.done, "the result")
    # The middleware notices after 20 s. Others than tests have the processor for themselves: 1 s.
    assert time.monotonic() < killed + 5.0
    result = future.result().result
    assert (result.error_code, result.error_string[:35]) == (CODES.INVALID_GOAL, "the node that played it is gone: ha")
    arm.node, arm.follows = arm.planning, False
    assert "no node has answered" in arm.refusal([0.0, 1.0], [HOME, TARGET])


def under_way(arm, seconds=4.0):
    """A goal of which the arm has gone a part."""
    arm.feedback.clear()
    handle = arm.send([0.0, seconds], [HOME, TARGET])
    arm.node.wait(lambda: np.max(np.abs(arm.node.feedforward[-1].motor_velocity)) > 0.1, "motion")
    return handle


def test_a_goal_is_cancelled_while_it_is_planned(at_home):
    """Of 30, 24 cancels were lost, and 18 of these goals ran to their end."""
    x = np.linspace(0.0, 1.0, 200)
    smooth = HOME + np.outer(x**3 * (10 + x * (6 * x - 15)), TARGET - HOME)
    for pause in (0.0, 0.002, 0.005, 0.01, 0.02):
        handle = at_home.send(2.0 * x, smooth)
        at_home.node.spin(pause)
        cancelled = handle.cancel_goal_async()
        at_home.node.wait(cancelled.done, "the cancellation")
        assert at_home.result(handle)[0] == CANCELED
        at_home.node.wait(lambda: np.max(np.abs(at_home.node.feedforward[-1].motor_velocity)) < 1e-6, "rest")
        at_home.node.spin(0.3)
        assert np.abs(np.subtract(at_home.node.feedforward[-1].motor_position, HOME)).max() < 0.1
        assert at_home.ask([1.0], [HOME])[0] == SUCCEEDED


def test_a_goal_ends_with_the_joint_states_of_the_arm(at_home):
    """A goal without tolerances succeeded for an arm that was switched off."""
    handle = under_way(at_home)
    at_home.publishes = False
    try:
        status, code, text = at_home.result(handle)
        assert (status, code) == (ABORTED, CODES.INVALID_GOAL) and "has no states on /dynamics_" in text
        assert at_home.ask([1.0], [HOME])[0] == ABORTED
    finally:
        at_home.publishes = True
    assert_stopped_before_the_target(at_home)


@pytest.mark.parametrize("kind", ["path", "goal"])
def test_tolerances_of_goals_have_defaults(at_home, kind):
    with at_home.setting(f"{kind}_tolerance", 0.05, at_home.planning):
        at_home.follows, at_home.position = False, HOME
        status, _, text = at_home.ask([0.0, 1.0], [HOME, TARGET])
        assert status == ABORTED and text.startswith("position of fer_joint") and "tolerance 0.05" in text
        at_home.position, at_home.follows = HOME, True


def test_a_goal_that_replaces_another_has_feedback_until_it_begins(at_home):
    """And its path tolerance counts, on the way to its first point, where it was silent."""
    first = under_way(at_home, 2.0)
    at_home.feedback.clear()
    second = at_home.send([2.5, 3.0], [TARGET, TARGET], path=0.1)
    assert at_home.result(first)[0] == ABORTED
    at_home.feedback.clear()
    assert_succeeded(at_home.result(second))
    assert len(at_home.feedback) > 25
    desired, error = (np.array([getattr(x, name).positions for x in at_home.feedback]) for name in ("desired", "error"))
    assert np.abs(error).max() < 0.1 and np.abs(desired[0] - TARGET).max() > 0.05
    np.testing.assert_allclose(desired[-1], TARGET)
    third = at_home.send([0.0, 2.0], [TARGET, HOME])
    at_home.node.wait(lambda: np.max(np.abs(at_home.node.feedforward[-1].motor_velocity)) > 0.1, "motion")
    fourth = at_home.send([2.5, 3.0], [HOME, HOME], path=0.02)
    at_home.follows = False
    assert at_home.result(third)[0] == ABORTED
    text = at_home.result(fourth)[2]
    assert re.search(r"deviates by 0\.\d+, tolerance 0\.02, at [01]\.", text), text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL, signal.SIGSTOP])
def test_a_motion_ends_with_the_planning_node_of_its_goal(start, number):
    """The arm went on, without an answer; after a restart of the node, its next goal was taken for the one before."""
    arm = FollowingArm(start)
    assert any(arm.ask([0.0, 0.1], [HOME, HOME])[0] == SUCCEEDED for _ in range(20))
    handle = under_way(arm)
    future = handle.get_result_async()
    arm.planning.process.process.send_signal(number)
    begun = time.time_ns()
    arm.node.wait(lambda: np.max(np.abs(arm.node.feedforward[-1].motor_velocity)) < 1e-6, "rest")
    # By its stamp: a client on a busy machine takes it later. Others than tests have the processor for themselves: 1 s.
    assert stamp_of(arm.node.feedforward[-1]) < begun + 2_000_000_000, arm.node.process.log[-1000:]
    assert_stopped_before_the_target(arm)
    if number == signal.SIGINT:
        arm.node.wait(future.done, "the result")
        result = future.result().result
        assert (result.error_code, result.error_string) == (CODES.INVALID_GOAL, "the planning node has ended")
    else:
        assert "its sender is gone: 0.5 s without its identity on trajectory_lease" in arm.node.process.log
    if number == signal.SIGSTOP:
        arm.planning.process.process.send_signal(signal.SIGCONT)
        assert arm.result(handle)[0] == ABORTED


def test_without_a_node_that_plays(start):
    planning = start.planning("--params-file", CONFIG / "panda.yaml")
    action = ActionClient(planning.node, FollowJointTrajectory, f"{planning.process.name}/follow_joint_trajectory")
    planning.wait(action.server_is_ready, "the action")
    goal = FollowJointTrajectory.Goal()
    goal.trajectory = joint_trajectory(NAMES, [0.0], [HOME])
    statuses = []
    planning.node.create_subscription(TrajectoryStatus, "trajectory_status", statuses.append, 10)
    future = action.send_goal_async(goal)
    planning.wait(future.done, "the goal")
    result = future.result().get_result_async()
    planning.wait(result.done, "the result")
    assert result.result().status == ABORTED
    planning.wait(lambda: statuses, "its status")
    assert statuses[0].message.startswith("no node has answered on trajectory_status"), statuses[0].message


def test_a_motion_is_sent_again_to_a_node_that_comes_later(start):
    """A dynamics node that was restarted was not known yet, while the one that was killed still counted."""
    planning = start.planning("--params-file", CONFIG / "panda.yaml")
    action = ActionClient(planning.node, FollowJointTrajectory, f"{planning.process.name}/follow_joint_trajectory")
    planning.wait(action.server_is_ready, "the action")
    goal = FollowJointTrajectory.Goal()
    goal.trajectory = joint_trajectory(NAMES, [0.0, 1.0], [HOME, TARGET])
    received = [[], []]
    for messages in received:
        planning.node.create_subscription(SplineTrajectory, "spline_trajectory", messages.append, 10)
        if messages is received[0]:
            planning.spin(0.5)
            future = action.send_goal_async(goal)
        planning.wait(lambda: messages, "the motion")  # noqa: B023
    assert received[1][0] == received[0][0]
    planning.wait(future.done, "the goal")
    future = future.result().get_result_async()
    planning.wait(future.done, "the result")
    assert "no node has answered" in future.result().result.error_string
