# SPDX-License-Identifier: Apache-2.0
"""The folder of an excitation: bags, JointTrajectory, table of states, and settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...bags import Storage
from ...identification.excitation import Excitation, OptimalExcitation
from ...simulation.number_files import write_states
from ...trajectory import sample
from ..writing import whole_folder
from .messages import trajectory_fields, write_setpoints, write_trajectory
from .summary import as_json


def write_outputs(
    folder: Path,
    task: Excitation,
    found: OptimalExcitation,
    *,
    rate: float,
    waypoints: float,
    storage: Storage = Storage.MCAP,
    force: bool = False,
) -> None:
    """Write the bags ``setpoint`` and ``joint_trajectory``, and the motion as JSON, CSV and NumPy arrays.

    Args:
        rate: of setpoints and states, Hz.
        waypoints: rate of the points of the JointTrajectory, Hz.
    """
    names, motion = task.robot.joint_names, found.trajectory
    samples = sample(motion, rate)
    with whole_folder(folder, force=force) as aside:
        for name, write, each in (
            ("setpoint", write_setpoints, rate),
            ("joint_trajectory", write_trajectory, waypoints),
        ):
            (aside / name).mkdir()
            write(aside / name, motion, names, each, storage)
        _dump(aside / "joint_trajectory.json", trajectory_fields(motion, names, waypoints), indent=None)
        _dump(aside / "excitation.json", as_json(task, found), indent=2)
        write_states(aside, samples, names)


def _dump(path: Path, content: dict[str, Any], indent: int | None) -> None:
    path.write_text(json.dumps(content, indent=indent) + "\n", encoding="utf-8")
