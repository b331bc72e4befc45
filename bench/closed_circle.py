# SPDX-License-Identifier: Apache-2.0
"""Closed circle over all four pairs of signs of model errors: tracking error before and after identification.

Arms whose stiffness and masses differ from their files by 20 %, and whose motors have more friction, are excited,
recorded with noise of sensors, identified, and track another motion at stiff gains. Without ROS:
``python -m closing_the_loop`` does the same with it.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from report import CONSOLE, Bar, Section, Table
from settings import QUICK, Settings

from closing_the_loop.experiment import IdentificationTask, close_circle, plan, simulated
from closing_the_loop.results import LEAST_GAIN, within_deviations
from eom_dynamics import load_robot

ROBOTS = ("sea_planar_2r", "iiwa")

ERROR, RATE = 0.2, 500.0
"""Relative error of stiffness and masses, and rate of setpoints and readings, Hz."""


def run(settings: Settings) -> Section:
    """Close the circle for each pair of signs."""
    table = Table(
        "RMS error of the links, mrad",
        ("robot, springs, masses", "before", "after", "factor", "numbers within 3 s"),
    )
    least = np.inf
    for name in ROBOTS[:1] if settings is QUICK else ROBOTS:
        motions = plan(load_robot(name))
        for signs in product((1, -1), repeat=2):
            stiffness, mass = (sign * ERROR for sign in signs)
            task = IdentificationTask(motions, stiffness, mass, RATE)
            result = close_circle(task, simulated(task))
            rms = [1e3 * float(np.sqrt(np.mean(each.error**2))) for each in (result.before, result.after)]
            table.add(
                f"{name}, {stiffness:+.0%}, {mass:+.0%}",
                f"{rms[0]:.3g}",
                f"{rms[1]:.2g}",
                f"{result.gain:.0f}",
                within_deviations(result).partition(" identified")[0],
            )
            CONSOLE.print(table.rows[-1])
            least = min(least, result.gain)
    return Section(
        "closed_circle",
        "Closed circle of identification",
        [f"{RATE:g} Hz, on a motion that was not identified from. Encoder noise of 0.01 mrad is part of the error."],
        [table],
        [
            Bar(
                f"closed circle: error of the links at stiff gains falls {LEAST_GAIN:g} times",
                f"at least {least:.0f} times",
                least >= LEAST_GAIN,
            )
        ],
    )
