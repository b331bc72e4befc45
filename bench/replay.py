# SPDX-License-Identifier: Apache-2.0
"""Replay of ten minutes at 1 kHz: time against the length of the recording, and memory."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
from harness import PEAK_MEMORY, Section, Settings, in_fresh_process, seconds

from eom_dynamics import load_robot
from eom_dynamics.control.fields import STATE_FIELDS
from eom_dynamics.recordings.bags import BagWriter, Layout, Storage
from eom_dynamics.recordings.bags.types import JOINT_STATE, SETPOINT
from eom_dynamics.trajectory import paper_motion

_RATE, _ROBOT, _MB = 1000, "iiwa", 1e6
_NOISE = 1e-5  # joint encoders of an arm resolve some 1e-5 rad

_CHILD = f"""
import json, sys, time
from eom_dynamics.tools.replay.bag import Job
from eom_dynamics.tools.replay.bag import replay_bag
{PEAK_MEMORY}
job = Job(Path(sys.argv[1]), Path(sys.argv[2]), robot=sys.argv[3], format=sys.argv[4])
wall, cpu = time.perf_counter(), time.process_time()
replay_bag(job)
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
print(json.dumps([wall, cpu, peak_memory()]))
"""


def replay(section: Section, settings: Settings) -> None:
    """Write recordings, and replay each in fresh processes."""
    long, short = (120, 20) if settings.quick else (600, 60)
    runs = settings.fresh_processes // 3
    cases = {
        "setpoints, MCAP to MCAP": (SETPOINT, Storage.MCAP, "mcap"),
        "setpoints, sqlite3 to MCAP": (SETPOINT, Storage.SQLITE3, "mcap"),
        "setpoints, MCAP to Parquet": (SETPOINT, Storage.MCAP, "parquet"),
        "setpoints, MCAP to sqlite3": (SETPOINT, Storage.MCAP, "sqlite3"),
        "joint states (fitted), MCAP to MCAP": (JOINT_STATE, Storage.MCAP, "mcap"),
    }
    table = section.table(
        f"{_ROBOT}, 7 joints at 1 kHz, fresh processes: medians of {runs}",
        *("bag", "recorded", "wall time", "recorded / wall", "recorded / CPU time", "peak memory"),
    )
    results = {}
    with tempfile.TemporaryDirectory(prefix="eom_dynamics_bench_") as name:
        folder = Path(name)
        for title, (kind, storage, output) in cases.items():
            for duration in (short, long):
                name = f"{kind.rpartition('/')[2]}_{storage.value}_{duration}"
                bag = _recorded(folder / name, kind, storage, duration)
                each = []
                for _ in range(runs):
                    each.append(in_fresh_process(_CHILD, bag, out := folder / "out", _ROBOT, output))
                    shutil.rmtree(out) if out.is_dir() else out.unlink()
                wall, cpu, peak = (float(x) for x in np.median(each, axis=0))
                results[title, duration] = wall, peak
                speeds = f"{duration / wall:.0f} ×", f"{duration / cpu:.0f} ×"
                table.add(title, f"{duration} s", seconds(wall), *speeds, f"{peak / _MB:.0f} MB")
    speed = long / results["setpoints, MCAP to MCAP", long][0]
    section.promise("replay of setpoints at least 40 × real time, 7 joints at 1 kHz", f"{speed:.0f} ×", speed >= 40)
    largest = max(peak for (_, duration), (_, peak) in results.items() if duration == long)
    section.promise("ten minutes at 1 kHz in under 500 MB", f"{largest / _MB:.0f} MB", largest < 500 * _MB)


def _recorded(path: Path, kind: str, storage: Storage, duration: int) -> Path:
    """Write a bag with the motion of the paper, once."""
    if path.exists():
        return path
    path.mkdir()
    robot, motion, rng = load_robot(_ROBOT), paper_motion(7), np.random.default_rng(1)
    names = "joint_names" if kind == SETPOINT else "name"
    numbers = STATE_FIELDS if kind == SETPOINT else ("position", "velocity", "effort")
    layout = Layout.of(
        kind, header={"frame_id": "base"}, **{names: robot.joint_names}, **dict.fromkeys(numbers, np.zeros(7))
    )
    with BagWriter(path, path.name, storage, {"/motion": kind}) as writer:
        for first in range(0, duration * _RATE, 5000):
            times = 1_700_000_000_000_000_000 + 1_000_000 * np.arange(first, first + 5000)
            rows = np.tile(layout.template, (5000, 1))
            states = motion.derivatives(np.arange(first, first + 5000) / _RATE)
            if kind == JOINT_STATE:
                states = (states[0] + _NOISE * rng.standard_normal(states[0].shape),)
            for field, values in zip(numbers, states, strict=False):
                layout.set_numbers(rows, field, values)
            layout.set_stamps(rows, times)
            writer.write(times, [rows])
    return path
