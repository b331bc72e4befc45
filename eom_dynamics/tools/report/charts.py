# SPDX-License-Identifier: Apache-2.0
"""Charts of a record, by section."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from ...arrays import Array
from ...stream.watchdog import Status
from ..pages.charts import add_joints, add_limits, over_time
from ..pages.style import color
from ..pages.timing import by_percentile, over_run
from ..pages.units import together
from ..recordings import Stream
from .record import Record, Units, limits_by_name

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
    "timing": (
        "Timing",
        "Intervals between stamps, and the delay from a setpoint to its command, at the recorder.",
    ),
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

# Of all curves of a page together; each point takes 16 bytes of it.
_POINTS_OF_PAGE = 110_000
_CURVES_OF_JOINT = 24
_MOST_POINTS, _FEWEST_POINTS = 4000, 60

_DOTTED = {"dash": "dot", "width": 1.5}
_THIN = {"width": 1}

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

# More would make a page slow; the longest are shown.
_MOST_SHADED = 50

Charts = dict[str, go.Figure]

Streams = tuple[Stream | None, Stream | None]
"""What was commanded, and what was measured."""

# Titles of charts, and what their units are divided by, by field.
_FIELDS = {
    "motion": {
        "position": ("q, position", ""),
        "velocity": ("q̇, velocity", "/s"),
        "acceleration": ("q̈, acceleration", "/s²"),
        "jerk": ("q⁽³⁾, jerk", "/s³"),
        "snap": ("q⁽⁴⁾, snap", "/s⁴"),
    },
    "effort": {
        "effort": ("τ, joint effort", ""),
        "effort_rate": ("τ̇, its rate", "/s"),
        "effort_acceleration": ("τ̈, its acceleration", "/s²"),
    },
    "motor motion": {
        "motor_position": ("θ, motor position", ""),
        "motor_velocity": ("θ̇, motor velocity", "/s"),
        "motor_acceleration": ("θ̈, motor acceleration", "/s²"),
    },
    "motor effort": {"motor_effort": ("τ_m, motor effort", "")},
}

_LIMITED = ("position", "velocity", "acceleration", "jerk", "effort", "effort_rate")


def points_of_curve(records: Sequence[Record]) -> int:
    """Return the maximum number of points per curve that keeps the page fast in any browser."""
    curves = _CURVES_OF_JOINT * sum(len(record.joints) for record in records)
    return int(np.clip(_POINTS_OF_PAGE // max(1, curves), _FEWEST_POINTS, _MOST_POINTS))


def heading(record: Record, section: str) -> tuple[str, str]:
    """Return title and text of a section: for commands, or for a fit or measurements if there are none."""
    special = _FITTED if record.setpoint is not None and record.setpoint.is_fitted else {}
    nothing = {"motion": record.setpoint, "effort": record.command}.get(section, record) is None
    return (_NOT_COMMANDED if nothing else special).get(section, _SECTIONS[section])


def position_name(record: Record) -> str:
    """Return the label of positions compared with measured ones: q if commanded, else fit."""
    return "fit" if record.setpoint is not None and record.setpoint.is_fitted else "q"


def sections(record: Record, points: int, group: str) -> dict[str, Charts]:
    """Draw a record: charts by section and name, without empty ones.

    Args:
        group: of the charts over time, which zoom together.
    """
    drawing = _Drawing(record, points, group)
    made = {
        "motion": drawing.motion(),
        "effort": drawing.effort(),
        "motors": {} if record.is_rigid else drawing.motors(),  # they would repeat the links
        "deviations": drawing.deviations(),
        "timing": drawing.timing(),
    }
    return {name: charts for name, charts in made.items() if charts}


class _Drawing:
    def __init__(self, record: Record, points: int, group: str) -> None:
        self._record, self._points, self._group = record, points, group
        self._colors = {joint: color(i) for i, joint in enumerate(record.joints)}
        self._units = Units(record)
        longest = sorted(record.interruptions, key=lambda phase: phase.start - phase.end)[:_MOST_SHADED]
        self._shades = [
            {
                "type": "rect",
                "layer": "below",
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "x0": phase.start,
                "x1": phase.end,
                "fillcolor": SHADES[phase.status][1],
                "line": {"width": 0},
            }
            for phase in longest
        ]

    def motion(self) -> Charts:
        streams = (self._record.setpoint, self._record.measured)
        return self._fields("motion", streams, self._units.position)

    def effort(self) -> Charts:
        charts = self._fields("effort", (self._record.command, self._record.measured), self._units.effort)
        if not self._record.command and "effort" in charts:
            charts["effort"].update_layout(title_text="<b>Measured joint effort</b>")
        return charts

    def motors(self) -> Charts:
        charts: Charts = {}
        if self._record.spring_deflection is not None:
            t, names, values = self._record.spring_deflection
            units = self._units.milli(names)
            charts["link_deflection"] = self._chart("θ − q, deflection of the spring", units, t, names, 1e3 * values)
        streams = (self._record.motors, None)
        charts |= self._fields("motor motion", streams, self._units.position)
        return charts | self._fields("motor effort", streams, self._units.effort)

    def deviations(self) -> Charts:
        record, charts = self._record, {}
        motion = record.position_deviation
        if motion is not None:
            units = self._units.milli(motion.names)
            charts["position_off"] = self._chart(
                f"{position_name(record)} − measured position",
                units,
                motion.t,
                motion.names,
                1e3 * motion.value,
                line=_THIN,
            )
        effort = record.effort_deviation
        if effort is not None:
            units = self._units.effort(effort.names)
            charts["effort_off"] = self._chart(
                "τ − measured effort", units, effort.t, effort.names, effort.value, line=_THIN
            )
        return charts

    def timing(self) -> Charts:
        record, charts = self._record, {}
        stream = (
            record.setpoint if record.setpoint and record.setpoint.is_recorded else record.measured or record.command
        )
        if stream is not None and len(stream) > 1:
            charts["intervals"] = self._durations(f"{stream.topic}: stamp intervals", *record.intervals(stream))
        delay = record.latency
        if delay is not None:
            charts["latency"] = self._durations("Latency, setpoint to command", *delay)
            charts["latency_percentiles"] = by_percentile("Latency by percentile", delay[1], self._points)
        return charts

    def _fields(self, kind: str, streams: Streams, units: Callable[[Sequence[str], str], tuple[str, ...]]) -> Charts:
        """Draw the fields of a kind that a stream has, with their limits."""
        charts = {}
        for field, (title, suffix) in _FIELDS[kind].items():
            charts[field] = self._together(title, streams, field, units, suffix)
            if field in _LIMITED:
                add_limits(charts[field], limits_by_name(self._record, field), self._colors)
        return {name: chart for name, chart in charts.items() if chart.data}

    def _together(
        self,
        title: str,
        streams: Streams,
        field: str,
        units: Callable[[Sequence[str], str], tuple[str, ...]],
        suffix: str,
    ) -> go.Figure:
        """Draw a field of a stream, and dotted that of the measured one."""
        present = [stream for stream in streams if stream is not None and field in stream.values]
        figure = self._empty(title, units([name for stream in present for name in stream.names], suffix))
        for stream in present:
            style: dict[str, Any] = {}
            if stream is self._record.measured and len(present) > 1:
                style = {"kind": "measured", "line": _DOTTED}
            t, names = self._record.t(stream), stream.names
            self._draw(figure, units(names, suffix), t, names, stream.values[field], **style)
        return figure

    def _chart(self, title: str, units: tuple[str, ...], *curves: Any, **style: Any) -> go.Figure:
        return self._draw(self._empty(title, units), units, *curves, **style)

    def _draw(
        self, figure: go.Figure, units: tuple[str, ...], t: Array, names: Sequence[str], values: Array, **style: Any
    ) -> go.Figure:
        colors = [self._colors[name] for name in names]
        add_joints(figure, names, units, t, values, points=self._points, colors=colors, **style)
        return figure

    def _empty(self, title: str, units: Sequence[str]) -> go.Figure:
        figure = over_time(title, together(units), 0.0, self._record.duration, group=self._group)
        return figure.update_layout(shapes=self._shades)

    def _durations(self, title: str, t: Array, seconds: Array) -> go.Figure:
        return over_run(title, t, seconds, 0.0, self._record.duration, points=4 * self._points, group=self._group)
