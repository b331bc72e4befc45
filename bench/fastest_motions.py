# SPDX-License-Identifier: Apache-2.0
"""Fastest motions beside TOPP-RA: durations along random paths, and tracking by an arm with elastic joints.

Tracking compares a trapezoidal motion, a TOPP-RA motion and a minimum_time motion, with the same feedforward and the
same drives, which hold commands and sample their PD. A whole run writes the picture docs/fastest_motion.png, too.
"""

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from harness import DOCS, Section, Settings, rms, seconds, timed
from mujoco_arms import DriveLoop, sent
from numpy.typing import ArrayLike

from eom_dynamics import ElasticArm, Kinematics, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.robot.model import Limits
from eom_dynamics.simulation.elastic_plant import ElasticPlant
from eom_dynamics.simulation.feedforward_comparison import perturbed
from eom_dynamics.simulation.integration import simulate
from eom_dynamics.trajectory import Spline, check, through
from eom_dynamics.trajectory import minimum_time as fastest
from eom_dynamics.trajectory.fastest.path import chain

WAYPOINTS = 5

GRID, RATE = 1000, 10_000.0
"""Intervals of TOPP-RA, and rate of the samples that are checked, Hz."""

MEDIAN, WORST, LONGEST = 1.005, 1.02, 0.15
"""Largest ratios of durations to TOPP-RA's, median and worst; median time, s."""

EXCESS = 1e-6


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
        limits = {
            joint.name: Limits(velocity=joint.limits.velocity, effort=joint.limits.effort) for joint in arm.robot.joints
        }
        fastest(arm, _path(arm, count), limits=limits)  # compiles
        rows = []
        for seed in range(count):
            path = _path(arm, seed)
            motion, own = timed(partial(fastest, arm, path, limits=limits))
            peer, other = timed(partial(toppra, arm, path, limits))
            rows.append((motion.duration / peer.end, *(_excess(arm, x, limits) for x in (motion, peer)), own, other))
        ratio, ours, theirs, own, other = np.array(rows).T
        median, worst, violation = (
            f"{np.median(ratio):.4f} ×",
            f"{np.max(ratio):.4f} ×",
            f"{max(np.max(ours), 0.0):.1e}",
        )
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
        "solver seidel; its velocities and efforts are those of its own parameterisation. "
        "Rotor inertia is zero, since TOPP-RA does not model motors."
    )


def _path(arm: ElasticArm, seed: int) -> Spline:
    random = np.random.default_rng(seed)
    lower = np.array([max(joint.limits.lower, -3.0) for joint in arm.robot.joints])
    upper = np.array([min(joint.limits.upper, 3.0) for joint in arm.robot.joints])
    waypoints = lower + (upper - lower) * (0.3 + 0.4 * random.random((WAYPOINTS, arm.robot.n)))
    return through(np.linspace(0.0, 1.0, WAYPOINTS), waypoints, ends="free")


def _excess(arm: ElasticArm, motion: Any, limits: dict[str, Limits]) -> float:
    verdict = check(arm, motion, rate=RATE, limits=limits)
    return max(peak.ratio for peak in verdict.peaks if np.isfinite(peak.limit)) - 1.0


