# SPDX-License-Identifier: Apache-2.0
"""Speed override, pause and stop on the path: deviation, limits between cycles, and stops beside their optimum."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from online_motion import PERIOD, flat, followed
from paced import START, STEP, fast, played
from report import CONSOLE, DOCS, Bar, Section, Table
from scipy.interpolate import BSpline
from scipy.optimize import linprog
from settings import QUICK, Settings

from eom_dynamics import ElasticArm, Kinematics, StateError, inverse_kinematics, lie, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.elastic import LimitCheck
from eom_dynamics.trajectory import PathTime, Spline, minimum_time

TEXT = (
    "Random motions through four waypoints, 3 % slower than limits allow, and minimum-time motions, with steps of the "
    "speed, pauses and resumes each 4, 12 or 30 ms on average, and a stop, in cycles of 0.1 ms. *Deviation*: of the "
    "reference from the path at the loop's parameter. *Violations*: samples over a limit of joints or motors, by the "
    "check of the library. *Stop*: its time over that of the fastest one, by a sequence of linear programs over 14 "
    "coefficients of the pace."
)

NAMES = ("sea_planar_2r", "panda")
SHORTEST = 0.01


def deviation(arm: ElasticArm, motion: Spline, rng: np.random.Generator) -> tuple[float, int, int, int]:
    """Deviation of a motion with a random trigger each 4, 12 or 30 ms, rad; violations, triggers, cycles."""
    end = float(rng.uniform(0.2, 2.5)) * (motion.end - motion.start)
    mean, shortest = float(rng.choice([0.004, 0.012, 0.03])), float(rng.choice([0.01, 0.05, 0.2]))
    times = np.cumsum(rng.exponential(mean, round(2 * end / mean) + 10))
    kinds: list[tuple[float, float | str]] = [
        (t, ("pause", "resume", float(rng.uniform(0.0, 1.5)), float(rng.uniform(0.0, 1.5)))[int(rng.integers(4))])
        for t in times[times < end]
    ]
    period = float(rng.choice([1e-9 * STEP, 1e-3]))
    (states, s, _), _ = played(arm, motion, [*kinds, (end, "stop")], end + 1.0, shortest=shortest, period=period)
    path = motion.derivatives(np.clip(s, motion.start, motion.end), 0)[0]
    over = int(np.sum(constraints(arm, states).max(axis=1) > 1e-9))
    return float(np.max(np.abs(states[:, 0] - path))), over, len(kinds) + 1, len(states)


def link_errors(name: str, arm: ElasticArm, motion: Spline, rng: np.random.Generator) -> tuple[float, float]:
    """Rms errors of the links in MuJoCo, rad: at full speed, and with random speeds, a pause and a stop by default."""
    T, found = motion.end - motion.start, []
    speeds = [(x * T, float(rng.uniform(0.1, 1.5))) for x in (0.1, 0.25, 0.4)]
    for events in ([], [*speeds, (0.55 * T, "pause"), (0.55 * T + 0.5, "resume"), (0.8 * T + 0.5, "stop")]):
        (states, *_), _ = played(arm, motion, events, 2 * T + 1.0, shortest=0.3)
        states = states[:: round(1e9 * PERIOD / STEP)]
        away = followed(name, flat(arm, states), states[0, 0], 1.0) - states[:, 0]
        found.append(float(np.sqrt(np.mean(away[np.any(states[:, 1] != 0, axis=1)] ** 2))))
    return found[0], found[1]


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
            loop.update(now, 1e-9 * STEP)
            times.append(time.perf_counter() - begin)
        found.append((np.median(times[200:]), max(times[1:100])))
    return float(found[1][0] / found[0][0]), float(found[1][1])


def corner() -> Spline:
    """The fastest motion of the panda's tool around a corner of a table, joint by joint through points of it."""
    arm, q, positions = ElasticArm(load_robot("panda")), np.array([0, 0.4, 0, -1.6, 0, 2.0, 0.8]), []
    angles = np.linspace(0, np.pi / 2, 4)
    along_y, along_x = [(0.55, y) for y in (-0.35, -0.28, -0.2, -0.12)], [(x, 0.05) for x in (0.38, 0.31, 0.24)]
    for x, y in [*along_y, *zip(0.45 + 0.1 * np.cos(angles), -0.05 + 0.1 * np.sin(angles), strict=True), *along_x]:
        q = inverse_kinematics(arm.robot, lie.pose(np.diag([1.0, -1.0, -1.0]), [x, y, 0.4]), start=q).q
        positions.append(q)
    return minimum_time(arm, positions)


def stopped(arm: ElasticArm, motion: Spline, t: float) -> Array:
    """Positions (N, n) of setpoints of a motion, and of the joints' stop after the last one at a time, s."""
    loop, rows = ControlLoop(RobotTable(arm)), []
    loop.configure(safety="permissive")
    for k in range(round((t + 1.0) * 1e9 / STEP)):
        now = k * STEP
        if now < 1e9 * t:
            for name, row in zip(("q", "qd", "qdd", "qddd", "qdddd"), motion.derivatives(1e-9 * now), strict=True):
                loop.given[name][:] = row
            loop.refer(START + now)
        elif now - STEP < 1e9 * t:
            loop.act("stop")
            loop.update(START + now, 1e-3)  # once more the last command
            continue
        loop.update(START + now, 1e-3)
        rows.append(loop.state[0].copy())
    return np.array(rows)


