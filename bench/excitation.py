# SPDX-License-Identifier: Apache-2.0
"""Compare optimal excitations with the best of many random ones within the same limits.

    python bench/excitation.py [--robots iiwa panda …] [--random 1000] [--seeds 0]

Condition numbers are those of the base regressor, by NumPy, at 500 samples of a period, in four scalings: columns in SI
units or of unit length, rows in N m or relative to the limits of effort. Random motions have the same period,
harmonics, ends at rest and limits, of which each uses as much as its shape allows; each condition number is compared
with that of the random motion which is the best by it.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import eom_dynamics as eom
from eom_dynamics.arrays import Array
from eom_dynamics.identification import Excitation
from eom_dynamics.tools.benchmark.machine import machine
from eom_dynamics.tools.text_tables import columns
from eom_dynamics.trajectory import Fourier
from eom_dynamics.trajectory.feedforward import trajectory_feedforward

_SAMPLES = 500

# Rate of the check by the trajectory service, Hz.
_RATE = 5000.0

_TURN = np.pi / 180


def _each(robot: eom.Robot, **limits: Any) -> dict[str, dict[str, float]]:
    """Limits of all joints: numbers, or lists with one for each."""
    shaped = {name: np.broadcast_to(values, robot.n) for name, values in limits.items()}
    return {joint: {name: float(x[k]) for name, x in shaped.items()} for k, joint in enumerate(robot.joint_names)}


def _limits(robot: eom.Robot) -> dict[str, dict[str, float]]:
    """Limits that the robots' files lack. Those of the iiwa 14: the manufacturer's data sheet; others are plausible."""
    if robot.name == "iiwa":
        position = _TURN * np.array([170, 120, 170, 120, 170, 120, 175])
        velocity = _TURN * np.array([85, 85, 100, 75, 130, 135, 135])
        effort = [320, 320, 176, 176, 110, 40, 40]
        return _each(
            robot, lower=-position, upper=position, velocity=velocity, acceleration=10, effort=effort, effort_rate=1500
        )
    if robot.name == "sea_planar_2r":
        return _each(robot, lower=-np.pi / 2, upper=np.pi / 2, velocity=4)
    if robot.name in ("ur5e", "dual_arm"):
        return _each(robot, acceleration=10, effort_rate=1500)
    return {}


def conditions(task: Excitation, motion: Fourier) -> Array:
    """Condition numbers (4,): SI units, columns scaled, and both with rows relative to the limits of effort."""
    t = np.arange(_SAMPLES) / _SAMPLES / motion.frequency
    q, qd, qdd = motion.derivatives(t, 2)
    Y = task.model.regressor(q, qd, qdd)[..., task.model.columns]
    found = []
    for rows in (Y, Y / task.model.noise[:, np.newaxis]):
        W = rows.reshape(-1, Y.shape[-1])
        found += [np.linalg.cond(W), np.linalg.cond(W / np.linalg.norm(W, axis=0))]
    return np.array(found)


def main() -> None:
    """Optimise, compare and print."""
    parser = argparse.ArgumentParser(prog="bench/excitation.py", description=__doc__)
    parser.add_argument("--robots", nargs="+", default=["iiwa", "panda", "ur5e", "dual_arm", "sea_planar_2r"])
    parser.add_argument("--random", type=int, default=1000)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--period", type=float, default=10.0)
    parser.add_argument("--harmonics", type=int, default=8)
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--condition-weight", type=float, default=2.0)
    options = parser.parse_args()
    print(machine(("numpy", "scipy")), flush=True)
    for name in options.robots:
        robot = eom.load_robot(name)
        task = Excitation(
            robot,
            period=options.period,
            harmonics=options.harmonics,
            limits=_limits(robot),
            condition_weight=options.condition_weight,
        )
        draw = np.random.default_rng(12345)
        motions = [task.trajectory(task.random(draw)) for _ in range(options.random)]
        by_random = np.array([conditions(task, motion) for motion in motions])
        least = np.min(by_random, axis=0)
        log_det = max(task.information(motion).log_det for motion in motions)
        rows = [
            ("", "SI units", "columns scaled", "rows relative", "both", "log det", "largest share", "time", "CPU"),
            (f"best of {options.random} random", *(f"{x:.4g}" for x in least), f"{log_det:.2f}", "", "", ""),
        ]
        for seed in options.seeds:
            began, cpu = time.perf_counter(), time.process_time()
            found = task.optimize(seed=seed, iterations=options.iterations)
            took, cpu = time.perf_counter() - began, time.process_time() - cpu
            service = trajectory_feedforward(task.arm, found.trajectory, [0.0], rate=_RATE).verdict
            share = max(peak.ratio for peak in service.peaks if np.isfinite(peak.limit))
            own = conditions(task, found.trajectory)
            last = (f"{found.information.log_det:.2f}", f"{share:.4f}", f"{took:.0f} s", f"{cpu:.0f} s")
            rows.append((f"optimised, seed {seed}", *(f"{x:.4g}" for x in own), *last))
            verdict = "ok" if service.ok else "FAILS"
            rows.append(("  random/optimised", *(f"{x:.2f}" for x in least / own), "", verdict, "", ""))
        print(f"\n{name}: {task.series.shape[0]} joints, {len(task.model.columns)} parameters", flush=True)
        print("\n".join(columns(rows, right_from=1)), flush=True)


if __name__ == "__main__":
    main()
