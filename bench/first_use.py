# SPDX-License-Identifier: Apache-2.0
"""Time from the start of a process to the first result, with an empty cache and from the cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from compiled import compile_seconds
from report import Bar, Section, Table, seconds
from settings import Settings

from eom_dynamics import load_robot
from eom_dynamics.codegen.emit_c import c_source
from eom_dynamics.codegen.programs import PROGRAMS

_STEPS = {
    "imports": "importing NumPy and `eom_dynamics`",
    "robot": "`load_robot`",
    "dynamics": "`Dynamics`: trace, emit, compile, load",
    "result": "first result",
}

# Steps of a process up to its first result; prints the seconds of each.
_CHILD = """
import json
import time

at = [time.perf_counter()]

import numpy as np

import eom_dynamics as eom

at.append(time.perf_counter())
robot = eom.load_robot("iiwa")
at.append(time.perf_counter())
dynamics = eom.Dynamics(robot)
at.append(time.perf_counter())
dynamics.inverse_dynamics(*np.full((5, 7), 0.5))
at.append(time.perf_counter())
print(json.dumps(np.diff(at).tolist()))
"""


def run(settings: Settings) -> Section:
    """Start processes alternately with an empty cache and with one that another process has filled."""
    section = Section("first_use", "First use")
    empty, full = [], []
    with tempfile.TemporaryDirectory(prefix="eom_dynamics_bench_") as folder:
        filled = Path(folder) / "filled"
        _fresh_process(filled)
        for k in range(settings.fresh_processes):
            empty.append(_fresh_process(Path(folder) / str(k)))
            full.append(_fresh_process(filled))
    table = Table("iiwa, fresh processes: medians", ("step", "empty cache", "from the cache"))
    for step, what in _STEPS.items():
        table.add(what, *(seconds(float(np.median([x[step] for x in runs]))) for runs in (empty, full)))
    totals = [[sum(x.values()) - x["imports"] for x in runs] for runs in (empty, full)]
    cold, warm = (float(np.median(total)) for total in totals)
    table.add("all but imports", seconds(cold), seconds(warm))
    table.add("middle half of that", *(" – ".join(map(seconds, np.quantile(total, [0.25, 0.75]))) for total in totals))
    section.tables = [table, _parts(settings)]
    section.bars = [
        Bar("first use of a 7-joint robot to the first result in at most 2 s", seconds(cold), cold <= 2),
        Bar("from the cache in at most 50 ms, imports apart", seconds(warm), warm <= 0.05),
    ]
    return section


def _parts(settings: Settings) -> Table:
    robot = load_robot("iiwa")
    times: dict[str, list[float]] = {"trace": [], "emit C": [], "compile the kernel": []}
    for _ in range(settings.fresh_processes):
        start = time.perf_counter()
        program = PROGRAMS["inverse_dynamics"](robot)
        traced = time.perf_counter()
        source = c_source(program)
        times["trace"].append(traced - start)
        times["emit C"].append(time.perf_counter() - traced)
        times["compile the kernel"].append(compile_seconds(source))
    table = Table("parts of it, in a warm process", ("part", "median"))
    for name, values in times.items():
        table.add(name, seconds(float(np.median(values))))
    return table


def _fresh_process(cache: Path) -> dict[str, float]:
    environment = {**os.environ, "EOM_DYNAMICS_CACHE": str(cache)}
    child = subprocess.run([sys.executable, "-c", _CHILD], env=environment, check=True, capture_output=True, text=True)
    return dict(zip(_STEPS, json.loads(child.stdout), strict=True))
