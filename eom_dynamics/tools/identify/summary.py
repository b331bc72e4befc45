# SPDX-License-Identifier: Apache-2.0
"""Result of an identification: sections with tables and charts, and JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array, at_joint
from ...identification import TERMS, Fit, Score
from ...identification.elastic.arm import ElasticScore
from ...identification.links.filtering import USED
from ...identification.links.parameters import by_term, vector_of_file
from ...identification.links.verification import EffortErrors
from ...recursion import PARAMETERS
from ...robot import Joint
from ..quantity_text import NOTHING, effort_units, for_json, number, percent, together, with_deviation
from ..results import Result, ResultSection, TextTable
from .elastic import ElasticFit, ResonanceResult
from .run import IdentificationResult, judged

_ROUNDING = 1e-9  # SI units; rounding of a zero parameter

# Deviations and factor for values that are far from the file; maximum number of named values.
_MANY, _FACTOR, _NAMED = 5.0, 2.0, 3
_SYSTEMATIC = 0.5  # whiteness below this value is a systematic residual

_RESIDUALS = (
    "RMS of predicted minus measured effort with the given file (before) and the new file (after): feedforward of the "
    "file for the filtered motion, minus recorded efforts, filtered and raw (unfiltered); relative "
    "to the standard deviation of the measured effort; whiteness: share of the first autocorrelations within the "
    "bounds of white noise, 65 to 95 % for a complete model."
)

_PARAMETERS = (
    "Bodies are counted from 1; m, mx, Ixx: mass (kg), first moment (kg m) and inertia (kg m²) about the origin of the "
    "body. The linear estimate uses the data alone, ± its standard deviation; the identified value is of physically "
    "consistent inertias, close to the file if not identifiable."
)

_INERTIAL = (
    *("m [kg]", *(f"m{x} [kg m]" for x in "xyz")),
    *(f"I{x} [kg m²]" for x in ("xx", "xy", "xz", "yy", "yz", "zz")),
)


def identification_result(result: IdentificationResult, about: Mapping[str, str], page: Path | None = None) -> Result:
    """Make the result of an identification; without the path of a page, without charts."""
    fit, elastic = result.link_fit, result.elastic
    if page is not None:
        from . import charts  # not at the top: only pages need Plotly
    sections = []
    if fit is not None:
        sections.append(_residuals(result, fit))
        sections += [] if page is None else charts.link_sections(fit, result.training, result.validation)
    if elastic is not None:
        sections.append(elastic_section(elastic, {} if page is None else charts.elastic_charts(elastic)))
    if fit is not None:
        sections.append(_parameters(fit))
    return Result(
        title=f"Identification of {result.robot.name}",
        lead=[*filter(None, [result.unwritten]), *_far_from_file(result)],
        passed="" if fit is None else _improvement(fit, result.commands),
        sections=sections,
        by_joint=_elastic_by_joint(elastic) if fit is None else _by_joint(result, fit),
        notes=result.notes,
        failures=result.failures,
        files={} if page is None else {"page": page},
        json={
            "joints": list(result.robot.joint_names),
            **({} if fit is None else _links_as_json(fit)),
            "elastic": None if elastic is None else elastic_as_json(elastic),
            **({} if result.commands is None else {"motor_efforts": error_figures(result.commands)}),
            "timing": None if result.timing is None else result.timing.as_json(),
        },
        about=about,
    )


def _far_from_file(result: IdentificationResult) -> list[str]:
    """Lines on values far from the given file's by deviations and by a factor, the worst first."""
    numbers = [] if result.elastic is None else identified_numbers(result.elastic)
    if (fit := result.link_fit) is not None:
        file = by_term(fit.regressor, vector_of_file(fit.regressor, fit.options.side)[fit.regressor.inertial :])
        for term in fit.regressor.terms:
            for k, joint in enumerate(fit.robot.independent_joints):
                if not fit.term_of_file[term][k]:
                    pair = float(fit.terms[term][k]), float(fit.term_deviations[term][k])
                    numbers.append(_number(joint, "joint", term, float(file[term][k]), pair, TERMS[term].unit))
    far = []
    for x in numbers:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.divide(x.value, x.file)
        surely = np.isfinite(x.deviation) and abs(x.value - x.file) > _MANY * x.deviation
        nuisance = x.name.endswith("velocity")  # how steep dry friction is near rest
        if x.file and np.isfinite(ratio) and surely and not nuisance and not 1 / _FACTOR < ratio < _FACTOR:
            far.append((abs(np.log(max(abs(ratio), 1e-9))), x))
    far.sort(key=lambda pair: -pair[0])
    lines = [
        f"{x.joint}: {x.part} {x.name} is {with_deviation(x.value, x.deviation)} {x.unit}, {number(x.file)} in the file"
        for _, x in far[:_NAMED]
    ]
    return [*lines, *([f"… and {len(far) - _NAMED} more far from the file"] if len(far) > _NAMED else [])]


