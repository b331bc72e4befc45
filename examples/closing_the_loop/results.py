# SPDX-License-Identifier: Apache-2.0
"""Tracking errors and identified numbers for terminal, HTML page and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from eom_dynamics.arrays import Array
from eom_dynamics.dynamics import Dynamics
from eom_dynamics.robot.model import Joint
from eom_dynamics.terminal import printable
from eom_dynamics.tools.quantity_text import milli, number, position_units
from eom_dynamics.tools.text_tables import columns

from .experiment import IdentificationResult

LEAST_GAIN = 5.0
"""Factor by which the tracking error must fall."""

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
    """Identified numbers of springs, motors and bodies, beside the true ones."""
    return [*_of_joints(result), *_of_bodies(result)]


def failures(result: IdentificationResult) -> list[str]:
    """What was not reached, a line each."""
    if result.gain < LEAST_GAIN:
        return [f"identification: the tracking error fell {number(result.gain)} times, not {LEAST_GAIN:g} times"]
    return []


def within_deviations(result: IdentificationResult) -> str:
    """How many identified numbers are within their uncertainty of the true ones."""
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


TRACKING_HEADER = ("joint", "RMS before", "RMS after", "before / after")
"""Column titles of :func:`tracking_rows`."""

RESIDUAL_HEADER = ("joint", "before", "after", "motor, after")
"""Column titles of :func:`residual_rows`."""

NUMBERS_HEADER = ("parameter", "file", "true", "identified", "± std")
"""Column titles of :func:`number_rows`."""


def tracking_rows(result: IdentificationResult) -> list[tuple[str, ...]]:
    """Link errors of each joint on a motion that was not identified from."""
    units = milli(position_units(result.task.robot))
    before, after = result.before.rms, result.after.rms
    return [
        (name, f"{number(1e3 * b)} {unit}", f"{number(1e3 * a)} {unit}", number(b / a) if a else "–")
        for name, unit, b, a in zip(result.task.robot.joint_names, units, before, after, strict=True)
    ]


def residual_rows(result: IdentificationResult) -> list[tuple[str, ...]]:
    """RMS of predicted less measured efforts of springs on that motion, and of motors on the excitation."""
    score = result.fit.links.validation or result.fit.links.training
    residuals = [motor.residual for motor in result.fit.motors]
    rows = zip(result.task.robot.joint_names, score.before, score.after, residuals, strict=True)
    return [(name, *(number(float(x)) for x in row)) for name, *row in rows]


def number_rows(result: IdentificationResult) -> list[tuple[str, ...]]:
    """All identified numbers."""
    return [
        (each.name, *(number(x) for x in (each.described, each.true, each.found, each.deviation)))
        for each in numbers(result)
    ]


def as_text(result: IdentificationResult) -> str:
    """Return the tables of the terminal."""
    own = [row for row, each in zip(number_rows(result), numbers(result), strict=True) if " of " not in each.name]
    lines = [
        f"identification: tracking error {number(result.gain)} times smaller ({deviation_in_words(result)})",
        "",
        *columns([TRACKING_HEADER, *tracking_rows(result)], 1),
        "",
        *columns([NUMBERS_HEADER, *own], 1),
        within_deviations(result),
    ]
    return "\n".join(map(printable, lines))


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
