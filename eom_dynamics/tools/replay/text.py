# SPDX-License-Identifier: Apache-2.0
"""Results of a replay as plain text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

from ...terminal import printable
from ..text_tables import columns
from .compare import MISSING, Difference
from .job import Report
from .joint_states import CONSEQUENCE
from .run import Result

# At most as many lines of one kind are printed per bag.
_MOST_LINES = 8

HEADER = ("bag", "topic", "commands", "refused", "recorded, s", "took, s", "")
"""Titles of the columns of :func:`result_row`."""


def as_text(results: Sequence[Result]) -> str:
    """Return a table with a row for each bag, and details of each below."""
    lines = columns([HEADER, *map(result_row, results)], right_from=2)
    for result in results:
        outcome = result.outcome
        shown = [] if outcome.report is None else details(outcome.report)
        if outcome.report is not None and result.differences:
            shown += [*columns(difference_rows(result.differences), right_from=2), *result.missing]
        if shown:
            lines += ["", f"{printable(str(outcome.job.bag))}:", *(f"  {printable(line)}".rstrip() for line in shown)]
    for outcome in (result.outcome for result in results):
        if outcome.detail:
            lines += ["", f"{printable(str(outcome.job.bag))}:", outcome.detail]
    return "\n".join(lines)


def as_json(results: Sequence[Result], failures: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Return a dictionary for each bag, with the lines on its failures."""
    return [
        {
            "bag": str(outcome.job.bag),
            "output": str(outcome.job.output),
            "passed": not lines,
            "failures": list(lines),
            "error": outcome.error,
            "wall": outcome.wall,
            "done_before": outcome.done_before,
            "report": outcome.report.as_json() if outcome.report else None,
            **({} if result.differences is None else _comparison_as_json(result)),
        }
        for outcome, result, lines in zip((result.outcome for result in results), results, failures, strict=True)
    ]


def _comparison_as_json(result: Result) -> dict[str, Any]:
    rows = [vars(row) for row in result.differences or () if row.field != MISSING]
    return {"differences": rows, "missing": [row.topic for row in result.differences or () if row.field == MISSING]}


def as_junit(results: Sequence[Result], failures: Sequence[Sequence[str]]) -> bytes:
    """Return a JUnit report, a test case for each bag: an error if it was not replayed, a failure if a check fails."""
    failed = sum(
        bool(lines) and result.outcome.report is not None for result, lines in zip(results, failures, strict=True)
    )
    errors = sum(result.outcome.report is None for result in results)
    total = sum(result.outcome.wall for result in results)
    counts = {"tests": str(len(results)), "failures": str(failed), "errors": str(errors), "time": f"{total:.3f}"}
    suite = ElementTree.Element("testsuite", {"name": "eom_dynamics replay", **counts})
    for result, lines in zip(results, failures, strict=True):
        outcome = result.outcome
        name = {
            "classname": "eom_dynamics.replay",
            "name": printable(str(outcome.job.bag)),
            "time": f"{outcome.wall:.3f}",
        }
        case = ElementTree.SubElement(suite, "testcase", name)
        if lines:
            kind = "failure" if outcome.report is not None else "error"
            texts = list(map(printable, lines))
            ElementTree.SubElement(case, kind, {"message": texts[0]}).text = "\n".join(texts)
        if result.missing:
            ElementTree.SubElement(case, "system-out").text = "\n".join(map(printable, result.missing))
    return ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)


def result_row(result: Result) -> tuple[str, ...]:
    """Return the row of a bag, below :data:`HEADER`."""
    outcome, report = result.outcome, result.outcome.report
    name = printable(outcome.job.bag.name)
    if report is None:
        return (name, "", "", "", "", f"{outcome.wall:.2f}", "failed")
    state = "done before" if outcome.done_before else "damaged" if report.damage else ""
    return (
        name,
        printable(report.topic),
        f"{report.commands:,}",
        f"{report.refusals.total:,}",
        f"{report.seconds:.2f}",
        "" if outcome.done_before else f"{outcome.wall:.2f}",
        state,
    )


def details(report: Report) -> list[str]:
    """Return warnings of a replay, and errors of fit and efforts by joint."""
    return [*_notes(report), *_joint_table(report)]


def _notes(report: Report) -> Iterator[str]:
    for lines in (report.warnings, report.damage, report.exceeded):
        yield from lines[:_MOST_LINES]
        if len(lines) > _MOST_LINES:
            yield f"… and {len(lines) - _MOST_LINES} more"
    for reason, count in report.refusals.ranked():
        first = _seconds(report.refusals.first[reason])
        yield f"{count:,} of topic {report.topic} refused, the first at {first}: {report.refusals.text(reason)}"
    if report.held:
        yield f"{report.held:,} of them answered with the last good command"
    if report.first_repeated is not None:
        yield (
            f"{report.repeated:,} messages of topic {report.topic} repeat the positions of the message before during a "
            f"motion, the first at {_seconds(report.first_repeated)}: {CONSEQUENCE}"
        )


def _joint_table(report: Report) -> list[str]:
    """Return a table of fit and effort errors by joint."""
    tables = {
        "fit, RMS": [f"{x:.2e}" for x in report.deviation],
        "fit, largest": [f"{x:.2e}" for x in report.largest_deviation],
        "effort, RMS difference": [f"{x:.3f}" for x in report.rms],
    }
    given = {title: values for title, values in tables.items() if values}
    if not given:
        return []
    return columns([("joint", *given), *zip(report.joint_names, *given.values(), strict=True)], right_from=1)


def difference_rows(differences: Sequence[Difference]) -> list[tuple[str, ...]]:
    """Return a header, and a row for each field that was compared."""
    rows: list[tuple[str, ...]] = [("topic", "field", "compared", "largest difference", "of", "beyond", "first at")]
    for row in differences:
        if row.field == MISSING:
            continue
        beyond = f"{row.beyond:,}" if row.beyond else ""
        first = "" if row.first is None else _seconds(row.first)
        rows.append((row.topic, row.field, f"{row.compared:,}", f"{row.largest:.2g}", row.worst, beyond, first))
    return rows


def _seconds(time: int) -> str:
    return f"{time // 1_000_000_000}.{time % 1_000_000_000:09d}"
