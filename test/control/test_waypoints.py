# SPDX-License-Identifier: Apache-2.0
"""Trajectory messages: paths of tools, and bad messages by place."""

from types import SimpleNamespace

import numpy as np
import pytest
from differences import deviation
from refusals import refusals
from tool_messages import transform, twist, world_aligned

from eom_dynamics import StateError, TrajectoryError, lie
from eom_dynamics.control.trajectories import read_tool_trajectory

TIMES = (0.5, 1.0, 2.5)
POSES = [lie.exp(x) for x in np.random.default_rng(2).uniform(-0.5, 0.5, (3, 6))]
TWISTS = np.random.default_rng(3).uniform(-1, 1, (2, 6))


def point(t, C, velocities=(), accelerations=()):
    return SimpleNamespace(
        time_from_start=SimpleNamespace(sec=int(t), nanosec=round(t % 1 * 1e9)),
        transforms=[transform(C)],
        velocities=list(velocities),
        accelerations=list(accelerations),
    )


def message(names=("flange",), times=TIMES, poses=POSES):
    points = [point(t, C) for t, C in zip(times, poses, strict=True)]
    return SimpleNamespace(joint_names=list(names), points=points)


def test_a_path_through_the_poses_at_rest_at_both_ends():
    frame, path = read_tool_trajectory(message())
    assert frame == "flange" and read_tool_trajectory(message(names=())).frame is None
    reached, *twists = path.derivatives(np.array(TIMES))
    assert deviation(reached, POSES, floor=1.0) < 1e-15
    assert not np.any(np.array(twists)[:, [0, -1]])


def test_velocities_and_accelerations_at_the_ends():
    given = message()
    V, Vd = map(twist, world_aligned(POSES[0], TWISTS))
    given.points[0].velocities, given.points[0].accelerations = [V], [Vd]
    given.points[-1].velocities = [twist(world_aligned(POSES[-1], TWISTS[:1])[0])]
    _, path = read_tool_trajectory(given)
    _, *twists = path.derivatives(np.array(TIMES))
    assert deviation(np.array(twists)[:2, 0], TWISTS, floor=1.0) < 1e-14
    assert deviation(twists[0][-1], TWISTS[0], floor=1.0) < 1e-14
    assert np.max(np.abs(np.array(twists)[1:, -1])) < 1e-15


def broken(change):
    given = message()
    change(given)
    return given


ANY = twist(np.zeros(6))

BAD = [
    (lambda m: m.joint_names.append("wrist"), "must have the name of one frame or be empty, has 2"),
    (lambda m: m.points.__delitem__(slice(1, None)), "must have two points or more"),
    (lambda m: m.points[1].transforms.clear(), r"points\[1\].transforms must have one entry, has 0"),
    (
        lambda m: setattr(m.points[2].transforms[0].rotation, "w", 9.0),
        r"the orientation of points\[2\].transforms\[0\] must be a quaternion of length 1",
    ),
    (lambda m: setattr(m.points[2].time_from_start, "sec", 0), r"points\[2\].time_from_start is 0.5 s, must be later"),
    (lambda m: m.points[1].velocities.append(ANY), r"points\[1\] has velocities or accelerations"),
    (lambda m: m.points[0].accelerations.append(ANY), r"points\[0\] has accelerations without velocities"),
    (lambda m: m.points[2].velocities.extend([ANY, ANY]), r"points\[2\].velocities has 2 entries, limit 1"),
    (lambda m: m.points[0].velocities.append(twist([0, 0, 0, np.nan, 0, 0])), r"points\[0\].linear.x is nan"),
]


test_bad_messages = refusals(StateError, *BAD, call=lambda change: read_tool_trajectory(broken(change)))


def test_half_a_turn_is_refused():
    with pytest.raises(TrajectoryError, match="half a turn"):
        read_tool_trajectory(message(poses=[POSES[0], POSES[0] @ lie.exp([np.pi, 0, 0, 0, 0, 0]), POSES[2]]))
