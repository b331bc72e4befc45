# SPDX-License-Identifier: Apache-2.0
"""Paths through many waypoints: within a tolerance of their curve, and as fast as along it."""

import time
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pytest
from motion_distance import largest_distance
from paths import SHARED
from refusals import refusals

import eom_dynamics as eom
from eom_dynamics.exceptions import TrajectoryError
from eom_dynamics.trajectory import FastestMotion, Trajectory, minimum_time, through
from eom_dynamics.trajectory.planned_path import path_through, waypoint_tolerance

CASE = SHARED / "cases" / "dense_waypoints"
LIMITS = {name: {"velocity": 2.0, "acceleration": 10.0, "jerk": 200.0} for name in ("joint_1", "joint_2")}


def curve() -> Trajectory:
    return through(np.arange(4.0), [[0.0, 0.5], [0.8, -0.2], [1.2, 0.6], [0.3, 1.1]], ends="free")


def points(count: int) -> np.ndarray:
    path = curve()
    return path.derivatives(np.linspace(path.start, path.end, count), 0)[0]


def fastest(waypoints: np.ndarray, tolerance: float | None = None) -> FastestMotion:
    arm = eom.ElasticArm(eom.load_robot("planar_2r"))
    return minimum_time(arm, waypoints, limits=LIMITS, tolerance=tolerance)


def noisy(count: int, size: float) -> np.ndarray:
    return points(count) + size * np.random.default_rng(0).uniform(-1.0, 1.0, (count, 2))


def resting(count: int) -> np.ndarray:
    """Readings of an arm that rests before it moves, which jitter by a digit."""
    still = points(1) + 1e-4 * np.random.default_rng(0).integers(-1, 2, (100, 2))
    return np.round(np.vstack([still, points(count)]), 4)


def trembling(count: int) -> np.ndarray:
    """Readings of an arm at rest with much more noise than the path after it."""
    still = points(1) + np.random.default_rng(0).uniform(-1e-3, 1e-3, (60, 2))
    return np.vstack([still, np.round(points(count), 6)])


# Waypoints, and the largest tolerance that they get, rad.
READINGS: dict[str, tuple[Callable[[], np.ndarray], float]] = {
    "full": (lambda: points(800), 1e-5),
    "4 digits": (lambda: np.round(points(800), 4), 3e-4),
    "2 digits": (lambda: np.round(points(800), 2), 3e-2),
    "dense": (lambda: np.round(points(5000), 3), 3e-3),
    "degrees": (lambda: np.deg2rad(np.round(np.rad2deg(points(800)), 2)), 5e-4),
    "float32": (lambda: points(800).astype(np.float32).astype(float), 1e-5),
    "noise": (lambda: noisy(800, 1e-3), 4e-3),
    "repeated": (lambda: np.repeat(np.round(points(400), 6), 2, axis=0), 1e-5),
    "resting": (lambda: resting(800), 1e-3),
    "trembling": (lambda: trembling(800), 6e-3),
}


@pytest.mark.parametrize(("waypoints", "most"), READINGS.values(), ids=READINGS)
def test_rounding_and_noise_cost_no_time(waypoints: Callable[[], np.ndarray], most: float) -> None:
    arm = eom.ElasticArm(eom.load_robot("planar_2r"))
    given, along = waypoints(), minimum_time(arm, curve(), limits=LIMITS)
    motion = fastest(given)
    assert motion.duration == pytest.approx(along.duration, rel=0.03)
    assert motion.waypoints is not None and np.max(motion.waypoints.tolerance) < most
    assert largest_distance(motion, points(10_000)) <= np.max(motion.waypoints.tolerance)
    (passed,) = motion.derivatives(motion.waypoint_times, 0)
    assert np.max(np.abs(passed - given)) < 2 * np.max(motion.waypoints.tolerance)
    np.testing.assert_allclose(motion.states[0, [0, -1]], given[[0, -1]], rtol=0, atol=1e-12)


def test_knots_are_those_of_the_path_and_not_of_the_points() -> None:
    few, many = (path_through(np.round(points(count), 5), np.ones(2)) for count in (200, 3200))
    assert len(many.parts[0].t) < 1.5 * len(few.parts[0].t) < 90  # of 16 times as many points


