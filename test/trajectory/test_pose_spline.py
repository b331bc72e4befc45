# SPDX-License-Identifier: Apache-2.0
"""Paths of a tool through poses and along lines, and joint motions that follow them."""

from itertools import accumulate, pairwise

import numpy as np
import pytest
from differences import derivative, deviation
from refusals import refusals

from eom_dynamics import Kinematics, StateError, TrajectoryError, lie, load_robot
from eom_dynamics.trajectory import follow, straight_lines, through_poses

RNG = np.random.default_rng(9)


def random_poses(count, size=0.8):
    steps = lie.exp(RNG.uniform(-size, size, (count, 6))[1:])
    return np.array([*accumulate(steps, np.matmul, initial=np.eye(4))])


TIMES = np.array([0.5, 1.3, 1.9, 3.0, 3.8])
POSES = random_poses(5)
CORNER = 0.015


def poses() -> np.ndarray:
    """Corner of lines of 0.3 and 0.2 m, with tool rotations about different axes."""
    result = np.tile(np.eye(4), (3, 1, 1))
    result[1, :3, :3] = lie.exp([0.5, 0.0, 0.0, 0.0, 0.0, 0.0])[:3, :3]
    result[2, :3, :3] = result[1, :3, :3] @ lie.exp([0.0, 0.4, -0.3, 0.0, 0.0, 0.0])[:3, :3]
    result[:, :3, 3] = [0.4, -0.1, 0.5], [0.4, 0.2, 0.5], [0.5, 0.2, 0.6732]
    return result


MOTION = through_poses(TIMES, POSES)


@pytest.mark.parametrize(("count", "size"), [(2, 0.8), (5, 0.8), (40, 1.5)])
def test_it_passes_the_poses_and_rests_at_both_ends(count, size):
    poses, times = random_poses(count, size), np.cumsum(np.random.default_rng(11).uniform(0.3, 1.0, count))
    motion = through_poses(times, poses)
    C, *V = motion.derivatives(times)
    assert deviation(C, poses, floor=1.0) < 1e-11
    assert max(np.max(np.abs(twist[[0, -1]])) for twist in V) < 1e-9
    for before, after in ((times[0] - 1, times[0]), (times[-1] + 1, times[-1])):
        np.testing.assert_array_equal(motion.derivatives(before)[0], motion.derivatives(after)[0])
        assert not np.any(motion.derivatives(before)[1:])


def test_twists_are_derivatives_of_the_pose():
    t = np.array([0.6, 1.1, 1.6, 2.5, 3.5])
    levels = MOTION.derivatives(t)
    rates = [derivative(lambda s, k=k: MOTION.derivatives(t + s, k)[-1], step=0.004) for k in range(4)]
    for C, rate, V in zip(levels[0], rates[0], levels[1], strict=True):
        twist = lie.inverse(C) @ rate
        assert deviation([twist[2, 1], twist[0, 2], twist[1, 0], *twist[:3, 3]], V, floor=1.0) < 1e-10
    for found, expected in zip(np.reshape(levels[2:], (-1, 6)), np.reshape(rates[1:], (-1, 6)), strict=True):
        assert deviation(found, expected, floor=np.max(np.abs(found))) < 1e-9


@pytest.mark.parametrize("path", [MOTION, straight_lines(poses(), CORNER)], ids=["poses", "lines"])
def test_all_four_derivatives_are_continuous_at_the_knots(path):
    largest = [np.max(np.abs(x)) for x in path.derivatives(np.linspace(path.start, path.end, 500))]
    before, after = (path.derivatives(path.t[1:-1] + side * 1e-9) for side in (-1, 1))
    for x, y, size in zip(before, after, largest, strict=True):
        # The derivative of snap is some hundred times the snap.
        assert np.max(np.abs(x - y)) < 1e-5 * size


def test_given_derivatives_at_the_ends():
    rng = np.random.default_rng(10)
    start, end = rng.uniform(-0.3, 0.3, (2, 4, 6))
    motion = through_poses(TIMES, POSES, start=start, end=end[:2])
    assert deviation(motion.derivatives(TIMES[0])[1:], start) < 1e-9
    assert deviation(motion.derivatives(TIMES[-1])[1:3], end[:2]) < 1e-9
    assert np.max(np.abs(motion.derivatives(TIMES[-1])[3:])) < 1e-8
    assert deviation(motion.derivatives(TIMES)[0], POSES, floor=1.0) < 2e-12


