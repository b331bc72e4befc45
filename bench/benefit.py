# SPDX-License-Identifier: Apache-2.0
"""What each term of the feedforward is worth with held commands, a delay, and errors of the model.

Plants are MuJoCo's, with drives that hold their commands. A whole run writes docs/benefit.png and docs/tip.png, too.

All four feedforwards have the same PD on the motors, kp = B w², kd = 2 B w, around references of one period. The drives
sample it, with velocities by differences of positions, and references are for the ages of these:

| feedforward | theta_ref | thetad_ref | effort           |
|-------------|-----------|------------|------------------|
| rigid       | q         | qd         | B qdd + tau      |
| tau         | q + delta | qd         | B qdd + tau      |
| taud        | q + delta | qd + deltad| B qdd + tau      |
| taudd       | q + delta | qd + deltad| B thetadd + tau  |

with the deflections delta of the springs under tau, taud and taudd; the last is flatness. Friction and gear loss at the
velocity of the reference are part of all. Commands are ahead by their mean age, :attr:`.Robot.command_lead`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from harness import CONSOLE, DOCS, Section, Settings, rms
from mujoco_arms import DriveLoop, MujocoArm, held, sent
from plants import angles_of, link_errors, tip

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.robot.model import NO_FEEDBACK_DELAY, FeedbackDelay
from eom_dynamics.simulation import outer_loop
from eom_dynamics.simulation.elastic_plant import ElasticPlant
from eom_dynamics.simulation.feedforward_comparison import motor_references
from eom_dynamics.trajectory import Trajectory, paper_motion, rest_to_rest, through

WAYS = ("rigid", "τ/K", "τ/K, τ̇/K", "flatness: τ, τ̇, τ̈")
"""Feedforwards, in the order of all results."""

NATURAL_FREQUENCY = 70.0
"""Of the motors' PD, rad/s."""

ROBOTS = ("sea_planar_2r", "panda", "iiwa")
PERIOD, DELAY = 1e-3, 2e-3


class ModelError(NamedTuple):
    """Errors of a model; relative errors are real over modelled value, minus 1.

    Attributes:
        stiffness, mass, rotor_inertia, friction: relative.
        delay: of the drives, real less named, s.
    """

    stiffness: float = 0.0
    mass: float = 0.0
    rotor_inertia: float = 0.0
    friction: float = 0.0
    delay: float = 0.0

    def __str__(self) -> str:
        named = [
            f"{name.replace('_', ' ')} {f'{1e3 * x:+g} ms' if name == 'delay' else f'{100 * x:+g} %'}"
            for name, x in self._asdict().items()
            if x
        ]
        return ", ".join(named) or "exact"


EXACT = ModelError()

SINGLE = tuple(ModelError(**{name: x}) for name in ("stiffness", "mass") for x in (-0.05, 0.05))

GRID = (-0.2, -0.1, 0.0, 0.1, 0.2)
"""Relative errors of stiffness and mass; the picture shows every pair."""

SHOWN = (
    *(EXACT, *SINGLE),
    *(ModelError(stiffness=s, mass=m) for s in (-0.2, 0.2) for m in (-0.2, 0.2)),
    *(ModelError(rotor_inertia=r) for r in (-0.2, 0.2)),
    *(ModelError(friction=f) for f in (-0.5, 0.5)),
    *(ModelError(delay=d) for d in (-1e-3, 1e-3)),
)


class Sweep(NamedTuple):
    """Root mean square errors of the links over model errors.

    Attributes:
        errors: E model errors.
        rms: (E, 4) over time and joints, rad, as :data:`WAYS`.
    """

    errors: tuple[ModelError, ...]
    rms: Array

    def of(self, error: ModelError) -> Array:
        """(4,) root mean square errors under one model error."""
        row: Array = self.rms[self.errors.index(error)]
        return row


class Timing(NamedTuple):
    """Timing of commands and drives.

    Attributes:
        delay: of the commands, s.
        lead: of the feedforward, s.
        rate: of the samples of the PD, Hz.
        aged: whether references are for the ages of what the drives measure.
    """

    delay: float = 0.0
    lead: float = PERIOD / 2
    rate: float = 4e3
    aged: bool = True


