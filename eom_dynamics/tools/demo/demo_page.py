# SPDX-License-Identifier: Apache-2.0
"""HTML page of a demo run: verdict, figures, table, and facts about the run."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import plotly.graph_objects as go

from ...arrays import Array
from ...simulation.feedforward_comparison import Comparison
from .. import provenance
from ..pages.charts import add_joints, over_time, place
from ..pages.html_page import lines, results_page, tiles
from ..pages.html_page import table as html_table
from ..pages.numbers import NOTHING, microseconds, number, relative
from ..pages.style import CURVE_POINTS, MARKERS, color
from ..pages.timing import by_percentile, over_run
from ..pages.units import effort_units, milli, position_units, together
from ..simulate.simulation_page import error_over_time
from ..simulate.summary import HEADER, endings, model_error
from ..simulate.summary import rows as comparison_rows
from .evaluate import CLOSED_FORM_SAMPLES, Answers, RunChecks, deflection, motor_load
from .plan import Plan
from .summary import keeps_up, rate_held, table

# Largest number of round trips drawn as points.
_ROUND_TRIPS = 10_000


_IDENTIFIED = """<section>
<h2>Identification</h2>
<p><a href="identification/index.html">A simulated robot that differs from its file</a>, identified from a recording,
and its tracking before and after.</p>
</section>"""


def write_page(
    path: Path,
    plan: Plan,
    recording: Answers,
    evaluation: RunChecks,
    tracking: Comparison | str,
    *,
    identified: bool = False,
) -> None:
    """Write the page; arguments as of :func:`.write_results`, and whether it names the page of an identification."""
    figures = _figures(plan, recording, evaluation)
    deflection = 1e3 * np.abs(recording.answers["motor_position"] - plan.arm.motors_following(_links(plan)))
    rows = table(plan, recording, evaluation)
    off = {(i, 1) for i, row in enumerate(rows) if not row.passed}
    text = Template(resources.files(__package__).joinpath("demo_page.html").read_text(encoding="utf-8")).substitute(
        {name: place(name, tall=name.startswith("effort")) for name in figures},
        deflection=_largest(deflection, milli(_of_motors(plan, position_units(plan.robot)))),
        motors=_motors(plan),
        rotor="B θ̈" if plan.arm.rotors is None else "B θ̈ (with the motion of the links that carry the rotors)",
        tracking=_tracking(tracking),
        identification=_IDENTIFIED if identified else "",
        rate=f"{plan.rate:,.0f}",
        period=microseconds(1 / plan.rate),
        rows=html_table([("quantity", "value", "note"), *(row[:3] for row in rows)], text_columns=3, off=off),
        closed_form_samples=min(CLOSED_FORM_SAMPLES, plan.count),
        curve_points=f"{CURVE_POINTS:,}",
    )
    if isinstance(tracking, Comparison):
        figures["tracking"] = error_over_time(tracking)
    lead = (
        f"A player process sent {evaluation.sent:,} setpoints to the dynamics node over ROS 2. Each answer holds joint "
        f"efforts, their two time derivatives, and motion and effort of {len(plan.arm.motor_joint)} motors."
    )
    sections = [lines("lead", [lead]), _verdict(plan, evaluation), _tiles(evaluation), text]
    robot = plan.robot.name
    heading = f"Motor feedforward of {robot}, {rate_held(plan, evaluation, 'times per second')}"
    path.write_text(results_page("demo", robot, heading, sections, figures, _about(plan)), encoding="utf-8")


def _links(plan: Plan) -> Array:
    """Joint variables (N, n) of the setpoints."""
    return plan.motion.derivatives(plan.t, order=0)[0]


def _motors(plan: Plan) -> str:
    """Return sentences on pairs of motors, friction and gear losses; empty for ideal motors."""
    said = ""
    if plan.arm.paired.any():
        said += (
            " Two motors at a joint are preloaded against each other and offset from the link even without load; τ is "
            "then the effort of a motor's own spring."
        )
    if not plan.arm.ideal:
        said += " Friction and gear losses add to it."
    return said


def _largest(values: Array, units: tuple[str, ...]) -> str:
    """Return the largest of the values (N, n) for each unit."""
    if np.isnan(values).all():
        return "unknown"
    of_joints = np.nanmax(values, axis=0)
    kinds = {unit: max(v for v, u in zip(of_joints, units, strict=True) if u == unit) for unit in units}
    return " and ".join(f"{number(value)} {unit}" for unit, value in kinds.items())


def _verdict(plan: Plan, evaluation: RunChecks) -> str:
    failures, warning = evaluation.failures, keeps_up(plan, evaluation)
    passed = "Passed: no answer lost, every derivative confirmed."
    shown = lines("verdict bad", [f"Failed: {'; '.join(failures)}."]) if failures else lines("verdict good", [passed])
    return shown + lines("warning", [f"Note: {warning}."] if warning else [])


def _tiles(evaluation: RunChecks) -> str:
    worst = float(np.max([deviation.value for deviation in evaluation.differentiation]))
    return tiles(
        (
            (f"{evaluation.received:,} of {evaluation.sent:,}", "setpoints answered"),
            (microseconds(evaluation.percentile(50)), "round trip, median"),
            (microseconds(evaluation.percentile(99)), "round trip, 99th percentile"),
            (relative(worst), "largest relative deviation of τ̇, τ̈ from numerical differentiation"),
        )
    )


def _tracking(tracking: Comparison | str) -> str:
    """Return text, figure and table of the feedforward comparison."""
    if isinstance(tracking, str):
        return lines("soft", [f"Not simulated: {tracking}."])
    none, rigid, flatness = tracking.rms[0]
    notes = lines("warning", (f"Note: {line}." for line in endings(tracking)))
    duration = tracking.t[-1] - tracking.t[0]
    return (
        f'<p class="soft">The first {duration:g} s of the same motion, simulated with springs and motors '
        f"({escape(model_error(tracking))}, no tool wrench) under three kinds of feedforward: none, that of a rigid "
        "arm (τ alone), and that of the node (τ, τ̇, τ̈). The same PD of "
        f"{tracking.natural_frequency[0]:g} rad/s controls the motors each time; the links are not measured. With the "
        f"feedforward of the node, the RMS link error is <b>{_factor(rigid, flatness)}</b> smaller than with that of a "
        f"rigid arm, and {_factor(none, flatness)} smaller than without feedforward.</p>"
        + place("tracking")
        + notes
        + html_table([HEADER, *comparison_rows(tracking)], text_columns=2)
    )


def _factor(larger: float, smaller: float) -> str:
    return f"{number(larger / smaller)} times" if smaller > 0 else f"{NOTHING} times"


def _about(plan: Plan) -> Mapping[str, str]:
    return provenance.about() | {
        "machine": provenance.machine(),
        "robot": f"{plan.robot.name}, {plan.robot.n} joints",
        "motion": "q = A cos(ω t) with the amplitudes and frequencies of the iiwa example in A. Müller and S. Kumar, "
        "Closed form time derivatives of the equations of motion of rigid body systems, Multibody System Dynamics 53 "
        "(2021)",
        "tool wrench": f"{plan.wrench.amplitude[0]:g} sin(π t) in all six components at each tool, N m and N, with two "
        "derivatives",
    }


def _figures(plan: Plan, recording: Answers, evaluation: RunChecks) -> dict[str, go.Figure]:
    """Return the figures by the names of their places in the page."""
    answers, q = recording.answers, _links(plan)
    effort, position = effort_units(plan.robot), position_units(plan.robot)
    rate, acceleration = (tuple(f"{unit}/{time}" for unit in effort) for time in ("s", "s²"))
    motor, motor_effort_units = answers["motor_position"], _of_motors(plan, effort)
    motor_position_units = _of_motors(plan, position)
    velocity = plan.motion.derivatives(plan.t, order=1)[1]
    deltas = [deflection(plan.arm, *x) for x in ((q, motor), (velocity, answers["motor_velocity"]))]
    load = motor_load(plan.arm, deltas, answers["effort"])
    beside = "effort on the rotor" + ("" if plan.arm.ideal else ", friction and gear loss")
    numerical = evaluation.numerical
    return {
        "effort": _joints(plan, "τ, joint effort", effort, answers["effort"]),
        "effort_rate": _joints(plan, "τ̇, effort rate", rate, answers["effort_rate"], numerical[0]),
        "effort_acceleration": _joints(
            plan, "τ̈, effort acceleration", acceleration, answers["effort_acceleration"], numerical[1]
        ),
        "position": _joints(plan, "q and θ, position of links and motors", position, q, motor),
        "link_deflection": _joints(
            plan,
            "θ − q, spring deflection",
            milli(motor_position_units),
            1e3 * (motor - plan.arm.motors_following(q)),
        ),
        "motor_effort": _joints(plan, "τ_m, motor effort", motor_effort_units, answers["motor_effort"]),
        "rotor_effort": _joints(plan, f"τ_m − τ, {beside}", motor_effort_units, answers["motor_effort"] - load),
        "percentiles": by_percentile("Round trip by percentile", evaluation.round_trip, CURVE_POINTS, 1 / plan.rate),
        "round_trip": over_run(
            "Round trip over the run",
            plan.t,
            recording.received - recording.sent,
            0.0,
            plan.duration,
            points=_ROUND_TRIPS,
            period=1 / plan.rate,
        ),
    }


def _joints(plan: Plan, title: str, units: tuple[str, ...], curves: Array, markers: Array | None = None) -> go.Figure:
    """Return a figure with one curve per joint or motor over time, and markers."""
    figure = over_time(title, together(units), 0.0, plan.duration)
    _add(figure, plan, units, curves, points=CURVE_POINTS)
    if markers is not None:
        kind = "motor" if "θ" in title else "differentiated τ"
        _add(figure, plan, units, markers, points=MARKERS, kind=kind, markers=True)
    return figure


def _add(figure: go.Figure, plan: Plan, units: tuple[str, ...], values: Array, **style: Any) -> None:
    """Draw values of joints (N, n), or of motors (N, m) in the colours of their joints."""
    names = plan.robot.joint_names
    if values.shape[1] == plan.robot.n:
        add_joints(figure, names, units, plan.t, values, **style)
        return
    joint = plan.arm.motor_joint
    add_joints(
        figure,
        plan.arm.motor_names,
        units if len(units) == len(joint) else _of_motors(plan, units),
        plan.t,
        values,
        colors=[color(int(i)) for i in joint],
        of=[names[i] for i in joint],
        **style,
    )


def _of_motors(plan: Plan, of_joints: tuple[str, ...]) -> tuple[str, ...]:
    """Return units of joints (n,) as units of their motors (m,)."""
    return tuple(of_joints[i] for i in plan.arm.motor_joint)
