# SPDX-License-Identifier: Apache-2.0
"""The page of a run: one HTML file that needs nothing beside it, no network either."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from datetime import datetime
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.offline import get_plotlyjs

from .. import __version__
from .evaluate import CLOSED_FORM_SAMPLES, Evaluation, Recording
from .plan import Plan
from .style import CURVE_POINTS, MARKERS, color, effort_unit, position_unit
from .summary import Row, keeps_up, microseconds, relative, table

Array = NDArray[np.float64]


def write_page(path: Path, plan: Plan, recording: Recording, evaluation: Evaluation) -> None:
    """Write the page: verdict, figures, table, and what it was run on."""
    template = Template(resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
    figures = _figures(plan, recording, evaluation)
    deflection = np.abs(recording.answers["motor_position"] - _links(plan))
    robot = escape(plan.robot.name)
    page = template.substitute(
        title=f"{robot}: eom_dynamics demo",
        headline=f"What the motors of {robot} must do, {plan.rate:,.0f} times a second",
        lead=f"{evaluation.sent:,} setpoints went from one process to the dynamics node over ROS 2, and came back as "
        f"joint efforts with two time derivatives and the motion of {plan.robot.n} motors.",
        verdict=_verdict(plan, evaluation),
        tiles=_tiles(evaluation),
        joints="".join(_button(i, escape(name)) for i, name in enumerate(plan.robot.joint_names)),
        deflection=_milli(deflection, position_unit(plan.robot)),
        rate=f"{plan.rate:,.0f}",
        period=microseconds(1 / plan.rate),
        rows="".join(_row(row) for row in table(plan, recording, evaluation)),
        closed_form_samples=min(CLOSED_FORM_SAMPLES, plan.count),
        about="".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in _about(plan).items()),
        plotly=get_plotlyjs(),
        figures=_script(figures),
    )
    path.write_text(page, encoding="utf-8")


def _script(figures: Mapping[str, go.Figure]) -> str:
    """Figures as JSON, in which Plotly leaves no character that is markup to a script element."""
    members = (f"{json.dumps(name)}: {figure.to_json()}" for name, figure in figures.items())
    return f"{{{', '.join(members)}}}"


def _button(joint: int, name: str) -> str:
    return f'<button aria-pressed="true" value="{name}"><i style="background:{color(joint)}"></i>{name}</button>'


def _links(plan: Plan) -> Array:
    """Joint variables (N, n) of the setpoints."""
    return plan.motion.derivatives(plan.t, order=0)[0]


def _milli(values: Array, unit: str) -> str:
    """The largest of the values, in thousandths of the unit."""
    return "unknown" if np.isnan(values).all() else f"{1e3 * np.nanmax(values):.1f} m{unit}"


def _verdict(plan: Plan, evaluation: Evaluation) -> str:
    failures = evaluation.failures
    if failures:
        shown = f'<p class="verdict bad">Failed: {escape("; ".join(failures))}.</p>'
    else:
        shown = '<p class="verdict good">Passed: nothing lost, and every derivative confirmed.</p>'
    warning = keeps_up(plan, evaluation)
    return shown + (f'<p class="warning">Note: {escape(warning)}.</p>' if warning else "")


def _tiles(evaluation: Evaluation) -> str:
    worst = float(np.max([deviation.value for deviation in evaluation.differentiation]))
    tiles = (
        (f"{evaluation.received:,} of {evaluation.sent:,}", "setpoints answered"),
        (microseconds(evaluation.percentile(50)), "round trip, half are faster"),
        (microseconds(evaluation.percentile(99)), "round trip, 99 of 100 are faster"),
        (relative(worst), "largest relative deviation of τ̇, τ̈ from numerical differentiation"),
    )
    return "".join(
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>' for value, name in tiles
    )


def _row(row: Row) -> str:
    kind = "" if row.passed else ' class="off"'
    return f"<tr><th>{escape(row.name)}</th><td{kind}>{escape(row.value)}</td><td>{escape(row.note)}</td></tr>"


def _about(plan: Plan) -> Mapping[str, str]:
    return {
        "date": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        "machine": f"{_processor()}, {os.cpu_count()} logical cores, {platform.system()} {platform.machine()}",
        "software": f"eom_dynamics {__version__}, Python {platform.python_version()}, NumPy {np.__version__}",
        "robot": f"{plan.robot.name}, {plan.robot.n} joints",
        "motion": "joint i moves as A cos(ω t), with the amplitudes and frequencies of the iiwa example of A. Müller "
        "and S. Kumar, Closed form time derivatives of the equations of motion of rigid body systems, Multibody "
        "System Dynamics 53 (2021)",
        "tool wrench": "10 sin(π t) in all six components at each tool, in N m and N, with two derivatives",
    }


def _processor() -> str:
    """Name of the processor, as Linux gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "processor of unknown name"


