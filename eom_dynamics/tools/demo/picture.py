# SPDX-License-Identifier: Apache-2.0
"""Picture of a demo run: efforts with two derivatives, motors and links, round trips."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter
from numpy.typing import NDArray

from ...arrays import Array
from ...terminal import printable
from ..pages.style import CURVE_POINTS, INK, MARKERS, color, frame
from ..pages.units import effort_units, milli, position_units, together
from .evaluate import Answers, RunChecks
from .plan import Plan
from .summary import rate_held


def write_picture(path: Path, plan: Plan, recording: Answers, evaluation: RunChecks) -> None:
    """Write the picture as PNG for a light background."""
    figure = Figure(figsize=(15, 7.6), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1))
    (tau, taud, taudd), (positions, deflections, round_trips) = figure.subplots(2, 3)
    effort, units_of_q = together(effort_units(plan.robot)), position_units(plan.robot)
    answers = recording.answers
    q = plan.motion.derivatives(plan.t, order=0)[0]

    frame(tau, f"joint effort  τ  [{effort}]")
    _curves(tau, plan, answers["effort"])
    frame(taud, f"τ̇  [{effort}/s]   circles: differentiated τ")
    _curves(taud, plan, answers["effort_rate"], evaluation.numerical[0])
    frame(taudd, f"τ̈  [{effort}/s²]   circles: differentiated τ")
    _curves(taudd, plan, answers["effort_acceleration"], evaluation.numerical[1])
    frame(positions, f"link  q  (lines), motor  θ  (circles)  [{together(units_of_q)}]")
    _curves(positions, plan, q, answers["motor_position"])
    frame(deflections, f"spring deflection  θ − q  [{together(milli(units_of_q))}]")
    _curves(deflections, plan, 1e3 * (answers["motor_position"] - plan.arm.motors_following(q)))
    frame(round_trips, "round trip of a setpoint  [µs]", "share of faster answers")
    _percentiles(round_trips, evaluation)

    lines = tau.get_lines()
    figure.suptitle(
        f"{printable(plan.robot.name)} at {rate_held(plan, evaluation)} over ROS 2:  joint efforts with two time "
        "derivatives, and the motor motion that follows from them",
        fontsize=15,
        color=INK,
        parse_math=False,
    )
    legend = figure.legend(
        handles=lines,
        labels=["joint"] * len(lines),
        loc="outside lower center",
        ncols=min(len(lines), 7),
        frameon=False,
        fontsize=12.5,
        labelcolor=INK,
    )
    # Matplotlib drops labels that begin with an underscore and parses those with $ as formulas.
    for text, name in zip(legend.get_texts(), plan.robot.joint_names, strict=True):
        text.set_parse_math(False)
        text.set_text(printable(name))
    figure.savefig(path, dpi=120)


def _curves(axes: Axes, plan: Plan, curves: Array, markers: Array | None = None) -> None:
    line, dot = max(1, plan.count // CURVE_POINTS), max(1, plan.count // MARKERS)
    for i, joint in enumerate(_joints(plan, curves)):
        axes.plot(plan.t[::line], curves[::line, i], color=color(joint), linewidth=1.8)
    if markers is not None:
        for i, joint in enumerate(_joints(plan, markers)):
            axes.plot(plan.t[::dot], markers[::dot, i], "o", color=color(joint), fillstyle="none", markersize=5)
    axes.margins(x=0.01)


def _joints(plan: Plan, values: Array) -> NDArray[np.int_]:
    """Return the joint of each column of joint values (N, n) or motor values (N, m)."""
    return np.arange(plan.robot.n) if values.shape[1] == plan.robot.n else plan.arm.motor_joint


def _percentiles(axes: Axes, evaluation: RunChecks) -> None:
    """Draw round trips by percentile, on an axis that spreads the slow tail."""
    if not evaluation.received:
        axes.text(0.5, 0.5, "no answers", ha="center", va="center", transform=axes.transAxes, fontsize=14)
        return
    round_trip = 1e6 * np.sort(evaluation.round_trip)
    slower = 1 - np.arange(len(round_trip)) / len(round_trip)
    axes.plot(slower, round_trip, color=color(0), linewidth=2.2)
    axes.set_xscale("log")
    axes.set_xlim(1.2, 0.8 / len(round_trip))
    axes.set_xticks([0.5, 0.1, 0.01, 0.001], ["50 %", "90 %", "99 %", "99.9 %"])
    axes.set_xticks([], minor=True)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_minor_locator(NullLocator())
