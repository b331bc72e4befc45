# SPDX-License-Identifier: Apache-2.0
"""Identification of a recorded Panda beside peers: RMS residual of each joint on the last 30 % of the recording.

All peers get the same samples, filtered and differentiated by eom_dynamics, and all predict the same efforts.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from pinocchio_peer import least_squares
from report import Bar, Section, Table, seconds
from settings import Settings

from eom_dynamics import Robot, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.identification import Fit, Recording, fit
from eom_dynamics.identification.filtering import FilteredSamples
from eom_dynamics.identification.pseudo_inertia import pseudo_inertia
from eom_dynamics.identification.residuals import root_mean_square
from eom_dynamics.tools.benchmark.pinocchio_model import pinocchio_model
from eom_dynamics.tools.identify.read import read_recording

sys.path.append(str(Path(__file__).parents[1] / "test" / "helpers"))
from paths import PANDA_BAG

PROMISED = (0.36, 0.36, 0.31, 0.35, 0.12, 0.09, 0.06)
"""Largest RMS residuals, N m; to their last digit."""

HELD_OUT = 0.3

# Cut-off of a second run of Pinocchio's regressor, Hz.
_LOWER_CUTOFF = 5.0

# Columns of figaroh with smaller norms are left out, as by its own identification.
_NO_EFFECT = 1e-3


def run(settings: Settings) -> Section:
    """Identify the Panda by eom_dynamics, by Pinocchio and NumPy, and by figaroh where it is installed."""
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
    if importlib.util.find_spec("figaroh"):
        start = time.process_time()
        rms = figaroh_least_squares(robot, found, training, validation)
        name = f"figaroh {metadata.version('figaroh')}, {found.filter.cutoff:.1f} Hz"
        table.add(name, *_cells(rms), seconds(time.process_time() - start))
    else:
        section.text.append("figaroh is not installed: skipped.")
    section.tables.append(table)
    section.text.append(
        "Peers get the samples that eom_dynamics prepared. Pinocchio: regressor of all inertial parameters, friction "
        "and offsets, NumPy's least squares weighted by joint. figaroh: its regressor with friction and offsets, base "
        "parameters by its double QR, least squares weighted by joint. None of the peers' inertias need be physically "
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


def figaroh_least_squares(robot: Robot, found: Fit, training: Recording, validation: Recording) -> Array:
    """RMS residual (n,) of figaroh's base parameters by least squares, filtered as for the fit."""
    from figaroh.tools.qrdecomposition import QRDecomposer
    from figaroh.tools.regressor import RegressorBuilder, RegressorConfig, get_index_eliminate

    model, n = pinocchio_model(robot), robot.n
    builder = RegressorBuilder(
        SimpleNamespace(model=model, data=model.createData()), RegressorConfig(has_friction=True, has_joint_offset=True)
    )

    def rows(samples: FilteredSamples) -> Array:
        return np.asarray(
            builder.build_basic_regressor(samples.q, samples.qd, samples.qdd, {"act_idxv": list(range(n))})
        )

    (train,), (judge,) = found.prepare(training, decimate=True), found.prepare(validation)
    # Rows of joint after joint.
    used = train.used.T.ravel()
    W, tau = rows(train)[used], train.tau.T.ravel()[used]
    names = {f"p{k}": 0.0 for k in range(W.shape[1])}
    left_out, kept = get_index_eliminate(W, names, tol_e=_NO_EFFECT)
    W, joint = np.delete(W, left_out, axis=1), np.repeat(np.arange(n), len(train))[used]
    decomposer, weights = QRDecomposer(), np.ones(len(tau))
    for _ in range(2):  # ordinary, then weighted by the residual of each joint (Gautier 1997)
        base, _, _, phi = decomposer.double_decomposition(weights * tau, W * weights[:, np.newaxis], kept)
        residual = tau - (base @ phi) / weights
        weights = 1 / np.sqrt(np.bincount(joint, residual**2) / np.bincount(joint))[joint]
    base = np.delete(rows(judge), left_out, axis=1)[:, decomposer.get_base_indices()]
    return root_mean_square((base @ phi).reshape(n, -1).T - judge.tau)


def _cells(rms: Array) -> list[str]:
    return [f"{x:.3f}" for x in rms]


def _least_eigenvalue(found: Fit) -> float:
    bodies = found.parameters.reshape(-1, 10)
    return min(float(np.linalg.eigvalsh(pseudo_inertia(body))[0]) for body in bodies if body.any())
