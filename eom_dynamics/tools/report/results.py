# SPDX-License-Identifier: Apache-2.0
"""Result of a report: key figures, limits, charts and tables of each record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go

from ...arrays import Array
from ...control.fields import EFFORT_FIELDS, MOTOR_FIELDS, STATE_FIELDS
from ...control.settings import Status
from ...trajectory.limits import Peak
from ..pages.charts import add_joints, add_limits, color, over_run, over_time
from ..quantity_text import NOTHING, microseconds, number, together
from ..recordings import Stream
from ..results import Result, ResultSection, TextTable
from .record import DOING, Deviation, Record, limit_utilization, limits_by_name, percent_used

_SECTIONS = {
    "motion": (
        "Motion",
        "q and its first four time derivatives. Dotted: measured. Dashed, on demand: limits of the robot.",
    ),
    "effort": (
        "Joint efforts",
        "τ, the effort of the rigid-body dynamics on the link side, and its first two time derivatives. Dotted: "
        "measured. Dashed, on demand: limits of the robot.",
    ),
    "motors": (
        "Motors",
        "Motor quantities on the link side of the gear. The motor of a rigid joint moves with its link.",
    ),
    "deviations": (
        "Deviations",
        "Commanded minus measured values. A measured effort includes what τ leaves out: friction, cables, "
        "and the offset of the sensor.",
    ),
    "timing": ("Timing", "Intervals between stamps, and the delay from a setpoint to its command, at the recorder."),
}

_FITTED = {
    "motion": (
        "Motion, fitted",
        "The fit to the measured positions, and its first four time derivatives. Dotted: measured. Dashed, on demand: "
        "limits of the robot.",
    ),
    "deviations": (
        "Fit",
        "The fit minus measured positions: noise that it leaves out, not a tracking error; nothing was commanded. τ of "
        "the fit minus the measured effort, which includes what τ leaves out: friction, cables, and the offset of the "
        "sensor.",
    ),
}

_POINTS_OF_PAGE = 110_000  # of all curves of a page together; each point takes 16 bytes of it
_CURVES_OF_JOINT = 24
_MOST_POINTS, _FEWEST_POINTS = 4000, 60
_DOTTED = {"dash": "dot", "width": 1.5}
_THIN = {"line": {"width": 1}}

_NOT_COMMANDED = {
    "motion": ("Motion, measured", "Measured positions and velocities. Dashed, on demand: limits of the robot."),
    "effort": (
        "Joint efforts, measured",
        "As the joints' sensors or drives report them, with friction, cables and the offset of the sensor. Dashed, on "
        "demand: limits of the robot.",
    ),
}

SHADES = {
    Status.STOPPING: ("orange", "rgba(238, 153, 51, 0.22)"),
    Status.RAMPING: ("red", "rgba(238, 68, 85, 0.22)"),
    Status.HELD: ("grey", "rgba(138, 138, 138, 0.22)"),
}
"""Name and value of the colour behind commands that answer no setpoint, by status."""

_MOST_SHADED = 50  # more would make a page slow; the longest are shown

Charts = dict[str, go.Figure]

# Fields, quantities, and titles of the charts of these and of their time derivatives, by section.
_FIELDS: dict[str, list[tuple[Sequence[str], str, Sequence[str]]]] = {
    "motion": [
        (STATE_FIELDS, "position", ("q, position", "q̇, velocity", "q̈, acceleration", "q⁽³⁾, jerk", "q⁽⁴⁾, snap"))
    ],
    "effort": [(EFFORT_FIELDS, "effort", ("τ, joint effort", "τ̇, its rate", "τ̈, its acceleration"))],
    "motors": [
        (MOTOR_FIELDS[:3], "position", ("θ, motor position", "θ̇, motor velocity", "θ̈, motor acceleration")),
        (MOTOR_FIELDS[3:], "effort", ("τ_m, motor effort",)),
    ],
}

_SUFFIXES = ("", "/s", "/s²", "/s³", "/s⁴")

# Times, names, values, and style of curves.
_Curves = tuple[Array, Sequence[str], Array, Mapping[str, Any]]

_LIMITED = ("position", "velocity", "acceleration", "jerk", "effort", "effort_rate")


def heading(record: Record, section: str) -> tuple[str, str]:
    """Return title and text of a section: for commands, or for a fit or measurements if there are none."""
    special = _FITTED if record.setpoint is not None and record.setpoint.is_fitted else {}
    nothing = {"motion": record.setpoint, "effort": record.command}.get(section, record) is None
    return (_NOT_COMMANDED if nothing else special).get(section, _SECTIONS[section])


def position_name(record: Record) -> str:
    """Return the label of positions compared with measured ones: q if commanded, else fit."""
    return "fit" if record.setpoint is not None and record.setpoint.is_fitted else "q"


def sections(record: Record, points: int, group: str) -> dict[str, Charts]:
    """Draw a record: charts by section and name, without empty ones; those over time, a ``group``, zoom together."""
    drawing = _Drawing(record, points, group)
    charts = {
        "motion": drawing.fields("motion", record.setpoint, record.measured),
        "effort": drawing.fields("effort", record.command, record.measured),
        "motors": {} if record.is_rigid else drawing.motors(),  # they would repeat the links
        "deviations": drawing.deviations(),
        "timing": drawing.timing(),
    }
    if not record.command and "effort" in charts["effort"]:
        charts["effort"]["effort"].update_layout(title_text="<b>Measured joint effort</b>")
    return {name: drawn for name, drawn in charts.items() if drawn}


class _Drawing:
    def __init__(self, record: Record, points: int, group: str) -> None:
        self._record, self._points, self._group = record, points, group
        self._colors = {joint: color(i) for i, joint in enumerate(record.joints)}
        longest = sorted(record.interruptions, key=lambda phase: phase.start - phase.end)[:_MOST_SHADED]
        band = {"type": "rect", "layer": "below", "yref": "paper", "y0": 0, "y1": 1, "line": {"width": 0}}
        self._shades = [{**band, "x0": x.start, "x1": x.end, "fillcolor": SHADES[x.status][1]} for x in longest]

    def fields(self, section: str, stream: Stream | None, measured: Stream | None = None) -> Charts:
        """Draw the fields of a section that a stream or measurement has, with their limits."""
        charts, t = {}, self._record.t
        for names, quantity, titles in _FIELDS[section]:
            for field, title, suffix in zip(names, titles, _SUFFIXES, strict=False):
                present = [x for x in (stream, measured) if x is not None and field in x.values]
                dotted = {"kind": "measured", "line": _DOTTED} if len(present) > 1 else {}
                curves = [(t(x), x.names, x.values[field], dotted if x is measured else {}) for x in present]
                if any(joints for _, joints, *_ in curves):
                    charts[field] = self._chart(title, quantity, curves, suffix)
                    if field in _LIMITED:
                        add_limits(charts[field], limits_by_name(self._record, field), self._colors)
        return charts

    def motors(self) -> Charts:
        charts: Charts = {}
        if self._record.spring_deflection is not None:
            t, names, values = self._record.spring_deflection
            curves: list[_Curves] = [(t, names, 1e3 * values, {})]
            charts["link_deflection"] = self._chart("θ − q, deflection of the spring", "milliposition", curves)
        return charts | self.fields("motors", self._record.motors)

    def deviations(self) -> Charts:
        charts: Charts = {}
        if (x := self._record.position_deviation) is not None:
            title = f"{position_name(self._record)} − measured position"
            charts["position_off"] = self._chart(title, "milliposition", [(x.t, x.names, 1e3 * x.value, _THIN)])
        if (x := self._record.effort_deviation) is not None:
            charts["effort_off"] = self._chart("τ − measured effort", "effort", [(x.t, x.names, x.value, _THIN)])
        return charts

    def timing(self) -> Charts:
        record, charts = self._record, {}
        recorded = record.setpoint is not None and record.setpoint.is_recorded
        stream = record.setpoint if recorded else record.measured or record.command
        if stream is not None and len(stream) > 1:
            charts["intervals"] = self._durations(f"{stream.topic}: stamp intervals", *record.intervals(stream))
        if record.latency is not None:
            charts["latency"] = self._durations("Latency, setpoint to command", *record.latency)
        return charts

    def _chart(self, title: str, quantity: str, curves: Sequence[_Curves], suffix: str = "") -> go.Figure:
        all_units = [[unit + suffix for unit in self._record.units(quantity, names)] for _, names, *_ in curves]
        figure = over_time(title, together([*chain(*all_units)]), 0.0, self._record.duration, group=self._group)
        for (t, names, values, style), units in zip(curves, all_units, strict=True):
            colors = [self._colors[name] for name in names]
            add_joints(figure, names, units, t, values, points=self._points, colors=colors, **style)
        return figure.update_layout(shapes=self._shades)

    def _durations(self, title: str, t: Array, seconds: Array) -> go.Figure:
        return over_run(title, t, seconds, 0.0, self._record.duration, points=4 * self._points, group=self._group)


@np.errstate(over="ignore", invalid="ignore")  # damaged messages hold any number
def report_result(records: Sequence[Record], about: Mapping[str, str], page: Path) -> Result:
    """Make the result of one or several records, whose page shows one at a time."""
    curves = _CURVES_OF_JOINT * sum(len(record.joints) for record in records)
    points = int(np.clip(_POINTS_OF_PAGE // max(1, curves), _FEWEST_POINTS, _MOST_POINTS))
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
