# SPDX-License-Identifier: Apache-2.0
"""Files of sampled motions, which the commands and the player read."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Array
from ..states import STATE_NAMES
from ..trajectory import Samples


def write_table(path: Path, header: Sequence[str], columns: Sequence[Array]) -> None:
    """Write columns (N,) and (N, n) as CSV; names with a comma are quoted, against formula injection."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow(header)
        np.savetxt(file, np.column_stack(columns), fmt="%.17g", delimiter=",")


def write_states(folder: Path, samples: Samples, joint_names: Sequence[str]) -> None:
    """Write setpoints.npz and trajectory.csv with the states of a motion."""
    arrays: dict[str, Any] = dict(zip(STATE_NAMES, samples[1:], strict=True))
    np.savez_compressed(folder / "setpoints.npz", t=samples.t, joint_names=np.array(joint_names), **arrays)
    header = ["t", *(f"{state}.{joint}" for state in STATE_NAMES for joint in joint_names)]
    write_table(folder / "trajectory.csv", header, samples)
