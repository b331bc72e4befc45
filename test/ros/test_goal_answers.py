# SPDX-License-Identifier: Apache-2.0
"""Goals of FollowJointTrajectory are answered as by joint_trajectory_controller, but for those of a table in the docs.

Its answers are recorded in jtc_answers.json. Where it is installed, it is asked again; to record its answers anew, set
EOM_RECORD.
"""

import json
import os
import signal
from pathlib import Path

import managed_arm
import mock_arm
import processes
import pytest
from paths import CONFIG

pytest.importorskip("control_msgs.action", reason="control_msgs is not installed")

from rclpy.executors import SingleThreadedExecutor
from trajectory_goals import CASES, HOME, FollowedArm, Follower, Sent, answers

RECORDED = Path(__file__).with_name("jtc_answers.json")

DIFFERENT = {
    # A step.
    "a joint twice": "aborted -1; home",
    "a position that is NaN": "aborted -1; home",
    "a velocity that is infinite": "aborted -1; home",
    "0.1 rad in 2 ms": "aborted -1; home",
    "beyond limits of position": "aborted -1; home",
    "beyond limits of velocity": "aborted -1; home",
    "a start 0.3 rad away, now": "aborted -1; home",
    "0.1 rad away, now": "aborted -1; home",
    "replanned from the measured state of 0.6 s ago": "succeeded 0, aborted -1; far",
    "another goal, 0.3 rad away, now": "succeeded 0, aborted -1; far",
    # Dropped tolerances and fields.
    "a tolerance on the path that is NaN": "aborted -1; home",
    "a tolerance on the path of an unknown joint": "aborted -1; home",
    "a tolerance at the goal of an unknown joint": "aborted -1; home",
    "several bodies": "aborted -1; home",
    # Others are held.
    "some of the joints": "succeeded 0; elsewhere",
    # Stops.
    "no points": "succeeded 0; home",
    "no points on the way": "aborted -1, succeeded 0; elsewhere",
    "a tolerance on the path that is violated": "aborted -4; elsewhere",
    "cancelled before its stamp": "canceled 0; home",
}
"""Answers of the node; docs/play.md says why."""


@pytest.mark.timeout(300)
def test_the_node_answers_as_jtc(start):
    # On a busy machine goals and states take long; but points that come in 0.5 s must not be due.
    given = ("--params-file", CONFIG / "panda.yaml", {"dynamics.trajectory_topics.START_LATENCY": 0.4})
    # Nor must an arm at 0.3 rad/s, whose state is as old, start too far away; 0.1 rad away at rest is refused.
    arm = start(*given, "-p", "safety:=strict", "-p", "start_tolerance:=0.09", client=FollowedArm)
    follower = Follower(arm.node, arm._executor, f"{arm.process.name}/follow_joint_trajectory")
    assert any(follower.ask([0.0, 0.1], [HOME, HOME]) == "succeeded 0" for _ in range(20))
    found = answers(follower)
    expected = json.loads(RECORDED.read_text())
    # The action accepts each goal at once, and aborts those that it refuses, with the reason.
    expected = {name: answer.replace("rejected", "aborted -1") for name, answer in expected.items()}
    assert {name: expected[name] for name in DIFFERENT if expected[name] == DIFFERENT[name]} == {}
    assert found == expected | DIFFERENT, arm.process.log


@pytest.mark.timeout(300)
@pytest.mark.skipif(bool(managed_arm.missing()), reason=managed_arm.missing())
def test_recorded_answers_are_those_of_jtc(ros, tmp_path):
    node, executor = ros.create_node("client"), SingleThreadedExecutor()
    executor.add_node(node)
    process = mock_arm.start(node, executor, tmp_path)
    try:
        found = answers(Follower(node, executor, mock_arm.ACTION))
    finally:
        processes.end(process)
        node.destroy_node()
    if "EOM_RECORD" in os.environ:
        RECORDED.write_text(json.dumps(found, indent=1) + "\n")
    assert found == json.loads(RECORDED.read_text())
    assert len(found) == len(CASES)


def test_a_goal_to_a_node_that_is_held_up_waits_for_it(start):
    given = ("--params-file", CONFIG / "panda.yaml")
    arm = start(*given, "-p", "safety:=strict", client=FollowedArm)
    follower = Follower(arm.node, arm._executor, f"{arm.process.name}/follow_joint_trajectory")
    assert any(follower.ask([0.0, 0.1], [HOME, HOME]) == "succeeded 0" for _ in range(20))
    arm.process.process.send_signal(signal.SIGSTOP)
    try:
        future = follower.client.send_goal_async(follower.goal([0.0, 0.5], [HOME, HOME + 0.05]))
        follower.spin(2.0)
    finally:
        arm.process.process.send_signal(signal.SIGCONT)
    follower.wait(future.done)
    assert Sent(follower, future.result()).end() == "succeeded 0", arm.process.log
