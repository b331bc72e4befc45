# SPDX-License-Identifier: Apache-2.0
"""Tracking of fast motions along one path by an arm with elastic joints: trapezoidal, by TOPP-RA, and by minimum_time.

All have the same feedforward. A whole run writes the picture docs/fastest_motion.png, too.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import NamedTuple

import numpy as np
from minimum_time_peers import RATE, SteppedMotion, toppra
from report import Bar, Section, Table
from settings import QUICK, Settings

from eom_dynamics import ElasticArm, Kinematics, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.simulation.feedforward_comparison import FEEDFORWARDS, compare_feedforward
from eom_dynamics.trajectory import Spline, check, minimum_time, through

DOCS = Path(__file__).parents[1] / "docs"

WAYPOINTS = [
    [0.0, 0.2, 0.0, -1.6, 0.0, 1.8, 0.0],
    [0.6, -0.3, 0.4, -2.0, 0.5, 2.2, 0.4],
    [1.2, 0.3, 0.1, -1.4, -0.3, 1.5, 1.0],
]

# Real over modelled stiffness and mass, less 1; frequency of the PD at the motors, rad/s; time after the stop, s.
ERROR, FREQUENCY, AFTER = 0.05, 70.0, 0.5

# Step of the integrator, s; and of the times at which its results are kept.
STEP, KEPT = 1e-4, 1e-3

# Shares of the duration in which trapezoidal motions rise and fall.
RAMPS = np.arange(0.1, 0.51, 0.05)

OPEN_LOOP = 1e-6
"""Largest link error without feedback and with an exact model, rad."""


class Tracked(NamedTuple):
    """A motion and its tracking.

    Attributes:
        name: of the motion.
        duration: s.
        t: (T,) s.
        share: (T, n) desired efforts as shares of their limits.
        open_loop: largest link error without feedback and with an exact model, rad.
        error: (T, n) link errors with model errors and the PD, rad.
        away: (T,) distance of the tool from where it comes to rest, m.
    """

    name: str
    duration: float
    t: Array
    share: Array
    open_loop: float
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
        return float(np.sqrt(np.mean(self.away[(since >= 0.05) & (since <= 0.25)] ** 2)))


def run(settings: Settings) -> Section:
    """Simulate the three motions."""
    section = Section("fastest_tracking", "Tracking of fastest motions")
    if importlib.util.find_spec("toppra") is None:
        section.text = ["toppra is not installed: pip install toppra"]
        return section
    arm = ElasticArm(load_robot("panda"))
    path = through([0.0, 1.0, 2.0], WAYPOINTS, ends="free")
    limits = {joint.name: joint.limits for joint in arm.robot.joints}
    motions = {
        "trapezoidal speed": trapezoidal(arm, path),
        "TOPP-RA": toppra(arm, path, limits),
        "minimum_time": minimum_time(arm, path),
    }
    tracked = [track(arm, name, motion, quick=settings is QUICK) for name, motion in motions.items()]
    table = Table(
        f"panda, one path through {len(WAYPOINTS)} waypoints",
        (
            "motion",
            "duration",
            "open loop, largest link error",
            f"{100 * ERROR:g} % model errors: largest link error",
            "overshoot of the tool",
            "residual vibration",
        ),
    )
    for each in tracked:
        table.add(
            each.name,
            f"{each.duration:.3f} s",
            f"{each.open_loop:.1e} rad",
            f"{1e3 * np.max(np.abs(each.error)):.2g} mrad",
            f"{1e3 * each.overshoot:.2g} mm",
            f"{1e3 * each.vibration:.2g} mm",
        )
    *_, peer, own = tracked
    section.tables.append(table)
    section.bars = [
        Bar(f"open loop: within {OPEN_LOOP:g} rad of the fastest motion", f"{own.open_loop:.1e}", own.open_loop < OPEN_LOOP),
        Bar(
            "5 % model errors: less residual vibration than with TOPP-RA's motion",
            f"{own.vibration / peer.vibration:.2g} ×",
            own.vibration < peer.vibration,
        ),
    ]
    section.text = [
        "The trapezoidal and TOPP-RA's motion meet limits of velocity and effort, minimum_time's those of acceleration, "
        "jerk and effort rate, too. All have feedforward by flatness; derivatives of stepped accelerations are those "
        f"between the steps. With model errors, springs are {100 * ERROR:g} % softer and links {100 * ERROR:g} % heavier "
        f"than modelled, and a PD of {FREQUENCY:g} rad/s is at the motors. Residual vibration: rms distance of the tool "
        "from its rest, 50 to 250 ms after the end."
    ]
    if settings is not QUICK:
        write_picture(DOCS / "fastest_motion.png", tracked)
    return section


def trapezoidal(arm: ElasticArm, path: Spline) -> SteppedMotion:
    """The shortest motion with a trapezoidal speed of the path's parameter within limits of velocity and effort."""
    limits = {
        joint.name: type(joint.limits)(velocity=joint.limits.velocity, effort=joint.limits.effort)
        for joint in arm.robot.joints
    }
    found = []
    for ramp in RAMPS:
        length = path.end - path.start
        nodes = path.start + length * np.array([0.0, 0.5 * ramp, 1 - 1.5 * ramp + ramp, 1.0])
        nodes[1:3] = path.start + length * np.array([0.5 * ramp, 1 - 1.5 * ramp]) / (1 - ramp)
        speed = np.array([0.0, 1.0, 1.0, 0.0])
        inner = np.unique(nodes, return_index=True)[1]
        scaling = check(arm, SteppedMotion(path, nodes[inner], speed[inner]), rate=RATE, limits=limits).time_scaling
        if scaling is not None:
            found.append(SteppedMotion(path, nodes[inner], speed[inner] / scaling))
    return min(found, key=lambda motion: motion.end)


