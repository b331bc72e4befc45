# SPDX-License-Identifier: Apache-2.0
"""Fastest motions along random paths beside TOPP-RA, and beside the same problem with a finer grid."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from report import Bar, Section, Table, seconds
from settings import Settings

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.robot.model import Limits
from eom_dynamics.trajectory import Samples, Spline, check, minimum_time, through
from eom_dynamics.trajectory.fastest import search

WAYPOINTS, GRID, RATE = 5, 1000, 10_000.0

MEDIAN, WORST, FINER, LONGEST = 1.005, 1.02, 1.01, 0.15
"""Largest ratios of durations to TOPP-RA's, median and worst, and to a finer grid's; median time to compute, s."""

EXCESS = 1e-6


def run(settings: Settings) -> Section:
    """Compare durations, violations of limits and times to compute."""
    section = Section("minimum_time", "Fastest motions")
    count = 100 if settings.rounds >= 60 else 5
    _beside_toppra(section, count)
    _beside_finer(section, max(count // 10, 2))
    section.text = [
        f"Smoothest curves through {WAYPOINTS} random waypoints in the middle 40 % of the ranges of joints; violations "
        f"are relative, at {RATE:g} Hz. TOPP-RA: toppra from PyPI, {GRID} intervals, constraints by interpolation, "
        "solver seidel; its velocities and efforts are those of its own parameterisation."
    ]
    return section


def _beside_toppra(section: Section, count: int) -> None:
    table = Table(
        f"{count} random paths, limits of velocity and effort",
        ("robot", "duration, median", "worst", "violation", "TOPP-RA's violation", "time, median", "TOPP-RA's time"),
    )
    section.tables.append(table)
    if importlib.util.find_spec("toppra") is None:
        table.add("toppra is not installed: pip install toppra", *["-"] * 6)
        return
    for name in ("panda", "ur5e"):
        arm = ElasticArm(load_robot(name))
        limits = {
            joint.name: Limits(velocity=joint.limits.velocity, effort=joint.limits.effort) for joint in arm.robot.joints
        }
        minimum_time(arm, _path(arm, count), limits=limits)  # compiles
        rows = []
        for seed in range(count):
            path = _path(arm, seed)
            motion, own = _timed(partial(minimum_time, arm, path, limits=limits))
            (duration, samples), other = _timed(partial(_toppra, arm, path))
            excess = [_excess(arm, x, limits) for x in (motion, samples)]
            rows.append((motion.duration / duration, *excess, own, other))
        ratio, ours, theirs, own, other = np.array(rows).T
        table.add(
            name,
            f"{np.median(ratio):.4f} ×",
            f"{np.max(ratio):.4f} ×",
            f"{max(np.max(ours), 0.0):.1e}",
            f"{np.max(theirs):.1e}",
            seconds(float(np.median(own))),
            seconds(float(np.median(other))),
        )
        section.bars += [
            Bar(f"{name}: median duration at most {MEDIAN} × TOPP-RA's", table.rows[-1][1], np.median(ratio) <= MEDIAN),
            Bar(f"{name}: worst duration at most {WORST} × TOPP-RA's", table.rows[-1][2], np.max(ratio) <= WORST),
            Bar(f"{name}: no limit exceeded by more than {EXCESS:g}", table.rows[-1][3], np.max(ours) <= EXCESS),
            Bar(
                f"{name}: median time to compute at most {seconds(LONGEST)}",
                table.rows[-1][5],
                bool(np.median(own) <= LONGEST),
            ),
            Bar(
                f"{name}: median time to compute at most TOPP-RA's",
                f"{np.median(own) / np.median(other):.1f} ×",
                bool(np.median(own) <= np.median(other)),
            ),
        ]


def _beside_finer(section: Section, count: int) -> None:
    """All limits of the robot's file, against a grid four times as fine."""
    arm, ratios, times = ElasticArm(load_robot("panda")), [], []
    limits = {joint.name: replace(joint.limits, lower=-np.inf, upper=np.inf) for joint in arm.robot.joints}
    usual = search._INTERVALS
    for seed in range(count):
        path = _path(arm, seed)
        motion, own = _timed(partial(minimum_time, arm, path, limits=limits))
        search._INTERVALS = 4 * usual
        try:
            ratios.append(motion.duration / minimum_time(arm, path, limits=limits).duration)
        finally:
            search._INTERVALS = usual
        times.append(own)
    table = Table(
        f"panda, {len(ratios)} of these paths, all limits of its file",
        ("", "duration / that of a grid four times as fine", "time, median"),
    )
    table.add("median", f"{np.median(ratios):.4f} ×", seconds(float(np.median(times))))
    table.add("worst", f"{np.max(ratios):.4f} ×", seconds(float(np.max(times))))
    section.tables.append(table)
    promise = f"panda: duration at most {FINER} × that of a grid four times as fine"
    section.bars.append(Bar(promise, f"{np.max(ratios):.4f} ×", bool(np.max(ratios) <= FINER)))