class SteppedMotion:
    """Motion along a path, at rest after its end, with constant acceleration of the parameter between nodes.

    Its derivatives leave out the impulses of jerk at the nodes.

    Attributes:
        n: number of joints.
        start, end: time of both ends, s.
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
        np.outer(_largest(arm, limits, name), [-1.0, 1.0]) for name in ("velocity", "acceleration", "effort")
    )
    scheme = constraint.DiscretizationType.Interpolation
    constraints = [
        constraint.JointVelocityConstraint(velocity),
        constraint.JointTorqueConstraint(
            lambda q, qd, qdd: arm.dynamics.effort(q, qd, qdd),
            effort,
            np.zeros(arm.robot.n),
            discretization_scheme=scheme,
        ),
    ]
    if np.all(np.isfinite(acceleration)):
        constraints.append(constraint.JointAccelerationConstraint(acceleration, discretization_scheme=scheme))
    grid = np.linspace(path.start, path.end, GRID + 1)
    found = algorithm.TOPPRA(constraints, Path(), gridpoints=grid, solver_wrapper="seidel")
    _, speed, _ = found.compute_parameterization(0.0, 0.0)
    return SteppedMotion(path, grid, speed)


def _largest(arm: ElasticArm, limits: Mapping[str, Limits], name: str) -> Array:
    return np.array([getattr(limits[joint], name) for joint in arm.robot.joint_names])


# --- Tracking ---------------------------------------------------------------------------

POINTS = [
    [0.0, 0.2, 0.0, -1.6, 0.0, 1.8, 0.0],
    [0.6, -0.3, 0.4, -2.0, 0.5, 2.2, 0.4],
    [1.2, 0.3, 0.1, -1.4, -0.3, 1.5, 1.0],
]

# Real over modelled stiffness and mass, less 1; frequency of the PD at the motors, rad/s; time after the stop, s.
ERROR, FREQUENCY, AFTER = 0.05, 70.0, 0.5

# Longest step of the integrator, RK4; that of the times at which its results are kept; time at rest before a motion, s.
STEP, KEPT, SETTLING = 2.5e-4, 1e-3, 0.3

# Rates of commands and of the drives' samples, Hz; the first ones are those of the picture.
RATES = ((1e3, 4e3), (1e3, 1e3), (4e3, 4e3))

# Shares of the duration in which trapezoidal motions rise and fall.
RAMPS = np.arange(0.1, 0.5, 0.05)

OPEN_LOOP = 1e-6
"""Largest link error without feedback and with an exact model, rad."""


Motion: TypeAlias = Spline | SteppedMotion


class Tracked(NamedTuple):
    """A motion and its tracking.

    Attributes:
        name: of the motion.
        duration: s.
        t: (T,) s.
        share: (T, n) desired efforts as shares of their limits.
        error: (T, n) link errors with model errors and the PD, rad.
        away: (T,) distance of the tool from where it comes to rest, m.
    """

    name: str
    duration: float
    t: Array
    share: Array
    error: Array
    away: Array

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
    arm = ElasticArm(load_robot("panda"))
    path = through([0.0, 1.0, 2.0], POINTS, ends="free")
    limits = {
        joint.name: replace(joint.limits, jerk=np.inf, effort_rate=np.inf, lower=-np.inf, upper=np.inf)
        for joint in arm.robot.joints
    }
    motions = {
        "trapezoidal speed": trapezoidal(arm, path, limits),
        "TOPP-RA": toppra(arm, path, limits),
        "minimum_time": fastest(arm, path),
    }
    by_rate = {rates: track(arm, motions, AFTER, *rates) for rates in (RATES[:1] if settings.quick else RATES)}
    tracked = by_rate[RATES[0]]
    table = section.table(
        f"panda, one path through {len(POINTS)} waypoints",
        *("motion, commands, samples of the drives", "duration"),
        *(f"{100 * ERROR:g} % model errors: largest link error", "overshoot of the tool", "residual vibration"),
    )
    for each, rates in ((row[k], rates) for k in range(len(motions)) for rates, row in by_rate.items()):
        table.add(
            f"{each.name}, {', '.join(f'{rate / 1e3:g} kHz' for rate in rates)}",
            f"{each.duration:.3f} s",
            f"{1e3 * np.max(np.abs(each.error)):.2g} mrad",
            f"{1e3 * each.overshoot:.2g} mm",
            f"{1e3 * each.vibration:.2g} mm",
        )
    *_, peer, own = tracked
    error = open_loop(arm, motions["minimum_time"])
    promise = f"exact model, no feedback: links within {OPEN_LOOP:g} rad of the fastest motion"
    section.promise(promise, f"{error:.1e}", error < OPEN_LOOP)
    ratio = own.vibration / peer.vibration
    section.promise("5 % model errors: less residual vibration than with TOPP-RA's motion", f"{ratio:.2g} ×", ratio < 1)
    section.text.append(
        "The trapezoidal and TOPP-RA's motion meet limits of velocity, acceleration and effort, that of minimum_time "
        "those of jerk and effort rate, too. All have feedforward by flatness; derivatives of stepped accelerations "
        f"are those between the steps. Springs are {100 * ERROR:g} % softer and links {100 * ERROR:g} % heavier than "
        "modelled. Commands are held, and ahead by half a period; the drives' PD of "
        f"{FREQUENCY:g} rad/s has velocities by differences, and references for their ages. Overshoot: largest "
        "distance of the tool from its rest after the end of the motion. Residual vibration: its root mean square "
        "from 50 to 250 ms after the end."
    )
    if not settings.quick:
        write_picture(DOCS / "fastest_motion.png", tracked)


def trapezoidal(arm: ElasticArm, path: Spline, limits: Mapping[str, Limits]) -> SteppedMotion:
    """The shortest motion within limits with a trapezoidal speed of the path's parameter."""
    found = []
    for ramp in RAMPS:
        length = path.end - path.start
        rise = 0.5 * ramp / (1 - ramp)
        nodes = path.start + length * np.array([0.0, rise, 1 - rise, 1.0])
        speed = np.array([0.0, 1.0, 1.0, 0.0])
        scaling = check(arm, SteppedMotion(path, nodes, speed), rate=1 / KEPT, limits=limits).time_scaling
        if scaling is not None:
            found.append(SteppedMotion(path, nodes, speed / scaling))
    return min(found, key=lambda motion: motion.end)