def track(arm: ElasticArm, name: str, motion: Spline | SteppedMotion, *, quick: bool) -> Tracked:
    """Simulate a motion with an exact model and no feedback, and with model errors and the PD."""
    robot, flatness = arm.robot, FEEDFORWARDS.index("flatness")
    t = np.arange(0.0, (0.1 if quick else motion.end + AFTER), KEPT)
    exact = compare_feedforward(robot, motion, t[t <= motion.end], [0.0], method="rk4", step=STEP)
    wrong = compare_feedforward(
        robot, motion, t, [FREQUENCY], stiffness_error=-ERROR, mass_error=ERROR, method="rk4", step=STEP
    )
    error = wrong.error[:, 0, flatness]
    tool = Kinematics(robot).pose(wrong.q + error)[:, :3, 3]
    rest = np.mean(tool[-int(0.1 / KEPT) :], axis=0)
    q, qd, qdd = motion.derivatives(t, 2)
    effort = np.array([joint.limits.effort for joint in robot.joints])
    return Tracked(
        name,
        float(motion.end),
        t,
        arm.dynamics.effort(q, qd, qdd) / effort,
        float(np.nanmax(np.abs(exact.error[:, 0, flatness]))),
        error,
        np.linalg.norm(tool - rest, axis=1),
    )


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
        column[2].set_ylim(0, 1.1e3 * max(x.overshoot for x in tracked))
        column[2].set_xlabel("time since the end of the motion [ms]", fontsize=12)
        column[2].text(
            0.97,
            0.93,
            f"overshoot {1e3 * each.overshoot:.2g} mm\nresidual vibration {1e3 * each.vibration:.2g} mm",
            ha="right",
            va="top",
            fontsize=12,
            transform=column[2].transAxes,
        )
        column[0].set_title(f"{each.name}: {each.duration:.2f} s", fontsize=14)
    for axes, label in zip(
        rows[:, 0], ("desired efforts [% of limit]", "link errors [mrad]", "tool, distance from rest [mm]"), strict=True
    ):
        axes.set_ylabel(label, fontsize=12)
    figure.savefig(path, dpi=110)
