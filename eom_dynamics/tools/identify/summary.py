# SPDX-License-Identifier: Apache-2.0
"""Result of an identification: sections with tables and charts, and JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays import Array
from ...identification import TERMS, Fit, Score, not_in_file, parameter_names
from ...recursion import PARAMETERS
from ...units import at_joint
from ..quantity_text import NOTHING, effort_units, for_json, number, percent, together, with_deviation
from ..results import Result, ResultSection, TextTable
from .elastic_summary import elastic_as_json, elastic_section, error_figures

if TYPE_CHECKING:
    from .run import IdentificationResult

_ROUNDING = 1e-9  # SI units; rounding of a zero parameter

# Reasons that are counted in the recording, before it is decimated, and their words.
_OF_RECORDING = {"repeated": "repeated", "saturated, as recorded": "saturated"}
_SYSTEMATIC = 0.5  # whiteness below which a residual is systematic

NOTHING_IDENTIFIED = "nothing was identified: the parameters are those of the file that was given"

_RESIDUALS = (
    "RMS of predicted less measured effort by the given file (before) and by the new one (after): what the feedforward "
    "of each file gives for the filtered motion, beside efforts that are filtered in the same way, and as recorded "
    "(unfiltered); relative to the standard deviation of the measured effort; whiteness: share of the first "
    "autocorrelations of what the fit leaves that are those of white noise, 65 to 95 % if there is nothing left to "
    "explain; fit, not file: the same with what only the fit knows, dry friction that is filtered like the efforts, "
    "and terms that no file has."
)

_PARAMETERS = (
    "Bodies are counted from 1; m, mx, Ixx: mass (kg), first moment (kg m) and inertia (kg m²) about the origin of the "
    "body. The linear estimate uses the data alone, ± its standard deviation; the identified value is that of "
    "physically consistent inertias, close to the file where they are not identifiable."
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
        sections.append(_residuals(fit))
        sections += [] if page is None else charts.link_sections(fit, result.training, result.validation)
    if elastic is not None:
        sections.append(elastic_section(elastic, {} if page is None else charts.elastic_charts(elastic)))
    if fit is not None:
        sections.append(_parameters(fit))
    return Result(
        title=f"Identification of {result.robot.name}",
        lead=[*([NOTHING_IDENTIFIED] if result.nothing_identified else []), *([] if fit is None else _lead(fit))],
        passed="" if fit is None else _improvement(fit),
        sections=sections,
        notes=result.notes,
        failures=result.failures,
        files={} if page is None else {"page": page},
        json=_as_json(result),
        about=about,
    )


def _lead(fit: Fit) -> list[str]:
    velocities = "measured velocities" if fit.filter.measured_velocity else "differences of positions"
    lines = [
        f"{fit.robot.name}: {len(fit.regressor.base)} base parameters of {len(fit.robot.joints)} bodies; efforts of "
        f"the {fit.options.side} side; cut-off {number(fit.filter.cutoff)} Hz, {velocities}",
        f"estimator {fit.options.estimator}; {fit.options.prior} distance from the file, weight {fit.prior_weight:g}",
    ]
    return lines[: 1 if fit.refused else 2]


def _improvement(fit: Fit) -> str:
    """Sentence on how much better the new file is than the given one; empty if that is not known."""
    score, which = _judged(fit)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = score.after / score.before
    known = np.isfinite(ratio)
    if not known.any():
        return ""
    mean = float(np.exp(np.mean(np.log(np.maximum(ratio[known], 1e-12)))))
    kept = f"; {', '.join(fit.kept)}: as in the file that was given" if fit.kept else ""
    return (
        f"RMS residual on {which} {number(100 * mean)} % of that of the given file, in the geometric mean of the "
        f"joints{kept}"
    )


def _residuals(fit: Fit) -> ResultSection:
    score, _ = _judged(fit)
    left = [name for name, x in zip(fit.robot.joint_names, score.whiteness, strict=True) if x < _SYSTEMATIC]
    lines = [f"efforts left out of training: {_counts(fit, recorded=False)}"]
    if any(fit.counts.get(reason) for reason in _OF_RECORDING):
        lines.append(f"among all efforts of the recording: {_counts(fit, recorded=True)}")
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
        rows.append((name, unit, *map(number, efforts[j]), *shares, number(score.of_fit[j])))
    return TextTable(
        ("joint", "unit", "before", "after", "unfiltered", "after", "relative", "whiteness", "fit, not file"),
        rows,
        f"{which}, RMS residual of the robot file on {score.samples:,} samples{_without_bias(fit)}",
        text_columns=2,
    )


def _parameters(fit: Fit) -> ResultSection:
    terms, tables = fit.regressor.terms, []
    if terms:
        rows = [(name, *(_term_cell(fit, term, j) for term in terms)) for j, name in enumerate(fit.robot.joint_names)]
        tables.append(TextTable(("joint", *(_with_unit(fit, term) for term in terms)), rows))
    if fit.options.inertia and not fit.refused:
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


def verdict(fit: Fit) -> list[str]:
    """Return lines on recordings that contradict the file, and joints predicted worse than by the file."""
    end = ": the given parameters are kept; --suspect use takes the recording all the same"
    lines = [line + (end if fit.options.suspect == "keep" else "") for line in fit.contradictions]
    if fit.rejected is None or not fit.rejected.surely_worse.any():
        return lines
    _, which = _judged(fit)
    names, units, rejected = fit.robot.joint_names, effort_units(fit.robot), fit.rejected
    listed = [
        f"{names[j]} ({number(rejected.after[j])} instead of {number(rejected.before[j])} {units[j]})"
        for j in np.flatnonzero(rejected.surely_worse)
    ]
    kept = "all joints" if fit.refused else ", ".join(fit.kept)
    return [
        *lines,
        f"identified parameters predict {which} efforts worse than the given ones of {', '.join(listed)}: the given "
        f"ones of {kept} are kept",
    ]


def _term_cell(fit: Fit, term: str, j: int) -> str:
    """Return a term of a joint with its standard deviation, or the note that it is the file's."""
    if fit.term_of_file[term][j]:
        return "as in the file"
    return with_deviation(fit.terms[term][j], fit.term_deviations[term][j])


