# SPDX-License-Identifier: Apache-2.0
"""Cost for different numbers of time derivatives."""

from __future__ import annotations

import numpy as np
from compiled import CompiledProgram
from report import Section, Table, seconds
from settings import Settings

from eom_dynamics import equations_of_motion, load_robot
from eom_dynamics.codegen.program import Program, trace
from eom_dynamics.recursion import LinkTree, inverse_dynamics, link_tree
from eom_dynamics.tools.benchmark.timing import Task, interleaved

_ORDERS = range(7)
_STATES = 64
_BATCH = 4_096
_ROUNDING = 1e-11


def run(settings: Settings) -> Section:
    """Compare results with the closed form, then measure interleaved times of all orders."""
    section = Section("orders", "Cost against the order")
    robot = load_robot("iiwa")
    tree = link_tree(robot)
    states = np.random.default_rng(0).uniform(-2, 2, (_ORDERS[-1] + 3, _BATCH, robot.n))
    programs, compile_seconds, tasks = {}, {}, {}
    for order in _ORDERS:
        given = [np.ascontiguousarray(x) for x in states[: order + 3]]
        programs[order] = _program(tree, order)
        compiled = CompiledProgram(programs[order])
        compile_seconds[order] = compiled.compile_seconds
        batch, results = compiled.batch(given)
        batch.run()
        desired = equations_of_motion(robot, *states[:-1, 0][: order + 2]).efforts(states[order + 2, 0])
        off = max(np.max(np.abs(a[0] - b)) / np.max(np.abs(b)) for a, b in zip(results, desired, strict=True))
        assert off < _ROUNDING, f"order {order} is off by {off}"
        tasks[f"one {order}"] = compiled.state_loop([x[:_STATES] for x in given])
        tasks[f"batch {order}"] = Task(batch.run, batch.count)
    times = interleaved(tasks, settings.rounds)
    table = Table(
        "iiwa, tau and its derivatives up to an order",
        ("order", "operations", "compile", "one state", "in a batch, 1 core", "one state, × order 0"),
    )
    for order in _ORDERS:
        table.add(
            str(order),
            f"{programs[order].operations:,}",
            seconds(compile_seconds[order]),
            seconds(times.median(f"one {order}")),
            seconds(times.median(f"batch {order}")),
            f"{times.ratio(f'one {order}', 'one 0'):.1f}",
        )
    section.tables = [table]
    section.text = ["Without a tool wrench. One state: a loop in C. Batch: one call, on one core."]
    return section


def _program(tree: LinkTree, order: int) -> Program:
    names = [f"x{k}" for k in range(order + 3)]
    return trace(
        f"order_{order}",
        dict.fromkeys(names, len(tree.links)),
        lambda x: {f"y{k}": effort for k, effort in enumerate(inverse_dynamics(tree, [x[name] for name in names]))},
    )
