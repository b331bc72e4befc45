# SPDX-License-Identifier: Apache-2.0
"""Batches of states of the iiwa beside Pinocchio."""

from __future__ import annotations

import os

import numpy as np
import pinocchio as pin
from pinocchio_model import pinocchio_model
from random_states import RandomStates, one_by_one
from report import Bar, Section, Table, seconds
from settings import BATCH, Settings
from timing import TimedTask, interleaved

from eom_dynamics import Dynamics, load_robot
from eom_dynamics.states import EFFORT_NAMES

OURS = "`Dynamics.inverse_dynamics`, new arrays"
OURS_OUT = "`Dynamics.inverse_dynamics`, `out=`"
RNEA = "Pinocchio: `rnea` in a loop, tau only"

_CORES = 2

# Numbers of states for slow peers, and of different states, for which the closed form is computed.
_FEW = 2_000
_DIFFERENT = 500

_ROUNDING = 1e-11


def run(settings: Settings) -> Section:
    """Compare results with the closed form, then measure times."""
    section = Section("batch", f"A batch of {BATCH:,} states")
    robot = load_robot("iiwa")
    some = RandomStates(robot, _DIFFERENT)
    states = [np.resize(x, (BATCH, robot.n)) for x in some.states]
    dynamics = Dynamics(robot)
    out = [np.empty((BATCH, robot.n)) for _ in EFFORT_NAMES]
    model = pinocchio_model(robot)
    data = model.createData()
    pool = pin.ModelPool(model, _CORES)
    columns = [np.asfortranarray(x.T) for x in states[:3]]
    tau = np.empty((robot.n, BATCH), order="F")

    def parallel_rnea() -> object:
        pin.rneaInParallel(_CORES, pool, *columns, tau)
        return tau

    rows = [(model, data, *(x[i].copy() for x in states[:3])) for i in range(_FEW)]
    both, one = f"{_CORES} cores", "1 core"
    tasks = {
        (OURS, both): TimedTask(lambda: dynamics.inverse_dynamics(*states), BATCH),
        (OURS_OUT, both): TimedTask(lambda: dynamics.inverse_dynamics(*states, out=out), BATCH),
        (OURS, one): on_one_core(TimedTask(lambda: dynamics.inverse_dynamics(*states), BATCH)),
        (OURS_OUT, one): on_one_core(TimedTask(lambda: dynamics.inverse_dynamics(*states, out=out), BATCH)),
        (RNEA, one): one_by_one(pin.rnea, rows),
        ("Pinocchio: `rneaInParallel`, tau only", both): TimedTask(parallel_rnea, BATCH),
        ("NumPy's sines and cosines of the angles alone", one): TimedTask(
            lambda: (np.sin(states[0]), np.cos(states[0])), BATCH
        ),
    }
    for task in tasks.values():
        task.run()
    checks: dict[str, list[np.ndarray]] = {
        OURS: list(dynamics.inverse_dynamics(*states)),
        OURS_OUT: out,
        "rneaInParallel": [tau.T],
    }
    for name, results in checks.items():
        for result, effort in zip(results, some.efforts, strict=False):
            off = np.max(np.abs(result - np.resize(effort, result.shape))) / np.max(np.abs(effort))
            assert off < _ROUNDING, f"{name} is off by {off}"

    times = interleaved({" / ".join(key): task for key, task in tasks.items()}, settings.slow_rounds, at_least=0.02)
    table = Table(
        f"iiwa, {BATCH:,} states",
        ("way", "on", "median a state", "middle half", "million states a second", "states a second, × `rnea` loop"),
    )
    for way, cores in tasks:
        name = f"{way} / {cores}"
        low, high = times.quartiles(name)
        table.add(
            way,
            cores,
            seconds(times.median(name)),
            f"{seconds(low)} – {seconds(high)}",
            f"{1e-6 / times.median(name):.3g}",
            f"{times.ratio(f'{RNEA} / {one}', name):.3g}",
        )
    section.tables = [table]
    section.text = [
        f"All compute tau, taud and taudd unless stated otherwise. The `rnea` loop runs on {_FEW:,} states."
    ]
    faster = times.ratio(f"{RNEA} / {one}", f"{OURS} / {both}")
    section.bars = [
        Bar("on 2 cores at least 20 × more states a second than a loop over `rnea`", f"{faster:.1f} ×", faster >= 20)
    ]
    return section


def on_one_core(task: TimedTask) -> TimedTask:
    """The task on one core."""

    def run() -> None:
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(cores)})
        try:
            task.run()
        finally:
            os.sched_setaffinity(0, cores)

    return TimedTask(run, task.count)
