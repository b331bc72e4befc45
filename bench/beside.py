# SPDX-License-Identifier: Apache-2.0
"""The ratios of another commit of this repository, by its own code in a process of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

from compiled import scratch
from settings import Settings

from eom_dynamics import Robot
from eom_dynamics.robot.writers.parameters import robot_as_yaml

HERE = Path(__file__).parent


def ratios_at(commit: str, robots: Sequence[Robot], count: int, settings: Settings) -> list[tuple[float, float] | None]:
    """Times of the feedforward of one state and of a batch relative to the inverse dynamics; None where refused."""
    folder = scratch() / f"beside_{commit}"
    archive = subprocess.run(["git", "archive", commit, "eom_dynamics", "config"], cwd=HERE.parent, capture_output=True)
    if archive.returncode:
        raise ValueError(f"--beside: {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    arms = folder / "arms"
    arms.mkdir()
    for k, robot in enumerate(robots):
        # Without an entry that older versions refuse, even with the value that is their behaviour.
        lines = [line for line in robot_as_yaml(robot).text.splitlines() if "unphysical:" not in line]
        (arms / f"{k:03}.yaml").write_text("\n".join(lines))
    sizes = map(str, (arms, count, settings.rounds, settings.slow_rounds))
    child = [sys.executable, "-W", "ignore", str(HERE / "beside_child.py"), *sizes]
    found = subprocess.run(child, env={**os.environ, "PYTHONPATH": str(folder)}, check=True, stdout=subprocess.PIPE)
    return [json.loads(line) for line in found.stdout.splitlines()]
