# SPDX-License-Identifier: Apache-2.0
"""Speed override, pause and stop on the path: deviation, limits between cycles, and stops beside their optimum."""

from __future__ import annotations

import time

import numpy as np
from paced import START, STEP, fast, played
from report import CONSOLE, Bar, Section, Table
from scipy.interpolate import BSpline
from scipy.optimize import linprog
from settings import QUICK, Settings

from eom_dynamics import ElasticArm, StateError, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.elastic import LimitCheck
from eom_dynamics.trajectory import PathTime, Spline

TEXT = (
    "Random motions through four waypoints, 3 % slower than limits allow, and minimum-time motions, with random steps "
    "of the speed, pauses, resumes and a stop, in cycles of 0.1 ms. *Deviation*: of the reference from the path at the "
    "loop's parameter. *Violations*: samples over a limit of joints or motors, by the check of the library. *Stop*: "
    "its time over that of the fastest one, by a sequence of linear programs over 14 coefficients of the pace."
)

NAMES = ("sea_planar_2r", "panda")
SHORTEST = 0.01


def deviation(arm: ElasticArm, motion: Spline, rng: np.random.Generator) -> tuple[float, int, int, int]:
    """Deviation of a motion with 5 to 30 random triggers and a stop, rad; violations, triggers, cycles."""
    T = motion.end - motion.start
    events: list[tuple[float, float | str]] = []
    for t in np.sort(rng.uniform(0, T, int(rng.integers(5, 30)))):
        events.append((t, (float(rng.uniform(0.1, 1.5)), "pause", "resume")[int(rng.integers(3))]))
    (states, s, _), _ = played(arm, motion, [*events, (T, "stop")], T + 1.0)
    path = motion.derivatives(np.clip(s, motion.start, motion.end), 0)[0]
    over = int(np.sum(constraints(arm, states).max(axis=1) > 1e-9))
    return float(np.max(np.abs(states[:, 0] - path))), over, len(events) + 1, len(states)


def constraints(arm: ElasticArm, rows: Array) -> Array:
    """Excesses of all quantities, negative within limits (N, 2 C)."""
    limits = LimitCheck(arm)
    states = list(np.moveaxis(rows, 1, 0))
    values = np.concatenate((*states, *arm.feedforward(*states)), axis=-1)
    known = np.isfinite(limits.lower) & np.isfinite(limits.upper) & (limits.upper > limits.lower)
    half = 0.5 * (limits.upper - limits.lower)[known]
    x = values[:, known]
    return np.concatenate(((x - limits.upper[known]) / half, (limits.lower[known] - x) / half), axis=1)


def along(motion: Spline, s: Array) -> Array:
    """States (N, 5, n) of q(s(t)) from s with four derivatives (5, N)."""
    q, a, b, c, d = motion.derivatives(np.clip(s[0], motion.start, motion.end))
    v, w, j, k = (x[:, np.newaxis] for x in s[1:])
    third = c * v**3 + 3 * b * v * w + a * j
    fourth = d * v**4 + 6 * c * v**2 * w + b * (3 * w**2 + 4 * v * j) + a * k
    return np.stack([q, a * v, b * v**2 + a * w, third, fourth], axis=1)


def fastest_stop(arm: ElasticArm, motion: Spline, t: float, guess: float) -> float:
    """Duration of the fastest stop on the path from a time of the motion, s, at the pace 1: by bisection.

    The pace is a spline of degree five with fixed ends; for each duration, linear programs reduce the largest excess.
    """
    low, high = 0.3 * guess, guess
    for _ in range(7):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if can_stop(arm, motion, t, middle) else (middle, high)
    return high