CASES = {
    "not ahead": Timing(lead=0.0),
    "half a period ahead": Timing(),
    "half a period ahead, drives at 1 kHz": Timing(rate=1e3),
    "half a period ahead, drives at 20 kHz": Timing(rate=20e3),
    "half a period ahead, ages of the feedback unknown": Timing(aged=False),
    "late by 2 ms, half a period ahead": Timing(delay=DELAY),
    "late by 2 ms, both ahead": Timing(delay=DELAY, lead=PERIOD / 2 + DELAY),
}


def benefit(section: Section, settings: Settings) -> None:
    """Run plants with an exact model, and simulations over model errors."""
    duration = 0.1 if settings.quick else 1.0
    title = "exact model, plants of MuJoCo, held for 1 ms, drives at 4 kHz, rms errors of the links, mrad"
    exact = section.table(title, "arm", *WAYS)
    ratio = 0.0
    for name in ROBOTS:
        errors = {case: _errors(name, timing, duration) for case, timing in CASES.items()}
        for case, row in errors.items():
            exact.add(f"{name}, {case}", *(f"{1e3 * x:.2g}" for x in row))
        before, after = (errors[case][-1] for case in list(CASES)[:2])
        ratio = max(ratio, after / before)
    sweeps, fed_sweeps = [], []
    for name in ROBOTS:
        arm = ElasticArm(load_robot(name))
        q = paper_motion(arm.robot.n).derivatives(0.0, 0)[0]
        loop = outer_loop(ElasticPlant(arm), q, NATURAL_FREQUENCY, PERIOD / 2)
        pairs = [ModelError(s, m) for s in GRID for m in GRID]
        known = [error for error in (*pairs, *SHOWN) if not error.friction or not arm.friction.is_none]
        sweeps.append(sweep(name, list(dict.fromkeys(known)), duration))
        fed_sweeps.append(sweep(name, (EXACT, *SINGLE), duration, outer=loop.F))
    title = "model errors, held for 1 ms, half a period ahead: rigid / τ/K / τ̇/K / flatness, mrad"
    wrong = section.table(title, "", *ROBOTS)
    for error in SHOWN:
        # An arm without friction has no error of it.
        wrong.add(str(error), *(_cell(x.of(error)) if error in x.errors else "–" for x in sweeps))
    fed = section.table("flatness without / with feedback of the links around the PD, mrad", "", *ROBOTS)
    for error in (EXACT, *SINGLE):
        both = [[1e3 * x.of(error)[-1] for x in each] for each in zip(sweeps, fed_sweeps, strict=True)]
        fed.add(str(error), *(f"{without:.2g} / {with_it:.2g}" for without, with_it in both))
    section.text.append(f"{duration:g} s of the paper's motion.")
    section.promise("half a period ahead: at most 1/10 of the error without", f"{ratio:.2g}", ratio < 0.1)
    if not settings.quick:
        write_picture(DOCS / "benefit.png", sweeps)
        write_tip_picture(DOCS / "tip.png")


def sweep(name: str, errors: Sequence[ModelError], duration: float, *, outer: Array | None = None) -> Sweep:
    """Errors of the links of a packaged robot on the paper's motion, held for a period, half a period ahead.

    Args:
        name: of the robot, the model.
        errors: model errors.
        duration: s.
        outer: F of :func:`.outer_loop`, feedback of the links; without, there is none.
    """
    found = [_errors(name, Timing(lead=PERIOD / 2 - error.delay), duration, error, outer) for error in errors]
    return Sweep(tuple(errors), np.array(found))


