# SPDX-License-Identifier: Apache-2.0
"""Results of the demo: numbers as JSON and as a table, a picture, and a page with both."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ...arrays import Array
from ...terminal import printable
from .. import provenance
from ..pages.charts import CURVE_POINTS, INK, MARKERS, color, frame
from ..pages.html_page import lines, results_page, section, table
from ..quantity_text import effort_units, for_json, microseconds, milli, position_units, relative, together
from ..writing import whole_folder
from .evaluate import CLOSED_FORM_SAMPLES, REMEDY, Answers, RunChecks
from .plan import Plan

_ABOUT = (
    "Each answer holds joint efforts τ, τ̇, τ̈, which the node computes from the setpoint alone, and motion and effort "
    "of the motors. Circles are the received τ, differentiated numerically; they lie on the lines, so τ̇ and τ̈ are the "
    "derivatives of τ. A motor behind a spring needs both: τ̇ for its velocity, τ̈ for its acceleration."
)

_CHECKS = (
    "Deviations are relative to the largest value. The tolerance for numerical differentiation is ten times its own "
    "error, by central differences of order 6 and 8 and the rounding of efforts. The closed form is evaluated outside "
    f"the node at {CLOSED_FORM_SAMPLES} setpoints at most: efforts are compared directly, motor motion must reproduce "
    "them by the laws of the springs, and motor efforts are those of springs, rotors, friction and gears in it."
)


def as_json(recording: Answers, checks: RunChecks) -> dict[str, Any]:
    """Return the results for JSON; times in s, rates in Hz, None for unknown values."""
    percents = {"p50": 50, "p99": 99, "max": 100}
    return {
        "passed": not checks.failures,
        "failures": checks.failures,
        **{name: getattr(checks, name) for name in ("sent", "received", "lost", "late", "rate")},
        "round_trip": {name: for_json(checks.percentile(percent)) for name, percent in percents.items()},
        "deviations": [
            {"name": d.name, "value": for_json(d.value), "tolerance": d.tolerance, "passed": d.passed}
            for d in checks.deviations
        ],
        "backend": recording.backend,
    }


def rows(plan: Plan, recording: Answers, checks: RunChecks) -> list[tuple[str, str, str]]:
    """Return the table: quantity, value, note."""
    return [
        ("setpoints sent", f"{checks.sent:,}", f"{checks.rate:,.1f} Hz, requested {plan.rate:,.0f} Hz"),
        ("sent late", f"{checks.late:,}", "by more than one period"),
        ("commands received", f"{checks.received:,}", ""),
        ("lost", f"{checks.lost:,}", "tolerance 0"),
        ("round trip p50", microseconds(checks.percentile(50)), "median"),
        ("round trip p99", microseconds(checks.percentile(99)), "99 % of the answers are faster"),
        ("round trip max", microseconds(checks.percentile(100)), "slowest answer"),
        *((x.name, relative(x.value), f"tolerance {x.tolerance:.0e}") for x in checks.deviations),
        ("backend", recording.backend, "of the dynamics, in the node"),
    ]


def note(plan: Plan, checks: RunChecks) -> str | None:
    """Return a warning if setpoints were sent or answered more slowly than requested, or None."""
    if checks.late > checks.sent // 100:
        late = f"{checks.late:,} of {checks.sent:,} setpoints were sent late"
        return f"this machine did not hold {plan.rate:,.0f} Hz: {late}: {REMEDY}"
    if checks.percentile(50) > 1 / plan.rate:
        return f"the node does not keep up with {plan.rate:,.0f} Hz: the median round trip exceeds the period: {REMEDY}"
    return None


def write_results(folder: Path, plan: Plan, recording: Answers, checks: RunChecks, *, force: bool) -> Path:
    """Write index.html, demo.png, results.json and data.npz; returns the path of the page."""
    with whole_folder(folder, force=force) as aside:
        times = {"sent": recording.sent, "received": recording.received, "motor_names": np.array(plan.arm.motor_names)}
        np.savez_compressed(aside / "data.npz", **{**times, **plan.arrays(), **recording.answers})
        (aside / "results.json").write_text(json.dumps(as_json(recording, checks), indent=2), encoding="utf-8")
        (aside / "demo.png").write_bytes(png := picture(plan, recording, checks))
        (aside / "index.html").write_text(page(plan, recording, checks, png), encoding="utf-8")
    return folder / "index.html"


def page(plan: Plan, recording: Answers, checks: RunChecks, png: bytes) -> str:
    """Return the HTML page, which holds the picture."""
    robot, warning = plan.robot.name, note(plan, checks)
    passed = "Passed: no answer lost, every derivative confirmed."
    verdict = [f"Failed: {'; '.join(checks.failures)}."] if checks.failures else [passed]
    image = (
        f'<img alt="Efforts, motors and round trips" style="width: 100%" src="data:image/png;base64,{_base64(png)}">'
    )
    facts = provenance.about(machine=provenance.machine(), robot=f"{robot}, {plan.robot.n} joints") | {
        "motion": "q = A cos(ω t) with the amplitudes and frequencies of the iiwa example in A. Müller and S. Kumar, "
        "Closed form time derivatives of the equations of motion of rigid body systems, Multibody System Dynamics 53 "
        "(2021)",
        "tool wrench": f"{plan.wrench.amplitude[0]:g} sin(π t) in all six components at each tool, N m and N",
    }
    sections = [
        lines(f"verdict {'bad' if checks.failures else 'good'}", verdict),
        lines("warning", [f"Note: {warning}."] if warning else []),
        section("Answers of the node", image, text=_ABOUT),
        section(
            "Results",
            table([("quantity", "value", "note"), *rows(plan, recording, checks)], text_columns=3),
            lines("soft", [_CHECKS]),
        ),
    ]
    return results_page("demo", robot, f"Motor feedforward of {robot} at {plan.rate:,.0f} Hz", sections, {}, facts)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def picture(plan: Plan, recording: Answers, checks: RunChecks) -> bytes:
    """Return a picture as PNG: efforts with two derivatives, motors and links, round trips."""
    figure = Figure(figsize=(15, 7.6), layout="constrained")
    (tau, taud, taudd), (positions, deflections, trips) = figure.subplots(2, 3)
    effort, units = together(effort_units(plan.robot)), position_units(plan.robot)
    answers, q = recording.answers, plan.motion.derivatives(plan.t, order=0)[0]
    theta = answers["motor_position"]

    def draw(axes: Any, title: str, curves: Array, markers: Array | None = None) -> None:
        frame(axes, title)
        for values, every, style in ((curves, CURVE_POINTS, "-"), (markers, MARKERS, "o")):
            if values is None:
                continue
            step = max(1, plan.count // every)
            joints = range(plan.robot.n) if values.shape[1] == plan.robot.n else plan.arm.motor_joint
            for i, joint in enumerate(joints):
                axes.plot(plan.t[::step], values[::step, i], style, color=color(int(joint)), fillstyle="none")

    draw(tau, f"joint effort  τ  [{effort}]", answers["effort"])
    draw(taud, f"τ̇  [{effort}/s]   circles: differentiated τ", answers["effort_rate"], checks.numerical[0])
    draw(taudd, f"τ̈  [{effort}/s²]   circles: differentiated τ", answers["effort_acceleration"], checks.numerical[1])
    draw(positions, f"link  q  (lines), motor  θ  (circles)  [{together(units)}]", q, theta)
    off = 1e3 * (theta - plan.arm.motors_following(q))
    draw(deflections, f"spring deflection  θ − q  [{together(milli(units))}]", off)
    frame(trips, "round trip of a setpoint  [µs]", "share of slower answers")
    slower = 1 - np.arange(checks.received) / max(1, checks.received)
    trips.loglog(slower, 1e6 * np.sort(checks.round_trip), color=color(0))
    trips.invert_xaxis()
    figure.suptitle(f"{printable(plan.robot.name)} over ROS 2", fontsize=15, color=INK, parse_math=False)
    legend = figure.legend(
        handles=tau.get_lines(), labels=["joint"] * plan.robot.n, loc="outside lower center", ncols=7, frameon=False
    )
    # Matplotlib drops labels that begin with an underscore and parses those with $ as formulas.
    for text, name in zip(legend.get_texts(), plan.robot.joint_names, strict=True):
        text.set_parse_math(False)
        text.set_text(printable(name))
    file = io.BytesIO()
    figure.savefig(file, dpi=120, format="png")
    return file.getvalue()
