# SPDX-License-Identifier: Apache-2.0
"""Timing of trajectories by the planning node: given, slowed down, or the fastest within limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from node_client import joint_trajectory
from paths import CONFIG

import eom_dynamics as eom
from eom_dynamics.messages.fields import STATE_FIELDS
from eom_dynamics.messages.trajectories import read_spline
from eom_dynamics.trajectory import Samples, check, minimum_time, through

ARM = eom.ElasticArm(eom.load_robot(CONFIG / "panda.yaml"))
NAMES = list(ARM.robot.joint_names)
TIMES = np.array([0.0, 0.3, 0.5])
POSITIONS = np.array(
    [[0, 0.2, 0, -1.6, 0, 1.8, 0], [0.6, -0.3, 0.4, -2.0, 0.5, 2.2, 0.4], [1.2, 0.3, 0.1, -1.4, -0.3, 1.5, 1.0]]
)


@pytest.fixture(scope="module")
def node(start_shared: Any) -> Any:
    return start_shared.planning("--params-file", CONFIG / "panda.yaml")


def message(times: Any = TIMES, positions: Any = POSITIONS, names: list[str] = NAMES) -> Any:
    return joint_trajectory(names, times, positions)


def ask(node: Any, **options: Any) -> Any:
    from eom_dynamics.srv import ComputeTrajectoryFeedforward

    request = ComputeTrajectoryFeedforward.Request(**{"trajectory": message(), **options})
    return node.call(ComputeTrajectoryFeedforward, "trajectory_feedforward", request)


def test_the_service_finds_the_fastest_motion(node: Any) -> None:
    answer = ask(node, timing="fastest", sample_rate=1000.0)
    assert answer.success, answer.message
    assert not answer.exceeded and answer.time_scaling == 1.0
    expected = minimum_time(ARM, through(TIMES, POSITIONS))
    assert answer.time[-1] == pytest.approx(expected.end, rel=1e-9)
    states = [np.reshape(getattr(answer, field), (-1, 7)) for field in STATE_FIELDS]
    assert check(ARM, Samples(np.array(answer.time), *states)).ok
    points = answer.trajectory.points
    np.testing.assert_allclose([point.positions for point in points], POSITIONS, rtol=0, atol=1e-9)
    assert all(len(point.velocities) == len(point.accelerations) == len(point.effort) == 7 for point in points)
    last = points[-1].time_from_start
    assert last.sec + 1e-9 * last.nanosec == pytest.approx(expected.end, abs=1e-9)


def test_the_service_slows_a_motion_down(node: Any) -> None:
    given = ask(node)
    assert given.exceeded and given.time_scaling > 1.0
    answer = ask(node, timing="slow_down", sample_rate=100.0)
    assert answer.success and not answer.exceeded
    assert answer.time[-1] == pytest.approx(0.5 * given.time_scaling, rel=1e-3)
    assert ask(node, timing="fastest").trajectory.points[-1].time_from_start.nanosec < 1e9 * answer.time[-1] % 1e9


def test_a_motion_that_no_timing_allows_is_refused_with_the_limit(node: Any) -> None:
    outside = message()
    outside.points[1].positions[3] = 0.0
    answer = ask(node, trajectory=outside, timing="slow_down")
    assert not answer.success and f"{NAMES[3]}: " in answer.message
    assert answer.message.endswith("; slowing down does not help; change the path")


BAD = {
    "timing must be given, slow_down or fastest, is 'late'": {"timing": "late"},
    "a path must have a start and an end": {"times": TIMES[:1], "positions": POSITIONS[:1]},
}


@pytest.mark.parametrize("reason", BAD)
def test_what_has_no_timing_is_refused_in_one_line(node: Any, reason: str) -> None:
    given = {"timing": "fastest", "times": TIMES, "positions": POSITIONS} | BAD[reason]
    answer = ask(node, trajectory=message(given.pop("times"), given.pop("positions")), **given)
    assert not answer.success and not answer.time
    assert reason in answer.message and "\n" not in answer.message
    assert ask(node, timing="fastest").success


def test_a_robot_without_limits_has_no_fastest_motion(start: Any) -> None:
    from trajectory_msgs.msg import JointTrajectory

    names = list(eom.load_robot(CONFIG / "iiwa.yaml").joint_names)
    node = start.planning("--params-file", CONFIG / "iiwa.yaml", "-p", "trajectory_limits:=fastest")
    path = message(names=names)
    answer = ask(node, trajectory=path, timing="fastest")
    reason = "there are no limits, hence no shortest duration; give limits of velocity and effort"
    assert (answer.success, answer.message) == (False, reason)
    node.publisher(JointTrajectory, "joint_trajectory").publish(path)
    node.wait(lambda: f"trajectory refused: {reason}" in node.process.log, "the refusal")
    assert ask(node, trajectory=path).success


def test_published_trajectories_are_played_as_fast_as_limits_allow(node: Any) -> None:
    from eom_dynamics.msg import SplineTrajectory
    from trajectory_msgs.msg import JointTrajectory

    received = node.collect(SplineTrajectory, "spline_trajectory")
    publisher = node.publisher(JointTrajectory, "joint_trajectory")
    assert node.set_parameter("trajectory_limits", "fastest") == ""
    publisher.publish(message())
    node.wait(lambda: bool(received), "the spline")
    assert node.set_parameter("trajectory_limits", "refuse") == ""
    motion = read_spline(received[0], NAMES)
    assert motion.end == pytest.approx(minimum_time(ARM, through(TIMES, POSITIONS)).end, rel=1e-6)
    assert check(ARM, motion, rate=1000.0).exceeded == ()
