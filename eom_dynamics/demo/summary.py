# SPDX-License-Identifier: Apache-2.0
"""The table of results, the same on the terminal and on the page."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..pages.numbers import microseconds, relative
from .evaluate import Deviation, Evaluation, Recording
from .plan import Plan


class Row(NamedTuple):
    """One line of the table: what, how much, what it is held against, and whether that is met."""

    name: str
    value: str
    note: str
    passed: bool = True


def table(plan: Plan, recording: Recording, evaluation: Evaluation) -> list[Row]:
    """The numbers of a run, as text."""
    return [
        Row("setpoints sent", f"{evaluation.sent:,}", f"{evaluation.rate:,.1f} Hz, asked for {plan.rate:,.0f} Hz"),
        Row("sent late", f"{evaluation.late:,}", "by more than one period"),
        Row("commands received", f"{evaluation.received:,}", ""),
        Row("lost", f"{evaluation.lost:,}", "tolerance 0", evaluation.lost == 0),
        Row("round trip p50", microseconds(evaluation.percentile(50)), "half of the answers were faster"),
        Row("round trip p99", microseconds(evaluation.percentile(99)), "99 of 100 were faster"),
        Row("round trip max", microseconds(evaluation.percentile(100)), "the slowest"),
        *(_deviation(deviation) for deviation in evaluation.deviations),
        Row("backend", recording.backend, "computed in the node"),
    ]


def keeps_up(plan: Plan, evaluation: Evaluation) -> str | None:
    """A warning if setpoints could not be sent, or answered, at the rate that was asked for; or None."""
    if evaluation.late > evaluation.sent // 100:
        return (
            f"this machine did not hold {plan.rate:,.0f} Hz: {evaluation.late:,} of {evaluation.sent:,} setpoints "
            "left late"
        )
    if evaluation.percentile(50) > 1 / plan.rate:
        return (
            f"the node does not keep up with {plan.rate:,.0f} Hz on this machine: half of its answers took longer "
            f"than one period of {microseconds(1 / plan.rate)}"
        )
    return None


def _deviation(deviation: Deviation) -> Row:
    return Row(deviation.name, relative(deviation.value), f"tolerance {deviation.tolerance:.0e}", deviation.passed)


def as_json(recording: Recording, evaluation: Evaluation) -> dict[str, Any]:
    """The numbers of a run as JSON takes them; times in s, rates in Hz, None where there is nothing to tell."""

    def number(value: float) -> float | None:
        return None if math.isnan(value) else value

    return {
        "passed": not evaluation.failures,
        "failures": evaluation.failures,
        "sent": evaluation.sent,
        "received": evaluation.received,
        "lost": evaluation.lost,
        "late": evaluation.late,
        "rate": evaluation.rate,
        "round_trip": {
            name: number(evaluation.percentile(percent)) for name, percent in (("p50", 50), ("p99", 99), ("max", 100))
        },
        "deviations": [
            {"name": d.name, "value": number(d.value), "tolerance": d.tolerance, "passed": d.passed}
            for d in evaluation.deviations
        ],
        "backend": recording.backend,
    }
