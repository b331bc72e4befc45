# SPDX-License-Identifier: Apache-2.0
"""Timing of one robot's inverse dynamics in all available backends, the closed form and Pinocchio."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...dynamics import Dynamics
from ...robot import Robot
from ...terminal import printable
from ..text_tables import columns
from .machine import machine
from .states import RandomStates
from .timing import TimedTask, interleaved
from .ways import closed_form, our_ways, pinocchio_rnea

TOLERANCE = 1e-9
"""Allowed error, relative to the largest effort: far above rounding, far below any mistake."""

_BATCH = 100_000


def benchmark(robot: Robot, rounds: int) -> dict[str, Any]:
    """Time one state per call, and a batch.

    Args:
        rounds: samples of each time.

    Returns:
        The results, ready for JSON: median and quartiles in s per state, errors relative to the largest effort, and the
        machine.
    """
    states = RandomStates(robot, 64)
    ways = our_ways(robot, states) | {"closed form": closed_form(robot, states)}
    if rnea := pinocchio_rnea(robot, states):
        ways["Pinocchio rnea, tau only"] = rnea
    errors = {name: max(way.errors(states)) for name, way in ways.items()}
    one = interleaved({name: way.task for name, way in ways.items()}, rounds)
    dynamics = Dynamics(robot)
    batch = [np.resize(x, (_BATCH, robot.n)) for x in states.states]
    many = interleaved(
        {dynamics.backend: TimedTask(lambda: dynamics.inverse_dynamics(*batch), _BATCH)}, max(rounds // 4, 3)
    )
    return {
        "machine": machine(["numpy", "casadi", "pin"]),
        "one_state": {
            name: {"median": one.median(name), "quartiles": one.quartiles(name), "error": errors[name]} for name in ways
        },
        "batch": {"states": _BATCH, "backend": dynamics.backend, "median": many.median(dynamics.backend)},
    }


def failures(results: dict[str, Any]) -> list[str]:
    """Return the implementations whose efforts differ from the closed form, one line each."""
    return [
        f"{name}: differs from the closed form by {way['error']:.0e}, tolerance {TOLERANCE:.0e}"
        for name, way in results["one_state"].items()
        if not way["error"] <= TOLERANCE
    ]


def as_text(robot: Robot, results: dict[str, Any]) -> str:
    """Return the results as a table."""
    rows = [("one state, from Python", "median", "quartiles", "error")]
    for name, way in results["one_state"].items():
        low, high = (x * 1e6 for x in way["quartiles"])
        rows.append((name, f"{way['median'] * 1e6:.2f} µs", f"{low:.2f} to {high:.2f} µs", f"{way['error']:.0e}"))
    batch = results["batch"]
    return "\n".join(
        [
            f"{printable(robot.name)}: tau, taud, taudd",
            "",
            *columns(rows, right_from=1),
            "",
            f"batch of {batch['states']:,}: {batch['median'] * 1e6:.3f} µs per state ({batch['backend']}), "
            f"{1 / batch['median'] / 1e6:.1f} million states per second",
            "",
            *(f"{key}: {value}" for key, value in results["machine"].items()),
        ]
    )