def _improvement(fit: Fit, commands: EffortErrors | None) -> str:
    """Headline: error of motor efforts if they were recorded, else of the fitted efforts."""
    errors = fit.judged if commands is None or not np.isfinite(commands.ratio) else commands
    if not np.isfinite(errors.ratio):
        return ""
    what = "residual" if errors is fit.judged else "error of motor efforts"
    kept = f"; {', '.join(fit.kept)}: as in the file that was given" if fit.kept else ""
    return (
        f"RMS {what} on {judged(fit)} {number(100 * errors.ratio)} % of the given file's, geometric mean of the "
        f"joints{kept}"
    )


def _residuals(result: IdentificationResult, fit: Fit) -> ResultSection:
    left = [name for name, x in zip(fit.robot.joint_names, fit.judged.whiteness, strict=True) if x < _SYSTEMATIC]
    velocities = "measured velocities" if fit.filter.measured_velocity else "differences of positions"
    lines = [
        f"{fit.robot.name}: {len(fit.regressor.base)} base parameters of {len(fit.robot.joints)} bodies; efforts of "
        f"the {fit.options.side} side; cut-off {number(fit.filter.cutoff)} Hz, {velocities}",
        *([] if fit.refused else [f"weight of the distance from the file {fit.prior_weight:g}"]),
        *_by_joint(result, fit),
    ]
    if left:
        lines.append(
            f"residuals are systematic at {', '.join(left)}: consider friction of another shape, flexibility, a "
            "payload, or efforts of cables"
        )
    scores = {"validation": fit.validation, "training": fit.training}
    tables = [_score_table(fit, score, which) for which, score in scores.items() if score is not None]
    return ResultSection("Residuals", lines, _RESIDUALS, tables=tables)


def _score_table(fit: Fit, score: Score, which: str) -> TextTable:
    efforts = np.stack([score.before, score.after, score.before_unfiltered, score.unfiltered], axis=1)
    rows = []
    for j, (name, unit) in enumerate(zip(fit.robot.joint_names, effort_units(fit.robot), strict=True)):
        shares = percent(score.relative[j]), percent(score.whiteness[j])
        rows.append((name, unit, *map(number, efforts[j]), *shares))
    return TextTable(
        ("joint", "unit", "before", "after", "unfiltered", "after", "relative", "whiteness"),
        rows,
        f"{which}, RMS residual of the robot file on {score.samples:,} samples{_without_bias(fit)}",
        text_columns=2,
    )


def _parameters(fit: Fit) -> ResultSection:
    terms, tables = fit.regressor.terms, []
    if terms:
        rows = [(name, *(_term_cell(fit, term, j) for term in terms)) for j, name in enumerate(fit.robot.joint_names)]
        tables.append(TextTable(("joint", *(_with_unit(fit, term) for term in terms)), rows))
    if not fit.refused:
        file, identified = fit.regressor.parameters_of_file, fit.vector
        rows = [
            (words, number(file[k]), _if_known(fit.estimate.x[k], fit.base_deviations[k]), number(identified[k]))
            for k, words in enumerate(fit.regressor.base.words)
        ]
        tables.append(TextTable(("base parameter", "file", "linear estimate", "identified"), rows, page_only=True))
        shape = (-1, PARAMETERS)
        values = zip(fit.parameters.reshape(shape), fit.parameter_deviations.reshape(shape), strict=True)
        rows = [(joint.name, *map(_if_known, *pair)) for joint, pair in zip(fit.robot.joints, values, strict=True)]
        title = "inertias about the origins of the bodies, by the data and the file together"
        tables.append(TextTable(("body", *_INERTIAL), rows, title, page_only=True))
    return ResultSection("Identified parameters", caption=_PARAMETERS, tables=tables)


