# SPDX-License-Identifier: Apache-2.0
"""Setpoints and answers of the demo as .npz and .csv files."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from ...messages.fields import MOTOR_FIELDS, WRENCH_FIELDS
from ...states import STATE_NAMES
from .evaluate import Answers
from .plan import Plan


def setpoints(plan: Plan) -> dict[str, Any]:
    """Return times and setpoints of a plan as arrays, with the names that the player and ``simulate`` read."""
    return {
        "t": plan.t,
        "joint_names": np.array(plan.robot.joint_names),
        **dict(zip(STATE_NAMES, plan.motion.derivatives(plan.t), strict=True)),
        **dict(zip(WRENCH_FIELDS, plan.wrench.derivatives(plan.t, order=2), strict=True)),
    }


def write_npz(path: Path, plan: Plan, recording: Answers) -> None:
    """Write times, setpoints and answers as arrays, with the player's names; NaN for missing answers."""
    times: dict[str, Any] = {"sent": recording.sent, "received": recording.received}
    times["motor_names"] = np.array(plan.arm.motor_names)
    np.savez_compressed(path, **{**times, **setpoints(plan), **recording.answers})


def write_csv(path: Path, plan: Plan, recording: Answers) -> None:
    """Write time, round trip, joint variables and answers as a table, one row per setpoint, SI units."""
    columns = {"position": plan.motion.derivatives(plan.t, order=0)[0], **recording.answers}
    names = {name: plan.arm.motor_names if name in MOTOR_FIELDS else plan.robot.joint_names for name in columns}
    header = ["t", "round_trip", *(f"{name}.{part}" for name in columns for part in names[name])]
    times = np.stack([plan.t, recording.received - recording.sent], axis=1)
    with path.open("w", encoding="utf-8", newline="") as file:
        # Quoted where a name has a comma: what follows it would be a cell, perhaps a formula of a spreadsheet.
        csv.writer(file, lineterminator="\n").writerow(header)
        np.savetxt(file, np.hstack([times, *columns.values()]), fmt="%.17g", delimiter=",")
