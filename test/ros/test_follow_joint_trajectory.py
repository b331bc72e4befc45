# SPDX-License-Identifier: Apache-2.0
"""Action follow_joint_trajectory: goals are played, observed, canceled and refused as by a trajectory controller."""

import os
import signal

import numpy as np
import pytest
from control_msgs.action import FollowJointTrajectory
from following_arm import ABORTED, CODES, HOME, NAMES, SUCCEEDED, TARGET, FollowingArm
from node_client import assert_no_step, joint_trajectory
from processes import planners


@pytest.fixture(scope="module")
def arm(start_shared):
    return discovered(start_shared)


def discovered(start):
    """An arm that has followed a goal."""
    arm = FollowingArm(start)
    assert any(arm.ask([0.0, 0.1], [HOME, HOME])[1] == CODES.SUCCESSFUL for _ in range(20))
    arm.feedback.clear()
    return arm


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
    assert_succeeded(at_home.ask([0.0, 0.4, 1.0], [HOME, HOME + 0.1, TARGET], path=0.4, goal=0.02))
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


def test_each_goal_of_a_burst_is_answered(at_home):
    goal = FollowJointTrajectory.Goal(trajectory=joint_trajectory(NAMES, [0.0, 0.5], [HOME, HOME]))
    at_home.node.process.process.send_signal(signal.SIGSTOP)
    futures = [at_home.send_async(goal) for _ in range(20)]
    at_home.node.spin(0.3)
    at_home.node.process.process.send_signal(signal.SIGCONT)
    at_home.node.wait(lambda: all(future.done() for future in futures), "answers")
    results = [future.result().get_result_async() for future in futures if future.result().accepted]
    at_home.node.wait(lambda: all(future.done() for future in results), "results")
    assert results[-1].result().status == SUCCEEDED


def test_a_goal_that_is_not_reached_is_aborted(at_home):
    at_home.follows, at_home.position = False, HOME
    status, code, text = at_home.ask([0.0, 0.8], [HOME, TARGET], goal=0.05, goal_time=1)
    assert (status, code) == (ABORTED, CODES.GOAL_TOLERANCE_VIOLATED), text
    assert text.startswith("position of fer_joint") and text.endswith("s after the end")


@pytest.mark.parametrize("goal_time", [0, -1])
def test_a_goal_without_a_limit_of_time_waits_until_it_is_reached(at_home, goal_time):
    at_home.follows, at_home.position = False, HOME
    del at_home.statuses[:]
    handle = at_home.send([0.0, 0.8], [HOME, TARGET], goal=0.05, goal_time=goal_time)
    at_home.node.wait(lambda: any(x.status == x.FINISHED for x in at_home.statuses), "the end of the motion")
    at_home.node.spin(0.5)
    at_home.follows = True
    assert_succeeded(at_home.result(handle))


def assert_stopped_before_the_target(arm):
    commands = arm.node.feedforward
    # The stop is held by further commands.
    while np.max(np.abs(commands[-1].motor_velocity)) > 1e-6:
        arm.node.spin(0.02)
    position, velocity = (np.array([getattr(m, f"motor_{x}") for m in commands]) for x in ("position", "velocity"))
    assert np.all(position[-1] < TARGET - 0.05) and np.max(np.abs(velocity[-1])) < 1e-6
    assert_no_step(commands[-500:])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"positions": [TARGET, HOME]}, "rad from its commanded position at that time, or where it is measured"),
        ({"velocity": 0.1}, "points[1].velocities[0] (joint 'fer_joint1') is 0.1 rad/s or m/s, limit 0.001 at the end"),
    ],
)
def test_goals_that_cannot_be_followed_are_aborted(at_home, options, reason):
    given = {"times": [0.0, 1.0], "positions": [HOME, TARGET], **options}
    assert reason in at_home.refusal(given.pop("times"), given.pop("positions"), **given)


