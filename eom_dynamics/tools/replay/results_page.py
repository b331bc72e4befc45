# SPDX-License-Identifier: Apache-2.0
"""Results of a replay as one HTML page: an index of all bags, and the checks and comparison of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from ..pages import html_page
from ..pages.html_page import section, table, tiles
from .run import Result
from .text import HEADER, details, difference_rows, result_row


def results_page(results: Sequence[Result], failures: Sequence[Sequence[str]], about: Mapping[str, str]) -> str:
    """Return the page.

    Args:
        failures: lines on the failures of each bag; none if it passed.
    """
    failed = sum(map(bool, failures))
    counts = [(f"{len(results):,}", "bags"), (f"{len(results) - failed:,}", "passed"), (f"{failed:,}", "failed")]
    header = ("check", *HEADER[:-1], "worst difference")
    rows = [
        ("failed" if lines else "passed", *result_row(result)[:-1], _worst(result))
        for result, lines in zip(results, failures, strict=True)
    ]
    off = {(i, 0) for i, lines in enumerate(failures) if lines}
    names = [str(result.outcome.job.bag) for result in results]
    parts = [_part(name, result, lines) for name, result, lines in zip(names, results, failures, strict=True)]
    title = names[0] if len(names) == 1 else "Bags"
    sections = [tiles(counts), table([header, *rows], text_columns=3, off=off), *parts]
    return html_page.results_page("replay", title, title, sections, {}, about, wide=True)


def _worst(result: Result) -> str:
    """The largest difference beyond its tolerance, relative to it."""
    beyond = [row for row in result.differences or () if row.beyond]
    if not beyond:
        return ""
    worst = max(beyond, key=lambda row: row.largest / max(row.absolute, 1e-300))
    return f"{worst.topic}: {worst.field}{f' of {worst.worst}' if worst.worst else ''}, {worst.largest:.2g}"


def _part(name: str, result: Result, failures: Sequence[str]) -> str:
    """What failed, the notes of the replay, and the comparison of a bag."""
    lines = html_page.lines("verdict bad", failures)
    report = result.outcome.report
    lines_of_notes = [] if report is None else [*details(report), *result.missing]
    notes = "".join(f"<li>{escape(line)}</li>" for line in lines_of_notes)
    compared = table(difference_rows(result.differences), text_columns=2) if result.differences else ""
    if not (lines or notes or compared):
        return ""
    return section(name, lines, f"<ul>{notes}</ul>" if notes else "", compared)
