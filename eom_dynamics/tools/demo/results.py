# SPDX-License-Identifier: Apache-2.0
"""The folder of results of the demo: HTML page, picture and data."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from ...messages.fields import MOTOR_FIELDS
from ...simulation import Comparison
from ..states_files import write_table
from ..writing import whole_folder
from .demo_page import write_page
from .evaluate import Answers, RunChecks
from .picture import write_picture
from .plan import Plan


def write_results(
    folder: Path,
    plan: Plan,
    recording: Answers,
    evaluation: RunChecks,
    tracking: Comparison | str,
    identification: Path | None = None,
    *,
    force: bool = False,
) -> Path:
    """Write index.html, demo.png, data.npz and data.csv.

    Args:
        tracking: feedforwards compared in simulation, or the reason why they were not.
        identification: folder of an identification, which is copied and named by the page.

    Returns:
        The path of the page.
    """
    with whole_folder(folder, force=force) as aside:
        write_npz(aside / "data.npz", plan, recording)
        write_csv(aside / "data.csv", plan, recording)
        write_picture(aside / "demo.png", plan, recording, evaluation)
        write_page(aside / "index.html", plan, recording, evaluation, tracking, identified=identification is not None)
        if identification is not None:
            shutil.copytree(identification, aside / "identification")
    return folder / "index.html"


def write_npz(path: Path, plan: Plan, recording: Answers) -> None:
    """Write times, setpoints and answers as arrays, with the player's names; NaN for missing answers."""
    times: dict[str, Any] = {"sent": recording.sent, "received": recording.received}
    times["motor_names"] = np.array(plan.arm.motor_names)
    np.savez_compressed(path, **{**times, **plan.arrays(), **recording.answers})


def write_csv(path: Path, plan: Plan, recording: Answers) -> None:
    """Write time, round trip, joint variables and answers as a table, one row per setpoint, SI units."""
    columns = {"position": plan.motion.derivatives(plan.t, order=0)[0], **recording.answers}
    names = {name: plan.arm.motor_names if name in MOTOR_FIELDS else plan.robot.joint_names for name in columns}
    header = ["t", "round_trip", *(f"{name}.{part}" for name in columns for part in names[name])]
    write_table(path, header, [plan.t, recording.received - recording.sent, *columns.values()])
