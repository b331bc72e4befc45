# SPDX-License-Identifier: Apache-2.0
"""What each term of the feedforward is worth with held commands, a delay, and errors of the model.

Plants of MuJoCo, and simulations over model errors. A whole run writes the picture docs/benefit.png, too.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from mujoco_arms import MujocoArm
from report import DOCS, Bar, Section, Table
from settings import QUICK, Settings

from eom_dynamics import ElasticArm, Robot, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.simulation import outer_loop
from eom_dynamics.simulation.elastic_plant import ElasticPlant
from eom_dynamics.simulation.model_errors import WAYS, ModelError, Sweep, sweep
from eom_dynamics.tools.pages.numbers import number
from eom_dynamics.tools.simulate.summary import compared
from eom_dynamics.trajectory import paper_motion

ERRORS = (ModelError(), *(ModelError(**{name: sign * 0.05}) for name in ("stiffness", "mass") for sign in (-1, 1)))
"""Model errors with feedback of the links."""

LABELS = ("rigid", "τ/K", "τ/K, τ̇/K", "flatness: τ, τ̇, τ̈")
"""Names of the feedforwards, in the order of :data:`WAYS`."""

GRID = (-0.2, -0.1, 0.0, 0.1, 0.2)
"""Relative errors of stiffness and mass, all pairs."""

# Errors of one parameter alone, relative, and of the delay in s, each with both signs.
_ALONE = {
    "stiffness": (0.002, 0.01, 0.02, 0.05, 0.1, 0.2),
    "mass": (0.002, 0.01, 0.02, 0.05, 0.1, 0.2),
    "rotor_inertia": (0.05, 0.2),
    "friction": (0.2, 0.5),
    "delay": (2e-4, 1e-3),
}

# Relative errors of stiffness and of mass to which a model that was identified is known.
_KNOWN = 0.05

# What each feedforward but the last one lacks.
_MORE = ("τ/K, τ̇ and τ̈", "τ̇ and τ̈", "τ̈")

# Ratio of two errors from which on a term is worth having.
_WORTH = 1.5

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


def model_errors(robot: Robot, period: float) -> tuple[ModelError, ...]:
    """The model errors of the sweep: none, pairs of stiffness and mass, one parameter alone, and commands not ahead."""
    errors = [ModelError(), *(ModelError(stiffness=s, mass=m) for s in GRID for m in GRID)]
    has_friction = not all(joint.actuator.friction.is_none for joint in robot.independent_joints)
    for name, sizes in _ALONE.items():
        if name != "friction" or has_friction:
            errors += [ModelError(**{name: sign * size}) for size in sizes for sign in (-1, 1)]
    lead = replace(robot, command_period=period).command_lead
    return tuple(dict.fromkeys([*errors, ModelError(delay=lead)]))


def verdicts(sweep: Sweep) -> list[str]:
    """Sentences on the benefit of each feedforward term over all model errors."""
    ratio = sweep.rms[:, 0] / sweep.rms[:, -1]
    known = np.isfinite(ratio)
    drives = "interpolated over" if sweep.robot.drive_interpolation == "linear" else "held for"
    lines = [
        *_headline(sweep),
        f"Motion {sweep.motion_frequency:.3g} rad/s, lowest resonance {sweep.resonance:.3g} rad/s, "
        f"ratio {sweep.motion_frequency / sweep.resonance:.2g}; commands {drives} {1e3 * sweep.period:g} ms, "
        f"acting {1e3 * sweep.robot.drive_delay:g} ms later; lead {1e3 * sweep.lead:g} ms; a PD of "
        f"{sweep.natural_frequency:g} rad/s on the motors.",
    ]
    if known.any():
        worse = int(np.sum(ratio[known] < 1))
        lines.append(
            f"Flatness against rigid feedforward: {compared(float(np.min(ratio[known])))} to "
            f"{compared(float(np.max(ratio[known])))}; worse with {worse} of {int(known.sum())} model errors."
        )
    exact = sweep.of(ModelError())
    if (unled := ModelError(delay=sweep.lead)) in sweep.errors and np.isfinite(gain := sweep.of(unled)[-1] / exact[-1]):
        lines.append(f"Without the lead the error with flatness is {compared(1 / gain)}.")
    for more, less, name in ((2, 1, "τ̇"), (3, 2, "τ̈")):
        if not np.all(np.isfinite(exact)):
            continue
        gain = exact[less] / exact[more]
        if gain < _WORTH:
            lines.append(f"{name} does not pay on this motion: with the exact model its error is {compared(gain)}.")
            continue
        *first, last = (x for x in (_below(sweep, parameter, less, more) for parameter in _ALONE) if x)
        lines.append(
            f"{name} pays at this ratio of motion to resonance ({compared(gain)} with the exact model, at least "
            f"{_WORTH:g} × smaller) up to errors of {', '.join(first)} and {last}, each alone and of both signs; "
            "beyond, the error of the model is larger than what it adds."
        )
    if not any(error.friction for error in sweep.errors):
        lines.append("Without friction in the model there is no error of it.")
    return lines


def _headline(sweep: Sweep) -> list[str]:
    """The feedforward to use with a model that is known to 5 %, and what the others would change, at worst."""
    errors = [ModelError(**{name: sign * _KNOWN}) for name in ("stiffness", "mass") for sign in (-1, 1)]
    if not set(errors) <= set(sweep.errors):
        return []
    rms = np.stack([sweep.of(error) for error in errors])
    if not np.isfinite(rms).all():
        return []
    worst = np.max(rms / np.min(rms, axis=1, keepdims=True), axis=0)
    k = int(np.argmax(worst <= max(_WORTH, np.min(worst))))
    advice = f"For an arm whose stiffness and masses are known to {100 * _KNOWN:g} %, use {LABELS[k]}"
    if k == len(LABELS) - 1:
        return [f"{advice}: τ/K alone has up to {number(float(np.max(rms[:, 1] / rms[:, -1])))} × its error."]
    change = np.ceil(100 * np.max(np.abs(rms[:, -1] / rms[:, k] - 1)))
    verb = "changes" if k == len(_MORE) - 1 else "change"
    return [f"{advice}: {_MORE[k]} {verb} the error by at most {change:g} %."]


def _below(sweep: Sweep, parameter: str, less: int, more: int) -> str | None:
    """Largest error of a parameter up to which a way is worth having, with both signs; None if there are no errors."""
    most, sizes = 0.0, _ALONE[parameter]
    if ModelError(**{parameter: sizes[0]}) not in sweep.errors:
        return None
    for size in sizes:
        pair = [sweep.of(ModelError(**{parameter: sign * size})) for sign in (-1, 1)]
        if not all(rms[less] / rms[more] >= _WORTH for rms in pair):
            break
        most = size
    amount = _amount(parameter, most or sizes[0])
    which = "less than " if not most else "at least " if most == sizes[-1] else ""
    return f"{which}{amount} of {parameter.replace('_', ' ')}"


def _amount(parameter: str, value: float, sign: str = "") -> str:
    return f"{1e3 * value:{sign}.3g} ms" if parameter == "delay" else f"{100 * value:{sign}.3g} %"


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
