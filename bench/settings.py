# SPDX-License-Identifier: Apache-2.0
"""Number of samples and sizes of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass
class Settings:
    """Settings of a run.

    Attributes:
        rounds: number of samples of fast tasks.
        slow_rounds: number of samples of slow tasks.
        most_joints: number of joints of the longest chain.
        fresh_processes: number of samples of the first use.
        recordings: folder with checkouts of public recordings, if there is one.
        models: folder with folders of MJCF models, if there is one.
        hours: simulated by external_effort for each arm.
        robot: of one_state, a packaged robot or a file.
    """

    rounds: int
    slow_rounds: int
    most_joints: int
    fresh_processes: int
    recordings: Path | None = None
    models: Path | None = None
    hours: float = 0.5
    robot: str = "iiwa"


FULL = Settings(rounds=60, slow_rounds=15, most_joints=128, fresh_processes=9)
QUICK = Settings(rounds=7, slow_rounds=3, most_joints=32, fresh_processes=3)

BATCH = 100_000
"""Number of states in a batch."""
