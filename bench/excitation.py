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
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from excited_arms import limits
from report import CONSOLE, Bar, Section, Table
from settings import QUICK, Settings

import eom_dynamics as eom
from eom_dynamics.arrays import Array
from eom_dynamics.identification import Excitation
from eom_dynamics.trajectory import Fourier
from eom_dynamics.trajectory.feedforward import trajectory_feedforward

ROBOTS = ("iiwa", "panda", "ur5e", "dual_arm", "sea_planar_2r")

GAIN, LONGEST = 2.0, 120.0
"""Factor between the condition numbers, and processor time, s, for arms of seven joints."""

_JUDGED = ("iiwa", "panda")

_SAMPLES = 500

# Rate of the check by the trajectory service, Hz.
_RATE = 5000.0

_SCALINGS = ("rows in N m", "columns scaled", "rows over limits", "both")


def run(settings: Settings) -> Section:
    """Optimise, and compare with random motions."""
    if settings is QUICK:
        return compare(("sea_planar_2r",), random=100, seeds=(0,))
    return compare(ROBOTS, random=1000, seeds=(0,))


def compare(robots: Sequence[str], *, random: int, seeds: Sequence[int]) -> Section:
    """Compare optimal motions of robots, one by each seed, with random ones."""
    section = Section("excitation", "Optimal excitation")
    table = Table(
        f"Condition number of the base regressor: best of {random:,} random motions, optimal one, and their ratio",
        ("robot", "parameters", *_SCALINGS, "largest share of a limit", "time"),
    )
    ratios, times, shares, kept = {}, [], [], True
    # The ur5e twice: by default, noise is in proportion to the limits of effort, 150 and 28 N m there.
    cases = [(name, None) for name in robots] + [("ur5e", 1.0)] * ("ur5e" in robots)
    for name, noise in cases:
        task = Excitation(eom.load_robot(name), limits=limits(eom.load_robot(name)), noise=noise)
        draw = np.random.default_rng(12345)
        least = np.min([conditions(task, task.trajectory(task.random(draw))) for _ in range(random)], axis=0)
        for seed in seeds:
            start = time.process_time()
            found = task.optimize(seed=seed)
            took = time.process_time() - start
            # The check of another program: by the service of trajectories, between the samples of the optimiser.
            service = trajectory_feedforward(task.arm, found.trajectory, [0.0], rate=_RATE).verdict
            share = max(peak.ratio for peak in service.peaks if np.isfinite(peak.limit))
            own = conditions(task, found.trajectory)
            pairs = zip(least, own, strict=True)
            table.add(
                name if noise is None else f"{name}, noise {noise:g} N m",
                str(len(task.model.columns)),
                *(f"{a:.3g}, {b:.3g}: {a / b:.2f}" for a, b in pairs),
                f"{share:.4f}",
                f"{took:.0f} s",
            )
            CONSOLE.print(table.rows[-1])
            kept &= service.ok
            shares.append(share)
            if name in _JUDGED:
                ratios[f"{name} {seed}"] = least[0] / own[0]
                times.append(took)
    section.tables.append(table)
    section.text.append(
        "10 s, 8 harmonics, 90 % of the limits, default settings. Random motions use as much of the limits as their "
        f"shape allows. Shares are those of the check by the service `trajectory_feedforward`, at {_RATE:g} Hz. Times "
        "are of the processor, of the optimisation alone."
    )
    if ratios:
        section.bars.append(
            Bar(
                f"excite, 7 joints: condition number {GAIN:g} times lower than the best of {random:,} random motions",
                ", ".join(f"{x:.2f} ({name.split()[0]})" for name, x in ratios.items()),
                min(ratios.values()) >= GAIN,
            )
        )
        section.bars.append(
            Bar(f"excite, 7 joints: in {LONGEST:g} s", f"{max(times):.0f} s of the processor", max(times) < LONGEST)
        )
    section.bars.append(
        Bar("excite: all limits kept, by the check of trajectories", f"{max(shares):.2%} of a limit", kept)
    )
    return section


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
    """Compare, and print."""
    parser = argparse.ArgumentParser(prog=Path(sys.argv[0]).name, description=__doc__)
    parser.add_argument("--robots", nargs="+", default=ROBOTS)
    parser.add_argument("--random", type=int, default=1000)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    options = parser.parse_args()
    compare(options.robots, random=options.random, seeds=options.seeds).show()


if __name__ == "__main__":
    main()