def test_the_tolerance_that_is_given_counts() -> None:
    path = path_through(points(800), np.ones(2), tolerance=1e-2)
    (passed,) = path.parts[0].derivatives(path.parameters, 0)
    off = np.max(np.abs(passed - points(800)))
    assert 1e-3 < off <= 1e-2
    assert len(path.parts[0].t) < len(path_through(points(800), np.ones(2)).parts[0].t)


def test_few_waypoints_are_passed_exactly() -> None:
    path = path_through(points(12), np.ones(2), tolerance=1e-2)
    np.testing.assert_array_equal(path.parts[0].states[0], points(12))


def test_path_stops_at_a_waypoint_at_which_all_joints_reverse() -> None:
    waypoints = np.array([[0.0, 0.0], [0.5, 0.2], [1.0, 0.9], [0.4, 0.5], [0.0, 0.6]])
    path = path_through(waypoints, np.ones(2))
    assert [len(part.t) for part in path.parts] == [3, 3]
    np.testing.assert_array_equal(path.parts[1].states[0, 0], waypoints[2])
    assert all(part.states[1, [0, -1]].any(axis=1).all() for part in path.parts)


@pytest.mark.parametrize(
    ("waypoints", "digit"),
    [
        ([[0.1, 2.5], [0.2, 3.5]], [1e-3, 1e-3]),
        ([[0.1234567, 2.5], [0.2, 3.5]], [1e-6, 1e-6]),
        ([[0.1234, 2.5], [0.2, 3.5]], [1e-4, 1e-3]),
        ([[0.123456, 0.0123456], [-2.12345, 0.012]], [1e-5, 1e-6]),
        ([[np.pi, 0.0], [np.e, 0.0]], [1e-6, 1e-6]),
    ],
)
def test_tolerances_by_digits(waypoints: list[list[float]], digit: list[float]) -> None:
    np.testing.assert_allclose(waypoint_tolerance(np.array(waypoints)), digit, rtol=1e-9)


@pytest.mark.parametrize("there", [2, 40, 800])
def test_a_turn_on_the_spot_is_a_stop(there: int) -> None:
    """There and back as fast as each by itself."""
    share = np.linspace(0.0, 1.0, there)[:, np.newaxis]
    way = np.round([0.2, -0.1] + share * [1.0, 0.7], 5)
    one, both = fastest(way), fastest(np.vstack([way, way[-2::-1]]))
    assert both.waypoints is not None and len(both.waypoints.parts) == 2
    assert both.duration == pytest.approx(2 * one.duration, rel=1e-2)
    turn = both.times_at(both.waypoints.parameters[there - 1])
    assert np.max(np.abs(both.derivatives(turn, 4)[1:])) < 1e-6
    np.testing.assert_allclose(both.derivatives(turn, 0)[0], way[-1], rtol=0, atol=1e-12)


@pytest.mark.skipif(not CASE.is_dir(), reason="needs the case in shared/cases next to this folder")
def test_800_waypoints_with_six_digits_are_as_fast_as_ten_of_them() -> None:
    arm, took = eom.ElasticArm(eom.load_robot("panda")), defaultdict[int, list[float]](list)
    for _ in range(5):
        for count in (10, 800):
            waypoints = np.loadtxt(CASE / f"path{count}.csv", delimiter=",")
            begin = time.thread_time()
            motion = minimum_time(arm, waypoints)
            took[count].append(time.thread_time() - begin)
    assert motion.duration == pytest.approx(0.5509, rel=0.01)
    assert np.median(took[800]) < 1.5 * np.median(took[10])


ALIKE = "the path does not move: all 3 waypoints are within the path tolerance, 0.001 rad or m, of the first waypoint"


test_what_is_refused = refusals(
    TrajectoryError,
    ([[0.0, 0.0], [1e-4, 0.0], [0.0, 0.0]], 1e-3, ALIKE),
    (points(10), 0.0, "the path tolerance must be positive, rad or m, is 0"),
    call=lambda waypoints, tolerance: path_through(waypoints, np.ones(2), tolerance),
)