def _figures(plan: Plan, recording: Recording, evaluation: Evaluation) -> dict[str, go.Figure]:
    """The figures by the name of their place in the page."""
    answers, q = recording.answers, _links(plan)
    effort, position = effort_unit(plan.robot), position_unit(plan.robot)
    return {
        "effort": _joints(plan, f"{effort}", answers["effort"]),
        "effort_rate": _joints(plan, f"{effort}/s", answers["effort_rate"], evaluation.numerical[0]),
        "effort_acceleration": _joints(plan, f"{effort}/s²", answers["effort_acceleration"], evaluation.numerical[1]),
        "position": _joints(plan, position, q, answers["motor_position"]),
        "deflection": _joints(plan, f"m{position}", 1e3 * (answers["motor_position"] - q)),
        "percentiles": _percentiles(plan, evaluation),
        "round_trip": _round_trips(plan, recording),
    }


def _joints(plan: Plan, unit: str, curves: Array, markers: Array | None = None) -> go.Figure:
    """One curve for each joint over time, and markers along it."""
    figure = _over_time(plan, unit)
    line, dot = max(1, plan.count // CURVE_POINTS), max(1, plan.count // MARKERS)
    for i, name in enumerate(plan.robot.joint_names):
        style = {"color": color(i), "width": 2}
        hover = f"{name}: %{{y:.4~g}} {unit}<extra></extra>"
        figure.add_scatter(
            x=_short(plan.t[::line]), y=_short(curves[::line, i]), line=style, meta=name, hovertemplate=hover
        )
        if markers is not None:
            marker = {"symbol": "circle-open", "color": color(i), "size": 7}
            figure.add_scatter(
                x=_short(plan.t[::dot]),
                y=_short(markers[::dot, i]),
                mode="markers",
                marker=marker,
                meta=name,
                hoverinfo="skip",
            )
    return figure


def _percentiles(plan: Plan, evaluation: Evaluation) -> go.Figure:
    """Round trips by percentile, with room for the rare slow ones."""
    figure = _figure("share of answers that were faster", "µs")
    round_trip = 1e6 * np.sort(evaluation.round_trip)
    slower = 1 - np.arange(len(round_trip)) / max(1, len(round_trip))
    figure.add_scatter(
        x=_short(slower),
        y=_short(round_trip),
        line={"color": color(0), "width": 2.5},
        hovertemplate="%{y:,.0f} µs<extra></extra>",
    )
    figure.update_xaxes(
        type="log",
        range=[0.08, float(np.log10(0.8 / max(1, len(round_trip))))],
        tickvals=[0.5, 0.1, 0.01, 0.001],
        ticktext=["50 %", "90 %", "99 %", "99.9 %"],
    )
    return _timed(figure, plan)


def _round_trips(plan: Plan, recording: Recording) -> go.Figure:
    """The round trip of each setpoint over time."""
    figure = _over_time(plan, "µs")
    figure.add_scatter(
        x=_short(plan.t),
        y=_short(1e6 * (recording.received - recording.sent)),
        mode="markers",
        marker={"color": color(0), "size": 3, "opacity": 0.6},
        hovertemplate="%{y:,.0f} µs<extra></extra>",
    )
    return _timed(figure, plan)


def _timed(figure: go.Figure, plan: Plan) -> go.Figure:
    figure.add_hline(y=1e6 / plan.rate, line={"color": color(1), "width": 1.5, "dash": "dash"})
    ticks = [digit * 10**exponent for exponent in range(7) for digit in (1, 2, 5)]
    figure.update_yaxes(type="log", tickvals=ticks, ticktext=[f"{tick:,}" for tick in ticks])
    figure.update_layout(hovermode="closest")
    return figure


def _over_time(plan: Plan, y_title: str) -> go.Figure:
    figure = _figure("time [s]", y_title)
    margin = 0.01 * plan.duration
    return figure.update_xaxes(range=[-margin, plan.duration + margin], zeroline=False)


def _figure(x_title: str, y_title: str) -> go.Figure:
    return go.Figure(
        layout={
            "template": "none",
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "margin": {"l": 58, "r": 8, "t": 12, "b": 42},
            "showlegend": False,
            "hovermode": "x unified",
            "dragmode": False,
            "font": {"size": 13, "family": "system-ui, -apple-system, Segoe UI, Roboto, sans-serif"},
            "xaxis": {"title": {"text": x_title, "standoff": 6}},
            "yaxis": {"title": {"text": y_title, "standoff": 6}, "automargin": True},
        }
    )


def _short(values: Array) -> NDArray[np.float32]:
    """Half the size on the page, and still more digits than a screen shows."""
    return values.astype(np.float32)