def write_picture(path: Path, t: float = 0.38) -> None:
    """Draw a pause and a stop of the joints amid a fast corner, at a time of the motion, s: the tool from above."""
    from matplotlib.figure import Figure

    motion = corner()
    arm = ElasticArm(load_robot("panda"))
    pose = Kinematics(arm.robot).pose
    (paused, *_), _ = played(arm, motion, [(t, "pause")], t + 1.0)
    ways = {
        "stop of the joints, after setpoints are lost": ("#EE6677", stopped(arm, motion, t)),
        "pause of a trajectory": ("#228833", paused[:, 0]),
    }
    figure = Figure(figsize=(12, 5), layout="constrained")
    figure.suptitle("Amid the fastest motion of a Panda around a corner, its tool from above", fontsize=14)
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.5])
    whole = pose(motion.derivatives(np.linspace(motion.start, motion.end, 20_000), 0)[0])[:, :2, 3]
    left.plot(*whole.T, color="0.8", lw=7, label="path")
    for label, (color, q) in ways.items():
        tool = pose(q)[:, :3, 3]
        time_since = 1e-9 * STEP * np.arange(len(tool)) - t
        left.plot(*tool[:, :2].T, color=color, lw=2, label=label)
        left.plot(*tool[-1, :2], "o", color=color, ms=8)
        speed = np.linalg.norm(np.gradient(tool, 1e-9 * STEP, axis=0), axis=1)
        right.plot(time_since[:-1], speed[:-1], color=color, lw=2)
        away = 1e3 * np.min(np.linalg.norm(whole - tool[-1, :2], axis=1))
        CONSOLE.print(f"{label}: at rest {away:.1f} mm from the path")
    left.plot(*pose(motion.derivatives(t, 0)[0])[:2, 3], "k^", ms=8, label="when it is asked for")
    left.set_aspect("equal")
    left.set_xlabel("[m]", fontsize=12)
    right.axvline(0.0, color="0.5", lw=1)
    right.set_xlabel("time since then [s]", fontsize=12)
    right.set_title("speed of the tool [m/s]", fontsize=12)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=11)
    figure.savefig(path, dpi=110)


def run(settings: Settings) -> Section:
    """Play motions with triggers, and compare stops; a whole run writes the picture docs/path_time.png, too."""
    quick = settings is QUICK
    if not quick:
        write_picture(DOCS / "path_time.png")
    motions, stops, least = (8, 6, 2) if quick else (100, 40, 10)
    triggers_wanted = 1e3 if quick else 2.5e5
    table = Table("Motions whose speed changes", ("", "motions", "triggers", "cycles", "deviation, rad", "violations"))
    times = Table("Stops beside the fastest", ("", "stops", "median", "95 %", "worst"))
    links = Table("Links in MuJoCo, rms error in mrad, medians", ("", "full speed", "with changes"))
    bars = []
    for name in NAMES:
        arm = ElasticArm(load_robot(name))
        for label, fastest, count in (("random", False, motions), ("minimum time", True, least)):
            rng = np.random.default_rng(1)
            given = [fast(arm, rng, fastest=fastest) for _ in range(count)]
            found = [deviation(arm, motion, rng) for motion in given]
            while sum(triggers for _, _, triggers, _ in found) < triggers_wanted:
                found += [deviation(arm, motion, rng) for motion in given]
            away = max(x[0] for x in found)
            violations, triggers, cycles = (sum(x[k] for x in found) for k in (1, 2, 3))
            table.add(f"{name}, {label}", str(count), str(triggers), str(cycles), f"{away:.1e}", str(violations))
            bars.append(Bar(f"{name}, {label}: deviation at most 1e-9 rad", f"{away:.1e}", away <= 1e-9))
            bars.append(Bar(f"{name}, {label}: no violation", str(violations), violations == 0))
            full, changed = 1e3 * np.median([link_errors(name, arm, motion, rng) for motion in given[:10]], axis=0)
            links.add(f"{name}, {label}", f"{full:.2g}", f"{changed:.2g}")
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
            bars.append(
                Bar(f"{name}, {label}: stops take at most 1.15 × the fastest", f"{worst:.2f}", bool(worst <= 1.15))
            )
            for bar in bars[-3:]:
                CONSOLE.print(bar)
        ratio, longest = cycle_ratio(arm, given[0])
        bars.append(Bar(f"{name}: a cycle at most 1.5 × that of a spline", f"{ratio:.2f} ×", ratio <= 1.5))
        CONSOLE.print(bars[-1], f"longest cycle of a change {1e6 * longest:.0f} us")
    for printed in (table, times, links):
        CONSOLE.print(printed.markdown())
    return Section("path_time", "Speed on the path", [TEXT], [table, times, links], bars)
