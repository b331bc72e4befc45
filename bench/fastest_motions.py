# SPDX-License-Identifier: Apache-2.0
"""Minimum-time motions: along random paths, compared with TOPP-RA; along paths of many waypoints; and their tracking.

An arm with elastic joints tracks a trapezoidal motion, a TOPP-RA motion and a minimum_time motion, with the same
feedforward and drives. A whole run also writes the picture docs/fastest_motion.png.
"""

import importlib.util
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from harness import Section, Settings, picture, rms, seconds, timed
from motion_distance import CHORDS, largest_distance
from mujoco_arms import DriveLoop, MujocoArm, commands
from numpy.typing import ArrayLike

from eom_dynamics import ElasticArm, Kinematics, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.robot.model import Limits
from eom_dynamics.simulation import ElasticPlant, simulate
from eom_dynamics.trajectory import Spline, check, through
from eom_dynamics.trajectory import minimum_time as fastest
from eom_dynamics.trajectory.fastest.path import chain
from eom_dynamics.trajectory.poses import _blended

WAYPOINTS = 5
GRID, RATE = 1000, 10_000.0  # intervals of TOPP-RA, and rate of the samples that are checked, Hz
MEDIAN, WORST, LONGEST = 1.005, 1.02, 0.15  # largest ratios of durations to TOPP-RA's; median time to compute, s
EXCESS = 1e-6


def waypoints_of(arm: ElasticArm, random: np.random.Generator) -> Array:
    """Random waypoints in the middle 40 % of the ranges of joints."""
    lower = np.array([max(joint.limits.lower, -3.0) for joint in arm.robot.joints])
    upper = np.array([min(joint.limits.upper, 3.0) for joint in arm.robot.joints])
    return lower + (upper - lower) * (0.3 + 0.4 * random.random((WAYPOINTS, arm.robot.n)))


def smoothest(waypoints: Array) -> Spline:
    """The smoothest curve through waypoints."""
    return through(np.linspace(0.0, 1.0, len(waypoints)), waypoints, ends="free")


def minimum_time(section: Section, settings: Settings) -> None:
    """Compare durations, violations of limits and times to compute along the same paths."""
    count = 5 if settings.quick else 100
    table = section.table(
        f"{count} random paths, limits of velocity and effort, compared with TOPP-RA",
        *("robot", "duration, median", "worst", "violation", "TOPP-RA's violation", "time, median", "TOPP-RA's time"),
    )
    if importlib.util.find_spec("toppra") is None:
        table.add("toppra is not installed: pip install toppra", *["-"] * 6)
        return
    for name in ("panda", "ur5e"):
        arm = ElasticArm(load_robot(name), rotor_inertia=0.0)  # TOPP-RA has no motors
        limits = {x.name: Limits(velocity=x.limits.velocity, effort=x.limits.effort) for x in arm.robot.joints}
        paths = [smoothest(waypoints_of(arm, np.random.default_rng(seed))) for seed in range(count + 1)]
        fastest(arm, paths.pop(), limits=limits)  # compiles
        rows = []
        for path in paths:
            motion, own = timed(partial(fastest, arm, path, limits=limits))
            peer, other = timed(partial(toppra, arm, path, limits))
            rows.append((motion.duration / peer.end, *(_excess(arm, x, limits) for x in (motion, peer)), own, other))
        ratio, ours, theirs, own, other = np.array(rows).T
        median, worst, violation = f"{np.median(ratio):.4f} ×", f"{ratio.max():.4f} ×", f"{max(ours.max(), 0.0):.1e}"
        took, peers = float(np.median(own)), float(np.median(other))
        table.add(name, median, worst, violation, f"{np.max(theirs):.1e}", seconds(took), seconds(peers))
        section.promise(f"{name}: median duration at most {MEDIAN} × TOPP-RA's", median, np.median(ratio) <= MEDIAN)
        section.promise(f"{name}: worst duration at most {WORST} × TOPP-RA's", worst, np.max(ratio) <= WORST)
        section.promise(f"{name}: no limit exceeded by more than {EXCESS:g}", violation, np.max(ours) <= EXCESS)
        promise = f"{name}: median time to compute at most"
        section.promise(f"{promise} {seconds(LONGEST)}", seconds(took), took <= LONGEST)
        section.promise(f"{promise} TOPP-RA's", f"{took / peers:.1f} ×", took <= peers)
    section.text.append(
        f"Smoothest curves through {WAYPOINTS} random waypoints in the middle 40 % of the ranges of joints; violations "
        f"are relative, at {RATE:g} Hz. TOPP-RA: toppra from PyPI, {GRID} intervals, constraints by interpolation, "
        "solver seidel, with velocities and efforts from its own parameterization. "
        "Rotor inertia is zero, since TOPP-RA does not model motors."
    )


