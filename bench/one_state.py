# SPDX-License-Identifier: Apache-2.0
"""One state of a robot, called from Python: tau, taud and taudd, by the library and its peers."""

from __future__ import annotations

import numpy as np
from pinocchio_peer import PinocchioPeer
from random_states import RandomStates
from report import Bar, Section, Table, error, seconds
from settings import Settings
from timing import interleaved
from ways import Way, closed_form, own_backends, pinocchio_rnea

from eom_dynamics import load_robot

OURS = "`Dynamics.inverse_dynamics`"
RNEA = "Pinocchio: `rnea`"
DIFFERENCES = "Pinocchio: `computeRNEADerivatives`, taudd by differences over 2 points"

# Allowed errors, of exact methods and of differences.
_ROUNDING, _TRUNCATION = 1e-11, 1e-2


def run(settings: Settings) -> Section:
    """Compare results with the closed form, then measure times."""
    section = Section("one_state", "One state, called from Python")
    robot = load_robot(settings.robot)
    states = RandomStates(robot, 64)
    each = states.each
    stacked = [(np.array(state),) for state in each]
    ours = own_backends(robot, states)
    pinocchio = PinocchioPeer(robot, states)
    ways = {
        OURS: ours["native"],
        RNEA: pinocchio_rnea(robot, states),
        "Pinocchio: `computeRNEADerivatives`": Way(pinocchio.tau_taud, [state[:4] for state in each]),
        DIFFERENCES: Way(pinocchio.with_differences(2), stacked),
        "the same over 4 points": Way(pinocchio.with_differences(4), stacked),
        '`Dynamics(robot, backend="numpy")`': ours["numpy"],
        "closed form, NumPy": closed_form(robot, states),
    }
    errors = {name: way.errors(states) for name, way in ways.items()}
    for name, found in errors.items():
        allowed = _TRUNCATION if "differences" in name or "points" in name else _ROUNDING
        assert max(found) < allowed, f"{name} is off by {max(found)}"

    times = interleaved({name: way.task for name, way in ways.items()}, settings.rounds)

    table = Table(
        f"{robot.name}, one state, called from Python",
        ("way", "gives", "median", "middle half", "× rnea", "× ours", "error of tau, taud, taudd"),
    )
    for name, found in errors.items():
        low, high = times.quartiles(name)
        table.add(
            name,
            ("tau", "tau, taud", "all three")[len(found) - 1],
            seconds(times.median(name)),
            f"{seconds(low)} – {seconds(high)}",
            f"{times.ratio(name, RNEA):.2f}",
            f"{times.ratio(name, OURS):.1f}",
            ", ".join(map(error, found)),
        )
    section.tables = [table]
    section.text += [
        "Errors are against the closed form, relative to the largest effort of all states. Pinocchio's differences "
        "are central, along the motion of the state, with the step that minimises the error of "
        f"taudd: {seconds(pinocchio.steps[2])} for 2 points, {seconds(pinocchio.steps[4])} for 4; "
        f"with a step of 1 ms, the period of many controllers, the errors are {error(pinocchio.error(1e-3, 2))} and "
        f"{error(pinocchio.error(1e-3, 4))}."
    ]
    ratio, faster = times.ratio(OURS, RNEA), times.ratio(DIFFERENCES, OURS)
    section.bars = [
        Bar("all three orders in at most 1.5 × Pinocchio's `rnea` (tau only)", f"{ratio:.2f} ×", ratio <= 1.5),
        Bar("at least 15 × faster than Pinocchio with differences for taudd", f"{faster:.1f} ×", faster >= 15),
        Bar(
            "error of taudd at most 1e-10",
            f"{error(errors[OURS][2])}; of the differences {error(errors[DIFFERENCES][2])}",
            errors[OURS][2] <= 1e-10,
        ),
    ]
    return section
