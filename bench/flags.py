# SPDX-License-Identifier: Apache-2.0
"""Effect of compiler flags on the kernel."""

from __future__ import annotations

import numpy as np
from compiled import CompiledProgram
from report import Section, Table, seconds
from settings import Settings

from eom_dynamics import load_robot
from eom_dynamics.codegen.compiler import FLAGS
from eom_dynamics.codegen.programs import PROGRAMS
from eom_dynamics.tools.benchmark.states import RandomStates
from eom_dynamics.tools.benchmark.timing import Task, interleaved

_STATES = 64
_BATCH = 4_096
_ROUNDING = 1e-11

_AS_IT_IS = "as the library compiles"
_CHANGES = {
    _AS_IT_IS: lambda flags: flags,
    "-O1": lambda flags: [flag.replace("-O2", "-O1") for flag in flags],
    "-O3": lambda flags: [flag.replace("-O2", "-O3") for flag in flags],
    "with vectorized scalar code": lambda flags: [flag for flag in flags if "slp" not in flag],
    "-ffp-contract=off": lambda flags: [flag.replace("contract=fast", "contract=off") for flag in flags],
    "-fno-schedule-insns2": lambda flags: [*flags, "-fno-schedule-insns2"],
    "-fschedule-insns": lambda flags: [*flags, "-fschedule-insns"],
}


def run(settings: Settings) -> Section:
    """Compare results with the closed form, then measure interleaved times."""
    section = Section("flags", "Compiler flags")
    robot = load_robot("iiwa")
    program = PROGRAMS["inverse_dynamics"](robot)
    states = RandomStates(robot, _STATES)
    none = [np.zeros((_BATCH, 6))] * 3
    many = [np.resize(x, (_BATCH, robot.n)) for x in states.states]
    compile_seconds, tasks = {}, dict[str, Task]()
    for name, change in _CHANGES.items():
        compiled = CompiledProgram(program, change(list(FLAGS)))
        compile_seconds[name] = compiled.compile_seconds
        batch, results = compiled.batch([*many, *none])
        batch.run()
        off = max(states.errors([x[:_STATES] for x in results]))
        assert off < _ROUNDING, f"{name} is off by {off}"
        tasks[f"one {name}"] = compiled.state_loop([*states.states, *none])
        tasks[f"batch {name}"] = batch
    times = interleaved(tasks, settings.rounds)
    table = Table(
        f"iiwa, kernel of {program.operations:,} operations",
        ("flags", "compile", "one state", "in a batch, 1 core", "one state, × first", "batch, × first"),
    )
    for name in _CHANGES:
        table.add(
            name,
            seconds(compile_seconds[name]),
            *(seconds(times.median(f"{what} {name}")) for what in ("one", "batch")),
            *(f"{times.ratio(f'{what} {name}', f'{what} {_AS_IT_IS}'):.2f}" for what in ("one", "batch")),
        )
    section.tables = [table]
    return section