def test_a_goal_of_continuous_joints_leads_to_the_nearest_turn(start):
    """Planners fold angles to half a turn; the arm stands at 3.1 rad, and passes it."""
    home, folded = np.array([3.1, 0.5]), np.array([-3.2 + 0.2, 0.6])
    arm = FollowingArm(start, "planar_2r", ("joint_1", "joint_2"), home)
    assert_succeeded(arm.ask([0.0, 1.0], [home - [2 * np.pi, 0.0], folded], path=0.5, goal=0.3, goal_time=1))
    commanded = np.array([m.motor_position for m in arm.node.feedforward])
    assert np.max(np.abs(commanded[-1] - folded - [2 * np.pi, 0.0])) < 0.2
    assert np.max(np.abs(np.diff(commanded, axis=0))) < 0.1
    assert all(abs(x) < 0.5 for m in arm.feedback for x in m.error.positions)


def under_way(arm, seconds=8.0):
    """A goal in motion."""
    arm.feedback.clear()
    handle = arm.send([0.0, seconds], [HOME, TARGET])
    arm.node.wait(lambda: np.max(np.abs(arm.node.feedforward[-1].motor_velocity)) > 0.03, "motion")
    return handle


def test_a_goal_ends_with_the_joint_states_of_the_arm(at_home):
    """A goal without tolerances succeeded for an arm that was switched off."""
    handle = under_way(at_home)
    at_home.publishes = False
    try:
        status, code, text = at_home.result(handle)
        assert (status, code) == (ABORTED, CODES.INVALID_GOAL) and "has no new states on /dynamics_" in text
        assert at_home.ask([1.0], [HOME])[0] == ABORTED
    finally:
        at_home.publishes = True
    assert_stopped_before_the_target(at_home)


@pytest.mark.parametrize("kind", ["trajectory", "goal"])
def test_constraints_are_the_tolerances_of_goals_without_them(at_home, kind):
    name = f"constraints.{NAMES[1]}.{kind}"
    assert at_home.node.set_parameter(name, 0.05) == ""
    with at_home.setting("constraints.goal_time", 0.1):
        at_home.follows, at_home.position = False, HOME
        status, _, text = at_home.ask([0.0, 1.0], [HOME, TARGET])
        assert status == ABORTED and text.startswith(f"position of {NAMES[1]} ") and "tolerance 0.05" in text
        at_home.position, at_home.follows = HOME, True
    assert at_home.node.set_parameter(name, 0.0) == ""


def test_a_goal_ends_with_its_node(start):
    """At rest, with an answer."""
    arm = discovered(start)
    future = under_way(arm).get_result_async()
    arm.node.process.process.send_signal(signal.SIGINT)
    while not future.done():
        arm.node.spin(0.01)
    result = future.result().result
    assert (result.error_code, result.error_string) == (CODES.INVALID_GOAL, "the process ends")
    assert arm.node.process.process.wait(60.0) == 0
    arm.node.catch_up()
    last = arm.node.feedforward[-1]
    assert np.all(np.array(last.motor_position) < TARGET - 0.05) and not np.any(last.motor_velocity)


def test_a_goal_ends_with_the_planner_process(start):
    """The next goal is played: the node starts another process."""
    arm = discovered(start)
    (planner,) = planners(arm.node.process.process.pid)
    os.kill(planner, signal.SIGSTOP)
    handle = arm.send([0.0, 1.0], [HOME, TARGET])
    os.kill(planner, signal.SIGKILL)
    status, code, text = arm.result(handle)
    assert (status, code) == (ABORTED, CODES.INVALID_GOAL) and "the planner process has ended" in text
    assert_succeeded(arm.ask([0.0, 0.5], [HOME, HOME]))


def test_goals_of_an_inactive_node_are_aborted(at_home):
    at_home.node.transition("deactivate")
    try:
        assert "the node is inactive; it plays trajectories only when active" in at_home.refusal([1.0], [TARGET])
    finally:
        at_home.node.transition("activate")
