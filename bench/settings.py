# SPDX-License-Identifier: Apache-2.0
"""How long a run is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Numbers of samples and sizes.

    Attributes:
        rounds: samples of what takes microseconds.
        slow_rounds: samples of what takes longer.
        most_joints: of the longest chain.
        fresh_processes: how often the first use is timed.
    """

    rounds: int
    slow_rounds: int
    most_joints: int
    fresh_processes: int


FULL = Settings(rounds=60, slow_rounds=15, most_joints=128, fresh_processes=9)
QUICK = Settings(rounds=7, slow_rounds=3, most_joints=32, fresh_processes=3)

BATCH = 100_000
"""States of a batch."""
