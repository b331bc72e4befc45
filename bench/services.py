# SPDX-License-Identifier: Apache-2.0
"""What a planner waits for, and what the stream feels of it: three processes over DDS, with the node's own a fourth.

``python bench/services.py`` streams setpoints at 1 kHz while a planner asks for the full feedforward of whole
trajectories: with normal scheduling, with planner and planning node under SCHED_IDLE, and with node and player in real
time, where that is permitted. Windows of two seconds without calls, with a call a second, and with calls back to back
take turns, so that their ratios hold on a machine that is not quiet. It writes docs/services.md; ``--quick`` writes
nothing.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

import numpy as np
from report import CONSOLE, Bar, Section, Table, facts_markdown, seconds, write_between_marks

from eom_dynamics.states import STATE_NAMES
from eom_dynamics.tools.benchmark.machine import machine
from eom_dynamics.trajectory import paper_motion

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "services.md"
WINDOW = 2.0
RATE = 1000.0
PERCENTS = (50, 99, 100)
REALTIME_PRIORITY = 20

# What the planner does in windows that follow each other; planner.PAUSES says the same in seconds.
CALLS = ("no calls", "a call a second", "calls back to back")


class Scheduling(NamedTuple):
    """Priority of node and player under SCHED_FIFO, or 0; whether planner and planning node are under SCHED_IDLE."""

    priority: int = 0
    planners_idle: bool = False


def main() -> int:
    """Measure, and write the page; returns the exit code, 1 if a promise is not kept."""
    parser = argparse.ArgumentParser(prog="services", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="12 s each; writes no document")
    quick = parser.parse_args().quick
    load = os.getloadavg()[0]
    section = measured(6 if quick else 30)
    section.show()
    if not quick:
        facts = machine(["numpy"]) | {
            "load before the run": f"{load:.1f}",
            "date": datetime.now(timezone.utc).date().isoformat(),
        }
        write_between_marks(PAGE, "services", f"{section.markdown()}\n\n{facts_markdown(facts)}")
        CONSOLE.print(f"figures written to {PAGE}")
    return int(not all(bar.kept for bar in section.bars))


def measured(windows: int) -> Section:
    """Stream and call, with each scheduling; figures of all."""
    os.environ["ROS_DOMAIN_ID"] = str(random.SystemRandom().randrange(1, 102))
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    # Of windows, not of all setpoints: a single stall of the machine must not decide for either side.
    stream = Table("Round trip of a setpoint at 1 kHz, median of windows", ["", "median", "p99", "max", "windows"])
    whole = Table("A call: 200 waypoints, 10 s at 1 kHz, 7 joints, 6.8 MB", ["", "median", "p90", "max", "calls"])
    bars, lost = [], 0
    for name, scheduling in _schedulings().items():
        with tempfile.TemporaryDirectory() as folder:
            _record(Path(folder), windows, scheduling)
            with np.load(Path(folder) / "answers.npz") as answers, np.load(Path(folder) / "calls.npz") as planner:
                sent, trip = answers["sent"], answers["round_trip"]
                start, calls = float(planner["start"]), planner["calls"]
                lost += int(answers["lost_count"])
        window = np.floor((sent - start) / WINDOW).astype(int)
        each = [trip[(window == k) & np.isfinite(trip)] for k in range(windows)]
        took = calls[:, 1] - calls[:, 0]
        whole.add(name, *(seconds(np.percentile(took, p)) for p in (50, 90, 100)), f"{len(took)}")
        bars.append(
            Bar(f"{name}: a whole answer within 100 ms", seconds(float(np.median(took))), np.median(took) < 0.1)
        )
        quiet = math.inf
        for k, pace in enumerate(CALLS):
            values = np.array([np.percentile(x, PERCENTS) for x in each[k :: len(CALLS)]])
            median, p99, worst = np.median(values, axis=0)
            stream.add(f"{name}, {pace}", *map(seconds, (median, p99, worst)), f"{len(values)}")
            if k:
                promise = f"{name}: p99 of the stream with {pace} at most twice that without"
                bars.append(Bar(promise, f"{p99 / quiet:.2f} ×", p99 / quiet <= 2))
            else:
                quiet = p99
    bars.append(Bar("no setpoint lost", f"{lost}", lost == 0))
    return Section("services", "Planning services beside the stream", tables=[whole, stream], bars=bars)


def _schedulings() -> dict[str, Scheduling]:
    """Schedulings by name; real time only where it is permitted."""
    schedulings = {"normal": Scheduling(), "planners idle": Scheduling(planners_idle=True)}
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(REALTIME_PRIORITY))
        os.sched_setscheduler(0, *before)
    except PermissionError:
        CONSOLE.print(f"real time is not measured: it takes the limit rtprio of {REALTIME_PRIORITY}")
        return schedulings
    return schedulings | {"real time": Scheduling(REALTIME_PRIORITY)}


def _record(folder: Path, windows: int, scheduling: Scheduling) -> None:
    """Run node, player and planner; what the last two saw is in the folder."""
    motion = paper_motion(7)
    t = np.arange(round((windows + 3) * WINDOW * RATE)) / RATE
    np.savez(folder / "setpoints.npz", **dict(zip(STATE_NAMES, motion.derivatives(t), strict=True)))
    config = HERE.parent / "config" / "iiwa.yaml"
    arguments = ["--params-file", config, "-p", f"realtime_priority:={scheduling.priority}"]
    # The player counts every command.
    arguments += ["-p", "qos_overrides./feedforward.publisher.depth:=1000"]
    node = subprocess.Popen(
        [sys.executable, "-m", "eom_dynamics.ros.dynamics_node", "--ros-args", *arguments], cwd=folder
    )
    idle = ["chrt", "--idle", "0"] if scheduling.planners_idle else []
    planning = subprocess.Popen(
        [*idle, sys.executable, "-m", "eom_dynamics.ros.planning_node", "--ros-args", "--params-file", config],
        cwd=folder,
    )
    try:
        player = subprocess.Popen(
            [
                *(
                    sys.executable,
                    "-m",
                    "eom_dynamics.ros.player",
                    "setpoints.npz",
                    "answers.npz",
                    "--force",
                    "--timeout",
                    "30",
                ),
                *("--realtime-priority", str(scheduling.priority)),
            ],
            cwd=folder,
            stdout=subprocess.DEVNULL,
        )
        time.sleep(2.0)
        planner = subprocess.Popen(
            [*idle, sys.executable, HERE / "planner.py", "calls.npz", "--windows", str(WINDOW), str(windows)],
            cwd=folder,
        )
        assert planner.wait() == 0, "the planner failed"
        assert player.wait() == 0, "the player failed"
    finally:
        for process in (node, planning):
            process.terminate()
        for process in (node, planning):
            process.wait()


if __name__ == "__main__":
    raise SystemExit(main())
