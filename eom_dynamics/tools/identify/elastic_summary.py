# SPDX-License-Identifier: Apache-2.0
"""Identified springs and motors as a section of the result, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...identification.elastic.arm import ElasticScore
from ...identification.links.verification import EffortErrors
from ...robot import Joint
from ...units import at_joint
from ..quantity_text import effort_units, for_json, number, percent, with_deviation
from ..results import ResultSection, TextTable
from .elastic import ElasticFit, ResonanceResult

if TYPE_CHECKING:
    from .charts import Charts

# Of revolute joints; N stands for N m and m for rad at prismatic ones.
_UNITS = {
    "stiffness": "N m/rad",
    "cubic": "N m/rad³",
    "growth": "1/rad",
    "damping": "N m s/rad",
    "hysteresis width": "N m",
    "offset": "N m",
    "rotor inertia": "kg m²",
    "viscous": "N m s/rad",
    "asymmetry": "N m s/rad",
    "coulomb": "N m",
    "stribeck": "N m",
    "stribeck velocity": "rad/s",
    "smoothing velocity": "rad/s",
    "torque per current": "N m/A",
    "torque constant": "N m/A",
    "link inertia": "kg m²",
    "antiresonance": "Hz",
    "resonance": "Hz",
}

_FRICTION = ("viscous", "asymmetry", "coulomb", "stribeck", "stribeck_velocity", "smoothing_velocity")


class Number(NamedTuple):
    """An identified number of a part, such as ``spring``, of a joint, beside that of the file, NaN without any."""

    joint: str
    part: str
    name: str
    unit: str
    file: float
    value: float
    deviation: float


def identified(elastic: ElasticFit | ResonanceResult) -> list[Number]:
    """All identified numbers, by joint."""
    joints = enumerate(elastic.robot.independent_joints)
    if isinstance(elastic, ResonanceResult):
        return [row for k, joint in joints for row in _from_resonance(joint, elastic, k)]
    return [row for _, joint in joints for row in _from_both_sides(joint, elastic)]


def elastic_section(elastic: ElasticFit | ResonanceResult, charts: Charts) -> ResultSection:
    """Return the section with identified numbers, residuals and charts."""
    rows = [
        (x.joint, x.part, x.name, x.unit, number(x.file), with_deviation(x.value, x.deviation))
        for x in identified(elastic)
    ]
    lines = [f"springs and motors {method(elastic)}"]
    tables = [TextTable(("joint", "part", "parameter", "unit", "file", "identified"), rows, text_columns=4)]
    if isinstance(elastic, ResonanceResult):
        low, high = elastic.fit.band
        lines.append(
            f"band {number(low)} to {number(high)} Hz; misfit {number(elastic.fit.misfit)}, 1 if noise is left"
        )
        caption = "Response of the motors to their efforts, by averaged segments."
    else:
        caption = (
            "Springs: measured efforts over deflections, offsets taken away, filtered; the spring of the file and the "
            "identified one. Friction: measured efforts of motors less those of rotors and springs, over the velocity."
        )
        scores = {"training": elastic.training_score, "validation": elastic.validation_score}
        tables += [_residuals(elastic, score, which) for which, score in scores.items() if score is not None]
    return ResultSection("Springs and motors", lines, caption, charts, tables)


def _residuals(elastic: ElasticFit, score: ElasticScore, which: str) -> TextTable:
    rows = []
    for k, (name, unit) in enumerate(zip(elastic.robot.joint_names, effort_units(elastic.robot), strict=True)):
        for side, errors in (("spring", score.springs), ("motor", score.motors)):
            if np.isfinite(errors.after[k]):
                figures = number(errors.before[k]), number(errors.after[k]), percent(errors.relative[k])
                rows.append((name, side, unit, *figures))
    header = ("joint", "efforts of", "unit", "before", "after", "relative")
    return TextTable(header, rows, f"{which}, RMS residual", text_columns=3)


def method(elastic: ElasticFit | ResonanceResult) -> str:
    """Source of the identified numbers, in words."""
    return elastic.fit.method if isinstance(elastic, ResonanceResult) else "from both sides of the springs"


def elastic_as_json(elastic: ElasticFit | ResonanceResult) -> dict[str, Any]:
    """Return the results for JSON; SI units, unknown numbers are null."""
    joints: dict[str, Any] = {name: {} for name in elastic.robot.joint_names}
    for x in identified(elastic):
        # A parameter at its bound has no deviation.
        file, value, deviation = for_json([x.file, x.value, x.deviation or np.nan])
        part = joints[x.joint].setdefault(x.part, {})
        part[x.name.replace(" ", "_")] = {"unit": x.unit, "file": file, "value": value, "deviation": deviation}
    result: dict[str, Any] = {"method": method(elastic), "joints": joints, "notes": list(elastic.notes)}
    if isinstance(elastic, ResonanceResult):
        return result | {"band": list(elastic.fit.band), "misfit": elastic.fit.misfit}
    for name, fit in elastic.elasticity.springs.items():
        joints[name]["spring"]["law"] = fit.law
        if fit.table is not None:
            rows = zip(("deflections", "efforts", "deviations"), fit.table, strict=True)
            joints[name]["spring"]["table"] = {key: for_json(values) for key, values in rows}
    for which, score in (("training", elastic.training_score), ("validation", elastic.validation_score)):
        sides = None if score is None else {"springs": score.springs, "motors": score.motors}
        result[which] = sides and {side: error_figures(errors) for side, errors in sides.items()}
    return result


def error_figures(errors: EffortErrors) -> dict[str, Any]:
    """Return RMS errors of efforts for JSON."""
    return {
        "rms_before": for_json(errors.before),
        "rms_after": for_json(errors.after),
        "relative_after": for_json(errors.relative),
    }


def _number(
    joint: Joint, part: str, name: str, file: float, pair: tuple[float, float], unit: str | None = None
) -> Number:
    return Number(joint.name, part, name, at_joint(unit or _UNITS.get(name, ""), joint.type), file, *pair)


def _from_both_sides(joint: Joint, elastic: ElasticFit) -> Iterator[Number]:
    row = partial(_number, joint)
    spring, motor = elastic.elasticity.springs.get(joint.name), elastic.elasticity.motors.get(joint.name)
    of_file = {p.name: float(np.mean(getattr(joint.spring, f))) for f, p in joint.spring.parameters().items()}
    if spring is not None:
        for name, pair in spring.parameters.items():
            if not name.startswith("effort["):
                yield row("spring", name, of_file.get(name, np.nan), pair)
        if spring.table is not None:
            for delta, effort, deviation in zip(*spring.table, strict=True):
                before = np.nan
                if not joint.spring.is_rigid:
                    before = float(joint.spring.load(np.array([delta]), np.zeros(1))[0])
                at = f"effort at {number(float(delta))} {at_joint('rad', joint.type)}"
                yield row("spring", at, before, (float(effort), float(deviation)), "N m")
        if np.isfinite(spring.hysteresis[1]) and spring.hysteresis != (0.0, 0.0):
            yield row("spring", "hysteresis width", np.nan, spring.hysteresis)
    if motor is not None:
        friction = joint.actuator.friction
        motor_of_file = {
            "rotor_inertia": joint.rotor_inertia,
            **{name: getattr(friction, name, np.nan) for name in _FRICTION},
            "stribeck": friction.static - friction.coulomb,
            "efficiency": joint.actuator.gear.efficiency,
            "offset": np.nan,
        }
        for name, file in motor_of_file.items():
            if name in motor.parameters:
                unit = "A" if name == "offset" and motor.of_current else None
                yield row("motor", name.replace("_", " "), float(file), motor.parameters[name], unit)
        if motor.torque_constant is not None:
            file = float(joint.actuator.motor.torque_constant)
            gain = motor.parameters["torque_per_current"]
            yield row("motor", "torque per current", file * abs(joint.gear_ratio), gain)
            yield row("motor", "torque constant", file, motor.torque_constant)
    gear = elastic.elasticity.gears.get(joint.name)
    if gear is not None:
        yield row("gear", "ratio", float(joint.gear_ratio), gear.ratio)


def _from_resonance(joint: Joint, elastic: ResonanceResult, k: int) -> Iterator[Number]:
    row = partial(_number, joint)
    fit, friction = elastic.fit, joint.actuator.friction
    of_file = {p.name: float(np.mean(getattr(joint.spring, f))) for f, p in joint.spring.parameters().items()}

    # Of the whole arm, sorted: of no joint, but of as many.
    for name, frequency in (("antiresonance", fit.antiresonance[k]), ("resonance", fit.resonance[k])):
        if fit.band[0] <= frequency <= fit.band[1]:
            yield row("arm", name, np.nan, (float(frequency), np.inf))
    if not fit.identifiable[k]:  # the spring and rotor of the file stay
        return
    for part, name, file, pairs in (
        ("spring", "stiffness", of_file.get("stiffness", np.nan), fit.stiffness),
        ("spring", "damping", of_file.get("damping", np.nan), fit.damping),
        ("motor", "rotor inertia", joint.rotor_inertia, fit.rotor_inertia),
        ("motor", "viscous", friction.viscous, fit.viscous),
        ("motor", "coulomb", friction.coulomb, fit.coulomb),
    ):
        if name != "coulomb" or np.any(pairs):
            yield row(part, name, float(file), tuple(pairs[k].tolist()))
    if fit.link_inertia is not None:
        yield row("link", "link inertia", np.nan, fit.link_inertia)