def _path(arm: ElasticArm, seed: int) -> Spline:
    random = np.random.default_rng(seed)
    lower = np.array([max(joint.limits.lower, -3.0) for joint in arm.robot.joints])
    upper = np.array([min(joint.limits.upper, 3.0) for joint in arm.robot.joints])
    waypoints = lower + (upper - lower) * (0.3 + 0.4 * random.random((WAYPOINTS, arm.robot.n)))
    return through(np.linspace(0.0, 1.0, WAYPOINTS), waypoints, ends="free")


def _timed(task: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.perf_counter()
    return task(), time.perf_counter() - begin


def _excess(arm: ElasticArm, motion: Spline | Samples, limits: dict[str, Limits]) -> float:
    verdict = check(arm, motion, rate=None if isinstance(motion, Samples) else RATE, limits=limits)
    return max(peak.ratio for peak in verdict.peaks if np.isfinite(peak.limit)) - 1.0


def _toppra(arm: ElasticArm, path: Spline) -> tuple[float, Samples]:
    """Duration by TOPP-RA, and samples of its motion."""
    import toppra
    from toppra import algorithm, constraint
    from toppra.interpolator import AbstractGeometricPath

    toppra.setup_logging("ERROR")

    class Path(AbstractGeometricPath):
        dof = arm.robot.n
        path_interval = np.array([path.start, path.end])
        waypoints = None

        def __call__(self, s: Any, order: int = 0) -> np.ndarray:
            return path.derivatives(s, 2)[order]

    largest = {
        name: np.array([getattr(joint.limits, name) for joint in arm.robot.joints]) for name in ("velocity", "effort")
    }
    efforts = constraint.JointTorqueConstraint(
        lambda q, qd, qdd: arm.dynamics.effort(q, qd, qdd),
        np.stack([-largest["effort"], largest["effort"]], axis=1),
        np.zeros(arm.robot.n),
        discretization_scheme=constraint.DiscretizationType.Interpolation,
    )
    velocities = constraint.JointVelocityConstraint(np.stack([-largest["velocity"], largest["velocity"]], axis=1))
    grid = np.linspace(path.start, path.end, GRID + 1)
    found = algorithm.TOPPRA([velocities, efforts], Path(), gridpoints=grid, solver_wrapper="seidel")
    acceleration, speed, _ = found.compute_parameterization(0.0, 0.0)
    steps = 2 * np.diff(grid) / (speed[1:] + speed[:-1])
    times = np.append(0.0, np.cumsum(steps))
    t = np.arange(0.0, times[-1], 1 / RATE)
    piece = np.clip(np.searchsorted(times, t, side="right") - 1, 0, GRID - 1)
    since = t - times[piece]
    sd = speed[piece] + acceleration[piece] * since
    s = grid[piece] + speed[piece] * since + 0.5 * acceleration[piece] * since**2
    q, by_s, twice = path.derivatives(np.clip(s, path.start, path.end), 2)
    qd = by_s * sd[:, np.newaxis]
    qdd = twice * sd[:, np.newaxis] ** 2 + by_s * acceleration[piece][:, np.newaxis]
    return float(times[-1]), Samples(t, q, qd, qdd, np.zeros_like(q), np.zeros_like(q))
