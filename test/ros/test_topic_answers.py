# SPDX-License-Identifier: Apache-2.0
"""Goals on the topic joint_trajectory have statuses that match the results of the action."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from node_client import NOT_NICED
from paths import CONFIG
from trajectory_goals import ALONE, HOME, FollowedArm, Follower, answers, expected_answers

pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from eom_dynamics.msg import TrajectoryStatus
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory


class TopicFollower(Follower):
    """Publisher of trajectories, which it tells apart by the frame of their header."""

    def __init__(self, client):
        self.node, self._executor = client.node, client._executor
        self.kind = SimpleNamespace(Goal=SimpleNamespace)
        self.position, self._count, self._frames = np.full(7, np.nan), 0, itertools.count()
        self.node.create_subscription(JointState, "joint_states", self._take, 10)
        self._publisher = client.publisher(JointTrajectory, "joint_trajectory")
        self._statuses = client.collect(TrajectoryStatus, "trajectory_status")
        self.wait(lambda: np.isfinite(self.position).all())

    def send(self, goal):
        frame = goal.trajectory.header.frame_id = str(next(self._frames))
        self._publisher.publish(goal.trajectory)

        def end():
            last = [status.status for status in self._statuses if status.header.frame_id == frame][-1:]
            return last if last != [TrajectoryStatus.ACCEPTED] else []

        self.wait(end)
        return SimpleNamespace(end=lambda: "succeeded 0" if end() == [TrajectoryStatus.FINISHED] else "aborted -1")


@pytest.mark.timeout(300)
def test_the_topic_answers_as_the_action(start):
    # On a busy machine states take long: see test_goal_answers.py.
    given = ("--params-file", CONFIG / "panda.yaml", NOT_NICED | {"dynamics.trajectory_topics.START_LATENCY": 0.4})
    arm = start(*given, "-p", "safety:=strict", "-p", "start_tolerance:=0.09", client=FollowedArm)
    follower = TopicFollower(arm)
    assert any(follower.ask([0.0, 0.1], [HOME, HOME]) == "succeeded 0" for _ in range(20))
    cases = {*ALONE} - {"no points"}  # has no status
    expected = {name: answer for name, answer in expected_answers().items() if name in cases}
    # The topic ignores effort, which trajectories of a planning node have.
    assert answers(follower, cases.__contains__) == expected | {"effort": "succeeded 0; near"}, arm.process.log