def _without_bias(fit: Fit) -> str:
    """Return a note that a sensor bias, which is not in the file, was removed from efforts; empty without bias."""
    if not np.any(fit.sensor_bias):
        return ""
    names = zip(fit.robot.joint_names, fit.sensor_bias, effort_units(fit.robot), strict=True)
    return f", against efforts less the bias of the sensors: {', '.join(f'{n} {number(x)} {u}' for n, x, u in names)}"


def _term_cell(fit: Fit, term: str, j: int) -> str:
    if fit.term_of_file[term][j]:
        return "as in the file"
    return with_deviation(fit.terms[term][j], fit.term_deviations[term][j])


def _if_known(value: float, deviation: float) -> str:
    """Number with its deviation; a dash if nothing is known, for example for a joint that was not recorded."""
    return with_deviation(value, deviation) if math.isfinite(deviation) or abs(value) > _ROUNDING else NOTHING


def _links_as_json(fit: Fit) -> dict[str, Any]:
    return {
        "cutoff": fit.filter.cutoff,
        "measured_velocity": fit.filter.measured_velocity,
        "prior_weight": fit.prior_weight,
        "training": _figures(fit.training),
        "validation": None if fit.validation is None else _figures(fit.validation),
        "sensor_bias": for_json(fit.sensor_bias),
        "kept": list(fit.kept),
        "terms": {name: _pair(fit.terms[name], fit.term_deviations[name]) for name in fit.regressor.terms},
        "parameters": None if fit.refused else _pair(fit.parameters, fit.parameter_deviations),
    }


def _pair(values: Array, deviations: Array) -> dict[str, Any]:
    return {"values": for_json(values), "deviations": for_json(deviations)}


def _figures(score: Score) -> dict[str, Any]:
    return {
        "samples": score.samples,
        **error_figures(score),
        "rms_before_unfiltered": for_json(score.before_unfiltered),
        "rms_after_unfiltered": for_json(score.unfiltered),
        "whiteness": for_json(score.whiteness),
    }


