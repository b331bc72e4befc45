# SPDX-License-Identifier: Apache-2.0
"""Continuous joints: targets and trajectories lead to the nearest turn, as a whole; setpoints are kept."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from loop_rig import LoopRig, rest, straight
from paths import SHARED

import eom_dynamics as eom
from eom_dynamics.robot.model import Mimic, Robot

CASE = SHARED / "cases" / "target_wrap"
TURN = 2 * np.pi
LIMITS = {"velocity": 3.0, "acceleration": 20.0, "jerk": 500.0}


@cache
def arm() -> Robot:
    """Its first joint is continuous, the second one has a range."""
    robot = eom.load_robot("planar_2r")
    first, second = robot.joints
    return replace(robot, joints=(first, replace(second, limits=replace(second.limits, lower=-4.0, upper=4.0))))


def rig(q: list[float]) -> LoopRig:
    made = LoopRig(arm(), "permissive", targets=LIMITS)
    made.restart(q)
    made.cycles(3, rest(q))
    return made


def ends(made: LoopRig, cycles: int = 4000) -> np.ndarray:
    made.cycles(cycles)
    return made.q


@pytest.mark.parametrize(
    ("targets", "end"),
    [
        ([[3.1, 0.5]], [3.1, 0.5]),
        ([[3.1, 0.5], [-3.1, 0.5]], [TURN - 3.1, 0.5]),
        ([[-3.1, -3.9]], [TURN - 3.1, -3.9]),
        ([[3.0 + 3 * TURN + 0.2, 0.5]], [3.2, 0.5]),
        ([[3.1, 0.5], [np.nan, 1.0]], [3.1, 1.0]),
        # A stream that is not folded leads on, however far the arm is behind.
        ([[4.5, 0.5], [6.5, 0.5], [8.5, 0.5], [10.5, 0.5]], [10.5, 0.5]),
        # So does one that is folded.
        ([[x - TURN * round(x / TURN), 0.5] for x in (4.5, 6.5, 8.5, 10.5)], [10.5, 0.5]),
    ],
    ids=["near", "folded", "joint with a range", "turns", "joint that stays", "ahead", "ahead, folded"],
)
def test_a_target_is_the_nearest_turn(targets: list[list[float]], end: list[float]) -> None:
    made = rig([3.0, 0.5])
    for target in targets:
        made.target(target)
        made.cycles(20)
    np.testing.assert_allclose(ends(made), end, atol=1e-9)


def test_a_chunk_is_moved_as_a_whole() -> None:
    made, times = rig([3.0, 0.0]), np.linspace(0.0, 4.0, 41)
    path = np.stack([-3.28 + 2.0 * times, np.zeros(41)], axis=1)  # more than a turn
    made.target(path, times=times, origin=made.now)
    q = ends(made, 6000)
    np.testing.assert_allclose(q, [path[-1, 0] + TURN, 0.0], atol=1e-9)


@pytest.mark.parametrize("hosted", [False, True], ids=["loop", "node"])
@pytest.mark.parametrize("turns", [0, -1, 3])
def test_a_trajectory_is_moved_as_a_whole(turns: int, hosted: bool) -> None:
    made = LoopRig(arm(), "permissive", hosted=hosted)
    made.restart([3.0, 0.5])
    made.cycles(3, rest([3.0, 0.5]))
    path = np.array([[3.0, 0.5], [6.5, 0.4], [10.0, -3.9]])
    made.trajectory(straight([0.0, 2.0, 4.0], path + np.array([turns * TURN, 0.0])))
    made.cycles(5000)
    np.testing.assert_allclose(made.q, path[-1], atol=1e-9)
    assert np.max(np.abs(np.diff(made.rows[3 : made.count, made.places["setpoint"]["q"][0]]))) < 0.01


def test_a_trajectory_of_a_joint_with_a_range_starts_away() -> None:
    made = LoopRig(arm(), "permissive")
    made.restart([0.0, 0.5])
    made.cycles(3, rest([0.0, 0.5]))
    made.trajectory(straight([0.0, 2.0], [[0.0, 0.5 - TURN], [0.0, 1.0 - TURN]]))
    np.testing.assert_allclose(ends(made, 100), [0.0, 0.5])


def test_a_setpoint_is_followed_as_given() -> None:
    made = rig([3.1, 0.0])
    for k in range(200):
        made.refer(np.array([[3.1 + 1e-3 * k, 0.0], [1.0, 0.0], *np.zeros((3, 2))]))
        made.run()
    assert made.q[0] == pytest.approx(3.299)
    made.refer(rest([3.3 - TURN, 0.0]))
    made.run()
    assert made.q[0] in (pytest.approx(3.3 - TURN), pytest.approx(3.3, abs=0.01))


def test_which_joints_are_continuous() -> None:
    robot, (first, second) = arm(), arm().joints
    free = replace(second, limits=first.limits)
    assert robot.continuous.tolist() == [True, False] and robot.continuous_names == ("joint_1",)
    for ratio, repeats in ((2.0, True), (0.5, False)):
        follows = replace(robot, joints=(first, replace(free, mimic=Mimic(0, ratio))))
        assert follows.continuous.tolist() == [repeats]
    followed_by_bounded = replace(robot, joints=(first, replace(second, mimic=Mimic(0, 1.0))))
    assert not followed_by_bounded.continuous.any()


@pytest.mark.skipif(not CASE.is_dir(), reason="needs the case in shared/cases next to this folder")
def test_the_target_of_a_policy_passes_half_a_turn() -> None:
    robot = eom.load_robot(CASE / "cont.yaml")
    assert robot.continuous_names == ("j1",)
    made = LoopRig(robot, targets={})
    made.restart([3.0, 0.0])
    made.cycles(3, rest([3.0, 0.0]))
    for target in (3.10, -3.10):
        made.target([target, 0.0])
        made.cycles(1000)
    np.testing.assert_allclose(made.q, [3.183185307179586, 0.0], atol=1e-9)
    q = made.rows[: made.count, made.places["setpoint"]["q"][0]]
    assert np.min(q) > 2.99 and np.max(q) < 3.19
