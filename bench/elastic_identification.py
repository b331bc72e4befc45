# SPDX-License-Identifier: Apache-2.0
"""Identify springs and motors of simulated arms with known truth, twenty recordings with noise each.

``python bench/elastic_identification.py`` prints, for each parameter, the largest error and the share of runs with the
truth within three standard deviations; exit code 1 if a promise is not kept.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from report import CONSOLE, Table

from eom_dynamics import load_robot
from eom_dynamics.identification.motor import fit_motors
from eom_dynamics.identification.springs import fit_springs

sys.path.append(str(Path(__file__).parents[1] / "test" / "helpers"))
from elastic_recordings import recording

ROBOT, DURATION = "sea_planar_2r", 20.0
TERMS = ("viscous", "coulomb", "efficiency", "offset")

PROMISES = {"stiffness": 0.01, "rotor_inertia": 0.02, "viscous": 0.03, "coulomb": 0.03}
COVERED, DEVIATIONS = 0.95, 3.0


def main() -> int:
    """Identify, and print the table."""
    parser = argparse.ArgumentParser(prog="elastic_identification", description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
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
        f"{ROBOT}, {runs} recordings of {DURATION:g} s", ["parameter", "largest error", "within 3 s", "promise"]
    )
    kept, covered = True, []
    for (joint, name), rows in found.items():
        errors, deviations = np.abs(np.array(rows)).T
        inside = float(np.mean(deviations < DEVIATIONS))
        covered.append(inside)
        promise = PROMISES.get(name)
        kept &= promise is None or float(np.max(errors)) <= promise
        said = "" if promise is None else f"{promise:.0%}"
        table.add(f"{joint} {name}", f"{np.max(errors):.2%}", f"{inside:.0%}", said)
    for row in (table.columns, *table.rows):
        CONSOLE.print("".join(f"{cell:<28}" for cell in row), markup=False)
    share = float(np.mean(covered))
    CONSOLE.print(f"truth within {DEVIATIONS:g} standard deviations: {share:.1%} of all numbers", markup=False)
    return 0 if kept and share >= COVERED else 1


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
    raise SystemExit(main())