def test_tool_rests_between_equal_poses():
    motion = through_poses([0.0, 1.0, 2.0, 7.0, 8.0], [*POSES[:3], POSES[2], POSES[1]])
    C, *V = motion.derivatives(np.linspace(2.0, 7.0, 50))
    assert deviation(C, np.broadcast_to(POSES[2], C.shape), floor=1.0) < 1e-15 and not np.any(V)


def test_two_poses_are_joined_by_a_screw():
    motion = through_poses([0.0, 2.0], POSES[:2])
    screw = lie.log(lie.inverse(POSES[0]) @ POSES[1])
    for t in np.linspace(0, 2, 7):
        way = lie.log(lie.inverse(POSES[0]) @ motion.derivatives(t)[0])
        assert deviation(way, screw * (way @ screw) / (screw @ screw), floor=1.0) < 1e-12


def test_positions_are_on_the_lines_but_for_the_blend() -> None:
    given = poses()
    path = straight_lines(given, CORNER)
    C, *_ = path.derivatives(np.linspace(path.start, path.end, 2001))
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


HALF = lie.pose(np.diag([1.0, -1.0, -1.0]), np.zeros(3))
TWO = POSES[:2]


test_what_is_refused = refusals(
    TrajectoryError,
    (lambda: through_poses([0.0], POSES[:1]), "K >= 2"),
    (lambda: through_poses([0.0, 1.0], POSES[:3]), r"have \(2,\) and \(3, 4, 4\)"),
    (lambda: through_poses([0.0, 1.0, 1.0], POSES[:3]), r"times must increase; times\[2\] = 1.0 does not"),
    (lambda: through_poses([0.0, 1e300], TWO), r"times\[1\] is 1e\+300 s after the one before, must be from 1e-20"),
    (lambda: through_poses([0.0, 1.0], TWO, end=[np.full(6, 1e200)]), "too large|too uneven"),
    (lambda: through_poses([0.0, 1.0], [np.eye(4), 2 * np.eye(4)]), r"poses\[1\] is not a homogeneous transform"),
    (lambda: through_poses([0.0, 1.0], [np.eye(4), HALF]), r"between poses\[0\] and poses\[1\] there is half a turn"),
    (lambda: through_poses([0.0, 1.0], TWO, start=np.zeros((5, 6))), "start must be"),
    (lambda: straight_lines(poses()[[0, 0, 1]], 0.1), "poses 0 and 1 have the same position"),
    (lambda: straight_lines(poses()[[0, 1, 0]], 0.1), "turns back at waypoint 1"),
    (lambda: straight_lines(poses(), 0.0), "corner must be positive, is 0"),
)


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
    """Redundant arm: the tool does not determine the joints."""
    kinematics = Kinematics(load_robot("panda"))
    path = loop(kinematics.pose(PANDA))
    motion = follow(kinematics, path, PANDA, rate=20.0)
    assert (motion.start, motion.end) == (0.0, 5.0)
    # Also between the knots.
    t = np.linspace(0, 5, 311)
    wanted = path.derivatives(t)
    reached = kinematics.motion(*motion.derivatives(t))
    for x, y in zip(reached, wanted, strict=True):
        assert deviation(x, y, floor=1.0) < 1e-9
    assert max(np.max(np.abs(x[[0, -1]])) for x in motion.derivatives(t)[1:]) < 1e-9
    # The polynomials do so as well.
    # Each derivative has the error of the previous one divided by their distance, 50 ms.
    for k, (x, y) in enumerate(zip(motion.spline.derivatives(t), motion.derivatives(t), strict=True)):
        assert deviation(x, y, floor=1.0) < (1e-13, 2e-11, 1e-9, 1e-7, 1e-5)[k]


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

test_paths_that_are_refused = refusals(
    (TrajectoryError, StateError),
    ([START, FAR], 4.0, UR5E, TOO_FAR),
    ([ARM.pose(BEFORE), ARM.pose(AFTER)], 2.0, BEFORE, r"at \d\S* s (the tool|\w+ would jump)"),
    ([START, SLOW], 1e5, UR5E, r"1e\+05 s at 50 Hz are more than 20,000 knots: follow it in parts"),
    ([START, SLOW], 1.0, UR5E + 0.1, r"the path starts 0\S* m and \S+ rad from the tool, must be at most 0.01"),
    ([START, SLOW], 1.0, UR5E[np.newaxis], r"start must have shape \(6,\), has \(1, 6\)"),
    call=lambda poses, duration, start: follow(ARM, through_poses([0.0, duration], poses), start),
)
