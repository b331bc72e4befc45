# SPDX-License-Identifier: Apache-2.0
"""Time the inverse dynamics of a robot by every backend that works here, and Pinocchio's where it is installed.

Every result is first compared with the closed form. The comparison with more libraries, chains and orders is
``make bench`` in the sources.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from ..benchmark.machine import machine
from ..benchmark.states import RandomStates
from ..benchmark.timing import Task, interleaved
from ..benchmark.ways import closed_form, our_ways, pinocchio_rnea
from ..dynamics import Dynamics
from ..robot import Robot, load_robot, packaged_robots
from ..terminal import printable
from .tables import columns

SUMMARY = "time the inverse dynamics beside what else is installed"

_BATCH = 100_000

# Far above rounding, far below any mistake.
_TOLERANCE = 1e-9


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of the command."""
    parser.add_argument(
        "robot",
        metavar="ROBOT",
        nargs="?",
        default="iiwa",
        help=f"a packaged robot ({', '.join(packaged_robots())}) or a robot's file; default: %(default)s",
    )
    parser.add_argument("--rounds", type=_positive, default=20, help="samples of each; default: %(default)s")
    parser.add_argument("--json", action="store_true", help="print JSON; times in s")


def run(options: argparse.Namespace) -> int:
    """Time and print; returns the exit code, 1 if a result is not that of the closed form.

    Raises:
        RobotDescriptionError: the robot cannot be loaded.
    """
    robot = load_robot(options.robot)
    measured = measure(robot, options.rounds)
    print(json.dumps(measured, indent=2) if options.json else _text(robot, measured))
    return int(any(way["error"] > _TOLERANCE for way in measured["one_state"].values()))


def measure(robot: Robot, rounds: int) -> dict[str, Any]:
    """Seconds a state, one by one and in a batch, with quartiles; errors relative to the largest effort."""
    states = RandomStates(robot, 64)
    ways = our_ways(robot, states) | {"closed form": closed_form(robot, states)}
    if rnea := pinocchio_rnea(robot, states):
        ways["Pinocchio rnea, tau only"] = rnea
    errors = {name: max(way.errors(states)) for name, way in ways.items()}
    one = interleaved({name: way.task for name, way in ways.items()}, rounds)
    dynamics = Dynamics(robot)
    batch = [np.resize(x, (_BATCH, robot.n)) for x in states.states]
    many = interleaved({dynamics.backend: Task(lambda: dynamics.inverse_dynamics(*batch), _BATCH)}, max(rounds // 4, 3))
    return {
        "machine": machine(["numpy", "casadi", "pin"]),
        "one_state": {
            name: {"median": one.median(name), "quartiles": one.quartiles(name), "error": errors[name]} for name in ways
        },
        "batch": {"states": _BATCH, "backend": dynamics.backend, "median": many.median(dynamics.backend)},
    }


def _text(robot: Robot, measured: dict[str, Any]) -> str:
    rows = [("one state, from Python", "median", "middle half of the samples", "error")]
    for name, way in measured["one_state"].items():
        low, high = (x * 1e6 for x in way["quartiles"])
        rows.append((name, f"{way['median'] * 1e6:.2f} µs", f"{low:.2f} to {high:.2f} µs", f"{way['error']:.0e}"))
    batch = measured["batch"]
    return "\n".join(
        [
            f"{printable(robot.name)}: tau, taud, taudd",
            "",
            *columns(rows, right_from=1),
            "",
            f"batch of {batch['states']:,}: {batch['median'] * 1e6:.3f} µs a state ({batch['backend']}), "
            f"{1 / batch['median'] / 1e6:.1f} million states a second",
            "",
            *(f"{key}: {value}" for key, value in measured["machine"].items()),
        ]
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive whole number, is {text!r}")
    return int(text)
