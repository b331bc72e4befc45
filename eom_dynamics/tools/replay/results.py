# SPDX-License-Identifier: Apache-2.0
"""Result of a replay: an index of the bags, and the comparison of each; and a JUnit report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ...terminal import printable
from ..results import Result, ResultSection, TextTable
from .compare import MISSING, Difference
from .job import Report
from .joint_states import CONSEQUENCE
from .one import Outcome

_MOST_LINES = 8  # at most as many lines of one kind are printed per bag


def replay_result(
    outcomes: Sequence[Outcome], golden: Path | None, about: Mapping[str, str], page: Path | None = None
) -> Result:
    """Make the result of a replay: a row for each bag, and details below; ``golden`` is what bags are compared with."""
    failures = [outcome.error for outcome in outcomes if outcome.report is None]
    if differing := sum(bool(outcome.beyond) for outcome in outcomes):
        compared = sum(outcome.differences is not None for outcome in outcomes)
        failures.append(f"{differing} of {compared} bags differ from {golden}")
    failures += [f"{outcome.job.bag}: {line}" for outcome in outcomes for line in outcome.failed_checks]
    failed = sum(bool(outcome.failures) for outcome in outcomes)
    return Result(
        title=str(outcomes[0].job.bag) if len(outcomes) == 1 else f"{len(outcomes):,} bags",
        facts={"passed": f"{len(outcomes) - failed:,}", "failed": f"{failed:,}"} if len(outcomes) > 1 else {},
        sections=[ResultSection(tables=[_index(outcomes)]), *map(_section, outcomes)],
        failures=failures,
        files={} if page is None else {"page": page},
        json=list(map(_as_json, outcomes)),
        about=about,
    )


def _index(outcomes: Sequence[Outcome]) -> TextTable:
    compared = any(outcome.differences is not None for outcome in outcomes)
    header = ("bag", "topic", "commands", "refused", "recorded, s", "took, s", "")
    rows = []
    for outcome in outcomes:
        report, done = outcome.report, outcome.done_before
        damaged = report is not None and report.damage
        state = "failed" if outcome.failures else "done before" if done else "damaged" if damaged else ""
        numbers = ("",) * 4
        if report is not None:
            numbers = report.topic, f"{report.commands:,}", f"{report.refusals.total:,}", f"{report.seconds:.2f}"
        row = (outcome.job.bag.name, *numbers, "" if done else f"{outcome.wall:.2f}", state)
        rows.append((*row, _worst(outcome)) if compared else row)
    failed = {(i, header.index("")) for i, outcome in enumerate(outcomes) if outcome.failures}
    return TextTable((*header, "worst difference") if compared else header, rows, text_columns=2, failed=failed)


def _worst(outcome: Outcome) -> str:
    if not outcome.beyond:
        return ""
    worst = max(outcome.beyond, key=lambda row: row.largest / max(row.absolute, 1e-300))
    return f"{worst.topic}: {worst.field}{f' of {worst.worst}' if worst.worst else ''}, {worst.largest:.2g}"


def _section(outcome: Outcome) -> ResultSection:
    report = outcome.report
    lines, tables = outcome.detail.splitlines(), []
    if report is not None:
        # Differences without a number, such as of names of joints.
        others = [row for row in outcome.beyond if not row.largest]
        lines += [*_notes(report), *(f"{row.topic}: {row.text}" for row in others), *outcome.missing]
        errors = {
            "fit, RMS": [f"{x:.2e}" for x in report.deviation],
            "fit, largest": [f"{x:.2e}" for x in report.largest_deviation],
            "effort, RMS difference": [f"{x:.3f}" for x in report.rms],
        }
        if errors := {title: values for title, values in errors.items() if values}:
            rows = list(zip(report.joint_names, *errors.values(), strict=True))
            tables.append(TextTable(("joint", *errors), rows))
        if outcome.differences:
            tables.append(_differences(outcome.differences))
    return ResultSection(str(outcome.job.bag) if lines or tables else "", lines, tables=tables)


def _differences(differences: Sequence[Difference]) -> TextTable:
    shown = [row for row in differences if row.field != MISSING]
    rows = [
        (
            *(row.topic, row.field, f"{row.compared:,}", f"{row.largest:.2g}", row.worst),
            f"{row.beyond:,}" if row.beyond else "",
            "" if row.first is None else _seconds(row.first),
        )
        for row in shown
    ]
    header = ("topic", "field", "compared", "largest difference", "of", "beyond", "first at")
    failed = {(i, header.index("beyond")) for i, row in enumerate(shown) if row.beyond}
    return TextTable(header, rows, text_columns=2, failed=failed)


def _as_json(outcome: Outcome) -> dict[str, Any]:
    compared: dict[str, Any] = {}
    if (differences := outcome.differences) is not None:
        rows = [vars(row) for row in differences if row.field != MISSING]
        compared = {"differences": rows, "missing": [row.topic for row in differences if row.field == MISSING]}
    return {
        "bag": str(outcome.job.bag),
        "output": str(outcome.job.output),
        "passed": not outcome.failures,
        "failures": outcome.failures,
        "error": outcome.error,
        "wall": outcome.wall,
        "done_before": outcome.done_before,
        "report": asdict(outcome.report) if outcome.report else None,
        **compared,
    }


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


def as_junit(outcomes: Sequence[Outcome]) -> bytes:
    """Return a JUnit report, a test case for each bag: an error if it was not replayed, a failure if a check fails."""
    errors = sum(outcome.report is None for outcome in outcomes)
    counts = {
        "tests": str(len(outcomes)),
        "failures": str(sum(bool(outcome.failures) for outcome in outcomes) - errors),
        "errors": str(errors),
        "time": f"{sum(outcome.wall for outcome in outcomes):.3f}",
    }
    suite = ElementTree.Element("testsuite", {"name": "eom_dynamics replay", **counts})
    for outcome in outcomes:
        name = {"name": printable(str(outcome.job.bag)), "time": f"{outcome.wall:.3f}"}
        case = ElementTree.SubElement(suite, "testcase", {"classname": "eom_dynamics.replay", **name})
        if texts := list(map(printable, outcome.failures)):
            kind = "failure" if outcome.report is not None else "error"
            ElementTree.SubElement(case, kind, {"message": texts[0]}).text = "\n".join(texts)
        if outcome.missing:
            ElementTree.SubElement(case, "system-out").text = "\n".join(map(printable, outcome.missing))
    return ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)


def _seconds(time: int) -> str:
    return f"{time // 1_000_000_000}.{time % 1_000_000_000:09d}"
