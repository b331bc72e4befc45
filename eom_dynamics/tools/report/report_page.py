# SPDX-License-Identifier: Apache-2.0
"""The HTML page of one or several records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go

from ...arrays import Array
from ...trajectory.limits import Peak
from ..pages.charts import place
from ..pages.html_page import choice, lines, results_page, section, table, tiles
from ..pages.numbers import NOTHING, microseconds, number
from ..recordings import Stream
from .charts import SHADES, heading, points_of_curve, position_name, sections
from .record import DOING, Deviation, Record, Units, limit_utilization, percent_used


@np.errstate(over="ignore", invalid="ignore")  # damaged messages hold any number
def report_page(records: Sequence[Record], about: Mapping[str, str]) -> str:
    """Make one HTML page of records, which shows one at a time."""
    points = points_of_curve(records)
    figures: dict[str, go.Figure] = {}
    parts = []
    for k, record in enumerate(records):
        own = sections(record, points, group=f"time {k}")
        parts.append(_part(k, record, own, points))
        figures |= {f"{k}_{name}": figure for charts in own.values() for name, figure in charts.items()}
    names = [record.name for record in records]
    title = names[0] if len(names) == 1 else f"{len(names)} recordings"
    shown = [f'<p class="soft">{_LEGENDS}</p>', _pick(names), *parts]
    name = names[0] if len(names) == 1 else "report"
    return results_page("report", name, title, shown, figures, about, wide=True)


_LEGENDS = (
    "Click a joint in a legend to hide it in all charts, double-click to show it alone; <i>limits</i> shows those of "
    "the joints shown. Drag over a chart to zoom all charts over time, double-click to reset."
)


def _pick(names: Sequence[str]) -> str:
    if len(names) == 1:
        return ""
    options = "".join(f'<option value="{k}">{escape(name)}</option>' for k, name in enumerate(names))
    return f'<label class="pick">Recording <select>{options}</select></label>'


def _part(k: int, record: Record, own: Mapping[str, Mapping[str, go.Figure]], points: int) -> str:
    """Show one record."""
    peaks = limit_utilization(record)
    html = [_tiles(record, peaks), _notes(record), _limits(record, peaks)]
    for name, figures in own.items():
        title, text = heading(record, name)
        placed = "".join(place(f"{k}_{key}") for key in figures)
        shown = _TABLES[name](record) if name in _TABLES else ""
        html.append(section(title, f'<div class="pair">{placed}</div>', shown, text=text))
    html.append(_drawn(record, points))
    return f'<div data-part="{k}"{" hidden" if k else ""}>{"".join(html)}</div>'


def _tiles(record: Record, peaks: Sequence[Peak]) -> str:
    shown = [(f"{number(record.duration)} s", "from first to last stamp")]
    shown += [(f"{count:,}", "messages of " + ", ".join(topics)) for count, topics in _counts(record).items()]
    fit, effort, units = record.position_deviation, record.effort_deviation, Units(record)
    if fit is not None:
        shown.append(
            (_worst(1e3 * fit.rms, units.milli(fit.names)), f"RMS of {position_name(record)} − measured, worst joint")
        )
    if effort is not None:
        shown.append((_worst(effort.rms, units.effort(effort.names)), "RMS of τ − measured effort, worst joint"))
    for peak in peaks[:1]:
        shown.append((percent_used(peak), f"of a limit, at most: {peak.quantity.replace('_', ' ')} of {peak.name}"))
    if record.latency is not None:
        shown.append((microseconds(float(np.percentile(record.latency[1], 99))), "latency, 99th percentile"))
    return tiles(shown)


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


def _notes(record: Record) -> str:
    about = lines("soft", [record.computed_note] if record.computed_note else [])
    shown = {phase.status for phase in record.interruptions}
    shades = [f"{color}, commands {DOING[status]}" for status, (color, _) in SHADES.items() if status in shown]
    return about + lines("warning", record.notes) + lines("soft", [f"Shaded: {'; '.join(shades)}."] if shades else [])


def _limits(record: Record, peaks: Sequence[Peak]) -> str:
    """Show the use of limits, the highest first, with a choice of the joint."""
    if not peaks:
        reason = "the robot is unknown (--robot ROBOT)" if record.robot is None else "the file of the robot has none"
        return section("Limits", text=f"No limits: {reason}.")
    rows = [("joint", "limit of", "used", "peak", "limit", "at")]
    for peak in peaks:
        value, limit = (f"{number(x)} {peak.unit}" for x in (peak.value, peak.limit))
        rows.append((peak.name, peak.quantity.replace("_", " "), percent_used(peak), value, limit, f"{peak.t:.3f} s"))
    off = {(i, 2) for i, peak in enumerate(peaks) if peak.ratio > 1}
    groups = [peak.name for peak in peaks]
    return (
        '<section class="limits"><h2>Limits</h2><p class="soft">The largest use of each limit, the highest first. '
        "Positions count from the middle of their range; a range with one end is 0 % used, or exceeded. Motors count "
        "before their gears.</p>"
        + choice("Joint", [joint for joint in record.joints if joint in groups])
        + table(rows, text_columns=2, off=off, groups=groups, strong={0})
        + "</section>"
    )


def _deviation_table(record: Record) -> str:
    fit, effort, units = record.position_deviation, record.effort_deviation, Units(record)
    header = ["joint"]
    if fit is not None:
        header += [f"{position_name(record)}: RMS", "peak"]
    if effort is not None:
        header += ["τ: RMS", "peak", "mean", "measured: standard deviation"]
    rows = []
    for joint in dict.fromkeys([*(fit.names if fit else ()), *(effort.names if effort else ())]):
        row = [joint]
        if fit is not None:
            (unit,) = units.milli((joint,))
            row += [_of_joint(fit, joint, 1e3 * values, unit) for values in (fit.rms, fit.peak)]
        if effort is not None:
            (unit,) = units.effort((joint,))
            columns = (effort.rms, effort.peak, effort.mean, effort.spread)
            row += [_of_joint(effort, joint, values, unit) for values in columns]
        rows.append(row)
    return table([header, *rows])


def _of_joint(found: Deviation, joint: str, values: Array, unit: str) -> str:
    return f"{number(float(values[found.names.index(joint)]))} {unit}" if joint in found.names else NOTHING


def _timing_table(record: Record) -> str:
    rows: list[tuple[str, ...]] = [("", "messages", "median", "99 %", "maximum", "out of order")]
    for stream in record.streams:
        if stream is not record.motors and stream.is_recorded and len(stream) > 1:
            rows.append((f"{stream.topic}: stamp intervals", *_durations(record.intervals(stream)[1], stream)))
    if record.latency is not None:
        rows.append(("setpoint to command, at the recorder", *_durations(record.latency[1], None)))
    return table(rows)


def _durations(seconds: Array, stream: Stream | None) -> tuple[str, ...]:
    shown = (microseconds(float(np.percentile(seconds, percent))) for percent in (50, 99, 100))
    return (f"{len(seconds):,}", *shown, NOTHING if stream is None else f"{np.sum(np.diff(stream.recorded) < 0):,}")


def _drawn(record: Record, points: int) -> str:
    shown = {stream.topic: stream for stream in record.streams}.values()
    thinned = [f"{len(stream):,} of {stream.topic}" for stream in shown if len(stream) > points]
    if not thinned:
        text = "Every sample is drawn."
    else:
        text = (
            f"Thinned for drawing, to {points:,} points a curve: {', '.join(thinned)}. Minimum and maximum of each run "
            "of samples are drawn, so that no peak is lost; zooming shows no further samples."
        )
    return f'<p class="soft" style="margin-top: 2rem">{escape(text)} CSV has the points shown.</p>'


_TABLES = {"deviations": _deviation_table, "timing": _timing_table}
