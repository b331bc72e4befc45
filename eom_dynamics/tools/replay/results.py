# SPDX-License-Identifier: Apache-2.0
"""Result of a replay: an index of the bags, and the comparison of each; and a JUnit report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ...terminal import printable
from ..results import Result, ResultSection, TextTable
from .compare import MISSING, Difference
from .job import Report
from .joint_states import CONSEQUENCE
from .run import BagResult

# At most as many lines of one kind are printed per bag.
_MOST_LINES = 8


def replay_result(
    results: Sequence[BagResult],
    checks: Sequence[Sequence[str]],
    golden: Path | None,
    about: Mapping[str, str],
    page: Path | None = None,
) -> Result:
    """Make the result of a replay: a row for each bag, and details of each below.

    Args:
        checks: failed checks of each bag, besides differences.
        golden: what the bags were compared with.
    """
    failures = [result.outcome.error for result in results if result.outcome.report is None]
    if differing := sum(result.differs for result in results):
        compared = sum(result.differences is not None for result in results)
        failures.append(f"{differing} of {compared} bags differ from {golden}")
    failures += [
        f"{result.outcome.job.bag}: {line}" for result, lines in zip(results, checks, strict=True) for line in lines
    ]
    every = _failures(results, checks)
    failed = sum(map(bool, every))
    return Result(
        title=str(results[0].outcome.job.bag) if len(results) == 1 else f"{len(results):,} bags",
        facts={"passed": f"{len(results) - failed:,}", "failed": f"{failed:,}"} if len(results) > 1 else {},
        sections=[ResultSection(tables=[_index(results, every)]), *map(_section, results)],
        failures=failures,
        files={} if page is None else {"page": page},
        json=[_as_json(result, lines) for result, lines in zip(results, every, strict=True)],
        about=about,
    )


def _failures(results: Sequence[BagResult], checks: Sequence[Sequence[str]]) -> list[list[str]]:
    """All failures of each bag: its error, differences and failed checks."""
    return [[*result.failures(), *lines] for result, lines in zip(results, checks, strict=True)]


def _index(results: Sequence[BagResult], failures: Sequence[Sequence[str]]) -> TextTable:
    """Table with a row for each bag; with the worst difference if any bag was compared."""
    compared = any(result.differences is not None for result in results)
    header = ("bag", "topic", "commands", "refused", "recorded, s", "took, s", "")
    rows = []
    for result, lines in zip(results, failures, strict=True):
        outcome, report = result.outcome, result.outcome.report
        done, damaged = outcome.done_before, report is not None and report.damage
        state = "failed" if lines else "done before" if done else "damaged" if damaged else ""
        numbers = ("",) * 4
        if report is not None:
            numbers = report.topic, f"{report.commands:,}", f"{report.refusals.total:,}", f"{report.seconds:.2f}"
        row = (outcome.job.bag.name, *numbers, "" if done else f"{outcome.wall:.2f}", state)
        rows.append((*row, _worst(result)) if compared else row)
    failed = {(i, header.index("")) for i, lines in enumerate(failures) if lines}
    return TextTable((*header, "worst difference") if compared else header, rows, text_columns=2, failed=failed)


def _worst(result: BagResult) -> str:
    """The largest difference beyond its tolerance, relative to it."""
    beyond = [row for row in result.differences or () if row.beyond]
    if not beyond:
        return ""
    worst = max(beyond, key=lambda row: row.largest / max(row.absolute, 1e-300))
    return f"{worst.topic}: {worst.field}{f' of {worst.worst}' if worst.worst else ''}, {worst.largest:.2g}"


def _section(result: BagResult) -> ResultSection:
    """Notes of the replay of a bag, errors of fit and efforts by joint, and differences; empty if there are none."""
    outcome, report = result.outcome, result.outcome.report
    lines, tables = outcome.detail.splitlines(), []
    if report is not None:
        # Differences without a number, such as of names of joints.
        others = (row for row in result.differences or () if row.beyond and not row.largest)
        lines += [*_notes(report), *(f"{row.topic}: {row.text}" for row in others), *result.missing]
        errors = {
            "fit, RMS": [f"{x:.2e}" for x in report.deviation],
            "fit, largest": [f"{x:.2e}" for x in report.largest_deviation],
            "effort, RMS difference": [f"{x:.3f}" for x in report.rms],
        }
        if errors := {title: values for title, values in errors.items() if values}:
            rows = list(zip(report.joint_names, *errors.values(), strict=True))
            tables.append(TextTable(("joint", *errors), rows))
        if result.differences:
            tables.append(_differences(result.differences))
    return ResultSection(str(outcome.job.bag) if lines or tables else "", lines, tables=tables)


def _differences(differences: Sequence[Difference]) -> TextTable:
    """Table with a row for each field that was compared."""
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


def _as_json(result: BagResult, failures: Sequence[str]) -> dict[str, Any]:
    outcome, found = result.outcome, {}
    if result.differences is not None:
        rows = [vars(row) | {"match": row.match.value} for row in result.differences if row.field != MISSING]
        found = {"differences": rows, "missing": [row.topic for row in result.differences if row.field == MISSING]}
    return {
        "bag": str(outcome.job.bag),
        "output": str(outcome.job.output),
        "passed": not failures,
        "failures": list(failures),
        "error": outcome.error,
        "wall": outcome.wall,
        "done_before": outcome.done_before,
        "report": outcome.report.as_json() if outcome.report else None,
        **found,
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


def as_junit(results: Sequence[BagResult], checks: Sequence[Sequence[str]]) -> bytes:
    """Return a JUnit report, a test case for each bag: an error if it was not replayed, a failure if a check fails."""
    every = _failures(results, checks)
    errors = sum(result.outcome.report is None for result in results)
    counts = {
        "tests": str(len(results)),
        "failures": str(sum(map(bool, every)) - errors),
        "errors": str(errors),
        "time": f"{sum(result.outcome.wall for result in results):.3f}",
    }
    suite = ElementTree.Element("testsuite", {"name": "eom_dynamics replay", **counts})
    for result, lines in zip(results, every, strict=True):
        outcome = result.outcome
        name = {"name": printable(str(outcome.job.bag)), "time": f"{outcome.wall:.3f}"}
        case = ElementTree.SubElement(suite, "testcase", {"classname": "eom_dynamics.replay", **name})
        if lines:
            kind = "failure" if outcome.report is not None else "error"
            texts = list(map(printable, lines))
            ElementTree.SubElement(case, kind, {"message": texts[0]}).text = "\n".join(texts)
        if result.missing:
            ElementTree.SubElement(case, "system-out").text = "\n".join(map(printable, result.missing))
    return ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)


def _seconds(time: int) -> str:
    return f"{time // 1_000_000_000}.{time % 1_000_000_000:09d}"
