# SPDX-License-Identifier: Apache-2.0
"""Identification: residuals beside a Pinocchio regressor with NumPy least squares, and known truth in many runs.

Run as ``python bench/identification.py [BAG --robot NAME]``; the bag is judged by its last 30 %.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
from report import CONSOLE, Table

sys.path.insert(0, str(Path(__file__).parents[1] / "test" / "helpers"))

from excited import recording, true_robot

from eom_dynamics import Robot, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.identification import Fit, Options, Recording, fit
from eom_dynamics.identification.filtering import Samples
from eom_dynamics.recursion import inertial_parameters
from eom_dynamics.tools.benchmark.pinocchio_model import pinocchio_model
from eom_dynamics.tools.identify.read import read_recording

ROBOTS = ("iiwa", "ur5e", "dual_arm", "sea_planar_2r")


def main() -> int:
    """Run all, print tables; returns exit code 1 if a promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bag", nargs="?", type=Path)
    parser.add_argument("--robot", default="panda")
    parser.add_argument("--runs", type=int, default=20, help="of each simulated robot")
    parser.add_argument("--duration", type=float, default=600.0, help="s, of the long recording at 1 kHz")
    options = parser.parse_args()
    kept = True
    if options.bag:
        robot = load_robot(options.robot)
        show_peers(robot, read_recording(options.bag, robot))
    for name in ROBOTS:
        for side in ("joint", "motor"):
            kept &= known_truth(load_robot(name), side, options.runs)
    return 0 if long_recording(options.duration) and kept else 1


def show_peers(robot: Robot, source: Recording) -> None:
    """Print the RMS residual of each joint on the last 30 %, by this library and by others."""
    training, validation = source.split(0.3)
    table = Table("RMS residual on the last 30 %, N m", ("", *robot.joint_names, "s"))
    start = time.perf_counter()
    found = fit(robot, training, validation)
    took = time.perf_counter() - start
    assert found.validation is not None
    table.add("file", *(f"{x:.3f}" for x in found.validation.before), "")
    table.add("eom_dynamics, possible inertias", *(f"{x:.3f}" for x in found.validation.after), f"{took:.1f}")
    for cutoff in (found.filter.cutoff, 5.0):
        for measured in (True, False) if source.qd is not None else (False,):
            same = replace(found, filter=replace(found.filter, cutoff=cutoff, measured_velocity=measured))
            start = time.perf_counter()
            rms = pinocchio_least_squares(robot, same, training, validation)
            what = "measured velocity" if measured else "differences"
            name = f"Pinocchio and NumPy least squares, {cutoff:.1f} Hz, {what}"
            table.add(name, *(f"{x:.3f}" for x in rms), f"{time.perf_counter() - start:.1f}")
    CONSOLE.print(_plain(table))


def pinocchio_least_squares(robot: Robot, found: Fit, training: Recording, validation: Recording) -> Array:
    """RMS residual (n,) of weighted least squares by Pinocchio's regressor, filtered as for the fit."""
    model = pinocchio_model(robot)
    data = model.createData()
    n = robot.n

    def rows(samples: Samples) -> Array:
        Y = np.array(
            [
                pin.computeJointTorqueRegressor(model, data, *state).copy()
                for state in zip(samples.q, samples.qd, samples.qdd, strict=True)
            ]
        )
        own = [samples.bases[name][..., np.newaxis] * np.eye(n) for name in ("viscous", "coulomb", "offset")]
        return np.concatenate([Y, *own], axis=-1)

    (train,), (judge,) = found.prepare(training, decimate=True), found.prepare(validation)
    Y, tau = rows(train), train.tau
    weights = np.ones(n)
    for _ in range(5):
        A, b = (Y * weights[:, np.newaxis])[train.used], (tau * weights)[train.used]
        x = np.linalg.lstsq(A, b, rcond=1e-8)[0]
        residual = np.where(train.used, Y @ x - tau, 0.0)
        weights = 1 / np.sqrt(np.sum(residual**2, axis=0) / train.used.sum(axis=0))
    return np.asarray(np.sqrt(np.mean((rows(judge) @ x - judge.tau) ** 2, axis=0)))


def known_truth(robot: Robot, side: str, runs: int) -> bool:
    """Print how far parameters are from the truth in runs with other noise; returns whether promises are kept."""
    true = true_robot(robot, side)
    beta = np.concatenate([inertial_parameters(joint) for joint in true.joints])
    inside, within, friction, rotors = [], [], [], []
    for seed in range(runs):
        found = fit(robot, recording(robot, true, side, seed, rate=500.0, duration=60.0), options=Options(side=side))
        count = found.regressor.inertial
        told = np.isfinite(found.base_deviations[:count])
        z = np.abs(found.estimate.x[:count] - found.regressor.base(beta))[told] / found.base_deviations[:count][told]
        inside.append(np.mean(z < 3))
        within.append(np.all(z < 3))
        laws = [j.friction_law if side == "joint" else j.actuator.friction for j in true.independent_joints]
        for name in ("viscous", "coulomb"):
            friction.append(np.abs(found.terms[name] / [float(getattr(law, name)) for law in laws] - 1))
        if side == "motor":
            seen = found.term_told["rotor_inertia"]
            rotors.append(np.abs(found.terms["rotor_inertia"] / true.rotor_inertia - 1)[seen])
    figures = {
        "base parameters within 3 standard deviations": f"{100 * np.mean(inside):.1f} %",
        "runs with all of them within": f"{100 * np.mean(within):.0f} %",
        "friction, largest error": f"{100 * np.max(friction):.2f} %",
    }
    if rotors:
        figures["rotors that are told, largest error"] = f"{100 * np.max(rotors):.2f} %"
    CONSOLE.print(f"{robot.name}, {side} side, {runs} runs:", ", ".join(f"{k} {v}" for k, v in figures.items()))
    return bool(np.mean(inside) >= 0.95 and np.max(friction) < 0.03 and (not rotors or np.max(rotors) < 0.02))


def long_recording(duration: float) -> bool:
    """Time the identification of a long recording of seven joints at 1 kHz; returns whether it is fast enough."""
    robot = load_robot("panda")
    source = recording(robot, true_robot(robot), rate=1000.0, duration=duration, velocity=True)
    wall, cpu = time.perf_counter(), time.process_time()
    fit(robot, *source.split(0.3))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    CONSOLE.print(f"{duration:g} s at 1 kHz, 7 joints: {wall:.1f} s, {cpu:.1f} s of processor time, peak {peak:.0f} MB")
    return cpu < 60 and peak < 2048


def _plain(table: Table) -> str:
    from eom_dynamics.tools.text_tables import columns

    return "\n".join([table.title, *columns([table.columns, *table.rows], right_from=1)])


if __name__ == "__main__":
    sys.exit(main())