def _errors(
    name: str, timing: Timing, duration: float, error: ModelError = EXACT, outer: Array | None = None
) -> list[float]:
    """Root mean square errors of the links under :data:`WAYS`, rad, from the exact state of the real arm."""
    factors = {each: 1 + getattr(error, each) for each in ("stiffness", "mass", "rotor_inertia", "friction")}
    drive = DriveLoop(1 / timing.rate, 0.0)
    plant = MujocoArm(name, step=min(2.5e-4, drive.period), natural_frequency=NATURAL_FREQUENCY, **factors)
    arm = ElasticArm(load_robot(name))
    known, motion = ElasticPlant(arm), paper_motion(arm.robot.n)
    first = motion.derivatives(0.0)
    tau = np.stack(arm.dynamics.inverse_dynamics(*first)) * factors["mass"] / factors["stiffness"]
    at = arm.deflections(*tau)
    late = round(timing.delay / PERIOD)
    t = PERIOD * np.arange(-late, round(duration / PERIOD) + 1)
    commands = _commands(known, motion, t + timing.lead, drive.delay if timing.aged else NO_FEEDBACK_DELAY)
    every = round(PERIOD / plant.step)
    options = {"duration": duration, "period": PERIOD, "delay": timing.delay, "drive": drive}
    errors = []
    for way in range(len(WAYS)):
        feedback = None if outer is None else _LinkFeedback(known, motion, t, outer)

        def command(now: float, way: int = way, feedback: _LinkFeedback | None = feedback) -> tuple[Array, ...]:
            k = round(now / PERIOD)
            effort, position, velocity = (part[k + late, way] for part in commands)
            return effort + (0.0 if feedback is None else feedback.effort(k, plant.state)), position, velocity

        start = first[0] + at.delta, first[1] + at.deltad
        errors.append(rms(link_errors(plant, command, motion, start=start, **options)[1][every - 1 :: every]))
    return errors


class _LinkFeedback:
    """Efforts of the feedback F of links and motors in each period, by their state at its start."""

    def __init__(self, known: ElasticPlant, motion: Trajectory, t: Array, F: Array) -> None:
        self._F, self._free, self._period = F, ~known.rigid, t[1] - t[0]
        self._references = known.parts(known.on_trajectory(*motion.derivatives(t)))
        self._integral = np.zeros(known.arm.robot.n)

    def effort(self, k: int, state: tuple[Array, Array]) -> Array:
        """Efforts (m,) in period k, with positions and velocities of links and motors at its start."""
        (q, theta), (qd, thetad) = (np.split(x, [len(self._integral)]) for x in state)
        q, theta, qd, thetad = (x - y[k] for x, y in zip((q, theta, qd, thetad), self._references, strict=True))
        self._integral += self._period * q
        found: Array = -self._F @ np.concatenate([q, theta[self._free], qd, thetad[self._free], self._integral])
        return found


def _commands(known: ElasticPlant, motion: Trajectory, t: Array, age: FeedbackDelay) -> tuple[Array, Array, Array]:
    """Efforts at times t (N,), and positions and velocities an age earlier: (N, 4, m) of the motors."""
    y, _, velocity, effort = motor_references(known, motion.derivatives(t))
    efforts = [effort(velocity), effort(velocity), effort(y.motor_velocity), y.motor_effort]
    y, position, _, _ = motor_references(known, motion.derivatives(t - age.position))
    positions = [position, *[y.motor_position] * 3]
    y, _, velocity, _ = motor_references(known, motion.derivatives(t - age.velocity))
    velocities = [velocity, velocity, *[y.motor_velocity] * 2]
    return np.stack(efforts, axis=1), np.stack(positions, axis=1), np.stack(velocities, axis=1)


def _factor(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.2g}"


def _cell(errors: Array) -> str:
    return f"{' / '.join(f'{1e3 * x:.2g}' for x in errors)} ({_factor(errors[0] / errors[-1])} ×)"


