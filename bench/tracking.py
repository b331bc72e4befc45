# SPDX-License-Identifier: Apache-2.0
"""Tracking errors of the packaged arms on the paper's motion by feedforward, gain and model error.

``python bench/tracking.py`` simulates every packaged arm with all gains and signs of the model errors and writes the
tables to docs/elastic_joints.md; ``--quick`` takes a tenth of a second of motion and writes nothing.
"""

from __future__ import annotations

import argparse
import time
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
from report import Table, write_between_marks

from eom_dynamics import load_robot, packaged_robots
from eom_dynamics.simulation import Comparison, compare_feedforward
from eom_dynamics.tools.benchmark.machine import machine
from eom_dynamics.tools.pages.numbers import NOTHING
from eom_dynamics.tools.pages.units import milli, position_units, together
from eom_dynamics.trajectory import paper_motion

PAGE = Path(__file__).parents[1] / "docs" / "elastic_joints.md"

GAINS = (10.0, 20.0, 32.0, 50.0, 70.0, 100.0)
STIFFNESS_ERROR, MASS_ERROR = 0.10, 0.05
SIGNS = ((1, 1), (-1, -1), (1, -1), (-1, 1))

# Much smaller than the smallest error in the tables.
TOLERANCE = 1e-8


def main() -> None:
    """Simulate and write."""
    parser = argparse.ArgumentParser(prog="tracking", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="0.1 s of motion; writes no document")
    duration = 0.1 if parser.parse_args().quick else 2.0
    start = time.perf_counter()
    tables = [_table(name, duration) for name in packaged_robots()]
    facts = machine(["numpy", "scipy"]) | {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "motion": f"{duration:g} s of the paper's",
        "took": f"{(time.perf_counter() - start) / 60:.0f} minutes",
    }
    described = "\n".join(["| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in facts.items())])
    if duration == 2.0:
        write_between_marks(PAGE, "closed_loop", "\n\n".join([*map(_markdown, tables), described]))


def _table(name: str, duration: float) -> Table:
    """Table of one arm, a row for each gain, a column for each pair of signs."""
    robot = load_robot(name)
    columns = [f"springs {s * STIFFNESS_ERROR:+.0%}, masses {m * MASS_ERROR:+.0%}" for s, m in SIGNS]
    table = Table(f"{robot.name}, {together(milli(position_units(robot)))}", ["PD [rad/s]", *columns])
    compared = []
    for stiffness, mass in SIGNS:
        compared.append(
            compare_feedforward(
                robot,
                paper_motion(robot.n),
                np.linspace(0.0, duration, round(500 * duration) + 1),
                GAINS,
                stiffness_error=stiffness * STIFFNESS_ERROR,
                mass_error=mass * MASS_ERROR,
                tolerance=TOLERANCE,
            )
        )
        print(f"{name} {stiffness:+d} {mass:+d}: {compared[-1].rms.tolist()}", flush=True)
    for k, gain in enumerate(GAINS):
        table.add(f"{gain:g}", *(_cell(comparison, k) for comparison in compared))
    return table


def _cell(comparison: Comparison, gain: int) -> str:
    """RMS errors without feedforward, with rigid and with flatness feedforward, and the ratio of the last two.

    A dash stands for a simulation that ends early because a tension-only spring goes slack.
    """
    none, rigid, flatness = comparison.rms[gain]
    shown = " / ".join(NOTHING if np.isnan(value) else f"{1e3 * value:.3g}" for value in (none, rigid, flatness))
    return f"{shown} ({rigid / flatness:.2g} ×)"


def _markdown(table: Table) -> str:
    head = f"| {' | '.join(table.columns)} |"
    rows = [f"| {' | '.join(row)} |" for row in table.rows]
    return "\n".join([f"**{table.title}**", "", head, f"|---|{'---:|' * (len(table.columns) - 1)}", *rows])


if __name__ == "__main__":
    main()