def simulated(
    known: ElasticPlant, real: ElasticPlant, motions: Sequence[Motion], until: float, command_rate: float, rate: float
) -> Array:
    """Link positions (T, M, n) every KEPT from -SETTLING for M motions, under feedforward by flatness and a PD.

    Args:
        known: model of the feedforward.
        real: the arm, at rest before 0 s.
        motions: M motions from 0 s.
        until: last time, s.
        command_rate: of the commands, Hz.
        rate: of the samples of the PD, Hz.
    """
    drive = DriveLoop(1 / rate, 0.0)
    arm = ElasticArm(replace(known.arm.robot, drive_feedback_delay=drive.delay))
    step = min(STEP, drive.period)
    every, hold, sampled = (round(x / step) for x in (KEPT, 1 / command_rate, drive.period))
    steps = every * round((until + SETTLING) / KEPT)
    t = -SETTLING + np.arange(steps // hold + 1) / command_rate
    commands = [sent(arm, motion, t + 0.5 / command_rate) for motion in motions]
    kp, kd = FREQUENCY**2 * arm.motor_inertia, 2 * FREQUENCY * arm.motor_inertia
    feedforward = np.stack([x.effort + kp * x.position + kd * x.velocity for x in commands], axis=1)
    y = np.stack([real.on_trajectory(*motion.derivatives(t[0])) for motion in motions])
    kept = [real.parts(y).q]
    for k in range(steps):
        if k % sampled == 0:
            _, theta, _, thetad = real.parts(y)
            theta, thetad = drive.measured(theta, thetad)
        effort = feedforward[k // hold] - kp * theta - kd * thetad
        a = real.rate(y, effort)
        b = real.rate(y + 0.5 * step * a, effort)
        c = real.rate(y + 0.5 * step * b, effort)
        y = y + step / 6 * (a + 2 * b + 2 * c + real.rate(y + step * c, effort))
        if (k + 1) % every == 0:
            kept.append(real.parts(y).q)
    return np.array(kept)


def track(
    arm: ElasticArm, motions: Mapping[str, Motion], after: float, command_rate: float, rate: float
) -> list[Tracked]:
    """Simulate motions with model errors, and the PD of drives, at rates of commands and samples, Hz."""
    robot, known = arm.robot, ElasticPlant(arm)
    wrong = ElasticPlant(ElasticArm(perturbed(robot, stiffness=-ERROR, mass=ERROR)))
    until = max(motion.end for motion in motions.values()) + after
    real = simulated(known, wrong, list(motions.values()), until, command_rate, rate)
    limit = np.array([joint.limits.effort for joint in robot.joints])
    tracked = []
    for k, (name, motion) in enumerate(motions.items()):
        t = -SETTLING + KEPT * np.arange(len(real))
        shown = (t >= 0) & (t <= motion.end + after)
        q, qd, qdd = motion.derivatives(t, 2)
        tool = Kinematics(robot).pose(real[shown, k])[:, :3, 3]
        away = np.linalg.norm(tool - np.mean(tool[-round(0.2 * after / KEPT) :], axis=0), axis=1)
        share = arm.dynamics.effort(q[shown], qd[shown], qdd[shown]) / limit
        tracked.append(Tracked(name, motion.end, t[shown], share, (real[:, k] - q)[shown], away))
    return tracked


def open_loop(arm: ElasticArm, motion: Spline) -> float:
    """Largest link error with an exact model and no feedback, rad."""
    plant = ElasticPlant(arm)
    t = np.linspace(motion.start, motion.end, 200)
    start = plant.on_trajectory(*motion.derivatives(motion.start))
    found = simulate(plant, lambda t, _: arm.feedforward(*motion.derivatives(t)).motor_effort, t, start)
    return float(np.max(np.abs(plant.parts(found.states).q - motion.derivatives(t, 0)[0])))


def write_picture(path: Path, tracked: list[Tracked]) -> None:
    """Write desired efforts, link errors, and the tool's way to rest of the motions, one column each."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 8), layout="constrained")
    rows = figure.subplots(3, len(tracked), sharey="row")
    for column, each in zip(rows.T, tracked, strict=True):
        since = 1e3 * (each.t - each.duration)
        column[0].plot(each.t, 100 * each.share, linewidth=1.2)
        column[1].plot(each.t, 1e3 * each.error, linewidth=1.0)
        column[2].plot(since[since >= -50], 1e3 * each.away[since >= -50], color="tab:red")
        for axes in column[:2]:
            axes.axvline(each.duration, color="0.5", linewidth=0.8, linestyle="--")
            axes.set_xlabel("time [s]", fontsize=12)
            axes.set_xlim(0, max(x.t[-1] for x in tracked))
        column[2].axvline(0.0, color="0.5", linewidth=0.8, linestyle="--")
        column[2].set_xlim(-50, 300)
        column[2].set_ylim(0, 1.5e3 * max(x.overshoot for x in tracked))
        column[2].set_xlabel("time since the end of the motion [ms]", fontsize=12)
        ends = f"overshoot {1e3 * each.overshoot:.2g} mm\nresidual vibration {1e3 * each.vibration:.2g} mm"
        column[2].text(0.97, 0.93, ends, ha="right", va="top", fontsize=12, transform=column[2].transAxes)
        column[0].set_title(f"{each.name}: {each.duration:.2f} s", fontsize=14)
    for axes, label in zip(
        rows[:, 0], ("desired efforts [% of limit]", "link errors [mrad]", "tool, distance from rest [mm]"), strict=True
    ):
        axes.set_ylabel(label, fontsize=12)
    figure.savefig(path, dpi=110)
