# SPDX-License-Identifier: Apache-2.0
"""Straight lines of a tool: smooth, on the lines but for the blends, and followed as fast as limits allow."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import eom_dynamics as eom
from eom_dynamics import lie
from eom_dynamics.exceptions import TrajectoryError
from eom_dynamics.trajectory import check, follow, minimum_time, straight_lines

CORNER = 0.015


def poses() -> np.ndarray:
    """A corner of lines of 0.3 and 0.2 m, on which the tool turns about different axes."""
    result = np.tile(np.eye(4), (3, 1, 1))
    result[1, :3, :3] = lie.exp([0.5, 0.0, 0.0, 0.0, 0.0, 0.0])[:3, :3]
    result[2, :3, :3] = result[1, :3, :3] @ lie.exp([0.0, 0.4, -0.3, 0.0, 0.0, 0.0])[:3, :3]
    result[:, :3, 3] = [0.4, -0.1, 0.5], [0.4, 0.2, 0.5], [0.5, 0.2, 0.6732]
    return result


def test_positions_are_on_the_lines_but_for_the_blend() -> None:
    given = poses()
    path = straight_lines(given, CORNER)
    C, *_ = path.derivatives(np.linspace(path.start, path.end, 5001))
    p, corners = C[:, :3, 3], given[:, :3, 3]
    assert np.min(np.linalg.norm(p - corners[1], axis=1)) == pytest.approx(CORNER, rel=1e-3)
    away = []
    for a, b in pairwise(corners):
        u = (b - a) / np.linalg.norm(b - a)
        away.append(np.linalg.norm(p - a - np.outer((p - a) @ u, u), axis=1))
    nearest = np.min(away, axis=0)
    blend = np.linalg.norm(p - corners[1], axis=1) < 0.12
    assert np.max(nearest[~blend]) < 1e-9
    assert np.max(nearest) <= CORNER
    np.testing.assert_allclose(C[[0, -1]], given[[0, -1]], atol=1e-12)


def test_the_tool_turns_in_proportion_to_its_way() -> None:
    given = poses()
    path = straight_lines(given, CORNER)
    C, V = path.derivatives(0.2, 1)
    share = np.linalg.norm(C[:3, 3] - given[0, :3, 3]) / 0.3
    assert lie.rotation_vector(C[:3, :3]) == pytest.approx([0.5 * share, 0.0, 0.0], abs=1e-9)
    assert V[:3] == pytest.approx([0.5 * 0.25 / 0.3, 0.0, 0.0], abs=1e-9)


def test_derivatives_of_the_twist_are_continuous_and_consistent() -> None:
    path = straight_lines(poses(), CORNER)
    h = 1e-6
    t = np.linspace(path.start + 0.01, path.end - 0.01, 301)
    _, *here = path.derivatives(t)
    _, *ahead = path.derivatives(t + h)
    _, *behind = path.derivatives(t - h)
    for k in range(3):
        expected = (ahead[k] - behind[k]) / (2 * h)
        np.testing.assert_allclose(here[k + 1], expected, rtol=1e-4, atol=1e-5 * np.max(np.abs(here[k + 1])) + 1e-7)


def test_more_knots_make_the_same_path(monkeypatch: pytest.MonkeyPatch) -> None:
    path = straight_lines(poses(), CORNER)
    # The function has the name of its module.
    monkeypatch.setattr(sys.modules["eom_dynamics.trajectory.pose_spline"], "_PARTS", 24)
    finer = straight_lines(poses(), CORNER)
    t = np.linspace(path.start, path.end, 301)
    for own, other in zip(path.derivatives(t), finer.derivatives(t), strict=True):
        assert own == pytest.approx(other, abs=1e-5 * np.max(np.abs(other)))


def test_the_fastest_motion_along_lines() -> None:
    arm = eom.ElasticArm(eom.load_robot("panda"))
    start = np.array([0.0, 0.2, 0.0, -1.8, 0.0, 2.0, 0.8])
    kinematics = eom.Kinematics(arm.robot)
    first = kinematics.pose(start)
    frames = np.tile(first, (3, 1, 1))
    frames[1, :3, 3] += [0.0, 0.15, 0.0]
    frames[2, :3, 3] += [0.05, 0.15, -0.1]
    motion = minimum_time(arm, follow(kinematics, straight_lines(frames, 0.01), start))
    assert check(arm, motion, rate=1000.0).ok
    (q,) = motion.derivatives(np.linspace(0.0, motion.end, 400), 0)
    p = kinematics.pose(q)[:, :3, 3]
    assert np.min(np.linalg.norm(p - frames[1, :3, 3], axis=1)) == pytest.approx(0.01, rel=0.02)
    before = np.abs(p[:, 1] - first[1, 3]) < 0.05
    assert np.max(np.abs((p - first[:3, 3])[before][:, [0, 2]])) < 1e-5


@pytest.mark.parametrize(
    ("change", "corner", "message"),
    [
        (lambda P: P[:1], 0.1, "K >= 2"),
        (lambda P: P[[0, 0, 1]], 0.1, "poses 0 and 1 have the same position"),
        (lambda P: P[[0, 1, 0]], 0.1, "turns back at waypoint 1"),
        (lambda P: P, 0.0, "corner must be a positive distance"),
        (lambda P: 2 * P, 0.1, r"poses\[0\] is not a homogeneous transform"),
    ],
)
def test_what_is_refused(change: Any, corner: float, message: str) -> None:
    with pytest.raises(TrajectoryError, match=message):
        straight_lines(change(poses()), corner)