def _excess(arm: ElasticArm, motion: Any, limits: dict[str, Limits]) -> float:
    peaks = check(arm, motion, rate=RATE, limits=limits).peaks
    return max(peak.ratio for peak in peaks if np.isfinite(peak.limit)) - 1.0


class SteppedMotion:
    """Motion along a path, at rest after its end, with constant acceleration of the parameter between nodes.

    Its derivatives leave out the impulses of jerk at the nodes. It has n, start and end of a ``Trajectory``.
    """

    def __init__(self, path: Spline, nodes: Array, speed: Array) -> None:
        """Set parameters of the path and speeds there, each (K,)."""
        self._path, self._nodes, self._speed, self.n = path, nodes, speed, path.n
        steps = 2 * np.diff(nodes) / (speed[1:] + speed[:-1])
        self._times = np.append(0.0, np.cumsum(steps))
        self._acceleration = np.diff(speed) / steps
        self.start, self.end = 0.0, float(self._times[-1])

    def derivatives(self, t: ArrayLike, order: int = 4) -> tuple[Array, ...]:
        """Return q and its derivatives up to an order at times t, as ``Trajectory.derivatives`` does."""
        at = np.clip(np.atleast_1d(np.asarray(t, dtype=float)), self.start, self.end)
        piece = np.clip(np.searchsorted(self._times, at, side="right") - 1, 0, len(self._acceleration) - 1)
        since, speed, sdd = at - self._times[piece], self._speed[piece], self._acceleration[piece]
        s = self._nodes[piece] + speed * since + 0.5 * sdd * since**2
        rest = np.zeros_like(at)
        q, *by_s = self._path.derivatives(np.clip(s, self._path.start, self._path.end))
        rates = np.array([speed + sdd * since, sdd, rest, rest]) * (at == t)
        found = [q, *chain(np.array(by_s), rates)]
        return tuple(x if np.ndim(t) else x[0] for x in found[: order + 1])


def toppra(arm: ElasticArm, path: Spline, limits: Mapping[str, Limits]) -> SteppedMotion:
    """Motion by TOPP-RA for limits of velocity, acceleration and effort."""
    from toppra import algorithm, constraint, setup_logging
    from toppra.interpolator import AbstractGeometricPath

    setup_logging("ERROR")

    class Path(AbstractGeometricPath):
        dof = arm.robot.n
        path_interval = np.array([path.start, path.end])
        waypoints = None

        def __call__(self, s: Any, order: int = 0) -> np.ndarray:
            return path.derivatives(s, 2)[order]

    velocity, acceleration, effort = (
        np.outer([getattr(limits[joint], name) for joint in arm.robot.joint_names], [-1.0, 1.0])
        for name in ("velocity", "acceleration", "effort")
    )
    how = {"discretization_scheme": constraint.DiscretizationType.Interpolation}
    constraints = [
        constraint.JointVelocityConstraint(velocity),
        constraint.JointTorqueConstraint(arm.dynamics.effort, effort, np.zeros(arm.robot.n), **how),
    ]
    if np.all(np.isfinite(acceleration)):
        constraints.append(constraint.JointAccelerationConstraint(acceleration, **how))
    grid = np.linspace(path.start, path.end, GRID + 1)
    found = algorithm.TOPPRA(constraints, Path(), gridpoints=grid, solver_wrapper="seidel")
    return SteppedMotion(path, grid, found.compute_parameterization(0.0, 0.0)[1])


# --- Planned paths ----------------------------------------------------------------------

DENSE, PLANNED, FEW = 800, 80, 10  # points of curves, of lines, and of the path that times are compared with
JITTER, CORNER = 2e-4, 0.1  # jitter of positions, and distance of a blend from its corner, rad
DURATION, TIME = 0.03, 1.5  # largest difference of durations from unrounded paths, relative; ratio of processor times
REPEATS = 5