def can_stop(arm: ElasticArm, motion: Spline, t: float, T: float, free: int = 14) -> bool:
    """Whether linear programs find a stop of a duration within limits that its start meets."""
    knots = np.concatenate([np.zeros(5), np.linspace(0, T, free + 4), np.full(5, T)])
    size = len(knots) - 6
    grid = np.linspace(0, T, 80)
    basis = BSpline(knots, np.eye(size), 5)
    rows = [basis.antiderivative()(grid), *(basis.derivative(i)(grid) if i else basis(grid) for i in range(4))]
    c = np.concatenate([np.ones(4), np.linspace(1, 0, size - 8 + 2)[1:-1], np.zeros(4)])
    inner, trust = slice(4, size - 4), 0.3

    def excess_of(c: Array) -> Array:
        s = np.stack([row @ c for row in rows])
        s[0] += t
        return constraints(arm, along(motion, s))

    start = np.maximum(excess_of(c)[0], 0.0)
    best = excess_of(c) - start
    for _ in range(25):
        if best.max() <= 1e-6:
            return True
        columns = np.arange(inner.start, inner.stop)
        moved = [excess_of(c + 1e-6 * (np.arange(size) == i)) - start for i in columns]
        slopes = np.stack([(x - best).ravel() / 1e-6 for x in moved], axis=1)
        near = best.ravel() > best.max() - 1.5
        A = np.column_stack([slopes[near], -np.ones(near.sum())])
        found = linprog(
            np.append(np.zeros(len(columns)), 1.0),
            A_ub=A,
            b_ub=-best.ravel()[near],
            bounds=[(-trust, trust)] * len(columns) + [(None, None)],
        )
        if not found.success:
            return False
        tried = c.copy()
        tried[inner] += found.x[:-1]
        after = excess_of(tried) - start
        if after.max() < best.max() - 1e-9:
            c, best = tried, after
            trust = min(1.5 * trust, 0.5)
        else:
            trust /= 3
            if trust < 1e-4:
                return False
    return bool(best.max() <= 1e-6)


def cycle_ratio(arm: ElasticArm, motion: Spline) -> tuple[float, float]:
    """Median cycle at the pace 0.7 over that at 1, and the longest cycle of a change, s."""
    found = []
    for pace in (1.0, 0.7):
        loop = ControlLoop(RobotTable(arm))
        loop.configure(safety="permissive", stop_duration=SHORTEST)
        loop.send_trajectory(motion, START)
        loop.plan(START, 1e-3)
        loop.act("play")
        times = []
        for k in range(round(1e4 * motion.end * 0.9)):
            if k == 1:
                loop.speed(pace)
            now, begin = START + k * STEP, time.perf_counter()
            loop.update(now, 1e-3)
            times.append(time.perf_counter() - begin)
        found.append((np.median(times[200:]), max(times[1:100])))
    return float(found[1][0] / found[0][0]), float(found[1][1])


def run(settings: Settings) -> Section:
    """Play motions with triggers, and compare stops."""
    quick = settings is QUICK
    motions, stops, least = (8, 6, 2) if quick else (100, 40, 10)
    table = Table("Motions whose speed changes", ("", "motions", "triggers", "cycles", "deviation, rad", "violations"))
    times = Table("Stops beside the fastest", ("", "stops", "median", "95 %", "worst"))
    bars = []
    for name in NAMES:
        arm = ElasticArm(load_robot(name))
        for label, fastest, count in (("random", False, motions), ("minimum time", True, least)):
            rng = np.random.default_rng(1)
            given = [fast(arm, rng, fastest=fastest) for _ in range(count)]
            deviations, *counts = zip(*(deviation(arm, motion, rng) for motion in given), strict=True)
            away, (violations, triggers, cycles) = max(deviations), map(sum, counts)
            table.add(f"{name}, {label}", str(count), str(triggers), str(cycles), f"{away:.1e}", str(violations))
            bars.append(Bar(f"{name}, {label}: deviation at most 1e-9 rad", f"{away:.1e}", away <= 1e-9))
            bars.append(Bar(f"{name}, {label}: no violation", str(violations), violations == 0))
            ratios = []
            for motion in given[: stops if not fastest else stops // 4]:
                path = PathTime(motion, arm, shortest=SHORTEST)
                t = motion.start + float(rng.uniform(0.1, 0.8)) * (motion.end - motion.start)
                stop = path.stop(t)
                try:
                    ratios.append(stop.duration / fastest_stop(arm, motion, t, stop.duration))
                except StateError:
                    continue
            low, high, worst = np.quantile(ratios, (0.5, 0.95, 1.0))
            times.add(f"{name}, {label}", str(len(ratios)), f"{low:.2f}", f"{high:.2f}", f"{worst:.2f}")
            bars.append(Bar(f"{name}, {label}: stops take at most 1.15 × the fastest", f"{worst:.2f}", worst <= 1.15))
            for bar in bars[-3:]:
                CONSOLE.print(bar)
        ratio, longest = cycle_ratio(arm, given[0])
        bars.append(Bar(f"{name}: a cycle at most 1.5 × that of a spline", f"{ratio:.2f} ×", ratio <= 1.5))
        CONSOLE.print(bars[-1], f"longest cycle of a change {1e6 * longest:.0f} us")
    for found in (table, times):
        CONSOLE.print(found.markdown())
    return Section("path_time", "Speed on the path", [TEXT], [table, times], bars)