def _by_joint(result: IdentificationResult, fit: Fit) -> list[str]:
    """A line for each joint, the worst first: residual; samples read, used, and left out by reason, which add up."""
    score = fit.judged
    held_out = sum(map(len, result.validation))
    trained, n = sum(map(len, result.training)), fit.robot.n
    counts = {reason: np.broadcast_to(x, n) for reason, x in fit.counts.items()}
    read = max(result.read, trained + held_out)
    counts["held out or for validation"] = np.full(n, held_out)
    counts["not usable in time or position"] = np.full(n, read - trained - held_out)
    counts["in pieces that are too short"] = read - np.sum(list(counts.values()), axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(counts[USED] > 0, score.after / score.before, np.inf)
    lines, units = [], effort_units(fit.robot)
    for j in np.argsort(-np.nan_to_num(ratio, nan=np.inf), kind="stable").tolist():
        others = ", ".join(f"{x[j]:,} {reason}" for reason, x in counts.items() if reason != USED and x[j])
        after, before = number(score.after[j]), number(score.before[j])
        residual = f"residual {after} {units[j]} instead of {before}; " if score.after[j] >= 0 else ""
        used = f"{fit.robot.joint_names[j]}: {residual}{read:,} samples read, {counts[USED][j]:,} used"
        lines.append(f"{used}; {others or 'none left out'}")
    return lines


def _elastic_by_joint(elastic: ElasticFit | ResonanceResult | None) -> list[str]:
    """A line for each joint: its identified numbers."""
    joints = {} if elastic is None else {name: list[str]() for name in elastic.robot.joint_names}
    for x in [] if elastic is None else identified_numbers(elastic):
        joints[x.joint].append(f"{x.name} {with_deviation(x.value, x.deviation)} {x.unit}")
    return [f"{name}: {', '.join(numbers) or 'as in the file'}" for name, numbers in joints.items()]


def _with_unit(fit: Fit, term: str) -> str:
    """Term with the unit of its parameter, or with both units if joints of both kinds have it."""
    units = together([at_joint(TERMS[term].unit, joint.type) for joint in fit.robot.independent_joints])
    return f"{term} [{units}]" if units else term


# Units for revolute joints; prismatic joints have N for N m, and m for rad.
_UNITS = {name.replace("_", " "): term.unit for name, term in TERMS.items()} | {
    "stiffness": "N m/rad",
    "cubic": "N m/rad³",
    "growth": "1/rad",
    "damping": "N m s/rad",
    "asymmetry": "N m s/rad",
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
    """An identified number of a part, such as ``spring``, of a joint, and the file's number, NaN without one."""

    joint: str
    part: str
    name: str
    unit: str
    file: float
    value: float
    deviation: float


def identified_numbers(elastic: ElasticFit | ResonanceResult) -> list[Number]:
    """All identified numbers, by joint."""
    joints = enumerate(elastic.robot.independent_joints)
    if isinstance(elastic, ResonanceResult):
        return [row for k, joint in joints for row in _from_resonance(joint, elastic, k)]
    return [row for _, joint in joints for row in _from_both_sides(joint, elastic)]


def elastic_section(elastic: ElasticFit | ResonanceResult, charts: Mapping[str, Any]) -> ResultSection:
    """Return the section with identified numbers, residuals and charts."""
    rows = [
        (x.joint, x.part, x.name, x.unit, number(x.file), with_deviation(x.value, x.deviation))
        for x in identified_numbers(elastic)
    ]
    lines = [f"springs and motors {elastic.method}"]
    tables = [TextTable(("joint", "part", "parameter", "unit", "file", "identified"), rows, text_columns=4)]
    if isinstance(elastic, ResonanceResult):
        low, high = elastic.fit.band
        lines.append(
            f"band {number(low)} to {number(high)} Hz; misfit {number(elastic.fit.misfit)}, 1 if noise is left"
        )
        caption = "Response of the motors to their efforts, by averaged segments."
    else:
        caption = (
            "Springs: measured efforts over deflections, without offsets, filtered; given and identified spring. "
            "Friction: measured motor efforts minus efforts of rotors and springs, over the velocity."
        )
        scores = {"training": elastic.training_score, "validation": elastic.validation_score}
        tables += [_elastic_residuals(elastic, score, which) for which, score in scores.items() if score is not None]
    return ResultSection("Springs and motors", lines, caption, charts, tables)


def _elastic_residuals(elastic: ElasticFit, score: ElasticScore, which: str) -> TextTable:
    rows = []
    for k, (name, unit) in enumerate(zip(elastic.robot.joint_names, effort_units(elastic.robot), strict=True)):
        for side, errors in (("spring", score.springs), ("motor", score.motors)):
            if np.isfinite(errors.after[k]):
                figures = number(errors.before[k]), number(errors.after[k]), percent(errors.relative[k])
                rows.append((name, side, unit, *figures))
    header = ("joint", "efforts of", "unit", "before", "after", "relative")
    return TextTable(header, rows, f"{which}, RMS residual", text_columns=3)


def elastic_as_json(elastic: ElasticFit | ResonanceResult) -> dict[str, Any]:
    """Return the results for JSON; SI units, unknown numbers are null."""
    joints: dict[str, Any] = {name: {} for name in elastic.robot.joint_names}
    for x in identified_numbers(elastic):
        # A parameter at its bound has no deviation.
        file, value, deviation = for_json([x.file, x.value, x.deviation or np.nan])
        part = joints[x.joint].setdefault(x.part, {})
        part[x.name.replace(" ", "_")] = {"file": file, "value": value, "deviation": deviation}
    result: dict[str, Any] = {"joints": joints}
    if isinstance(elastic, ResonanceResult):
        return result | {"band": list(elastic.fit.band), "misfit": elastic.fit.misfit}
    for name, fit in elastic.elasticity.springs.items():
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


def _from_resonance(joint: Joint, elastic: ResonanceResult, k: int) -> Iterator[Number]:
    row = partial(_number, joint)
    fit, friction = elastic.fit, joint.actuator.friction
    of_file = {p.name: float(np.mean(getattr(joint.spring, f))) for f, p in joint.spring.parameters().items()}

    # Whole arm, sorted: belongs to no joint, has as many values.
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
