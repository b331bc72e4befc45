# SPDX-License-Identifier: Apache-2.0
"""Identification of simulated arms with known truth, twenty recordings with noise each, and of a long recording.

Each arm carries a tool, moves on its optimal excitation for 100 s, and differs from its file by its inertias, springs,
rotors and friction. Noise: 1e-5 rad of encoders, and efforts of 0.5 % of their limit.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from excited import recording, true_robot
from excited_arms import PERIODS, RATE, ROBOTS, Truth, arm, elastic_recording, rigid_recording
from report import CONSOLE, Bar, Section, Table, seconds
from settings import QUICK, Settings

from eom_dynamics import load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.identification import Fit, Options, Recording, fit, identify_elasticity
from eom_dynamics.identification.links.consistent import pseudo_inertia

DEVIATIONS, SHARE = 3.0, 0.95
"""Base parameters are within as many standard deviations, in this share of the runs."""

PROMISES = {"stiffness": 0.01, "rotor_inertia": 0.02, "viscous": 0.03, "coulomb": 0.03}
"""Largest relative errors."""

HONEST = (0.8, 1.25)
"""Range of the RMS of errors over their standard deviations."""

# Limits of the long recording: processor time, s, and memory, MB.
_LONGEST, _MOST = 10.0, 2048.0


@dataclass(frozen=True)
class Run:
    """Result of a recording.

    Attributes:
        scores: errors of identifiable base parameters in standard deviations; NaN for the others.
        errors: relative, by name of the parameter, of each joint where it is identifiable.
        possible: whether the pseudo-inertias of all bodies are positive definite.
    """

    scores: Array
    errors: dict[str, Array]
    possible: bool


def run(settings: Settings) -> Section:
    """Identify the arms, bad recordings, and a long one."""
    quick = settings is QUICK
    runs, robots = (3, ROBOTS[-1:]) if quick else (20, ROBOTS)
    section = Section("identification", "Identification of simulated arms")
    bases = Table(
        f"Base parameters, {runs} recordings of {10 * PERIODS} s each",
        (
            "arm, efforts of",
            "identifiable",
            "within 3 s, of all",
            "least of a parameter",
            "RMS of error / s",
            "consistent",
            "time of a run",
        ),
    )
    errors = Table(
        "Largest relative error of any joint in any run", ("arm, efforts of", *(x.replace("_", " ") for x in PROMISES))
    )
    covered, possible, largest = list[Array](), [], []
    for name in robots:
        for side in ("joint", "motor"):
            truth = arm(name, side)
            start = time.process_time()
            options = _chosen(truth)
            found = [_identified(truth, seed, options) for seed in range(runs)]
            took = (time.process_time() - start) / runs
            covered.append(coverage([each.scores for each in found]))
            possible += [each.possible for each in found]
            identifiable = int(np.isfinite(found[0].scores).sum())
            bases.add(
                f"{name}, {'links' if side == 'joint' else 'rigid motors'}",
                f"{identifiable} of {len(found[0].scores)}",
                *(f"{100 * share:.1f} %" for share in covered[-1][:2]),
                f"{covered[-1][2]:.2f}",
                f"{sum(each.possible for each in found)} of {runs}",
                seconds(took),
            )
            largest.append(_largest([each.errors for each in found]))
            errors.add(bases.rows[-1][0], *_cells(largest[-1]))
            CONSOLE.print(bases.rows[-1], errors.rows[-1])
        truth = arm(name, "elastic")
        largest.append(_largest([_both_sides(truth, seed) for seed in range(runs)]))
        errors.add(f"{name}, both sides of springs", *_cells(largest[-1]))
        CONSOLE.print(errors.rows[-1])
    bad = _bad_recordings(arm(robots[-1], "motor"))
    possible += [_is_possible(found) for found in bad.values()]
    section.tables = [bases, errors]
    section.text = [
        "*Within 3 s*: errors of the linear estimate of at most three of its standard deviations: the share of all "
        f"base parameters of all {runs} runs, and that of the runs of the parameter with the least. Base parameters "
        "and rotors of which only the sum is identifiable do not count. Friction and rotors of rigid joints are those "
        "of the fit with physically consistent inertias. Cut-off and weight of the file are chosen by the first "
        "recording of each arm. *Time*: of the processor, with that choice. "
        f"*Consistent*: all pseudo-inertias are positive definite; so are those of bad recordings: {', '.join(bad)}."
    ]
    section.bars = _bars(covered, largest, possible)
    duration = 60.0 if quick else 600.0
    section.bars.append(_long(duration))
    return section


def coverage(scores: Sequence[Array]) -> Array:
    """Shares of errors within DEVIATIONS standard deviations, of all and of the worst parameter, and their RMS (3,).

    Errors are (parameters,) of each run, in standard deviations, NaN where they are not identifiable.
    """
    z = np.array(scores)
    z = z[:, np.isfinite(z).any(axis=0)]
    within = np.where(np.isfinite(z), np.abs(z) < DEVIATIONS, np.nan)
    return np.array([np.nanmean(within), np.nanmean(within, axis=0).min(), np.sqrt(np.nanmean(z**2))])


def _chosen(truth: Truth) -> Options:
    """Options with the cut-off and the weight that a first recording has."""
    first = fit(truth.robot, rigid_recording(truth, 0), options=Options(side=truth.side))
    return Options(side=truth.side, cutoff=first.filter.cutoff, prior_weight=first.prior_weight)


def _identified(truth: Truth, seed: int, options: Options) -> Run:
    side = truth.side
    found = fit(truth.robot, rigid_recording(truth, seed), options=options)
    count = found.regressor.inertial
    spread = found.base_deviations[:count]
    with np.errstate(invalid="ignore"):
        off = (found.estimate.x[:count] - found.regressor.base(truth.inertias)) / spread
    joints = truth.true.independent_joints
    laws = [joint.friction_law if side == "joint" else joint.actuator.friction for joint in joints]
    errors = {
        name: found.terms[name] / [float(getattr(law, name)) for law in laws] - 1 for name in ("viscous", "coulomb")
    }
    if side == "motor":
        identifiable = found.term_identifiable["rotor_inertia"]
        errors["rotor_inertia"] = (found.terms["rotor_inertia"] / truth.true.rotor_inertia - 1)[identifiable]
    return Run(np.where(np.isfinite(spread), off, np.nan), errors, _is_possible(found))


def _both_sides(truth: Truth, seed: int) -> dict[str, Array]:
    """Relative errors of springs and motors, by name, of each joint."""
    elasticity = identify_elasticity(truth.robot, [elastic_recording(truth, seed)])
    errors: dict[str, list[float]] = {name: [] for name in PROMISES}
    for joint in truth.true.independent_joints:
        spring, motor = elasticity.springs[joint.name], elasticity.motors[joint.name]
        # Without load, where springs of all laws have a stiffness.
        true = {"stiffness": float(np.asarray(joint.spring.tangent(0.0))), "rotor_inertia": joint.rotor_inertia}
        law = joint.actuator.friction
        true |= {"viscous": float(law.viscous), "coulomb": float(law.coulomb)}
        assert spring.stiffness is not None
        found = {"stiffness": spring.stiffness[0], "rotor_inertia": motor.rotor_inertia[0]}
        found |= {name: motor.parameters[name][0] for name in ("viscous", "coulomb")}
        for name, value in true.items():
            errors[name].append(found[name] / value - 1)
    return {name: np.array(values) for name, values in errors.items()}


def _bad_recordings(truth: Truth) -> dict[str, Fit]:
    """Fits of recordings that are too short, incomplete or wrong."""
    good = rigid_recording(truth, 0)
    draw = np.random.default_rng(1)
    still, silent, jumping = good.q.copy(), good.tau.copy(), good.t.copy()
    still[:, 0] = still[0, 0]
    silent[:, 0] = 0.0
    jumping[len(jumping) // 2 :] -= 5.0
    cases: dict[str, Recording] = {
        "3 s": good[: round(3 * RATE)],
        "a joint at rest": replace(good, q=still),
        "a joint without efforts": replace(good, tau=silent),
        "a jump of the clock": replace(good, t=jumping),
        "efforts of the wrong sign": replace(good, tau=-good.tau),
        "efforts of noise alone": replace(good, tau=np.std(good.tau, axis=0) * draw.standard_normal(good.tau.shape)),
        "positions in degrees": replace(good, q=np.rad2deg(good.q)),
    }
    options = Options(side="motor", suspect="use")
    return {name: fit(truth.robot, source, options=options) for name, source in cases.items()}


def _is_possible(found: Fit) -> bool:
    """Whether all bodies that were found are; those of the file, which joints keep, need not be."""
    of_file = found.regressor.dynamics.inertial_parameters.reshape(-1, 10)
    pairs = zip(found.parameters.reshape(-1, 10), of_file, strict=True)
    return all(np.linalg.eigvalsh(pseudo_inertia(body))[0] > 0 for body, given in pairs if np.any(body != given))


def _largest(errors: Sequence[dict[str, Array]]) -> dict[str, float]:
    """Largest magnitudes by name."""
    return {name: max(float(np.max(np.abs(each[name]), initial=0.0)) for each in errors) for name in errors[0]}


def _cells(largest: dict[str, float]) -> list[str]:
    return [f"{100 * largest[name]:.2f} %" if name in largest else "" for name in PROMISES]


def _bars(covered: Sequence[Array], largest: Sequence[dict[str, float]], possible: Sequence[bool]) -> list[Bar]:
    of_all, of_one, rms = np.transpose(covered)
    least = of_one.min()
    bars = [
        Bar(
            f"identification: each base parameter within {DEVIATIONS:g} standard deviations in {SHARE:.0%} of the runs",
            f"{least:.0%} of the worst; {of_all.min():.1%} of all",
            bool(least >= SHARE),
        ),
        Bar(
            f"identification: RMS of errors over standard deviations from {HONEST[0]} to {HONEST[1]}",
            f"{min(rms):.2f} to {max(rms):.2f}",
            bool(HONEST[0] <= min(rms) and max(rms) <= HONEST[1]),
        ),
    ]
    for name, most in PROMISES.items():
        worst = max(each.get(name, 0.0) for each in largest)
        bars.append(Bar(f"identification: {name.replace('_', ' ')} within {most:.0%}", f"{worst:.2%}", worst <= most))
    count = sum(possible)
    bars.append(
        Bar(
            "identification: inertias always physically consistent",
            f"{count} of {len(possible)} fits",
            count == len(possible),
        )
    )
    return bars


def _long(duration: float) -> Bar:
    """Time and memory of the identification of a recording of seven joints at 1 kHz, in a process of its own."""
    robot = load_robot("panda")
    source = recording(robot, true_robot(robot), rate=1000.0, duration=duration, velocity=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recording.npz"
        np.savez(path, t=source.t, q=source.q, tau=source.tau, qd=source.qd)
        command = [sys.executable, __file__, str(path)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        took, peak = json.loads(done.stdout)
    return Bar(
        f"identification: {duration:g} s of seven joints at 1 kHz in {_LONGEST:g} s and {_MOST / 1024:g} GB",
        f"{took:.1f} s of the processor, {peak:.0f} MB",
        took <= _LONGEST and peak <= _MOST,
    )


def _identify_long(path: Path) -> tuple[float, float]:
    """Processor time, s, and peak of the memory of this process, MB."""
    robot = load_robot("panda")
    with np.load(path) as arrays:
        source = Recording(robot.joint_names, **arrays)
    start = time.process_time()
    fit(robot, *source.split(0.3))
    took = time.process_time() - start
    # Not of getrusage, whose peak is that of the process that started this one, if larger.
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return took, int(peak) / 1024


if __name__ == "__main__":
    print(json.dumps(_identify_long(Path(sys.argv[1]))))
