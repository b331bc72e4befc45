# SPDX-License-Identifier: Apache-2.0
"""Result of a replay: an index of the bags, and the comparison of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...control.fields import COMMAND_FIELDS, EFFORT_FIELDS
from ...recordings.bags import Bag
from ...recordings.fitted_motion import CONSEQUENCE
from ...recordings.streams import TopicReader
from ..results import Result, ResultSection, TextTable
from .compare import MISSING, Difference
from .job import Report
from .run import Outcome

if TYPE_CHECKING:
    import plotly.graph_objects as go

_MOST_CHARTS = 4  # of a bag
_MOST_LINES = 8  # at most as many lines of one kind are printed per bag


def replay_result(
    outcomes: Sequence[Outcome], golden: Path | None, about: Mapping[str, str], page: Path | None = None
) -> Result:
    """Make the result of a replay: a row for each bag, and details below; ``golden`` is what bags are compared with."""
    failures = [outcome.error for outcome in outcomes if outcome.error]
    if differing := sum(bool(outcome.beyond) for outcome in outcomes):
        compared = sum(outcome.differences is not None for outcome in outcomes)
        failures.append(f"{differing} of {compared} bags differ from {golden}")
    failures += [f"{outcome.job.bag}: {line}" for outcome in outcomes for line in outcome.failed_checks]
    failed = sum(bool(outcome.failures) for outcome in outcomes)
    return Result(
        title=str(outcomes[0].job.bag) if len(outcomes) == 1 else f"{len(outcomes):,} bags",
        facts={"passed": f"{len(outcomes) - failed:,}", "failed": f"{failed:,}"} if len(outcomes) > 1 else {},
        sections=[
            ResultSection(tables=[_index(outcomes)]),
            *(_section(outcome, charts=page is not None) for outcome in outcomes),
        ],
        failures=failures,
        files={} if page is None else {"page": page},
        json=list(map(_as_json, outcomes)),
        about=about,
    )


def _index(outcomes: Sequence[Outcome]) -> TextTable:
    header = ("bag", "topic", "commands", "refused", "recorded, s", "took, s", "")
    rows = []
    for outcome in outcomes:
        numbers, report = ("",) * 4, outcome.report
        if report is not None:
            numbers = report.topic, f"{report.commands:,}", f"{report.refusals.total:,}", f"{report.seconds:.2f}"
        state = "failed" if outcome.failures else "kept" if outcome.kept else ""
        rows.append((outcome.job.bag.name, *numbers, f"{outcome.wall:.2f}", state))
    failed = {(i, header.index("")) for i, outcome in enumerate(outcomes) if outcome.failures}
    return TextTable(header, rows, text_columns=2, failed=failed)


def _section(outcome: Outcome, *, charts: bool) -> ResultSection:
    lines, tables, drawn = outcome.detail.splitlines(), [], {}
    if (report := outcome.report) is not None:
        lines += notes(report)
        errors = {
            "fit, RMS": [f"{x:.2e}" for x in report.deviation],
            "fit, largest": [f"{x:.2e}" for x in report.largest_deviation],
            "effort, RMS difference": [f"{x:.3f}" for x in report.rms],
        }
        if errors := {title: values for title, values in errors.items() if values}:
            rows = list(zip(report.joint_names, *errors.values(), strict=True))
            tables.append(TextTable(("joint", *errors), rows))
    if outcome.differences:
        # Differences without a number, such as of names of joints.
        lines += [f"{row.topic}: {row.text}" for row in outcome.beyond if not row.largest] + outcome.missing
        tables.append(_differences(outcome.differences))
        differing = [row for row in outcome.beyond if row.field in COMMAND_FIELDS][:_MOST_CHARTS]
        if charts and differing and outcome.job.golden is not None:
            topic, fields = differing[0].topic, [row.field for row in differing]
            drawn[topic] = compared_figure(outcome.job.output, outcome.job.golden.path, topic, fields)
    return ResultSection(str(outcome.job.bag) if lines or tables else "", lines, charts=drawn, tables=tables)


def compared_figure(output: Path, golden: Path, topic: str, fields: Sequence[str]) -> go.Figure:
    """Draw fields of commands minus those of a golden bag at the same stamps, of the joints or motors of both."""
    from ..pages.charts import add_joints, charts_over_time

    sides = []
    for path in (output, golden):
        with Bag(path) as bag:
            sides.append(TopicReader(bag, next(x for x in bag.topics if x.name == topic)).streams())
    figure = charts_over_time(dict.fromkeys((f"{field.replace('_', ' ')}, replayed − golden" for field in fields), ""))
    for row, field in enumerate(fields, 1):
        mine, theirs = (side["command" if field in EFFORT_FIELDS else "motors"] for side in sides)
        _, first, second = np.intersect1d(mine.stamp, theirs.stamp, return_indices=True)
        names = tuple(name for name in mine.names if name in theirs.names)
        difference = mine[first].ordered(names).values[field] - theirs[second].ordered(names).values[field]
        t = mine[first].seconds(int(mine.stamp[0]))
        add_joints(figure, names, [""] * len(names), t, difference, row=row)
    return figure


def _differences(differences: Sequence[Difference]) -> TextTable:
    shown = [row for row in differences if row.field != MISSING]
    rows = [
        (
            *(row.topic, row.field, f"{row.compared:,}", row.difference, row.worst),
            *(f"{row.beyond:,}" if row.beyond else "", "" if row.first is None else _seconds(row.first)),
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
        "kept": outcome.kept,
        "report": asdict(outcome.report) if outcome.report else None,
        **compared,
    }


def notes(report: Report) -> Iterator[str]:
    """Lines on the robot, on limits, and on messages that were refused, were early, or repeat positions."""
    for lines in (report.warnings, report.motion, report.exceeded):
        yield from lines[:_MOST_LINES]
        if len(lines) > _MOST_LINES:
            yield f"… and {len(lines) - _MOST_LINES} more"
    for reason, count in report.refusals.ranked():
        first = _seconds(report.refusals.first[reason])
        yield f"{count:,} of topic {report.topic} refused, the first at {first}: {report.refusals.text(reason)}"
    if report.held:
        yield f"{report.held:,} of them answered with the last good command"
    if report.early:
        yield f"{report.early:,} of topic {report.topic} early: their stamps ran ahead of their arrival (stamp_check)"
    if report.first_repeated is not None:
        yield (
            f"{report.repeated:,} messages of topic {report.topic} repeat the positions of the message before during a "
            f"motion, the first at {_seconds(report.first_repeated)}: {CONSEQUENCE}"
        )


def _seconds(time: int) -> str:
    return f"{time // 1_000_000_000}.{time % 1_000_000_000:09d}"