def _if_known(value: float, deviation: float) -> str:
    """A number and its deviation; a dash where nothing is known of it, as of a joint that was not recorded."""
    return with_deviation(value, deviation) if math.isfinite(deviation) or abs(value) > _ROUNDING else NOTHING


def _as_json(result: IdentificationResult) -> dict[str, Any]:
    return {
        "robot": result.robot.name,
        "joints": list(result.robot.joint_names),
        **({} if result.link_fit is None else _links_as_json(result.link_fit)),
        "elastic": None if result.elastic is None else elastic_as_json(result.elastic),
        "timing": None if result.timing is None else result.timing.as_json(),
    }


def _links_as_json(fit: Fit) -> dict[str, Any]:
    inertial = fit.regressor.inertial
    return {
        "side": fit.options.side,
        "estimator": fit.options.estimator,
        "prior": {"distance": fit.options.prior, "weight": fit.prior_weight},
        "cutoff": fit.filter.cutoff,
        "velocity": "measured" if fit.filter.measured_velocity else "position differences",
        "training": _figures(fit.training),
        "validation": None if fit.validation is None else _figures(fit.validation),
        "sensor_bias": for_json(fit.sensor_bias),
        "kept": list(fit.kept),
        "left_out": fit.counts,
        "terms": {
            name: {"values": for_json(fit.terms[name]), "deviations": for_json(fit.term_deviations[name])}
            for name in fit.regressor.terms
        },
        "base_parameters": []
        if fit.refused
        else _listed(fit.regressor.base.words, fit.estimate.x[:inertial], fit.base_deviations[:inertial]),
        "parameters": []
        if fit.refused
        else _listed(parameter_names(fit.robot), fit.parameters, fit.parameter_deviations),
        "not_in_file": not_in_file(fit),
        "notes": list(fit.notes),
    }


def _listed(names: Sequence[str], values: Array, deviations: Array) -> list[dict[str, Any]]:
    rows = zip(names, for_json(values), for_json(deviations), strict=True)
    return [{"name": name, "value": value, "deviation": deviation} for name, value, deviation in rows]


def failures(fit: Fit, tolerance: float) -> list[str]:
    """Return a line for each joint whose RMS residual exceeds the tolerance, on validation if there is any."""
    score, which = _judged(fit)
    pairs = zip(fit.robot.joint_names, effort_units(fit.robot), score.after, strict=True)
    return [
        f"RMS {which} residual of {name} is {number(rms)} {unit}, tolerance {tolerance:g}"
        for name, unit, rms in pairs
        if rms > tolerance
    ]


def _judged(fit: Fit) -> tuple[Score, str]:
    """The figures that the fit is judged by, and of what data they are."""
    return (fit.training, "training") if fit.validation is None else (fit.validation, "validation")


def _figures(score: Score) -> dict[str, Any]:
    return {
        "samples": score.samples,
        **error_figures(score),
        "rms_before_unfiltered": for_json(score.before_unfiltered),
        "rms_after_unfiltered": for_json(score.unfiltered),
        "rms_of_fit_not_in_file": for_json(score.of_fit),
        "whiteness": for_json(score.whiteness),
    }


def _counts(fit: Fit, *, recorded: bool) -> str:
    """Counts of efforts among all that were recorded, or among those that decimation leaves."""
    rows = ((_OF_RECORDING.get(reason), reason, count) for reason, count in fit.counts.items() if count)
    counts = [f"{count:,} {word or reason}" for word, reason, count in rows if (word is not None) == recorded]
    return ", ".join(counts) or "none"


def _with_unit(fit: Fit, term: str) -> str:
    """A term with the unit of its parameter, or the units where joints of both kinds have it."""
    units = together([at_joint(TERMS[term].unit, joint.type) for joint in fit.robot.independent_joints])
    return f"{term} [{units}]" if units else term