Rows = dict[str, list[tuple[float, float, float]]]
"""Difference of the duration, deviation over tolerance, and processor time of each path, by kind of points."""


def planned_paths(section: Section, settings: Settings) -> None:
    """Compare motions along rounded paths with motions along the unrounded paths, and along ten of their points."""
    arm, found = ElasticArm(load_robot("panda")), Rows()
    for seed in range(1 if settings.quick else 5):
        random = np.random.default_rng(seed)
        corners = waypoints_of(arm, random)
        curve = smoothest(corners)
        points = _even(curve, DENSE)
        kinds = {"smooth": points} | {f"{k} digits": np.round(points, k) for k in (6, 4, 3)}
        kinds["jitter"] = points + JITTER * random.uniform(-1.0, 1.0, points.shape)
        _compare(arm, curve, points, kinds, found)
        planned = _trapezoidal(_blended(corners, np.diff(corners, axis=0), CORNER), PLANNED)
        _compare(arm, None, planned, {"lines, 6 digits": np.round(planned, 6)}, found)
    table = section.table(
        f"{sum(map(len, found.values()))} planned paths of the panda",
        *("points", "duration, largest difference", "deviation over tolerance", "processor time, median", "worst"),
    )
    for kind, rows in found.items():
        duration, deviation, took = np.array(rows).T
        largest = f"{100 * np.max(np.abs(duration)):.2f} %", f"{np.max(deviation):.2f}"
        table.add(kind, *largest, f"{np.median(took):.2f} ×", f"{np.max(took):.2f} ×")
    duration, deviation, took = np.max(np.abs([row for rows in found.values() for row in rows]), axis=0)
    promise = f"durations within {100 * DURATION:g} % of the unrounded path's"
    section.promise(promise, f"{duration:.2%}", duration <= DURATION)
    section.promise("deviation within the tolerance", f"{deviation:.2f} ×", deviation <= 1.0)
    section.promise(f"processor time at most {TIME} × the time for {FEW} points", f"{took:.2f} ×", took <= TIME)
    section.text.append(
        f"Curves through {WAYPOINTS} random waypoints in the middle 40 % of the ranges of joints, {DENSE} points, and "
        f"straight lines between such waypoints with blends {CORNER:g} rad from corners, at {PLANNED} points evenly in "
        f"time of a trapezoidal motion, as planners of MoveIt return them. Jitter is uniform, ±{JITTER:g} rad. Default "
        "tolerances. Deviation: largest distance of a joint from the motion, of 20,000 points of the unrounded curve, "
        "for lines of the unrounded points' path. "
        "Durations are relative to the motions along the unrounded points; processor time is the thread's, the median "
        f"of {REPEATS} interleaved runs."
    )


