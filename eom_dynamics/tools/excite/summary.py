# SPDX-License-Identifier: Apache-2.0
"""Tables of an optimal excitation: improvement over its start, and use of the limits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...identification.excitation import Excitation, OptimalExcitation
from ..quantity_text import number
from ..text_tables import columns


def as_text(task: Excitation, found: OptimalExcitation) -> str:
    """Return both tables as plain text."""
    motion = found.trajectory
    L, P = motion.sine.shape[1], len(task.model.columns)
    title = (
        f"{task.robot.name}: {motion.end:g} s, {L} harmonics of {motion.frequency:.4g} Hz, {P} parameters, "
        f"{task.limits.share:.0%} of the limits"
    )
    return "\n".join([title, "", *columns(_gains(found, P), 1), "", *columns(_used(task, found), 1)])


def as_json(task: Excitation, found: OptimalExcitation) -> dict[str, Any]:
    """Return settings, coefficients and results."""
    motion = found.trajectory
    return {
        "robot": task.robot.name,
        "joints": list(task.robot.joint_names),
        "parameters": list(task.model.names),
        "frequency": motion.frequency,
        "periods": motion.periods,
        "duration": motion.end,
        "share": task.limits.share,
        "sine": motion.sine.tolist(),
        "cosine": motion.cosine.tolist(),
        "offset": motion.offset.tolist(),
        "start": found.start_information._asdict(),
        "optimized": found.information._asdict(),
        "iterations": found.iterations,
        "ended": found.message,
        "limits": [
            {
                "joint": peak.name,
                "quantity": peak.quantity,
                "value": peak.value,
                "limit": peak.limit,
                "unit": peak.unit,
                "ratio": peak.ratio,
            }
            for peak in found.verdict.peaks
            if np.isfinite(peak.limit)
        ],
        "within_limits": found.verdict.ok,
    }


def _gains(found: OptimalExcitation, parameters: int) -> list[tuple[str, ...]]:
    before, after = found.start_information, found.information
    rows: list[tuple[str, ...]] = [("", "start", "optimised", "gain")]
    for name, field in (
        ("condition number", "condition"),
        ("condition number, columns scaled", "scaled_condition"),
    ):
        old, new = getattr(before, field), getattr(after, field)
        rows.append((name, number(old), number(new), f"{number(old / new)} ×"))
    rows.append(
        (
            "smallest singular value",
            number(before.smallest),
            number(after.smallest),
            f"{number(after.smallest / before.smallest)} ×",
        )
    )
    gain = np.exp((after.log_det - before.log_det) / (2 * parameters))
    rows.append(("log det of the information", number(before.log_det), number(after.log_det), ""))
    rows.append(("standard deviation, mean of all parameters", "1", number(1 / gain), f"{number(gain)} ×"))
    return rows


def _used(task: Excitation, found: OptimalExcitation) -> list[tuple[str, ...]]:
    """Share of each limit that the motion uses; empty where there is none."""
    peaks = [peak for peak in found.verdict.peaks if np.isfinite(peak.limit)]
    quantities = list(dict.fromkeys(peak.quantity for peak in peaks))
    names = list(dict.fromkeys(peak.name for peak in peaks))
    ratio = {(peak.name, peak.quantity): f"{peak.ratio:.0%}" for peak in peaks}
    return [
        ("largest share of limits", *(quantity.replace("_", " ") for quantity in quantities)),
        *((name, *(ratio.get((name, quantity), "") for quantity in quantities)) for name in names),
    ]
