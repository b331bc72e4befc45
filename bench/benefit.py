# SPDX-License-Identifier: Apache-2.0
"""Benefit of each term of the feedforward with held commands, a delay, and model errors.

Plants are MuJoCo's, with drives that hold their commands. A whole run also writes docs/benefit.png and docs/tip.png.

All four feedforwards have the same PD on the motors, kp = B w², kd = 2 B w, around references of one period. The drives
sample it, with velocities from differences of positions, and references are for the ages of these measurements:

| feedforward | theta_ref | thetad_ref | effort           |
|-------------|-----------|------------|------------------|
| rigid       | q         | qd         | B qdd + tau      |
| tau         | q + delta | qd         | B qdd + tau      |
| taud        | q + delta | qd + deltad| B qdd + tau      |
| taudd       | q + delta | qd + deltad| B thetadd + tau  |

with the deflections delta of the springs under tau, taud and taudd; the last is flatness. All include friction
and gear loss at the reference velocity. Commands lead by their mean age, :attr:`.Robot.command_lead`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from harness import CONSOLE, Section, Settings, picture, rms
from mujoco_arms import DriveLoop, MujocoArm, held, sent
from plants import angles_of, link_errors, tip

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.actuators.drive_units import NO_FEEDBACK_DELAY, FeedbackDelay
from eom_dynamics.arrays import Array
from eom_dynamics.simulation import ElasticPlant, outer_loop
from eom_dynamics.simulation.feedforward_comparison import motor_references
from eom_dynamics.trajectory import Trajectory, paper_motion, rest_to_rest, through

WAYS = ("rigid", "τ/K", "τ/K, τ̇/K", "flatness: τ, τ̇, τ̈")  # feedforwards, in the order of all results
NATURAL_FREQUENCY = 70.0  # of the motors' PD, rad/s
ROBOTS = ("sea_planar_2r", "panda", "iiwa")
PERIOD, DELAY = 1e-3, 2e-3


class ModelError(NamedTuple):
    """Errors of a model; relative errors are real over modeled value, minus 1."""

    stiffness: float = 0.0
    mass: float = 0.0
    rotor_inertia: float = 0.0
    friction: float = 0.0
    delay: float = 0.0  # real delay of the drives less the modeled delay, s

    def __str__(self) -> str:
        named = [
            f"{name.replace('_', ' ')} {f'{1e3 * x:+g} ms' if name == 'delay' else f'{100 * x:+g} %'}"
            for name, x in self._asdict().items()
            if x
        ]
        return ", ".join(named) or "exact"


EXACT = ModelError()
SINGLE = tuple(ModelError(**{name: x}) for name in ("stiffness", "mass") for x in (-0.05, 0.05))
GRID = (-0.2, -0.1, 0.0, 0.1, 0.2)  # relative errors of stiffness and mass; the picture shows every pair
SHOWN = (
    *(EXACT, *SINGLE),
    *(ModelError(stiffness=s, mass=m) for s in (-0.2, 0.2) for m in (-0.2, 0.2)),
    *(ModelError(rotor_inertia=r) for r in (-0.2, 0.2)),
    *(ModelError(friction=f) for f in (-0.5, 0.5)),
    *(ModelError(delay=d) for d in (-1e-3, 1e-3)),
)

Sweep = Mapping[ModelError, Array]
"""Root mean square errors of the links over time and joints (4,), rad, as :data:`WAYS`, by the error of the model."""


Feedback = Callable[[int, Array], "Array | float"]
"""Feedback efforts by the number of a period and the state at its start."""


class Timing(NamedTuple):
    """Timing of commands and drives."""

    delay: float = 0.0  # of the commands, s
    lead: float = PERIOD / 2  # of the feedforward, s
    rate: float = 4e3  # of the samples of the PD, Hz
    aged: bool = True  # whether references are for the ages of the drives' measurements


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
        errors = [_errors(name, timing, duration) for timing in CASES.values()]
        for case, row in zip(CASES, errors, strict=True):
            exact.add(f"{name}, {case}", *(f"{1e3 * x:.2g}" for x in row))
        ratio = max(ratio, errors[1][-1] / errors[0][-1])
    sweeps, fed_sweeps = [], []
    for name in ROBOTS:
        arm = ElasticArm(load_robot(name))
        q = paper_motion(arm.robot.n).derivatives(0.0, 0)[0]
        loop = outer_loop(ElasticPlant(arm), q, NATURAL_FREQUENCY, PERIOD / 2)
        pairs = [ModelError(s, m) for s in GRID for m in GRID]
        # Arms without friction have no error of friction.
        known = [error for error in (*pairs, *SHOWN) if not error.friction or not arm.friction.is_none]
        sweeps.append(sweep(name, known, duration))
        fed_sweeps.append(sweep(name, (EXACT, *SINGLE), duration, outer=loop.F))
    title = "model errors, held for 1 ms, half a period ahead: rigid / τ/K / τ̇/K / flatness, mrad"
    wrong = section.table(title, "", *ROBOTS)
    for error in SHOWN:
        wrong.add(str(error), *(_cell(x[error]) if error in x else "–" for x in sweeps))
    fed = section.table("flatness without / with feedback of the links around the PD, mrad", "", *ROBOTS)
    for error in (EXACT, *SINGLE):
        both = [[1e3 * x[error][-1] for x in each] for each in zip(sweeps, fed_sweeps, strict=True)]
        fed.add(str(error), *(f"{without:.2g} / {with_it:.2g}" for without, with_it in both))
    section.text.append(f"{duration:g} s of the paper's motion.")
    section.promise("half a period ahead: at most 1/10 of the error without", f"{ratio:.2g}", ratio < 0.1)
    if not settings.quick:
        write_picture(sweeps)
        write_tip_picture()


def sweep(name: str, errors: Iterable[ModelError], duration: float, *, outer: Array | None = None) -> Sweep:
    """Errors of the links of a packaged robot on the paper's motion, held for a period, half a period ahead.

    Args:
        name: packaged robot, the model.
        errors: model errors.
        duration: s.
        outer: feedback matrix F of :func:`.outer_loop` for the links; None for no feedback of links.
    """
    leads = {error: Timing(lead=PERIOD / 2 - error.delay) for error in errors}
    return {error: _errors(name, timing, duration, error, outer) for error, timing in leads.items()}


def _errors(name: str, timing: Timing, duration: float, error: ModelError = EXACT, outer: Array | None = None) -> Array:
    """Root mean square errors of the links under :data:`WAYS`, rad, from the exact state of the real arm."""
    factors = {each: 1 + getattr(error, each) for each in ("stiffness", "mass", "rotor_inertia", "friction")}
    drive = DriveLoop(1 / timing.rate, 0.0)
    plant = MujocoArm(name, step=min(2.5e-4, drive.period), natural_frequency=NATURAL_FREQUENCY, **factors)
    arm = ElasticArm(load_robot(name))
    known, motion = ElasticPlant(arm), paper_motion(arm.robot.n)
    first = motion.derivatives(0.0)
    tau = np.stack(arm.dynamics.inverse_dynamics(*first)) * factors["mass"] / factors["stiffness"]
    at = arm.deflections(*tau)
    late, every = round(timing.delay / PERIOD), round(PERIOD / plant.step)
    t = PERIOD * np.arange(-late, round(duration / PERIOD) + 1)
    commands = _commands(known, motion, t + timing.lead, drive.delay if timing.aged else NO_FEEDBACK_DELAY)
    options = {"duration": duration, "period": PERIOD, "delay": timing.delay, "drive": drive}
    options["start"] = first[0] + at.delta, first[1] + at.deltad
    errors = []
    for rows in zip(*(part.swapaxes(0, 1) for part in commands), strict=True):
        fed = (lambda k, state: 0.0) if outer is None else _link_feedback(known, motion, t, outer)

        def command(now: float, rows: tuple[Array, ...] = rows, fed: Feedback = fed) -> tuple[Array, ...]:
            k = round(now / PERIOD)
            effort, position, velocity = (row[k + late] for row in rows)
            return effort + fed(k, plant.state), position, velocity

        errors.append(rms(link_errors(plant, command, motion, **options)[1][every - 1 :: every]))
    return np.array(errors)


def _link_feedback(known: ElasticPlant, motion: Trajectory, t: Array, F: Array) -> Feedback:
    """Efforts (m,) of the feedback F of links and motors, by the number of a period and the state at its start."""
    references = known.parts(known.on_trajectory(*motion.derivatives(t)))
    free, integral = ~known.rigid, np.zeros(known.arm.robot.n)

    def effort(k: int, state: Array) -> Array:
        (q, theta), (qd, thetad) = (np.split(x, [len(integral)]) for x in state)
        q, theta, qd, thetad = (x - y[k] for x, y in zip((q, theta, qd, thetad), references, strict=True))
        integral[:] += (t[1] - t[0]) * q
        return -F @ np.concatenate([q, theta[free], qd, thetad[free], integral])

    return effort


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


def write_picture(sweeps: list[Sweep]) -> None:
    """Write how many times smaller flatness makes the error of rigid feedforward, over errors of both signs."""
    title = (
        "Link error with feedforward for a rigid arm over that with flatness, commands held for 1 ms\n"
        "above 1: flatness is better; below 1: worse"
    )
    percent = [f"{100 * x:+g}" for x in GRID]
    with picture("benefit.png", 13, 5.2, title) as figure:
        for axes, name, found in zip(figure.subplots(1, len(sweeps)), ROBOTS, sweeps, strict=True):
            ratios = np.array([[found[ModelError(s, m)][0] / found[ModelError(s, m)][-1] for s in GRID] for m in GRID])
            axes.imshow(np.log10(ratios), origin="lower", cmap="RdBu", vmin=-1.3, vmax=1.3, aspect="auto")
            for i, j in np.ndindex(*ratios.shape):
                color = "white" if abs(np.log10(ratios[i, j])) > 0.9 else "black"
                axes.text(j, i, _factor(ratios[i, j]), ha="center", va="center", fontsize=13, color=color)
            axes.set_xticks(range(len(GRID)), percent)
            axes.set_yticks(range(len(GRID)), percent)
            axes.set(title=name, xlabel="springs against the model [%]")
        figure.axes[0].set_ylabel("masses against the model [%]")


# --- The first picture of the README ----------------------------------------------------

TURNS, SECONDS = 2, 3.0


def circles() -> Trajectory:
    """Two circles of the tip in three seconds, from rest to rest."""
    t = np.linspace(0.0, SECONDS, 121)
    angle = rest_to_rest([0.0], [2 * np.pi * TURNS], duration=SECONDS).derivatives(t, 0)[0][:, 0]
    points = np.array([0.55, -0.1]) + 0.15 * np.column_stack([np.cos(angle), np.sin(angle)])
    return through(t, angles_of(points))


def write_tip_picture() -> None:
    """Draw the tip of an elastic arm, commanded and with three feedforwards, and its distances from the command.

    The plant has springs 10 % softer and links 5 % heavier than its model, Coulomb friction that stops motors, of 10 %
    of their rms effort, and drives with filtered differences.
    """
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
    title = "Tip of an elastic arm: model 10 % off in stiffness, 5 % in mass; stiction; sampled drives"
    with picture("tip.png", 12, 4.8, title, legend=4) as figure:
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
        left.set(aspect="equal", xlabel="[m]")
        right.set(title="distance of the tip from the command [mm]", xlabel="time [s]", ylim=(0.0, 80.0))
