# SPDX-License-Identifier: Apache-2.0
"""Joint motions along paths of a tool: forward kinematics gives the path back; what cannot be followed is refused."""

import numpy as np
import pytest
from differences import deviation
from refusals import refusals

from eom_dynamics import Kinematics, StateError, TrajectoryError, lie, load_robot
from eom_dynamics.trajectory import follow, through_poses

UR5E = np.array([0.3, -1.2, 1.4, 0.3, 0.9, 0.6])
PANDA = np.array([0.1, -0.5, 0.2, -1.8, 0.1, 1.9, 0.7])


def loop(start, size=0.1):
    """Out and back, with rotation; 5 s."""
    poses = [
        start,
        start @ lie.exp([0.3, 0.1, -0.2, size, 0.0, 0.05]),
        start @ lie.exp([0, 0.2, 0.1, 0, size, 0]),
        start,
    ]
    return through_poses([0.0, 1.5, 3.0, 5.0], poses)


def test_the_tool_follows_the_path_and_its_four_derivatives():
    """Of a redundant arm, whose joints the tool leaves open."""
    kinematics = Kinematics(load_robot("panda"))
    path = loop(kinematics.pose(PANDA))
    motion = follow(kinematics, path, PANDA, rate=20.0)
    assert (motion.start, motion.end) == (0.0, 5.0)
    # Between the knots too.
    t = np.linspace(0, 5, 311)
    wanted = path.derivatives(t)
    reached = kinematics.motion(*motion.derivatives(t))
    for x, y in zip(reached, wanted, strict=True):
        assert deviation(x, y, floor=1.0) < 1e-9
    assert max(np.max(np.abs(x[[0, -1]])) for x in motion.derivatives(t)[1:]) < 1e-9
    # So do the polynomials.
    # Each derivative has the error of the one before times that of their distance, 50 ms.
    for k, (x, y) in enumerate(zip(motion.spline.derivatives(t), motion.derivatives(t), strict=True)):
        assert deviation(x, y, floor=1.0) < (1e-13, 1e-11, 1e-9, 1e-7, 1e-5)[k]


def test_knots_are_no_further_apart_than_asked_and_at_the_waypoints():
    kinematics = Kinematics(load_robot("ur5e"))
    path = loop(kinematics.pose(UR5E))
    times = follow(kinematics, path, UR5E, rate=3.0).t
    assert np.max(np.diff(times)) < 1 / 3 + 1e-12 and set(path.t) <= set(times) and len(times) == 17
    with pytest.raises(ValueError, match="rate must be positive"):
        follow(kinematics, path, UR5E, rate=0.0)


ARM = Kinematics(load_robot("ur5e"))
START = ARM.pose(UR5E)
BEFORE, AFTER = (np.where(np.arange(6) == 4, angle, UR5E) for angle in (0.4, -0.4))  # axes 4 and 6 become parallel
FAR, SLOW = lie.pose(START[:3, :3], 3.0 * START[:3, 3]), START @ lie.exp([0, 0, 0.1, 0, 0, 0])
TOO_FAR = r"at \d\S* s (the tool cannot reach|the tool comes too close|\w+ would jump)"

test_what_is_refused = refusals(
    (TrajectoryError, StateError),
    ([START, FAR], 4.0, UR5E, TOO_FAR),
    ([ARM.pose(BEFORE), ARM.pose(AFTER)], 2.0, BEFORE, r"at \d\S* s (the tool|\w+ would jump)"),
    ([START, SLOW], 1e5, UR5E, r"1e\+05 s at 50 Hz are more than 20,000 knots: follow it in parts"),
    ([START, SLOW], 1.0, UR5E + 0.1, r"the path starts 0\S* m and \S+ rad from the tool, must be at most 0.01"),
    ([START, SLOW], 1.0, UR5E[np.newaxis], r"start must have shape \(6,\), has \(1, 6\)"),
    call=lambda poses, duration, start: follow(ARM, through_poses([0.0, duration], poses), start),
)
