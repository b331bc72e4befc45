# SPDX-License-Identifier: Apache-2.0
"""Closed circle over all four pairs of signs of model errors: tracking error before and after identification.

``python bench/closed_circle.py`` simulates arms whose stiffness and masses differ from their files by +-20 %, and whose
motors have more friction; excites, records with noise of sensors, identifies, and compares tracking errors of the links
on another motion, at stiff gains. Without ROS: ``eom_dynamics demo --identify`` does the same with it. Exit code 1 if
the error falls less than five times.
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np
from report import CONSOLE, Table

from eom_dynamics import load_robot
from eom_dynamics.tools.demo.circle.result import close_circle, simulated
from eom_dynamics.tools.demo.circle.summary import LEAST_GAIN, told
from eom_dynamics.tools.demo.circle.task import Task, plan

ROBOTS = ("sea_planar_2r", "iiwa")


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="closed_circle", description=__doc__)
    parser.add_argument("--robot", action="append", help=f"default: {' and '.join(ROBOTS)}")
    parser.add_argument("--error", type=float, default=0.2)
    parser.add_argument("--rate", type=float, default=500.0)
    options = parser.parse_args()
    columns = ["robot", "stiffness", "masses", "RMS before [mrad]", "RMS after [mrad]", "factor"]
    table, least = Table("tracking errors of the links", columns), np.inf
    _print(columns)
    for name in options.robot or ROBOTS:
        motions = plan(load_robot(name))
        for signs in product((1, -1), repeat=2):
            stiffness, mass = (sign * options.error for sign in signs)
            task = Task(motions, stiffness, mass, options.rate)
            result = close_circle(task, simulated(task))
            rms = [1e3 * float(np.sqrt(np.mean(each.error**2))) for each in (result.before, result.after)]
            factor = f"{result.gain:.1f}"
            table.add(name, f"{stiffness:+.0%}", f"{mass:+.0%}", f"{rms[0]:.3f}", f"{rms[1]:.4f}", factor)
            _print([*table.rows[-1], told(result)])
            least = min(least, result.gain)
    CONSOLE.print(f"least factor: {least:.1f}", markup=False)
    return 0 if least >= LEAST_GAIN else 1


def _print(cells: list[str]) -> None:
    CONSOLE.print("".join(f"{cell:<20}" for cell in cells), markup=False, soft_wrap=True)


if __name__ == "__main__":
    raise SystemExit(main())
