# SPDX-License-Identifier: Apache-2.0
"""Fastest motions along planned paths: many waypoints, rounded, noisy, and of straight lines with blended corners."""

import time
from collections import defaultdict
from collections.abc import Mapping

import numpy as np
from harness import Section, Settings
from motion_distance import CHORDS, largest_distance

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.trajectory import Spline, minimum_time, through
from eom_dynamics.trajectory.poses import _blended

WAYPOINTS, DENSE, PLANNED, FEW = 5, 800, 80, 10
JITTER, CORNER = 2e-4, 0.1  # of positions, and distance of a blend from its corner, rad
DURATION, TIME = 0.03, 1.5
"""Largest allowed difference of durations from those of unrounded paths, relative, and ratio of processor times."""

REPEATS = 5


def planned_paths(section: Section, settings: Settings) -> None:
    """Compare motions along rounded paths with motions along the unrounded paths, and along ten of their points."""
    count = 1 if settings.quick else 5
    arm, found = ElasticArm(load_robot("panda")), dict[str, list[tuple[float, float, float]]]()
    for seed in range(count):
        _kinds(arm, seed, found)
    table = section.table(
        f"{sum(map(len, found.values()))} planned paths of the panda",
        *("points", "duration, largest difference", "deviation over tolerance", "processor time, median", "worst"),
    )
    for kind, rows in found.items():
        duration, deviation, took = np.array(rows).T
        table.add(
            kind,
            f"{100 * np.max(np.abs(duration)):.2f} %",
            f"{np.max(deviation):.2f}",
            f"{np.median(took):.2f} ×",
            f"{np.max(took):.2f} ×",
        )
    duration, deviation, took = np.array([row for rows in found.values() for row in rows]).T
    worst = np.max(np.abs(duration))
    section.promise(f"durations within {100 * DURATION:g} % of the unrounded path's", f"{worst:.2%}", worst <= DURATION)
    section.promise("deviation within the tolerance", f"{np.max(deviation):.2f} ×", np.max(deviation) <= 1.0)
    text = f"{np.max(took):.2f} ×"
    section.promise(f"processor time at most {TIME} × that of {FEW} points", text, np.max(took) <= TIME)
    section.text.append(
        f"Curves through {WAYPOINTS} random waypoints in the middle 40 % of the ranges of joints, {DENSE} points, and "
        f"straight lines between such waypoints with blends {CORNER:g} rad from corners, at {PLANNED} points evenly in "
        f"time of a trapezoidal motion, as planners of MoveIt return them. Jitter is uniform, ±{JITTER:g} rad. Default "
        "tolerances. Deviation: largest distance of a joint from the motion, of 20,000 points of the unrounded curve, "
        "for lines of the unrounded points' path. "
        "Durations are compared with those of the unrounded points; processor time is that of the thread, the median "
        f"of {REPEATS} in turns."
    )


def _kinds(arm: ElasticArm, seed: int, found: dict[str, list[tuple[float, float, float]]]) -> None:
    random = np.random.default_rng(seed)
    lower = np.array([max(joint.limits.lower, -3.0) for joint in arm.robot.joints])
    upper = np.array([min(joint.limits.upper, 3.0) for joint in arm.robot.joints])
    corners = lower + (upper - lower) * (0.3 + 0.4 * random.random((WAYPOINTS, arm.robot.n)))
    curve = through(np.linspace(0.0, 1.0, WAYPOINTS), corners, ends="free")
    points = _even(curve, DENSE)
    noise = JITTER * random.uniform(-1.0, 1.0, points.shape)
    _compare(
        arm,
        curve,
        points,
        {
            "smooth": points,
            "6 digits": np.round(points, 6),
            "4 digits": np.round(points, 4),
            "3 digits": np.round(points, 3),
            "jitter": points + noise,
        },
        found,
    )
    lines = _blended(corners, np.diff(corners, axis=0), CORNER)
    planned = _trapezoidal(lines, PLANNED)
    _compare(arm, None, planned, {"lines, 6 digits": np.round(planned, 6)}, found)


def _compare(
    arm: ElasticArm,
    curve: Spline | None,
    points: Array,
    kinds: Mapping[str, Array],
    found: dict[str, list[tuple[float, float, float]]],
) -> None:
    """Add a row of each kind of points: difference of the duration, deviation over tolerance, and processor time."""
    unrounded = minimum_time(arm, points)
    exact = _even(unrounded if curve is None else curve, CHORDS // 2)
    few = points[np.round(np.linspace(0, len(points) - 1, FEW)).astype(int)]
    times = defaultdict[str, list[float]](list)
    for _ in range(REPEATS):
        for kind, waypoints in {"": few, **kinds}.items():
            begin = time.thread_time()
            minimum_time(arm, waypoints)
            times[kind].append(time.thread_time() - begin)
    for kind, waypoints in kinds.items():
        motion = minimum_time(arm, waypoints)
        assert motion.waypoints is not None
        away = largest_distance(motion, exact) / float(np.max(motion.waypoints.tolerance))
        ratio = float(np.median(times[kind]) / np.median(times[""]))
        found.setdefault(kind, []).append((motion.duration / unrounded.duration - 1, away, ratio))


def _even(curve: Spline, count: int) -> Array:
    return curve.derivatives(np.linspace(curve.start, curve.end, count), 0)[0]


def _trapezoidal(curve: Spline, count: int) -> Array:
    """Points evenly in time of a motion that speeds up and slows down in 15 % of its time each."""
    t, ramp = np.linspace(0.0, 1.0, count), 0.15
    rate = np.interp(t, [0.0, ramp, 1 - ramp, 1.0], [0.0, 1.0, 1.0, 0.0])
    share = np.append(0.0, np.cumsum(0.5 * (rate[1:] + rate[:-1])))
    return curve.derivatives(curve.start + (curve.end - curve.start) * share / share[-1], 0)[0]