def write_picture(path: Path, sweeps: list[Sweep]) -> None:
    """Write how many times smaller flatness makes the error of rigid feedforward, over errors of both signs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 5.2), layout="constrained")
    figure.suptitle(
        "Link error with feedforward for a rigid arm over that with flatness, commands held for 1 ms\n"
        "above 1: flatness is better; below 1: worse",
        fontsize=15,
    )
    percent = [f"{100 * x:+g}" for x in GRID]
    for axes, name, found in zip(figure.subplots(1, len(sweeps)), ROBOTS, sweeps, strict=True):
        ratios = np.array([[r[0] / r[-1] for r in (found.of(ModelError(s, m)) for s in GRID)] for m in GRID])
        axes.imshow(np.log10(ratios), origin="lower", cmap="RdBu", vmin=-1.3, vmax=1.3, aspect="auto")
        for i, j in np.ndindex(*ratios.shape):
            color = "white" if abs(np.log10(ratios[i, j])) > 0.9 else "black"
            axes.text(j, i, _factor(ratios[i, j]), ha="center", va="center", fontsize=13, color=color)
        axes.set_xticks(range(len(GRID)), percent)
        axes.set_yticks(range(len(GRID)), percent)
        axes.set_title(name, fontsize=14)
        axes.set_xlabel("springs against the model [%]", fontsize=12)
    figure.axes[0].set_ylabel("masses against the model [%]", fontsize=12)
    figure.savefig(path, dpi=110)


# --- The first picture of the README ----------------------------------------------------

TURNS, SECONDS = 2, 3.0


def circles() -> Trajectory:
    """Two circles of the tip in three seconds, from rest to rest."""
    t = np.linspace(0.0, SECONDS, 121)
    angle = rest_to_rest([0.0], [2 * np.pi * TURNS], duration=SECONDS).derivatives(t, 0)[0][:, 0]
    points = np.array([0.55, -0.1]) + 0.15 * np.column_stack([np.cos(angle), np.sin(angle)])
    return through(t, angles_of(points))


def write_tip_picture(path: Path) -> None:
    """Draw the tip of an elastic arm, commanded and with three feedforwards, and its distances from the command.

    The plant has springs 10 % softer and links 5 % heavier than its model, Coulomb friction that stops motors, of 10 %
    of their rms effort, and drives with filtered differences.
    """
    from matplotlib.figure import Figure

    drive = DriveLoop(2.5e-4, 1e-3)
    robot = replace(load_robot("sea_planar_2r"), drive_feedback_delay=drive.delay)
    arm, motion = ElasticArm(robot), circles()
    exact = arm.feedforward(*motion.derivatives(np.linspace(0.0, SECONDS, 500)))
    stiction = 0.1 * np.sqrt(np.mean(exact.motor_effort**2, axis=0))
    at = PERIOD * (np.arange(round(SECONDS / PERIOD) + 2) + 0.5)
    rigid, flat = (sent(x, motion, at) for x in (ElasticArm(robot, stiffness=np.inf), arm))
    ways = {
        "rigid feedforward": ("#EE6677", (rigid.effort, rigid.position, rigid.velocity)),
        "the same, motors at q + τ/K": ("#4477AA", (rigid.effort, flat.position, rigid.velocity)),
        "eom_dynamics": ("#228833", (flat.effort, flat.position, flat.velocity)),
    }
    figure = Figure(figsize=(12, 4.8), layout="constrained")
    figure.suptitle(
        "Tip of an elastic arm: model 10 % off in stiffness, 5 % in mass; stiction; sampled drives", fontsize=14
    )
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.5])
    for name, (color, rows) in ways.items():
        plant = MujocoArm("sea_planar_2r", stiffness=0.9, mass=1.05, stiction=stiction)
        t, q, _ = plant.run(held(PERIOD, *rows), motion, duration=SECONDS, period=PERIOD, drive=drive)
        wanted, found = tip(motion.derivatives(t, 0)[0]), tip(q)
        away = 1e3 * np.linalg.norm(found - wanted, axis=1)
        if not left.lines:
            left.plot(*wanted.T, color="0.75", lw=5, label="commanded")
        left.plot(*found.T, color=color, lw=1.8, label=f"{name}: rms {rms(away):.2g} mm")
        right.plot(t, away, color=color, lw=1.8)
        CONSOLE.print(f"{name}: tip rms {rms(away):.2g} mm")
    left.set_aspect("equal")
    left.set_xlabel("[m]", fontsize=12)
    right.set_xlabel("time [s]", fontsize=12)
    right.set_title("distance of the tip from the command [mm]", fontsize=12)
    right.set_ylim(0.0, 80.0)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=11)
    figure.savefig(path, dpi=110)
