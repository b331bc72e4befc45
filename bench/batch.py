# SPDX-License-Identifier: Apache-2.0
"""Batches of states of the iiwa: complete calls, the arithmetic alone, and peers."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pinocchio as pin
from casadi_peer import GeneratedC, mapped, recursion_function
from compiled import StraightLine
from report import Bar, Section, Table, seconds
from settings import BATCH, Settings

from eom_dynamics import Dynamics, Robot, load_robot
from eom_dynamics.codegen.program import Program, trace
from eom_dynamics.recursion import inverse_dynamics, link_tree
from eom_dynamics.states import EFFORT_NAMES, STATE_NAMES
from eom_dynamics.tools.benchmark.pinocchio_model import pinocchio_model
from eom_dynamics.tools.benchmark.states import RandomStates, one_by_one
from eom_dynamics.tools.benchmark.timing import TimedTask, interleaved

OURS = "`Dynamics.inverse_dynamics`, new arrays"
OURS_OUT = "`Dynamics.inverse_dynamics`, `out=`"
ALONE = "the arithmetic alone"
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
    alone = StraightLine(_program(robot), states)
    generated = GeneratedC(recursion_function(robot))
    c_map, c_out = mapped(generated.function, states, _CORES)
    c_map_one, _ = mapped(generated.function, states, 1)
    machine_map, machine_out = mapped(recursion_function(robot), [x[:_FEW] for x in states], _CORES)
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
        (OURS, one): _on_one_core(TimedTask(lambda: dynamics.inverse_dynamics(*states), BATCH)),
        (OURS_OUT, one): _on_one_core(TimedTask(lambda: dynamics.inverse_dynamics(*states, out=out), BATCH)),
        (ALONE, both): _split(alone),
        (ALONE, one): alone.task(0, alone.blocks),
        (RNEA, one): one_by_one(pin.rnea, rows),
        ("Pinocchio: `rneaInParallel`, tau only", both): TimedTask(parallel_rnea, BATCH),
        ("CasADi's C of the recursion, `map`", both): c_map,
        ("CasADi's C of the recursion, `map`", one): c_map_one,
        ("CasADi's machine on the recursion, `map`", both): machine_map,
        ("NumPy's sines and cosines of the angles alone", one): TimedTask(
            lambda: (np.sin(states[0]), np.cos(states[0])), BATCH
        ),
    }
    for task in tasks.values():
        task.run()
    checks: dict[str, list[np.ndarray]] = {
        OURS: list(dynamics.inverse_dynamics(*states)),
        OURS_OUT: out,
        ALONE: alone.results(),
        "rneaInParallel": [tau.T],
        "CasADi's C": c_out,
        "CasADi's machine": machine_out,
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
        "All compute tau, taud and taudd unless stated otherwise. The arithmetic alone is the same C code on one or "
        "two threads, with given sines and cosines, without a wrench, and with all data in memory in the order and the "
        "vectors in which it is read; the calls read and write plain arrays (N, n), check for finite numbers, and "
        f"compute sines and cosines. CasADi's machine and the `rnea` loop run on {_FEW:,} states.",
    ]
    faster = times.ratio(f"{RNEA} / {one}", f"{OURS} / {both}")
    plain, given = (times.ratio(f"{way} / {both}", f"{ALONE} / {both}") for way in (OURS, OURS_OUT))
    single = times.ratio(f"{OURS_OUT} / {one}", f"{ALONE} / {one}")
    section.bars = [
        Bar("on 2 cores at least 20 × more states a second than a loop over `rnea`", f"{faster:.1f} ×", faster >= 20),
        Bar(
            "within 2 × of the arithmetic alone",
            f"on 2 cores each: {given:.2f} × into given arrays, {plain:.2f} × into new ones; "
            f"on 1 core each: {single:.2f} × into given arrays",
            given <= 2,
        ),
    ]
    return section


def _program(robot: Robot) -> Program:
    tree = link_tree(robot)
    return trace(
        "without_wrench",
        dict.fromkeys(STATE_NAMES, robot.n),
        lambda x: dict(zip(EFFORT_NAMES, inverse_dynamics(tree, [x[name] for name in STATE_NAMES]), strict=True)),
    )


def _on_one_core(task: TimedTask) -> TimedTask:
    def run() -> None:
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(cores)})
        try:
            task.run()
        finally:
            os.sched_setaffinity(0, cores)

    return TimedTask(run, task.count)


def _split(alone: StraightLine) -> TimedTask:
    """The arithmetic on two threads, each with half of the blocks."""
    pool = ThreadPoolExecutor(_CORES)
    bounds = [alone.blocks * k // _CORES for k in range(_CORES + 1)]
    parts: list[Callable[[], object]] = [alone.task(bounds[k], bounds[k + 1]).run for k in range(_CORES)]
    return TimedTask(lambda: [part.result() for part in [pool.submit(part) for part in parts]], BATCH)
