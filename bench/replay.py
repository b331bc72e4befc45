# SPDX-License-Identifier: Apache-2.0
"""Replay of ten minutes at 1 kHz: time against the length of the recording, and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from report import Bar, Section, Table, seconds
from rosbags.rosbag2 import Reader
from settings import Settings

from eom_dynamics import load_robot
from eom_dynamics.bags import BagWriter, Layout, Storage, typestore
from eom_dynamics.bags.types import JOINT_STATE, SETPOINT
from eom_dynamics.control.fields import STATE_FIELDS
from eom_dynamics.trajectory import paper_motion

_RATE = 1000
_ROBOT = "iiwa"
_MB = 1e6

# Joint encoders of an arm resolve some 1e-5 rad.
_NOISE = 1e-5

_CHILD = """
import json, re, sys, time
from pathlib import Path
from eom_dynamics.tools.replay.job import Job
from eom_dynamics.tools.replay.one import replay_bag
job = Job(Path(sys.argv[1]), Path(sys.argv[2]), robot=sys.argv[3], format=sys.argv[4])
wall, cpu = time.perf_counter(), time.process_time()
report = replay_bag(job)
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
# Not ru_maxrss, which starts from that of the parent process.
peak = 1024 * int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
print(json.dumps({"wall": wall, "cpu": cpu, "peak": peak, "recorded": report.seconds, "commands": report.commands}))
"""


def run(settings: Settings) -> Section:
    """Write recordings, and replay each in fresh processes."""
    section = Section("replay", "Offline replay")
    long, short = (600, 60) if settings.fresh_processes > 3 else (120, 20)
    cases = {
        "setpoints, MCAP to MCAP": (SETPOINT, Storage.MCAP, "mcap"),
        "setpoints, sqlite3 to MCAP": (SETPOINT, Storage.SQLITE3, "mcap"),
        "setpoints, MCAP to Parquet": (SETPOINT, Storage.MCAP, "parquet"),
        "setpoints, MCAP to sqlite3": (SETPOINT, Storage.MCAP, "sqlite3"),
        "joint states (fitted), MCAP to MCAP": (JOINT_STATE, Storage.MCAP, "mcap"),
    }
    table = Table(
        f"{_ROBOT}, 7 joints at 1 kHz, fresh processes: medians of {settings.fresh_processes // 3}",
        ("bag", "recorded", "wall time", "recorded / wall", "recorded / CPU time", "peak memory"),
    )
    results = {}
    with tempfile.TemporaryDirectory(prefix="eom_dynamics_bench_") as name:
        folder = Path(name)
        for title, (kind, storage, output) in cases.items():
            for duration in (short, long):
                bag = _recorded(
                    folder / f"{kind.rpartition('/')[2]}_{storage.value}_{duration}", kind, storage, duration
                )
                runs = [_replay(bag, folder / "out", output) for _ in range(settings.fresh_processes // 3)]
                wall, cpu, peak = (float(np.median([run[key] for run in runs])) for key in ("wall", "cpu", "peak"))
                results[title, duration] = wall, cpu, peak
                table.add(
                    title,
                    f"{duration} s",
                    seconds(wall),
                    f"{duration / wall:.0f} ×",
                    f"{duration / cpu:.0f} ×",
                    f"{peak / _MB:.0f} MB",
                )
        reading = _time_of_rosbags(folder / f"JointTrajectorySetpoint_mcap_{long}")
    section.tables = [table]
    section.text = [
        f"rosbags alone, reading the {long} s of setpoints message by message and deserialising each, takes "
        f"{seconds(reading)}: {long / reading:.0f} × real time, before anything is computed or written."
    ]
    wall, _, peak = results["setpoints, MCAP to MCAP", long]
    largest = max(peak for (_, duration), (*_, peak) in results.items() if duration == long)
    section.bars = [
        Bar(
            "replay of setpoints at least 40 × real time, 7 joints at 1 kHz", f"{long / wall:.0f} ×", long / wall >= 40
        ),
        Bar("ten minutes at 1 kHz in under 500 MB", f"{largest / _MB:.0f} MB", largest < 500 * _MB),
    ]
    return section


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


def _replay(bag: Path, output: Path, kind: str) -> dict[str, float]:
    command = [sys.executable, "-c", _CHILD, str(bag), str(output), _ROBOT, kind]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ).stdout)
    subprocess.run(["rm", "-rf", str(output)], check=True)
    return result


def _time_of_rosbags(bag: Path) -> float:
    store = typestore(SETPOINT)
    start = time.perf_counter()
    with Reader(bag) as reader:
        for connection, _, data in reader.messages():
            store.deserialize_cdr(data, connection.msgtype)
    return time.perf_counter() - start
