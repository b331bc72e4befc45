# SPDX-License-Identifier: Apache-2.0
"""Identify springs and motors of simulated arms with known truth, twenty recordings with noise each.

For each parameter, the largest error and the share of runs with the truth within three standard deviations.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from report import Bar, Section, Table
from settings import FULL, QUICK, Settings

from eom_dynamics import load_robot
from eom_dynamics.identification.motor import fit_motors
from eom_dynamics.identification.springs import fit_springs

sys.path.append(str(Path(__file__).parents[1] / "test" / "helpers"))
from elastic_recordings import recording

ROBOT, DURATION = "sea_planar_2r", 20.0
TERMS = ("viscous", "coulomb", "efficiency", "offset")

PROMISES = {"stiffness": 0.01, "rotor_inertia": 0.02, "viscous": 0.03, "coulomb": 0.03}
COVERED, DEVIATIONS = 0.95, 3.0


def run(settings: Settings) -> Section:
    """Identify, and compare with the truth."""
    runs = 3 if settings is QUICK else 20
    robot = load_robot(ROBOT)
    exact = recording(robot, DURATION)
    truths = [_truth(joint) for joint in robot.joints]
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for seed in range(runs):
        noisy = exact.noisy(seed)
        laws = tuple(joint.spring.kind for joint in robot.joints)
        springs = fit_springs(noisy.t, noisy.theta, noisy.q, noisy.tau, laws)
        motors = fit_motors(noisy.t, noisy.theta, tau=noisy.tau, effort=noisy.motor_effort, terms=TERMS)
        for joint, truth, spring, motor in zip(robot.joints, truths, springs, motors, strict=True):
            for name, value in truth.items():
                entry = {**motor.parameters, **spring.parameters}[name]
                found.setdefault((joint.name, name), []).append((entry[0] / value - 1, (entry[0] - value) / entry[1]))
    table = Table(
        f"{ROBOT}, {runs} recordings of {DURATION:g} s at 1 kHz",
        ("parameter", "largest error", f"within {DEVIATIONS:g} s", "promised"),
    )
    section = Section("elastic_identification", "Identification of springs and motors", tables=[table])
    largest, covered = dict.fromkeys(PROMISES, 0.0), []
    for (joint, name), rows in found.items():
        errors, deviations = np.abs(np.array(rows)).T
        inside, worst = float(np.mean(deviations < DEVIATIONS)), float(np.max(errors))
        covered.append(inside)
        if name in PROMISES:
            largest[name] = max(largest[name], worst)
        promised = f"{PROMISES[name]:.0%}" if name in PROMISES else ""
        table.add(f"{joint} {name.replace('_', ' ')}", f"{worst:.2%}", f"{inside:.0%}", promised)
    section.bars = [
        Bar(f"springs and motors: {name.replace('_', ' ')} within {most:.0%}", f"{worst:.2%}", worst <= most)
        for (name, most), worst in zip(PROMISES.items(), largest.values(), strict=True)
    ]
    section.bars.append(
        Bar(
            f"springs and motors: within {DEVIATIONS:g} standard deviations in {COVERED:.0%} of the runs",
            f"{np.mean(covered):.1%} of all, {min(covered):.0%} of the worst parameter",
            float(np.mean(covered)) >= COVERED,
        )
    )
    return section


def _truth(joint: Any) -> dict[str, float]:
    spring, friction = joint.spring, joint.actuator.friction
    own = {declared.name: float(getattr(spring, name)) for name, declared in spring.parameters().items()}
    return own | {
        "rotor_inertia": joint.rotor_inertia,
        "viscous": friction.viscous,
        "coulomb": friction.coulomb,
        "smoothing_velocity": friction.smoothing_velocity,
        "efficiency": joint.actuator.gear.efficiency,
    }


if __name__ == "__main__":
    run(QUICK if "--quick" in sys.argv else FULL).show()
