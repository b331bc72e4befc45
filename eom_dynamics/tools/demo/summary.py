# SPDX-License-Identifier: Apache-2.0
"""Results of the demo, for terminal, HTML page and JSON."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...terminal import printable
from ..pages.numbers import for_json, microseconds, relative
from ..text_tables import columns
from .evaluate import REMEDY, Answers, RunChecks
from .plan import Plan


class Row(NamedTuple):
    """Row of the table: quantity, value, note, and whether its check passed."""

    name: str
    value: str
    note: str
    passed: bool = True


def table(plan: Plan, recording: Answers, evaluation: RunChecks) -> list[Row]:
    """Return the rows of the table."""
    return [
        Row("setpoints sent", f"{evaluation.sent:,}", f"{evaluation.rate:,.1f} Hz, requested {plan.rate:,.0f} Hz"),
        Row("sent late", f"{evaluation.late:,}", "by more than one period"),
        Row("commands received", f"{evaluation.received:,}", ""),
        Row("lost", f"{evaluation.lost:,}", "tolerance 0", evaluation.lost == 0),
        Row("round trip p50", microseconds(evaluation.percentile(50)), "median"),
        Row("round trip p99", microseconds(evaluation.percentile(99)), "99 % of the answers are faster"),
        Row("round trip max", microseconds(evaluation.percentile(100)), "slowest answer"),
        *(Row(x.name, relative(x.value), f"tolerance {x.tolerance:.0e}", x.passed) for x in evaluation.deviations),
        Row("backend", recording.backend, "of the dynamics, in the node"),
    ]


def as_text(plan: Plan, recording: Answers, evaluation: RunChecks) -> str:
    """Return the table as plain text, with a note if the machine was too slow."""
    rows = table(plan, recording, evaluation)
    width = max(len(row.value) for row in rows)
    lines = columns([(row.name, row.value.rjust(width), row.note) for row in rows], right_from=3)
    warning = keeps_up(plan, evaluation)
    return "\n".join(map(printable, [*lines, *([f"note: {warning}"] if warning else [])]))


def keeps_up(plan: Plan, evaluation: RunChecks) -> str | None:
    """Return a warning if setpoints were sent or answered more slowly than requested, or None.

    It ends with the remedy, unless that of lost setpoints in ``evaluation.failures`` is the same.
    """
    remedy = "" if evaluation.lost else f": {REMEDY}"
    if evaluation.late > evaluation.sent // 100:
        return (
            f"this machine did not hold {plan.rate:,.0f} Hz: {evaluation.late:,} of {evaluation.sent:,} setpoints "
            f"were sent late{remedy}"
        )
    if evaluation.percentile(50) > 1 / plan.rate:
        return (
            f"the node does not keep up with {plan.rate:,.0f} Hz on this machine: the median round trip is longer "
            f"than the period of {microseconds(1 / plan.rate)}{remedy}"
        )
    return None


def rate_held(plan: Plan, evaluation: RunChecks, unit: str = "Hz") -> str:
    """The requested rate with its unit, or the measured one if the requested was not reached."""
    if evaluation.lost or keeps_up(plan, evaluation):
        return f"{evaluation.answer_rate:,.0f} {unit} ({plan.rate:,.0f} requested)"
    return f"{plan.rate:,.0f} {unit}"


def as_json(recording: Answers, evaluation: RunChecks) -> dict[str, Any]:
    """Return the results for JSON; times in s, rates in Hz, None for unknown values."""
    return {
        "passed": not evaluation.failures,
        "failures": evaluation.failures,
        "sent": evaluation.sent,
        "received": evaluation.received,
        "lost": evaluation.lost,
        "late": evaluation.late,
        "rate": evaluation.rate,
        "round_trip": {
            name: for_json(evaluation.percentile(percent)) for name, percent in (("p50", 50), ("p99", 99), ("max", 100))
        },
        "deviations": [
            {"name": d.name, "value": for_json(d.value), "tolerance": d.tolerance, "passed": d.passed}
            for d in evaluation.deviations
        ],
        "backend": recording.backend,
    }
