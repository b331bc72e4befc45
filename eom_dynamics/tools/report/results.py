# SPDX-License-Identifier: Apache-2.0
"""Result of a report: key figures, limits, charts and tables of each record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ...arrays import Array
from ...trajectory.limits import Peak
from ..quantity_text import NOTHING, microseconds, number
from ..recordings import Stream
from ..results import Result, ResultSection, TextTable
from .charts import SHADES, heading, points_of_curve, position_name, sections
from .record import DOING, Deviation, Record, limit_utilization, percent_used


@np.errstate(over="ignore", invalid="ignore")  # damaged messages hold any number
def report_result(records: Sequence[Record], about: Mapping[str, str], page: Path) -> Result:
    """Make the result of one or several records, whose page shows one at a time."""
    points = points_of_curve(records)
    # Names of records may repeat.
    names = [record.name for record in records]
    labels = [f"{name} ({k + 1})" if name in names[:k] else name for k, name in enumerate(names)]
    return Result(
        title=names[0] if len(names) == 1 else f"{len(names)} recordings",
        parts={
            label: _record_result(record, points, group=f"time {k}")
            for k, (label, record) in enumerate(zip(labels, records, strict=True))
        },
        files={"page": page},
        about=about,
    )


def _record_result(record: Record, points: int, group: str) -> Result:
    peaks = limit_utilization(record)
    statuses = {phase.status for phase in record.interruptions}
    shades = [f"{color}, commands {DOING[status]}" for status, (color, _) in SHADES.items() if status in statuses]
    drawn = []
    for name, charts in sections(record, points, group).items():
        title, caption = heading(record, name)
        tables = [_TABLES[name](record)] if name in _TABLES else []
        drawn.append(ResultSection(title, caption=caption, charts=charts, tables=tables))
    return Result(
        lead=[f"Shaded: {'; '.join(shades)}."] if shades else [],
        facts=_facts(record, peaks),
        notes=[*([record.computed_note] if record.computed_note else []), *record.notes],
        sections=[_limits(record, peaks), *drawn, ResultSection(lines=[_drawn(record, points)])],
    )


def _facts(record: Record, peaks: Sequence[Peak]) -> dict[str, str]:
    facts = {"from first to last stamp": f"{number(record.duration)} s"}
    facts |= {"messages of " + ", ".join(topics): f"{count:,}" for count, topics in _counts(record).items()}
    if (fit := record.position_deviation) is not None:
        rms = _worst(1e3 * fit.rms, record.units("milliposition", fit.names))
        facts[f"RMS of {position_name(record)} − measured, worst joint"] = rms
    if (effort := record.effort_deviation) is not None:
        facts["RMS of τ − measured effort, worst joint"] = _worst(effort.rms, record.units("effort", effort.names))
    for peak in peaks[:1]:
        facts[f"of a limit, at most: {peak.quantity.replace('_', ' ')} of {peak.name}"] = percent_used(peak)
    if record.latency is not None:
        facts["latency, 99th percentile"] = microseconds(float(np.percentile(record.latency[1], 99)))
    return facts


def _counts(record: Record) -> dict[int, list[str]]:
    """Return recorded topics by their number of messages; a node answers as many as it gets."""
    counts: dict[int, list[str]] = {}
    for stream in record.streams:
        if stream.is_recorded and stream is not record.motors:
            counts.setdefault(len(stream), []).append(stream.topic)
    return counts


def _worst(values: Array, units: Sequence[str]) -> str:
    worst = int(np.nanargmax(values))
    return f"{number(float(values[worst]))} {units[worst]}"


def _limits(record: Record, peaks: Sequence[Peak]) -> ResultSection:
    """Use of limits, the highest first, with a choice of the joint."""
    if not peaks:
        reason = "the robot is unknown (--robot ROBOT)" if record.robot is None else "the file of the robot has none"
        return ResultSection("Limits", lines=[f"No limits: {reason}."])
    rows = []
    for peak in peaks:
        value, limit = (f"{number(x)} {peak.unit}" for x in (peak.value, peak.limit))
        rows.append((peak.name, peak.quantity.replace("_", " "), percent_used(peak), value, limit, f"{peak.t:.3f} s"))
    header = ("joint", "limit of", "used", "peak", "limit", "at")
    failed = {(i, header.index("used")) for i, peak in enumerate(peaks) if peak.ratio > 1}
    table = TextTable(header, rows, text_columns=2, failed=failed, menu="Joint")
    caption = (
        "The largest use of each limit, the highest first. Positions count from the middle of their range; a range "
        "with one end is 0 % used, or exceeded. Motors count before their gears."
    )
    return ResultSection("Limits", caption=caption, tables=[table])


def _deviation_table(record: Record) -> TextTable:
    columns: dict[str, dict[str, str]] = {}  # texts by joint

    def add(title: str, deviation: Deviation, quantity: str, values: Array) -> None:
        pairs = zip(values, record.units(quantity, deviation.names), strict=True)
        columns[title] = dict(zip(deviation.names, (f"{number(x)} {unit}" for x, unit in pairs), strict=True))

    if (fit := record.position_deviation) is not None:
        add(f"{position_name(record)}: RMS", fit, "milliposition", 1e3 * fit.rms)
        add(f"{position_name(record)}: peak", fit, "milliposition", 1e3 * fit.peak)
    if (effort := record.effort_deviation) is not None:
        for name in ("RMS", "peak", "mean"):
            add(f"τ: {name}", effort, "effort", getattr(effort, name.lower()))
    joints = dict.fromkeys(joint for column in columns.values() for joint in column)
    rows = [(joint, *(column.get(joint, NOTHING) for column in columns.values())) for joint in joints]
    return TextTable(("joint", *columns), rows)


def _timing_table(record: Record) -> TextTable:
    rows = []
    for stream in record.streams:
        if stream is not record.motors and stream.is_recorded and len(stream) > 1:
            rows.append((f"{stream.topic}: stamp intervals", *_durations(record.intervals(stream)[1], stream)))
    if record.latency is not None:
        rows.append(("setpoint to command, at the recorder", *_durations(record.latency[1], None)))
    return TextTable(("", "messages", "median", "99 %", "maximum", "out of order"), rows)


def _durations(seconds: Array, stream: Stream | None) -> tuple[str, ...]:
    shown = (microseconds(float(np.percentile(seconds, percent))) for percent in (50, 99, 100))
    return (f"{len(seconds):,}", *shown, NOTHING if stream is None else f"{np.sum(np.diff(stream.recorded) < 0):,}")


def _drawn(record: Record, points: int) -> str:
    shown = {stream.topic: stream for stream in record.streams}.values()
    thinned = [f"{len(stream):,} of {stream.topic}" for stream in shown if len(stream) > points]
    if not thinned:
        return "Every sample is drawn. CSV has the points shown."
    return (
        f"Thinned for drawing, to {points:,} points a curve: {', '.join(thinned)}. Minimum and maximum of each run of "
        "samples are drawn, so that no peak is lost; zooming shows no further samples. CSV has the points shown."
    )


_TABLES = {"deviations": _deviation_table, "timing": _timing_table}
