# SPDX-License-Identifier: Apache-2.0
"""Goals of FollowJointTrajectory are answered as by joint_trajectory_controller, except for a table in the docs.

If it is installed, its answers are compared; to record them again, set EOM_RECORD.
"""

import json
import os
import signal

import managed_arm
import mock_arm
import numpy as np
import processes
import pytest
from node_client import NOT_NICED
from paths import CONFIG

pytest.importorskip("control_msgs.action", reason="control_msgs is not installed")

from rclpy.executors import SingleThreadedExecutor
from trajectory_goals import CASES, FAR, HOME, PLACES, RECORDED, FollowedArm, Follower, Sent, answers, expected_answers

COUNT = int(os.environ.get("GOALS", "100"))


@pytest.fixture
def follower(start):
    # On a busy machine goals and states take long; but points that come in 0.5 s must not be due.
    patience = {"dynamics.trajectory_topics.START_LATENCY": 0.4, "dynamics.goals._NO_STATES": 30.0}
    given = ("--params-file", CONFIG / "panda.yaml", NOT_NICED | patience)
    # An arm at 0.3 rad/s with an old state must not start too far away; 0.1 rad away at rest is refused.
    arm = start(*given, "-p", "safety:=strict", "-p", "start_tolerance:=0.09", client=FollowedArm)
    follower = Follower(arm.node, arm._executor, f"{arm.process.name}/follow_joint_trajectory")
    follower.process = arm.process
    assert any(follower.ask([0.0, 0.1], [HOME, HOME]) == "succeeded 0" for _ in range(20))
    return follower


@pytest.mark.timeout(300)
def test_node_answers_as_jtc(follower):
    assert answers(follower) == expected_answers(), follower.process.log


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_goals_in_random_order(follower):
    rng, expected = np.random.default_rng(20260114), expected_answers()
    for k in range(COUNT):
        name = rng.choice(list(CASES))
        (answer,) = answers(follower, lambda x, name=name: x == name).items()
        assert answer in expected.items(), f"goal {k}: {answer}\n{follower.process.log}"


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_two_clients_cancel_and_replace_goals(ros, follower):
    """At random times; each goal ends as its last request says, and with success only at its target."""
    rng, node = np.random.default_rng(20260114), ros.create_node("second", namespace=follower.node.get_namespace())
    follower._executor.add_node(node)
    clients = [follower, Follower(node, follower._executor, f"{follower.process.name}/follow_joint_trajectory")]
    for k in range(COUNT):
        target = "home" if np.max(np.abs(follower.position - FAR)) < 0.1 else "far"
        first, second = (clients[i] for i in rng.permutation(2))
        sent, ending = first.send(first.goal([1.5], [PLACES[target]])), rng.choice(["none", "canceled", "aborted"])
        follower.spin(rng.uniform(0.0, 1.7))
        last = sent
        if ending == "canceled":
            sent.cancel()
        elif ending == "aborted":
            last, target = second.send(second.goal([1.5], [HOME])), "home"
        outcome, final = sent.end(), last.end()
        assert outcome.startswith((ending, "succeeded")), f"goal {k}: {outcome}\n{follower.process.log}"
        assert follower.place() == target or final != "succeeded 0", f"goal {k}\n{follower.process.log}"
    node.destroy_node()


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


def test_goals_of_a_stalled_node_wait_for_it(follower):
    """An aborted goal does not start then."""
    follower.process.process.send_signal(signal.SIGSTOP)
    try:
        futures = [follower.client.send_goal_async(follower.goal([0.5], [q])) for q in (HOME + 0.05, HOME + 1.0)]
        follower.spin(2.0)
    finally:
        follower.process.process.send_signal(signal.SIGCONT)
    follower.wait(lambda: all(future.done() for future in futures))
    first, second = (Sent(follower, future.result()).end() for future in futures)
    # Beyond limits of velocity; the first motion may have a second one planned before its own start.
    assert (first, second) == ("succeeded 0", "aborted -1"), follower.process.log
    assert np.max(np.abs(follower.position - HOME - 0.05)) < 5e-3
