# SPDX-License-Identifier: Apache-2.0
"""Simulate an arm with elastic joints on a trajectory under three kinds of feedforward, and compare the link errors.

The feedforwards: none, that of a rigid arm (tau), and that of differential flatness (tau, taud, taudd), each with the
same PD on the motors. Writes index.html, tracking.png and data.npz.
"""

from __future__ import annotations

import argparse
import json

from ...extras import require
from ..writing import check_folder
from .arguments import not_negative, number, path, positive
from .console import complain, progress_bars
from .robot_arguments import add_robot_arguments, load

SUMMARY = "simulate an arm on a trajectory, with and without feedforward, and show its link errors"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of the command."""
    add_robot_arguments(parser)
    parser.add_argument(
        "trajectory",
        metavar="TRAJECTORY",
        help="cosine, the example motion of the paper; or a .npz file with arrays t, q, qd, qdd, qddd, qdddd and "
        "optionally joint_names; or a .csv file with columns t, q.JOINT … qdddd.JOINT",
    )
    parser.add_argument("-o", "--output", metavar="DIR", type=path, required=True, help="folder for page and data")
    parser.add_argument(
        "--gains",
        metavar="W,…",
        type=_gains,
        default=[10.0, 20.0, 32.0, 50.0, 70.0, 100.0],
        help="natural frequencies of the motor PD, rad/s; 0: no feedback; default: 10,20,32,50,70,100",
    )
    for name, what, example in (("stiffness", "springs", "0.1: 10%% stiffer"), ("mass", "bodies", "0.05: 5%% heavier")):
        parser.add_argument(
            f"--{name}-error",
            metavar="X",
            type=number(lambda x: x > -1, "a number above -1"),
            default=0.0,
            help=f"relative error of the simulated {what} against the model, {example}; default: 0",
        )
    parser.add_argument(
        "--duration", metavar="S", type=positive, help="s; default: all of a file, 5 s of the example motion"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON instead of a table")


def run(options: argparse.Namespace) -> int:
    """Simulate, write and print; returns the exit code.

    It is 1 if no arm can be followed to the end, or if energy and work differ.

    Raises:
        EomDynamicsError: the robot or the trajectory cannot be loaded or simulated, or a library is missing.
        OSError: a file cannot be read, or the folder cannot be written.
    """
    require("simulate")
    robot = load(options)

    # After the check for the libraries that these import.
    from ...simulation import SimulationError, compare_feedforward
    from .. import provenance
    from ..simulate.results import write_results
    from ..simulate.summary import as_json, as_text, endings, failures
    from ..simulate.trajectory import read_trajectory

    motion, times = read_trajectory(options.trajectory, robot, options.duration)
    check_folder(options.output, force=True)
    with progress_bars("{task.completed:.2f} of {task.total:.2f} s") as bars:
        bar = bars.add_task(robot.name, total=times[-1] - times[0])
        try:
            comparison = compare_feedforward(
                robot,
                motion,
                times,
                options.gains,
                stiffness_error=options.stiffness_error,
                mass_error=options.mass_error,
                progress=lambda t: bars.update(bar, completed=t - times[0]),
            )
        except SimulationError as error:
            complain(options.program, str(error))
            return 1
    about = {
        "date": provenance.date(),
        "software": provenance.software(),
        "robot": f"{options.robot:.200}",
        "trajectory": options.trajectory,
        "springs and rotors": "example values in the packaged robots: their sources give none",
    }
    page = write_results(options.output, comparison, about)
    if options.json:
        print(json.dumps({**as_json(comparison), "page": str(page)}, indent=2))
    else:
        print(f"{as_text(comparison)}\n\npage: {page}")
    for ending in endings(comparison):
        complain(options.program, f"note: {ending}")
    failed = failures(comparison)
    for failure in failed:
        complain(options.program, f"failed: {failure}")
    return 1 if failed else 0


def _gains(text: str) -> list[float]:
    return sorted(map(not_negative, text.split(",")))
