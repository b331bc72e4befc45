# SPDX-License-Identifier: Apache-2.0
"""Identification of a recorded Panda beside a peer: RMS residual of each joint on the last 30 % of the recording.

The peer gets the same samples, filtered and differentiated by eom_dynamics, and predicts the same efforts.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from paths import PANDA_BAG
from pinocchio_peer import least_squares
from report import Bar, Section, Table, seconds
from settings import Settings

from eom_dynamics import load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.identification import Fit, fit
from eom_dynamics.identification.links.consistent import pseudo_inertia
from eom_dynamics.tools.identify.read import read_recording

PROMISED = (0.36, 0.36, 0.31, 0.35, 0.12, 0.09, 0.06)
"""Largest RMS residuals, N m; to their last digit."""

HELD_OUT = 0.3

# Cut-off of a second run of Pinocchio's regressor, Hz.
_LOWER_CUTOFF = 5.0


def run(settings: Settings) -> Section:
    """Identify the Panda by eom_dynamics, and by Pinocchio and NumPy."""
    section = Section("identification_peers", "Identification beside peers")
    if not PANDA_BAG.exists():
        section.text.append(f"{PANDA_BAG.name} is not in shared/bags next to this folder: skipped.")
        return section
    robot = load_robot("panda")
    source = read_recording(PANDA_BAG, robot)
    training, validation = source.split(HELD_OUT)
    table = Table("RMS residual on the last 30 %, N m", ("", *(f"joint {k + 1}" for k in range(robot.n)), "time"))
    start = time.process_time()
    found = fit(robot, training, validation)
    took = time.process_time() - start
    assert found.validation is not None
    table.add("robot file", *_cells(found.validation.before), "")
    table.add(
        f"eom_dynamics, consistent inertias, {found.filter.cutoff:.1f} Hz",
        *_cells(found.validation.after),
        seconds(took),
    )
    table.add("the same, efforts not filtered", *_cells(found.validation.unfiltered), "")
    for cutoff in (found.filter.cutoff, _LOWER_CUTOFF):
        for measured in (True, False) if source.qd is not None else (False,):
            same = replace(found, filter=replace(found.filter, cutoff=cutoff, measured_velocity=measured))
            start = time.process_time()
            parts = same.prepare(training, decimate=True), same.prepare(validation)
            rms = least_squares(robot, *parts, lambda s: [s.bases[name] for name in ("viscous", "coulomb", "offset")])
            took = time.process_time() - start
            what = "measured velocities" if measured else "differences"
            table.add(f"Pinocchio and NumPy, {cutoff:.1f} Hz, {what}", *_cells(rms), seconds(took))
    section.tables.append(table)
    section.text.append(
        "The peer gets the samples that eom_dynamics prepared: Pinocchio's regressor of all inertial parameters, "
        "friction and offsets, NumPy's least squares weighted by joint. Its inertias need not be physically "
        "consistent. Times are of the processor, for eom_dynamics with the choice of the filter and of the weight of "
        "the file."
    )
    rounded = np.round(found.validation.after, 2)
    section.bars += [
        Bar(
            "Panda, last 30 %: RMS of at most " + " ".join(f"{x:g}" for x in PROMISED) + " N m",
            " ".join(f"{x:.3f}" for x in found.validation.after),
            bool(np.all(rounded <= PROMISED)),
        ),
        Bar(
            "Panda: physically consistent inertias",
            f"least eigenvalue of a pseudo-inertia {_least_eigenvalue(found):.1e}",
            _least_eigenvalue(found) > 0,
        ),
    ]
    return section


def _cells(rms: Array) -> list[str]:
    return [f"{x:.3f}" for x in rms]


def _least_eigenvalue(found: Fit) -> float:
    bodies = found.parameters.reshape(-1, 10)
    return min(float(np.linalg.eigvalsh(pseudo_inertia(body))[0]) for body in bodies if body.any())
