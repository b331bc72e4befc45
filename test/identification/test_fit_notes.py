# SPDX-License-Identifier: Apache-2.0
"""Hints at recordings in other units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from excited import motion

from eom_dynamics import Robot, load_robot
from eom_dynamics.identification import Options, Recording, fit
from eom_dynamics.identification.fit_notes import in_another_unit, unit_hints


def limited_robot() -> Robot:
    robot = load_robot("sea_planar_2r")
    joints = [replace(j, limits=replace(j.limits, velocity=3.0, effort=50.0)) for j in robot.joints]
    return replace(robot, joints=tuple(joints))


def recorded(time: float = 1.0, effort: float = 1.0) -> Recording:
    t = np.arange(0.0, 20.0, 1e-3)
    q, _, _ = motion(2, t)
    noise = 1e-5 * np.random.default_rng(0).standard_normal(q.shape)
    return Recording(("joint_1", "joint_2"), time * t, q + noise, effort * np.column_stack([20 * np.sin(t), np.cos(t)]))


@pytest.mark.parametrize(
    ("recording", "hint"),
    [
        (recorded(), ""),
        (recorded(10.0), ""),
        (recorded(1e3), "recording: are times in seconds? The rate is 1 Hz"),
        (recorded(1e-4), "recording: are times in seconds? The rate is 1e+07 Hz"),
        (recorded(499.0), "recording: are times in seconds? Velocities stay below 0.1"),
        (recorded()[:3], ""),
        (recorded(effort=2.0), ""),
        (
            recorded(effort=6.0),
            "efforts of joint_1 are at or beyond the limits of effort in the robot's file, and do not count "
            "as saturated; check their unit, and the names of joints",
        ),
        (
            recorded(effort=1e3),
            "are at or beyond the limits of effort in the robot's file, and do not count as saturated; if "
            "they are in mN m, --effort-scale 0.001 converts them",
        ),
    ],
)
def test_hints(recording: Recording, hint: str) -> None:
    hints = unit_hints(limited_robot(), [recording, recording])
    assert len(hints) == bool(hint) and hint in "".join(hints)


def test_efforts_that_are_mostly_beyond_their_limits_are_taken_with_a_note() -> None:
    # Beyond 50 N m: |20000 sin t| in all but 0.2 % of the time, |1000 cos t| in all but 3.2 %.
    found = fit(limited_robot(), recorded(effort=1e3), options=Options(cutoff=8.0, prior_weight=1.0))
    (note,) = (line for line in found.notes if "at or beyond" in line)
    assert note.startswith("recording: 39,3") and "of 40,000 efforts" in note and "do not count as saturated" in note


def test_efforts_of_one_joint_far_beyond_its_limit_are_in_another_unit() -> None:
    """Where those of all are beyond, it may be the limits that are wrong."""
    robot, recording = limited_robot(), recorded(effort=1e3)
    one = replace(recording, tau=recording.tau * [1e-3, 1.0])
    assert in_another_unit(robot, [one]) == (robot.joint_names[1],)
    assert in_another_unit(robot, [one, recorded()]) == in_another_unit(robot, [recording]) == ()
    options = Options(cutoff=8.0, prior_weight=1.0, inertia=False)
    (line, *_) = fit(robot, one, options=options).contradictions
    assert "another unit" in line and robot.joint_names[1] in line and robot.joint_names[0] not in line


def test_robot_without_limits() -> None:
    assert unit_hints(load_robot("planar_2r"), [recorded(499.0, 1e6)]) == []
