# SPDX-License-Identifier: Apache-2.0
"""The numbers behind the page, for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..ros.conversions import STATE_FIELDS, WRENCH_FIELDS
from .evaluate import Recording
from .plan import Plan


def write_npz(path: Path, plan: Plan, recording: Recording) -> None:
    """Write times, motion and answers as arrays, named as in the messages; NaN where no answer came."""
    arrays: dict[str, Any] = {
        "joint_names": np.array(plan.robot.joint_names),
        "t": plan.t,
        "sent": recording.sent,
        "received": recording.received,
        **dict(zip(STATE_FIELDS, plan.motion.derivatives(plan.t), strict=True)),
        **dict(zip(WRENCH_FIELDS, plan.wrench.derivatives(plan.t, order=2), strict=True)),
        **recording.answers,
    }
    np.savez_compressed(path, **arrays)


def write_csv(path: Path, plan: Plan, recording: Recording) -> None:
    """Write time, round trip, joint variables and answers as a table with one row a setpoint, SI units."""
    columns = {"position": plan.motion.derivatives(plan.t, order=0)[0], **recording.answers}
    header = ["t", "round_trip", *(f"{name}.{joint}" for name in columns for joint in plan.robot.joint_names)]
    times = np.stack([plan.t, recording.received - recording.sent], axis=1)
    np.savetxt(
        path, np.hstack([times, *columns.values()]), fmt="%.17g", delimiter=",", header=",".join(header), comments=""
    )
