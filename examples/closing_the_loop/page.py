# SPDX-License-Identifier: Apache-2.0
"""HTML page of an identification: link errors before and after, residuals, and numbers beside the true ones."""

from __future__ import annotations

from html import escape
from pathlib import Path

import plotly.graph_objects as go

from eom_dynamics.arrays import Array
from eom_dynamics.tools.pages.charts import CURVE_POINTS, add_joints, over_time
from eom_dynamics.tools.pages.html_page import lines, place, results_page, table
from eom_dynamics.tools.provenance import about
from eom_dynamics.tools.quantity_text import effort_units, milli, number, position_units, together

from . import results
from .experiment import NATURAL_FREQUENCY, IdentificationResult


def write_page(path: Path, result: IdentificationResult) -> None:
    """Write errors before and after, residuals and identified numbers as an HTML page."""
    task, plan = result.task, result.task.plan
    shown = {"identified_before": "before", "identified_after": "after"}
    drawn = {
        name: _errors(f"Link error {when}", result, getattr(result, when).t, getattr(result, when).error)
        for name, when in shown.items()
    }
    drawn["identified_motors"] = _motors(result)
    verdict = lines("verdict bad", (f"Failed: {line}." for line in results.failures(result)))
    html = (
        f'<section>{verdict}<p class="soft">A simulated arm that differs from its file: '
        f"{escape(results.deviation_in_words(result))}. The node, with the file, streamed an excitation of "
        f"{plan.excitation.end:g} s over ROS 2, whose optimisation made parameters {number(plan.gain)} times as "
        f"certain; joint_states and motor_states, with noise of encoders and of efforts, were recorded in a bag; and "
        f"from the bag followed masses, inertias, springs, rotors and friction. Then the node got the new file. On "
        f"another motion of {plan.judged.end:g} s, with a PD of {NATURAL_FREQUENCY:g} rad/s on the motors, the RMS "
        f"error of the links is <b>{number(result.gain)} times</b> smaller.</p>"
        + place("identified_before")
        + place("identified_after")
        + table([results.TRACKING_HEADER, *results.tracking_rows(result)])
        + '<h3>Residuals</h3><p class="soft">RMS of predicted less measured efforts, in '
        + f"{together(effort_units(task.robot))}: of springs by the equations of motion of the links, on the motion "
        "that was not identified from; and of motors, on the excitation.</p>"
        + table([results.RESIDUAL_HEADER, *results.residual_rows(result)])
        + place("identified_motors")
        + f'<h3>Identified numbers</h3><p class="soft">SI units. {escape(results.within_deviations(result))}. Of the '
        "bodies, the combinations that are identifiable from the motion; bags, true and identified robot files are in "
        "the folder of this page.</p>" + table([results.NUMBERS_HEADER, *results.number_rows(result)]) + "</section>"
    )
    robot = task.robot.name
    page = results_page("demo", robot, f"Identification of {robot}", [html], drawn, about(robot=robot))
    path.write_text(page, encoding="utf-8")


def _errors(title: str, result: IdentificationResult, t: Array, error: Array) -> go.Figure:
    units = milli(position_units(result.task.robot))
    figure = over_time(title, together(units), float(t[0]), float(t[-1]), group="identified")
    add_joints(figure, result.task.robot.joint_names, units, t, 1e3 * error, points=CURVE_POINTS)
    return figure


def _motors(result: IdentificationResult) -> go.Figure:
    """Measured motor efforts of the excitation."""
    units, recording = effort_units(result.task.robot), result.recording
    start, end = float(recording.t[0]), float(recording.t[-1])
    figure = over_time("Measured motor efforts of the excitation", together(units), start, end, group="excitation")
    add_joints(figure, result.task.robot.joint_names, units, recording.t, recording.motor_effort, points=CURVE_POINTS)
    return figure
