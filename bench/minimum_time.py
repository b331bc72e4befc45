# SPDX-License-Identifier: Apache-2.0
"""Fastest motions along random paths beside TOPP-RA and copp, and beside the same problem with a finer grid."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from minimum_time_peers import GRID, RATE, SteppedMotion, copp, toppra
from report import Bar, Section, Table, seconds
from settings import Settings

from eom_dynamics import ElasticArm, Joint, load_robot
from eom_dynamics.actuators import Motor
from eom_dynamics.robot.model import Limits
from eom_dynamics.trajectory import Samples, Spline, check, minimum_time, through
from eom_dynamics.trajectory.fastest import search

WAYPOINTS = 5

MEDIAN, WORST, OF_COPP, FINER, LONGEST = 1.005, 1.02, 1.01, 1.01, 0.15
"""Largest ratios of durations to TOPP-RA's, median and worst, to copp's, and to a finer grid's; median time, s."""

EXCESS = 1e-6

ROBOTS = ("panda", "ur5e")

# Of the gears of motors with limits.
GEAR = 100.0

# Limit of jerk of joints whose file has none, rad/s³.
JERK = 1000.0


def run(settings: Settings) -> Section:
    """Compare durations, violations of limits and times to compute."""
    section = Section("minimum_time", "Fastest motions")
    count = 100 if settings.rounds >= 60 else 5
    columns = ("robot", "duration, median", "worst", "violation", "{}'s violation", "time, median", "{}'s time")
    for title, package, peer, by_peer in (
        ("limits of velocity and effort", "toppra", "TOPP-RA", toppra),
        ("with limits of acceleration and jerk", "copp_py", "copp", copp),
    ):
        named = [column.format(peer) for column in columns]
        table = Table(f"{count} random paths, {title}, beside {peer}", named)
        section.tables.append(table)
        if importlib.util.find_spec(package) is None:
            table.add(f"{package} is not installed: pip install {package.replace('_', '-')}", *["-"] * 6)
            continue
        for name in ROBOTS:
            arm = ElasticArm(load_robot(name))
            limits = _velocity_and_effort(arm) if peer == "TOPP-RA" else _with_jerk(arm)
            _beside(section, peer, by_peer, arm, limits, count)
    _beside_finer(section, max(count // 2, 2))
    section.text = [
        f"Smoothest curves through {WAYPOINTS} random waypoints in the middle 40 % of the ranges of joints; violations "
        f"are relative, at {RATE:g} Hz. TOPP-RA: toppra from PyPI, {GRID} intervals, constraints by interpolation, "
        "solver seidel; its velocities and efforts are those of its own parameterisation. copp: copp-py from PyPI, "
        f"TOPP3-SOCP, {GRID} intervals, denser at the ends of a path; its time includes grids that its solver refuses. "
        "Limits of acceleration and jerk are those of the "
        f"robot's file; the UR5e has none, and gets {JERK:g} rad/s³."
    ]
    return section


def _velocity_and_effort(arm: ElasticArm) -> dict[str, Limits]:
    return {
        joint.name: Limits(velocity=joint.limits.velocity, effort=joint.limits.effort) for joint in arm.robot.joints
    }


def _with_jerk(arm: ElasticArm) -> dict[str, Limits]:
    limits = {}
    for joint in arm.robot.joints:
        jerk = joint.limits.jerk if np.isfinite(joint.limits.jerk) else JERK
        own = replace(joint.limits, jerk=jerk, lower=-np.inf, upper=np.inf, effort_rate=np.inf)
        limits[joint.name] = own
    return limits


def _beside(
    section: Section,
    peer: str,
    by_peer: Callable[..., SteppedMotion | Samples],
    arm: ElasticArm,
    limits: dict[str, Limits],
    count: int,
) -> None:
    """Compare motions along the same paths with a peer's, in the last table of the section."""
    name = arm.robot.name
    minimum_time(arm, _path(arm, count), limits=limits)  # compiles
    rows = []
    for seed in range(count):
        path = _path(arm, seed)
        motion, own = _timed(partial(minimum_time, arm, path, limits=limits))
        theirs, other = _timed(partial(by_peer, arm, path, limits))
        excess = [_excess(arm, x, limits) for x in (motion, theirs)]
        duration = theirs.t[-1] if isinstance(theirs, Samples) else theirs.end
        rows.append((motion.duration / duration, *excess, own, other))
    ratio, ours, theirs, own, other = np.array(rows).T
    median, worst, violation = f"{np.median(ratio):.4f} ×", f"{np.max(ratio):.4f} ×", f"{max(np.max(ours), 0.0):.1e}"
    times = [float(np.median(x)) for x in (own, other)]
    section.tables[-1].add(name, median, worst, violation, f"{np.max(theirs):.1e}", *map(seconds, times))
    if peer == "copp":
        promise = f"{name}, with limits of jerk: "
        section.bars.append(Bar(f"{promise}worst duration at most {OF_COPP} × copp's", worst, np.max(ratio) <= OF_COPP))
    else:
        promise = f"{name}: "
        section.bars += [
            Bar(f"{name}: median duration at most {MEDIAN} × TOPP-RA's", median, np.median(ratio) <= MEDIAN),
            Bar(f"{name}: worst duration at most {WORST} × TOPP-RA's", worst, np.max(ratio) <= WORST),
        ]
    section.bars += [
        Bar(f"{promise}no limit exceeded by more than {EXCESS:g}", violation, np.max(ours) <= EXCESS),
        Bar(f"{promise}median time to compute at most {seconds(LONGEST)}", seconds(times[0]), times[0] <= LONGEST),
        Bar(f"{promise}median time to compute at most {peer}'s", f"{times[0] / times[1]:.1f} ×", times[0] <= times[1]),
    ]


def _beside_finer(section: Section, count: int) -> None:
    """All limits of the robot's file, and of motors, against a grid four times as fine."""
    robot = load_robot("panda")
    robot = replace(robot, joints=tuple(map(_with_motor, robot.joints)))
    arm, ratios, times = ElasticArm(robot), [], []
    limits = {joint.name: replace(joint.limits, lower=-np.inf, upper=np.inf) for joint in arm.robot.joints}
    usual = search.SETTINGS
    minimum_time(arm, _path(arm, count), limits=limits)  # compiles
    for seed in range(count):
        path = _path(arm, seed)
        motion, own = _timed(partial(minimum_time, arm, path, limits=limits))
        search.SETTINGS = usual._replace(intervals=4 * usual.intervals)
        try:
            ratios.append(motion.duration / minimum_time(arm, path, limits=limits).duration)
        finally:
            search.SETTINGS = usual
        times.append(own)
    table = Table(
        f"panda, {len(ratios)} of these paths, all limits of its file, and of motors",
        ("", "duration / that of a grid four times as fine", "time, median"),
    )
    table.add("median", f"{np.median(ratios):.4f} ×", seconds(float(np.median(times))))
    table.add("worst", f"{np.max(ratios):.4f} ×", seconds(float(np.max(times))))
    section.tables.append(table)
    promise = f"panda: duration at most {FINER} × that of a grid four times as fine"
    section.bars.append(Bar(promise, f"{np.max(ratios):.4f} ×", bool(np.max(ratios) <= FINER)))


def _with_motor(joint: Joint) -> Joint:
    """The joint with a motor at a gear of ratio 100, whose limits are about those of the joint."""
    effort, speed = joint.limits.effort / GEAR, joint.limits.velocity * GEAR
    # The speed limit takes three quarters of the voltage, full torque half of it.
    voltage, current = 48.0, effort * speed / (0.75 * 48.0)
    constant = effort / current
    motor = Motor(
        torque_constant=constant,
        resistance=0.5 * voltage / current,
        torque_limit=effort,
        current_limit=current,
        speed_limit=speed,
        voltage_limit=voltage,
    )
    return replace(joint, gear_ratio=GEAR, actuator=replace(joint.actuator, motor=motor))


def _path(arm: ElasticArm, seed: int) -> Spline:
    random = np.random.default_rng(seed)
    lower = np.array([max(joint.limits.lower, -3.0) for joint in arm.robot.joints])
    upper = np.array([min(joint.limits.upper, 3.0) for joint in arm.robot.joints])
    waypoints = lower + (upper - lower) * (0.3 + 0.4 * random.random((WAYPOINTS, arm.robot.n)))
    return through(np.linspace(0.0, 1.0, WAYPOINTS), waypoints, ends="free")


def _timed(task: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.perf_counter()
    return task(), time.perf_counter() - begin


def _excess(arm: ElasticArm, motion: Spline | SteppedMotion | Samples, limits: dict[str, Limits]) -> float:
    verdict = check(arm, motion, rate=None if isinstance(motion, Samples) else RATE, limits=limits)
    return max(peak.ratio for peak in verdict.peaks if np.isfinite(peak.limit)) - 1.0
