# SPDX-License-Identifier: Apache-2.0
"""Result of the demo: numbers as JSON and as a table, and a picture."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ...arrays import Array
from ...control.fields import COMMAND_FIELDS, EFFORT_FIELDS
from ...exceptions import EomDynamicsError
from ...terminal import printable
from ..pages.charts import CURVE_POINTS, INK, MARKERS, color, frame
from ..pages.page import html_page
from ..provenance import machine
from ..quantity_text import effort_units, for_json, microseconds, milli, number, position_units, relative, together
from ..results import Result, ResultSection, TextTable
from ..writing import whole_folder
from .drawn_stream import drawn_stream, stream_picture
from .evaluate import CLOSED_FORM_SAMPLES, REMEDY, TOLERANCE, Plan, RunChecks

_ABOUT = (
    "Each answer holds joint efforts τ, τ̇, τ̈, which the node computes from the setpoint alone, and motion and effort "
    "of the motors: one behind a spring needs τ̇ for its velocity, τ̈ for its acceleration. Circles are the closed form "
    f"of the equations of motion, evaluated outside the node at {CLOSED_FORM_SAMPLES} setpoints at most. Motor motion "
    "must reproduce its efforts by the laws of the springs; motor efforts are those of springs, rotors, friction and "
    "gears in this motion. Deviations are relative to the largest value."
)

_STREAM = (
    "Positions as of a policy or a hand, with jitter and a gap, for the arm of the demo, in a simulation whose drives "
    "hold commands for 1 ms. Segments between them, as joint_trajectory_controller makes them, step in acceleration, "
    "and links swing on their springs. OnlineTrajectory makes of them a motion that is four times differentiable, "
    "which motors can follow: topic target of the node. It lags by some 0.1 s more, for limits of acceleration, jerk "
    "and snap. The joint that moves most, and the largest error of all."
)


def demo_result(plan: Plan, checks: RunChecks, png: bytes, page: Path) -> Result:
    """Make the result, whose page shows a picture, and one of a stream of positions on a simulated arm."""
    robot, (streamed, without) = plan.robot.name, stream_section(plan)
    warnings = [each for each in (note(plan, checks), without) if each]
    notes = {"p50": "median", "p99": "99 % of the answers are faster", "max": "slowest answer"}
    rows = [
        ("setpoints sent", f"{checks.sent:,}", f"{checks.rate:,.1f} Hz, requested {plan.rate:,.0f} Hz"),
        ("sent late", f"{checks.late:,}", "by more than one period"),
        ("commands received", f"{checks.received:,}", ""),
        ("lost", f"{checks.lost:,}", "tolerance 0"),
        *((f"round trip {name}", microseconds(x), notes[name]) for name, x in checks.round_trip.items()),
        *((name, relative(x), f"tolerance {TOLERANCE:.0e}") for name, x in checks.deviations.items()),
        ("backend", checks.backend, "of the dynamics, in the node"),
    ]
    return Result(
        title=f"Motor feedforward of {robot} at {plan.rate:,.0f} Hz",
        passed="Passed: no answer lost, every number confirmed.",
        sections=[
            ResultSection("Answers of the node", caption=_ABOUT, picture=png),
            ResultSection("Results", tables=[TextTable(("quantity", "value", "note"), rows, text_columns=3)]),
            *streamed,
        ],
        notes=warnings,
        failures=checks.failures,
        files={"page": page},
        json={
            "passed": not checks.failures,
            "failures": checks.failures,
            **{name: getattr(checks, name) for name in ("sent", "received", "lost", "late", "rate", "backend")},
            "round_trip": {name: for_json(x) for name, x in checks.round_trip.items()},
            "deviations": [
                {"name": name, "value": for_json(value), "tolerance": TOLERANCE, "passed": value <= TOLERANCE}
                for name, value in checks.deviations.items()
            ],
        },
        about={
            "machine": machine(),
            "robot": f"{robot}, {plan.robot.n} joints",
            "motion": "that of the iiwa in A. Müller and S. Kumar, Closed form time derivatives of the equations of "
            "motion of rigid body systems, Multibody System Dynamics 53 (2021)",
            "tool wrench": f"{10 * plan.share:g} sin(π t) in all six components at each tool, N m and N",
        },
    )


def stream_section(plan: Plan) -> tuple[list[ResultSection], str]:
    """Section of a stream of positions; none, with the reason, for an arm that cannot follow one."""
    try:
        stream = drawn_stream(plan.arm)
    except EomDynamicsError as error:
        return [], f"without a stream of positions: {error}"
    units = position_units(plan.robot)
    rows = [(name, f"{number(1e3 * x)} {together(milli(units))}") for name, x in stream.errors.items()]
    return [
        ResultSection(
            "A stream of positions at 10 Hz",
            caption=_STREAM,
            picture=stream_picture(stream, together(units)),
            tables=[TextTable(("stream of positions at 10 Hz, simulated arm", "rms error of links"), rows)],
        )
    ], ""


def note(plan: Plan, checks: RunChecks) -> str:
    """Return a warning if setpoints were sent or answered more slowly than requested, else an empty text."""
    if checks.late > checks.sent // 100:
        late = f"{checks.late:,} of {checks.sent:,} setpoints were sent late"
        return f"this machine did not hold {plan.rate:,.0f} Hz: {late}: {REMEDY}"
    if checks.round_trip["p50"] > 1 / plan.rate:
        return f"the node does not keep up with {plan.rate:,.0f} Hz: the median round trip exceeds the period: {REMEDY}"
    return ""


def write_demo(folder: Path, plan: Plan, answers: Mapping[str, Array], checks: RunChecks, *, force: bool) -> Result:
    """Write index.html, demo.png, results.json and data.npz; returns the result."""
    result = demo_result(plan, checks, picture(plan, answers, checks), folder / "index.html")
    with whole_folder(folder, force=force) as aside:
        kept: dict[str, Any] = {name: answers[name] for name in ("sent", "received", "motor_names", *COMMAND_FIELDS)}
        np.savez_compressed(aside / "data.npz", **kept, **plan.arrays())
        (aside / "results.json").write_text(json.dumps(result.json, indent=2), encoding="utf-8")
        (aside / "demo.png").write_bytes(result.sections[0].picture)
        (aside / "index.html").write_text(html_page("demo", result), encoding="utf-8")
    return result


def picture(plan: Plan, answers: Mapping[str, Array], checks: RunChecks) -> bytes:
    """Return a picture as PNG: efforts with two derivatives, motors and links, round trips."""
    figure = Figure(figsize=(15, 7.6), layout="constrained")
    axes = figure.subplots(2, 3).flat
    effort, units = together(effort_units(plan.robot)), position_units(plan.robot)
    q, theta = plan.states[0], answers["motor_position"]
    off = 1e3 * (theta - plan.arm.motors_following(q))
    rows, *circles = checks.closed_form
    titles = (
        f"joint effort  τ  [{effort}]",
        f"τ̇  [{effort}/s]",
        f"τ̈  [{effort}/s²]   circles: closed form",
        f"link  q  (lines), motor  θ  (circles)  [{together(units)}]",
        f"spring deflection  θ − q  [{together(milli(units))}]",
    )
    curves, points = (*(answers[field] for field in EFFORT_FIELDS), q, off), (*circles, theta[rows], off[:0])
    for axis, title, curve, markers in zip(axes, titles, curves, points, strict=False):
        frame(axis, title)
        for x, y, most, style in ((plan.t, curve, CURVE_POINTS, "-"), (plan.t[rows], markers, MARKERS, "o")):
            step = max(1, len(y) // most)
            joints = range(plan.robot.n) if y.shape[1] == plan.robot.n else plan.arm.motor_joint
            for joint, values in zip(joints, y.T, strict=True):
                axis.plot(x[: len(y) : step], values[::step], style, color=color(int(joint)), fillstyle="none")
    trips = axes[5]
    frame(trips, "round trip of a setpoint  [µs]", "share of slower answers")
    slower = 1 - np.arange(checks.sent) / max(1, checks.received)
    trips.loglog(slower[: checks.received], 1e6 * np.sort(answers["round_trip"])[: checks.received], color=color(0))
    trips.invert_xaxis()
    figure.suptitle(f"{printable(plan.robot.name)} over ROS 2", fontsize=15, color=INK, parse_math=False)
    n = plan.robot.n
    legend = figure.legend(axes[0].get_lines()[:n], ["joint"] * n, loc="outside lower center", ncols=7, frameon=False)
    # Matplotlib drops labels that begin with an underscore and parses those with $ as formulas.
    for text, name in zip(legend.get_texts(), plan.robot.joint_names, strict=True):
        text.set_parse_math(False)
        text.set_text(printable(name))
    file = io.BytesIO()
    figure.savefig(file, dpi=120, format="png")
    return file.getvalue()
