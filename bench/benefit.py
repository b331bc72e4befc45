# SPDX-License-Identifier: Apache-2.0
"""What each term of the feedforward is worth with held commands, a delay, and errors of the model.

Plants of MuJoCo, and simulations over model errors. A whole run writes the picture docs/benefit.png, too.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from mujoco_arms import MujocoArm
from report import DOCS, Bar, Section, Table
from settings import QUICK, Settings

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.simulation import outer_loop
from eom_dynamics.simulation.elastic_plant import ElasticPlant
from eom_dynamics.simulation.model_errors import WAYS, ModelError, Sweep, sweep
from eom_dynamics.tools.simulate.link_feedback import ERRORS
from eom_dynamics.tools.simulate.sweep import GRID, LABELS, model_errors, verdicts
from eom_dynamics.trajectory import paper_motion

ROBOTS = ("sea_planar_2r", "panda", "iiwa")
PERIOD, DELAY = 1e-3, 2e-3

# Period, delay and lead of the drives, s; the shortest period is the integrator's step.
CASES = {
    "held for 0.25 ms, half a period ahead": (0.25e-3, 0.0, 0.125e-3),
    "held for 1 ms": (PERIOD, 0.0, 0.0),
    "held for 1 ms, half a period ahead": (PERIOD, 0.0, PERIOD / 2),
    "held for 1 ms, late by 2 ms, half a period ahead": (PERIOD, DELAY, PERIOD / 2),
    "held for 1 ms, late by 2 ms, both ahead": (PERIOD, DELAY, PERIOD / 2 + DELAY),
}

SHOWN = (
    ModelError(),
    *(ModelError(stiffness=s) for s in (-0.05, 0.05)),
    *(ModelError(mass=m) for m in (-0.05, 0.05)),
    *(ModelError(stiffness=s, mass=m) for s in (-0.2, 0.2) for m in (-0.2, 0.2)),
    *(ModelError(rotor_inertia=r) for r in (-0.2, 0.2)),
    *(ModelError(friction=f) for f in (-0.5, 0.5)),
    *(ModelError(delay=d) for d in (-1e-3, 1e-3)),
)


def run(settings: Settings) -> Section:
    """Run plants with an exact model, and simulations over model errors."""
    duration = 0.1 if settings is QUICK else 1.0
    held = Table("exact model, plants of MuJoCo, rms errors of the links, mrad", ["arm", *LABELS])
    ratios = []
    for name in ROBOTS:
        errors = {case: _errors(name, *numbers, duration) for case, numbers in CASES.items()}
        for case, row in errors.items():
            held.add(f"{name}, {case}", *(f"{1e3 * x:.2g}" for x in row))
        before, after = (errors[case][-1] for case in list(CASES)[1:3])
        ratios.append(after / before)
    wrong = Table("model errors, held for 1 ms, half a period ahead: rigid / τ/K / τ̇/K / flatness, mrad", ["", *ROBOTS])
    sweeps, fed_sweeps = [], []
    for name in ROBOTS:
        robot = load_robot(name)
        motion = paper_motion(robot.n)
        found = sweep(robot, motion, 0.0, duration, model_errors(robot, PERIOD), period=PERIOD)
        plant, q = ElasticPlant(ElasticArm(robot)), motion.derivatives(0.0, 0)[0]
        loop = outer_loop(plant, q, found.natural_frequency, PERIOD / 2)
        sweeps.append(found)
        fed_sweeps.append(sweep(robot, motion, 0.0, duration, ERRORS, period=PERIOD, outer=loop.F))
    for error in SHOWN:
        # An arm without friction has no error of it.
        wrong.add(_named(error), *(_cell(x.of(error)) if error in x.errors else "–" for x in sweeps))
    fed = Table("flatness without / with feedback of the links around the PD, mrad", ["", *ROBOTS])
    for error in ERRORS:
        pairs = [[x.of(error)[-1] for x in both] for both in zip(sweeps, fed_sweeps, strict=True)]
        fed.add(_named(error), *(f"{1e3 * without:.2g} / {1e3 * with_it:.2g}" for without, with_it in pairs))
    text = [f"**{name}**: {' '.join(verdicts(found))}" for name, found in zip(ROBOTS, sweeps, strict=True)]
    text.append(f"{duration:g} s of the paper's motion.")
    bar = Bar("half a period ahead: at most 1/10 of the error without", f"{max(ratios):.2g}", max(ratios) < 0.1)
    if settings is not QUICK:
        write_picture(DOCS / "benefit.png", sweeps)
    return Section("benefit", "benefit of the feedforward", text, [held, wrong, fed], [bar])


def _errors(name: str, period: float, delay: float, lead: float, duration: float) -> list[float]:
    """Root mean square errors of the links under :data:`WAYS`, rad."""
    arm, plant = ElasticArm(load_robot(name)), MujocoArm(name)
    known, motion = ElasticPlant(arm), paper_motion(arm.robot.n)

    def command(way: str, t: float) -> tuple[Array, Array, Array]:
        q, qd, qdd, *higher = motion.derivatives(t + lead)
        y = arm.feedforward(q, qd, qdd, *higher)
        if way == "taudd":
            return y.motor_effort, y.motor_position, y.motor_velocity
        speed = y.motor_velocity if way == "taud" else qd
        effort = arm.motor_inertia * qdd + known.motor_load(y.tau, speed)
        return effort, q if way == "rigid" else y.motor_position, speed

    errors = []
    for way in WAYS:
        t, q, _ = plant.run(
            lambda t, way=way: command(way, t),  # type: ignore[misc]
            motion,
            duration=duration,
            period=period,
            delay=delay,
        )
        errors.append(float(np.sqrt(np.mean((q - motion.derivatives(t, 0)[0]) ** 2))))
    return errors


def _named(error: ModelError) -> str:
    named = [
        f"{name.replace('_', ' ')} {f'{1e3 * x:+g} ms' if name == 'delay' else f'{100 * x:+g} %'}"
        for name, x in error._asdict().items()
        if x
    ]
    return ", ".join(named) or "exact"


def _cell(rms: Array) -> str:
    ratio = rms[0] / rms[-1]
    return f"{' / '.join(f'{1e3 * x:.2g}' for x in rms)} ({f'{ratio:,.0f}' if ratio >= 100 else f'{ratio:.2g}'} ×)"


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
    for axes, found in zip(figure.subplots(1, len(sweeps)), sweeps, strict=True):
        ratios = np.array([[r[0] / r[-1] for r in (found.of(ModelError(s, m)) for s in GRID)] for m in GRID])
        axes.imshow(np.log10(ratios), origin="lower", cmap="RdBu", vmin=-1.3, vmax=1.3, aspect="auto")
        for i, j in np.ndindex(*ratios.shape):
            value = ratios[i, j]
            dark = abs(np.log10(value)) > 0.9
            text = f"{value:,.0f}" if value >= 100 else f"{value:.2g}"
            axes.text(j, i, text, ha="center", va="center", fontsize=13, color="white" if dark else "black")
        axes.set_xticks(range(len(GRID)), percent)
        axes.set_yticks(range(len(GRID)), percent)
        axes.set_title(found.robot.name, fontsize=14)
        axes.set_xlabel("springs against the model [%]", fontsize=12)
    figure.axes[0].set_ylabel("masses against the model [%]", fontsize=12)
    figure.savefig(path, dpi=110)