def _compare(arm: ElasticArm, curve: Spline | None, points: Array, kinds: Mapping[str, Array], found: Rows) -> None:
    """Add a row of each kind of points."""
    unrounded = fastest(arm, points)
    exact = _even(unrounded if curve is None else curve, CHORDS // 2)
    few = points[np.round(np.linspace(0, len(points) - 1, FEW)).astype(int)]
    times = defaultdict[str, list[float]](list)
    for _ in range(REPEATS):
        for kind, waypoints in {"": few, **kinds}.items():
            begin = time.thread_time()
            fastest(arm, waypoints)
            times[kind].append(time.thread_time() - begin)
    for kind, waypoints in kinds.items():
        motion = fastest(arm, waypoints)
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


# --- Tracking ---------------------------------------------------------------------------

POINTS = [
    [0.0, 0.2, 0.0, -1.6, 0.0, 1.8, 0.0],
    [0.6, -0.3, 0.4, -2.0, 0.5, 2.2, 0.4],
    [1.2, 0.3, 0.1, -1.4, -0.3, 1.5, 1.0],
]

ERROR, FREQUENCY = 0.05, 70.0  # real over modeled stiffness and mass, less 1; of the PD at the motors, rad/s
SETTLING, AFTER = 0.3, 0.5  # time at rest before a motion, and after its end, s
STEP, KEPT = 2.5e-4, 1e-3  # longest step of the integrator, and interval of kept results, s
RATES = ((1e3, 4e3), (1e3, 1e3), (4e3, 4e3))  # rates of commands and of drives, Hz; the picture has the first
RAMPS = np.arange(0.1, 0.5, 0.05)  # shares of the duration for rise and fall of trapezoidal motions
OPEN_LOOP = 1e-6  # largest link error without feedback and with an exact model, rad

Motion: TypeAlias = Spline | SteppedMotion


class Tracked(NamedTuple):
    """A motion and its tracking."""

    name: str
    duration: float  # s
    t: Array  # (T,) s
    share: Array  # (T, n) desired efforts as shares of their limits
    error: Array  # (T, n) link errors with model errors and the PD, rad
    away: Array  # (T,) distance of the tool from its final position, m

    @property
    def overshoot(self) -> float:
        """Largest distance of the tool from its rest after the end of the motion, m."""
        return float(np.max(self.away[self.t >= self.duration]))

    @property
    def vibration(self) -> float:
        """Root mean square of this distance from 50 ms to 250 ms after the end, m."""
        since = self.t - self.duration
        return rms(self.away[(since >= 0.05) & (since <= 0.25)])


def fastest_tracking(section: Section, settings: Settings) -> None:
    """Simulate the three motions."""
    if importlib.util.find_spec("toppra") is None:
        section.text.append("toppra is not installed: pip install toppra")
        return
    arm, path = ElasticArm(load_robot("panda")), through([0.0, 1.0, 2.0], POINTS, ends="free")
    none = {"jerk": np.inf, "effort_rate": np.inf, "lower": -np.inf, "upper": np.inf}
    limits = {joint.name: replace(joint.limits, **none) for joint in arm.robot.joints}
    motions = {
        "trapezoidal speed": trapezoidal(arm, path, limits),
        "TOPP-RA": toppra(arm, path, limits),
        "minimum_time": fastest(arm, path),
    }
    by_rate = {rates: track(arm, motions, *rates) for rates in (RATES[:1] if settings.quick else RATES)}
    tracked = by_rate[RATES[0]]
    table = section.table(
        f"panda, one path through {len(POINTS)} waypoints",
        *("motion, commands, samples of the drives", "duration"),
        *(f"{100 * ERROR:g} % model errors: largest link error", "overshoot of the tool", "residual vibration"),
    )
    for each, rates in ((row[k], rates) for k in range(len(motions)) for rates, row in by_rate.items()):
        table.add(
            f"{each.name}, {', '.join(f'{rate / 1e3:g} kHz' for rate in rates)}",
            *(f"{each.duration:.3f} s", f"{1e3 * np.max(np.abs(each.error)):.2g} mrad"),
            *(f"{1e3 * each.overshoot:.2g} mm", f"{1e3 * each.vibration:.2g} mm"),
        )
    *_, peer, own = tracked
    error = open_loop(arm, motions["minimum_time"])
    promise = f"exact model, no feedback: links within {OPEN_LOOP:g} rad of the fastest motion"
    section.promise(promise, f"{error:.1e}", error < OPEN_LOOP)
    ratio = own.vibration / peer.vibration
    section.promise("5 % model errors: less residual vibration than with TOPP-RA's motion", f"{ratio:.2g} ×", ratio < 1)
    section.text.append(
        "All motions meet limits of velocity, acceleration and effort; minimum_time meets limits of jerk and effort "
        "rate, too. All have feedforward by flatness; stepped accelerations have the derivatives between the steps. "
        f"Springs are {100 * ERROR:g} % softer and links {100 * ERROR:g} % heavier than "
        "modeled. Commands are held, and ahead by half a period; the drives' PD of "
        f"{FREQUENCY:g} rad/s has velocities by differences, and references for their ages. Overshoot: largest "
        "distance of the tool from its rest after the end of the motion. Residual vibration: its root mean square "
        "from 50 to 250 ms after the end."
    )
    if not settings.quick:
        write_picture(tracked)


def trapezoidal(arm: ElasticArm, path: Spline, limits: Mapping[str, Limits]) -> SteppedMotion:
    """The shortest motion within limits with a trapezoidal speed of the path's parameter."""
    found, speed = [], np.array([0.0, 1.0, 1.0, 0.0])
    for ramp in RAMPS:
        rise = 0.5 * ramp / (1 - ramp)
        nodes = path.start + (path.end - path.start) * np.array([0.0, rise, 1 - rise, 1.0])
        scaling = check(arm, SteppedMotion(path, nodes, speed), rate=1 / KEPT, limits=limits).time_scaling
        if scaling is not None:
            found.append(SteppedMotion(path, nodes, speed / scaling))
    return min(found, key=lambda motion: motion.end)


def track(arm: ElasticArm, motions: Mapping[str, Motion], command_rate: float, rate: float) -> list[Tracked]:
    """Follow motions with model errors by feedforward and the PD of drives, at rates of commands and samples, Hz."""
    drive, robot, period = DriveLoop(1 / rate, 0.0), arm.robot, 1 / command_rate
    known = ElasticArm(replace(robot, drive_feedback_delay=drive.delay))
    wrong = {"stiffness": 1 - ERROR, "mass": 1 + ERROR}
    plant = MujocoArm(robot.name, step=min(STEP, drive.period), natural_frequency=FREQUENCY, **wrong)
    limit, every = np.array([joint.limits.effort for joint in robot.joints]), round(KEPT / plant.step)
    tracked = []
    for name, motion in motions.items():
        settled = SimpleNamespace(derivatives=lambda t, order=4, x=motion: x.derivatives(t - SETTLING, order))
        duration = SETTLING + motion.end + AFTER
        command = commands(known, settled, duration, period)
        t, real, _ = plant.run(command, settled, duration=duration, period=period, drive=drive)
        t, real = t[every - 1 :: every] - SETTLING, real[every - 1 :: every]
        t, real = t[t > -0.5 * KEPT], real[t > -0.5 * KEPT]
        q, qd, qdd = motion.derivatives(t, 2)
        tool = Kinematics(robot).pose(real)[:, :3, 3]
        away = np.linalg.norm(tool - np.mean(tool[-round(0.2 * AFTER / KEPT) :], axis=0), axis=1)
        tracked.append(Tracked(name, motion.end, t, arm.dynamics.effort(q, qd, qdd) / limit, real - q, away))
    return tracked


def open_loop(arm: ElasticArm, motion: Spline) -> float:
    """Largest link error with an exact model and no feedback, rad."""
    plant = ElasticPlant(arm)
    t = np.linspace(motion.start, motion.end, 200)
    start = plant.on_trajectory(*motion.derivatives(motion.start))
    found = simulate(plant, lambda t, _: arm.feedforward(*motion.derivatives(t)).motor_effort, t, start)
    return float(np.max(np.abs(plant.parts(found.states).q - motion.derivatives(t, 0)[0])))


def write_picture(tracked: list[Tracked]) -> None:
    """Write desired efforts, link errors, and the tool's way to rest of the motions, one column each."""
    with picture("fastest_motion.png", 13, 8) as figure:
        rows = figure.subplots(3, len(tracked), sharey="row")
        for column, each in zip(rows.T, tracked, strict=True):
            since = 1e3 * (each.t - each.duration)
            column[0].plot(each.t, 100 * each.share, linewidth=1.2)
            column[1].plot(each.t, 1e3 * each.error, linewidth=1.0)
            column[2].plot(since[since >= -50], 1e3 * each.away[since >= -50], color="tab:red")
            for axes, end in zip(column, (each.duration, each.duration, 0.0), strict=True):
                axes.axvline(end, color="0.5", linewidth=0.8, linestyle="--")
                axes.set(xlabel="time [s]", xlim=(0, max(x.t[-1] for x in tracked)))
            highest = 1.5e3 * max(x.overshoot for x in tracked)
            column[2].set(xlabel="time since the end of the motion [ms]", xlim=(-50, 300), ylim=(0, highest))
            ends = f"overshoot {1e3 * each.overshoot:.2g} mm\nresidual vibration {1e3 * each.vibration:.2g} mm"
            column[2].text(0.97, 0.93, ends, ha="right", va="top", transform=column[2].transAxes)
            column[0].set_title(f"{each.name}: {each.duration:.2f} s")
        labels = "desired efforts [% of limit]", "link errors [mrad]", "tool, distance from rest [mm]"
        for axes, label in zip(rows[:, 0], labels, strict=True):
            axes.set_ylabel(label)
