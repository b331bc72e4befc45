# SPDX-License-Identifier: Apache-2.0
"""Planned trajectories of a bag: interpolated, sampled, and ended by the next one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rosbags")

from bag_files import START, TRAJECTORY, read_bag, trajectory, write_bag

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.bags import BagError
from eom_dynamics.tools.recording_options import Sampling
from eom_dynamics.tools.replay.job import Job
from eom_dynamics.tools.replay.one import replay_bag
from eom_dynamics.trajectory import through

ROBOT = load_robot("planar_2r")
NAMES = list(ROBOT.joint_names)
TIMES = [0.0, 0.4, 1.0]
POINTS = np.array([[0.0, 0.2], [0.5, -0.1], [0.3, 0.4]])
SECOND = 1_000_000_000


def replayed(tmp_path: Path, messages, rate: float = 100.0):
    bag = write_bag(tmp_path / "in", {"/joint_trajectory": (TRAJECTORY, messages)})
    report = replay_bag(Job(bag, tmp_path / "out", "planar_2r", sampling=Sampling(rate=rate)))
    return report, read_bag(tmp_path / "out")["/feedforward"]


def test_samples_are_those_of_the_interpolant(tmp_path: Path) -> None:
    message = trajectory(START, NAMES[::-1], TIMES, POINTS[:, ::-1], velocities=0.1 * POINTS[:, ::-1])
    report, commands = replayed(tmp_path, [(START + 77, message)])
    assert report.commands == len(commands) == 101 and report.seconds == pytest.approx(1.0)
    motion = through(TIMES, POINTS, velocities=0.1 * POINTS)
    arm = ElasticArm(ROBOT)
    for k, (time, command) in enumerate(commands):
        assert time == START + 77 + k * 10_000_000
        assert command.header.stamp.sec * SECOND + command.header.stamp.nanosec == START + k * 10_000_000
        expected = arm.feedforward(*motion.derivatives(k * 0.01))
        # The order of joints changes the rounding of the interpolant; its snap is of the order of 1e3.
        np.testing.assert_allclose(command.motor_effort[::-1], expected.motor_effort, rtol=1e-9, atol=1e-7)


def test_the_next_trajectory_takes_over(tmp_path: Path) -> None:
    first = (START, trajectory(START, NAMES, TIMES, POINTS))
    second = (START + 10, trajectory(START + SECOND // 2, NAMES, TIMES, POINTS))
    # Without a stamp it starts when it was recorded.
    third = (START + 4 * SECOND, trajectory(0, NAMES, TIMES, POINTS))
    report, commands = replayed(tmp_path, [first, second, third])
    stamps = np.array([c.header.stamp.sec * SECOND + c.header.stamp.nanosec for _, c in commands]) - START
    expected = [k * 10_000_000 for k in range(50)]
    expected += [SECOND // 2 + k * 10_000_000 for k in range(101)]
    expected += [4 * SECOND + k * 10_000_000 for k in range(101)]
    assert sorted(stamps.tolist()) == expected and report.refusals.total == 0


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (trajectory(0, NAMES, [], []), "trajectory has no points"),
        (trajectory(0, NAMES, [0.0, 0.0, 1.0], POINTS), "must be later than that of the point before"),
        (trajectory(0, NAMES, TIMES, POINTS * np.nan), r"points\[0\].positions\[0\] \(joint 'joint_1'\) is nan"),
        (trajectory(0, NAMES, [0.0, 1e9, 2e9], POINTS), "too long to sample"),
        (trajectory(0, ["a", "b"], TIMES, POINTS), "the robot has no joint 'a'"),
        (b"\x00\x01\x00\x00abc", "JointTrajectory"),
        (b"\x00", "too short for a message"),
    ],
)
def test_unusable_trajectories_are_refused(tmp_path: Path, message, reason: str) -> None:
    with pytest.raises(BagError, match=reason):
        replayed(tmp_path, [(START, message)])
    good = (START + 1, trajectory(0, NAMES, TIMES, POINTS))
    bag = write_bag(tmp_path / "both", {"/joint_trajectory": (TRAJECTORY, [(START, message), good])})
    report = replay_bag(Job(bag, tmp_path / "out", "planar_2r", sampling=Sampling(rate=10.0)))
    assert report.commands == 11 and report.refusals.total >= 1
