# SPDX-License-Identifier: Apache-2.0
"""Result of the identification: tracking errors and identified numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from eom_dynamics.arrays import Array
from eom_dynamics.dynamics import Dynamics
from eom_dynamics.robot.model import Joint
from eom_dynamics.tools.pages import CURVE_POINTS, add_joints, over_time
from eom_dynamics.tools.quantity_text import effort_units, milli, number, position_units, together
from eom_dynamics.tools.results import Result, ResultSection, TextTable

from .experiment import NATURAL_FREQUENCY, IdentificationResult

if TYPE_CHECKING:
    import plotly.graph_objects as go

LEAST_GAIN = 5.0
"""Minimum reduction factor of the tracking error."""

_DEVIATIONS = 3.0


class NumberRow(NamedTuple):
    """An identified number.

    Attributes:
        name: with the joint.
        described, true, found, deviation: value in the robot's file, true value, identified one and its deviation.
    """

    name: str
    described: float
    true: float
    found: float
    deviation: float


def numbers(result: IdentificationResult) -> list[NumberRow]:
    """Identified and true numbers of springs, motors and bodies."""
    return [*_of_joints(result), *_of_bodies(result)]


def failures(result: IdentificationResult) -> list[str]:
    """Missed targets, a line each."""
    if result.gain < LEAST_GAIN:
        return [f"identification: the tracking error fell {number(result.gain)} times, not {LEAST_GAIN:g} times"]
    return []


def within_deviations(result: IdentificationResult) -> str:
    """Number of identified numbers that agree with the true numbers within their uncertainty."""
    every = [each for each in numbers(result) if np.isfinite(each.deviation) and each.deviation > 0]
    within = sum(abs(each.found - each.true) <= _DEVIATIONS * each.deviation for each in every)
    return (
        f"{within} of {len(every)} identified numbers are within {_DEVIATIONS:g} standard deviations of the true ones"
    )


def deviation_in_words(result: IdentificationResult) -> str:
    """How the true robot differs from its file."""
    task = result.task
    return (
        f"springs {100 * task.stiffness_error:+.3g}%, masses and inertias {100 * task.mass_error:+.3g}%, and friction "
        "of the motors that the file does not have"
    )


def circle_result(result: IdentificationResult, page: Path) -> Result:
    """Make the result: link errors before and after, residuals, and identified and true numbers."""
    task, plan = result.task, result.task.plan
    robot, units = task.robot, milli(position_units(task.robot))
    tracking = [
        (name, f"{number(1e3 * b)} {unit}", f"{number(1e3 * a)} {unit}", number(b / a) if a else "–")
        for name, unit, b, a in zip(robot.joint_names, units, result.before.rms, result.after.rms, strict=True)
    ]
    score = result.fit.links.validation or result.fit.links.training
    motors = [motor.residual for motor in result.fit.motors]
    residuals = [
        (name, *(number(float(x)) for x in row))
        for name, *row in zip(robot.joint_names, score.before, score.after, motors, strict=True)
    ]
    header = ("parameter", "file", "true", "identified", "± std")
    of_joints, of_bodies = (
        [(row.name, *map(number, row[1:])) for row in rows] for rows in (_of_joints(result), _of_bodies(result))
    )
    return Result(
        title=f"Identification of {robot.name}",
        lead=[f"identification: tracking error {number(result.gain)} times smaller ({deviation_in_words(result)})"],
        sections=[
            ResultSection(
                caption=f"A simulated arm that differs from its file: {deviation_in_words(result)}. The node, with the "
                f"file, streamed an excitation of {plan.excitation.end:g} s over ROS 2, whose optimization made "
                f"parameters {number(plan.gain)} times as certain; joint_states and motor_states, with noise of "
                "encoders and of efforts, were recorded in a bag; and from the bag followed masses, inertias, springs, "
                f"rotors and friction. Then the node got the new file. On another motion of {plan.judged.end:g} s, "
                f"with a PD of {NATURAL_FREQUENCY:g} rad/s on the motors, the RMS error of the links is "
                f"{number(result.gain)} times smaller.",
                charts=_charts(result),
                tables=[TextTable(("joint", "RMS before", "RMS after", "before / after"), tracking)],
            ),
            ResultSection(
                "Residuals",
                caption=f"RMS of predicted less measured efforts, in {together(effort_units(robot))}: of springs by "
                "the equations of motion of the links, on the motion that was not identified from; and of motors, on "
                "the excitation.",
                tables=[TextTable(("joint", "before", "after", "motor, after"), residuals)],
            ),
            ResultSection(
                "Identified numbers",
                lines=[within_deviations(result)],
                caption="SI units. Bodies: combinations that the motion identifies; bags, true "
                "and identified robot files are in the folder of this page.",
                tables=[TextTable(header, of_joints), TextTable(header, of_bodies, page_only=True)],
            ),
        ],
        failures=failures(result),
        files={"page": page},
        json=as_json(result) | {"failures": failures(result)},
        about={"robot": robot.name},
    )


def _charts(result: IdentificationResult) -> dict[str, go.Figure]:
    """Draw link errors on the motion that was not identified from, and motor efforts of the excitation."""
    robot, before, after, recording = result.task.robot, result.before, result.after, result.recording
    errors, efforts = milli(position_units(robot)), effort_units(robot)
    drawn = {
        "identified_before": ("Link error before", errors, before.t, 1e3 * before.error),
        "identified_after": ("Link error after", errors, after.t, 1e3 * after.error),
        "identified_motors": ("Measured motor efforts of the excitation", efforts, recording.t, recording.motor_effort),
    }
    charts = {}
    for name, (title, units, t, values) in drawn.items():
        charts[name] = over_time(title, together(units), float(t[0]), float(t[-1]))
        add_joints(charts[name], robot.joint_names, units, t, values, points=CURVE_POINTS)
    return charts


def as_json(result: IdentificationResult) -> dict[str, Any]:
    """Return the results for JSON; SI units."""
    score = result.fit.links.validation or result.fit.links.training
    return {
        "gain": result.gain,
        "stiffness_error": result.task.stiffness_error,
        "mass_error": result.task.mass_error,
        "tracking_rms_before": result.before.rms.tolist(),
        "tracking_rms_after": result.after.rms.tolist(),
        "effort_rms_before": score.before.tolist(),
        "effort_rms_after": score.after.tolist(),
        "numbers": [each._asdict() for each in numbers(result)],
    }


def _of_joints(result: IdentificationResult) -> Iterator[NumberRow]:
    fit, task = result.fit, result.task
    rows = zip(task.robot.independent_joints, task.true_robot.independent_joints, fit.springs, fit.motors, strict=True)
    for described, true, spring, motor in rows:
        for field, declared in true.spring.parameters().items():
            if declared.name in spring.parameters:
                before, exact = (float(getattr(joint.spring, field)) for joint in (described, true))
                found, deviation = spring.parameters[declared.name]
                yield NumberRow(f"{declared.name}, {true.name}", before, exact, found, deviation)
        for name in ("rotor_inertia", "viscous", "coulomb", "efficiency"):
            if name in motor.parameters:
                found, deviation = motor.parameters[name]
                label = f"{name.replace('_', ' ')}, {true.name}"
                yield NumberRow(label, _of_motor(described, name), _of_motor(true, name), found, deviation)


def _of_motor(joint: Joint, name: str) -> float:
    if name == "rotor_inertia":
        return float(joint.rotor_inertia)
    if name == "efficiency":
        return float(joint.actuator.gear.efficiency)
    return float(getattr(joint.actuator.friction, name))


def _of_bodies(result: IdentificationResult) -> Iterator[NumberRow]:
    regressor = result.fit.links.regressor
    count = regressor.inertial

    def base(dynamics: Dynamics) -> Array:
        return regressor.base(dynamics.inertial_parameters)

    described, true = base(regressor.dynamics), base(Dynamics(result.task.true_robot, order=0))
    found, deviations = result.fit.links.vector[:count], result.fit.links.base_deviations[:count]
    for name, *values in zip(regressor.names[:count], described, true, found, deviations, strict=True):
        yield NumberRow(f"base parameter of bodies: {name}", *map(float, values))
