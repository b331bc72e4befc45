# SPDX-License-Identifier: Apache-2.0
"""Play the paper's motion to the node over ROS 2, from another process, and check and show its answers.

Writes index.html and demo.png. Answers are compared with two computations: the feedforward of the library, and the
closed form of the equations of motion with linear spring laws, which shares no code with it.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import STATE_NAMES, Array
from ...control.fields import COMMAND_FIELDS, EFFORT_FIELDS, WRENCH_FIELDS
from ...elastic import ElasticArm
from ...equations import equations_of_motion
from ...exceptions import require, require_ros
from ...robot import load_robot
from ...trajectory import paper_motion, paper_wrench
from ..options import add_output_folder, numeric
from ..pages import color, frame, html_page
from ..processes import Run, RunError
from ..quantity_text import microseconds, relative
from ..results import Result, ResultSection, TextTable, progress_bars
from ..writing import check_folder, write_folder

_DURATION = 5.0  # of the motion, s

# Every command is recorded, and a busy computer that is late makes no loss of setpoints. In a domain of its own, the
# node waits for no other.
_NODE = (
    "--ros-args -p robot_file:=iiwa -p qos_overrides./feedforward.publisher.depth:=1000 -p safety:=permissive "
    "-p limits:=refuse "  # no arm moves: setpoints of a burst, from a busy machine, are answered
    "-p setpoint_timeout:=0.0 -p on_setpoint_loss:=none -p allow_other_publishers:=true"
)

# The paper's motion is up to 1.61 times as fast as the robot may move.
_SLOWED = 1.7

_SAMPLES = 250  # largest number of setpoints with the closed form, which takes a millisecond each

_TOLERANCE = 1e-10  # largest relative deviation that passes: some hundred operations, in different orders
_REMEDY = "run again while the machine is idle, or at a lower rate: eom_dynamics demo --rate HZ"
_ABOUT = (
    "Each answer holds joint efforts τ, τ̇, τ̈, which the node computes from the setpoint alone, and motion and effort "
    "of the motors: behind a spring, motor velocity needs τ̇, motor acceleration τ̈. Circles are the closed form "
    "of the equations of motion, evaluated outside the node. Motion, 1.7 times slower, and tool wrench are those of "
    "A. Müller and S. Kumar, Multibody System Dynamics 53 (2021). Deviations are relative to the largest value."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = "setpoints per second; default: %(default)g"
    parser.add_argument("--rate", metavar="HZ", type=numeric("[100, 10000]"), default=1000.0, help=what)
    add_output_folder(parser, default=Path("demo"))


def run(options: argparse.Namespace) -> Result:
    """Play, check and write; it fails if a process or a check fails."""
    require("demo")
    require_ros()
    check_folder(options.output, force=options.force)
    plan = Plan(options.rate, _DURATION)
    try:
        with (
            progress_bars("{task.completed:,.0f} sent, {task.fields[received]:,} answered") as bars,
            Run() as processes,
        ):
            bar = bars.add_task("setpoints", total=len(plan.t), received=0)
            np.savez(processes.folder / "setpoints.npz", **plan.arrays())
            processes.start("the node", "eom_dynamics.ros.dynamics_node", _NODE)
            # The node may compile before the first answer.
            files = "setpoints.npz answers.npz --timeout 60 --grace 5"
            processes.play(
                lambda sent, received: bars.update(bar, completed=sent, received=received),
                "eom_dynamics.ros.player",
                f"{files} --rate {plan.rate}",
            )
            with np.load(processes.folder / "answers.npz") as file:
                answers = dict(file)
    except RunError as error:
        return Result(failures=[str(error)])
    result = demo_result(plan, answers, options.output / "index.html")
    written = {"index.html": html_page("demo", result).encode(), "demo.png": result.sections[0].picture}
    write_folder(options.output, written, force=options.force)
    return result


class Plan:
    """Setpoints of the paper's motion, slowed down, and tool wrench for the paper's robot.

    Attributes:
        robot: the iiwa, on linear springs.
        rate: of the setpoints, Hz.
        t: their times (N,), s.
        states: q … qdddd (5, N, n), rad and per s … s⁴.
        wrench: wrenches (3, N, 6) and two derivatives, moment first, in the frame of the tool, N m and N.
        feedforward: fields of the commands (N, n).
        rows: indices (K,) of setpoints with the closed form.
        closed_form: fields of the commands (K, n) at these.
    """

    def __init__(self, rate: float, duration: float) -> None:
        """Sample the motion for ``duration`` s."""
        self.robot, self.rate, self.t = load_robot("iiwa"), rate, np.arange(round(rate * duration)) / rate
        motion = enumerate(paper_motion().derivatives(self.t / _SLOWED))
        self.states = np.stack([x / _SLOWED**k for k, x in motion])
        self.wrench = np.stack(paper_wrench().derivatives(self.t, order=2))
        command = ElasticArm(self.robot).feedforward(*self.states, wrench=tuple(self.wrench))
        self.feedforward = dict(zip(COMMAND_FIELDS, command, strict=True))
        self.rows = np.unique(np.linspace(0, len(self.t) - 1, _SAMPLES).round().astype(int))
        efforts = np.swapaxes([self._efforts(row) for row in self.rows], 0, 1)
        motors = self.states[:3, self.rows] + efforts / self.robot.stiffness
        known = (*efforts, *motors, efforts[0] + self.robot.rotor_inertia * motors[2])
        self.closed_form = dict(zip(COMMAND_FIELDS, known, strict=True))

    def _efforts(self, row: int) -> Any:
        """tau, taud, taudd (3, n) of a setpoint."""
        *motion, qdddd = self.states[:, row]
        return equations_of_motion(self.robot, *motion, wrench=tuple(self.wrench[:, row])).efforts(qdddd)

    def arrays(self) -> dict[str, Any]:
        """Return times and setpoints as arrays, with the names that the player reads."""
        names, values = (*STATE_NAMES, *WRENCH_FIELDS), (*self.states, *self.wrench)
        return {"t": self.t, "joint_names": self.robot.joint_names, **dict(zip(names, values, strict=True))}


def demo_result(plan: Plan, answers: Mapping[str, Array], page: Path) -> Result:
    """Check the answers of a run, arrays of the player; rows without an answer are NaN."""
    sent, trips = answers["sent"], answers["round_trip"]
    arrived, count, wanted = np.isfinite(trips), len(sent), f"{plan.rate:,.0f} Hz"
    lost, late = int(np.sum(~arrived)), int(np.sum(sent - sent[0] - plan.t > 1 / plan.rate))
    rate = (count - 1) / (sent[-1] - sent[0])
    median, slow, slowest = np.percentile(trips[arrived] if arrived.any() else [np.nan], (50, 99, 100))
    rows = [
        ("setpoints sent", f"{count:,}", f"{rate:,.1f} Hz, requested {wanted}"),
        ("sent late", f"{late:,}", "by more than one period"),
        ("lost", f"{lost:,}", "tolerance 0"),
        ("round trip", microseconds(median), f"median; 99 %: {microseconds(slow)}, slowest: {microseconds(slowest)}"),
    ]
    failures = [f"{lost} of {count} setpoints were not answered: {_REMEDY}"] if lost else []
    for name, expected, compared in (
        ("every answer against feedforward", plan.feedforward, np.arange(count)),
        ("all quantities against closed form", plan.closed_form, plan.rows),
    ):
        off = _largest(answers, expected, compared, arrived[compared])
        rows.append((name, relative(off), f"tolerance {_TOLERANCE:.0e}"))
        if not off <= _TOLERANCE:
            difference = f"off by {off:.1e}, tolerance {_TOLERANCE:.1e}"
            failures.append(f"{name}: {'no answers to compare' if np.isnan(off) else difference}")
    notes = []
    if late > count // 100:
        notes = [f"this machine did not hold {wanted}: {late:,} of {count:,} setpoints were sent late: {_REMEDY}"]
    elif median > 1 / plan.rate:
        notes = [f"the node does not keep up with {wanted}: the median round trip exceeds the period: {_REMEDY}"]
    return Result(
        title=f"Motor feedforward of {plan.robot.name} at {wanted}",
        passed="Passed: no answer lost, every number confirmed.",
        sections=[
            ResultSection("Answers of the node", caption=_ABOUT, picture=_picture(plan, answers)),
            ResultSection("Results", tables=[TextTable(("quantity", "value", "note"), rows, text_columns=3)]),
        ],
        notes=notes,
        failures=failures,
        files={"page": page},
    )


def _largest(
    answers: Mapping[str, Array], expected: Mapping[str, Array], rows: NDArray[Any], known: NDArray[Any]
) -> float:
    """Largest deviation of the known answers at some rows, relative to the largest value; NaN without any."""
    if not known.any():
        return np.nan
    off = [np.abs(answers[name][rows] - x)[known].max() / np.abs(x).max() for name, x in expected.items()]
    return float(np.max(np.nan_to_num(off, nan=np.inf)))


def _picture(plan: Plan, answers: Mapping[str, Array]) -> bytes:
    """PNG of efforts with two derivatives, and of round trips."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 7.6), layout="constrained")
    *axes, last = figure.subplots(2, 2).flat
    for axis, title, field in zip(axes, ("τ  [N m]", "τ̇  [N m/s]", "τ̈  [N m/s²]"), EFFORT_FIELDS, strict=True):
        frame(axis, title)
        for joint, name in enumerate(plan.robot.joint_names):
            axis.plot(plan.t, answers[field][:, joint], color=color(joint), label=name)
            known = plan.closed_form[field][::4, joint]
            axis.plot(plan.t[plan.rows[::4]], known, "o", color=color(joint), fillstyle="none")
    frame(last, "round trip of a setpoint  [µs]", "share of slower answers")
    trips = np.sort(answers["round_trip"][np.isfinite(answers["round_trip"])])
    last.loglog(1 - np.arange(len(trips)) / max(1, len(trips)), 1e6 * trips, color=color(0))
    last.invert_xaxis()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=7, frameon=False)
    file = io.BytesIO()
    figure.savefig(file, dpi=120, format="png")
    return file.getvalue()
