# SPDX-License-Identifier: Apache-2.0
"""Results of an identification as text, JSON, and comments of a robot's file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...arrays import Array
from ...identification import TERMS, Fit, Score, not_in_file, parameter_names
from ...identification.residuals import EffortErrors
from ...recursion import PARAMETERS
from ...units import at_joint
from ..quantity_text import NOTHING, effort_units, for_json, number, together
from ..text_tables import columns

# SI units; rounding of a zero parameter.
_ROUNDING = 1e-9

# Reasons that are counted in the recording, before it is decimated, and their words.
_OF_RECORDING = {"repeated": "repeated", "saturated, as recorded": "saturated"}

_INERTIAL_UNITS = ("kg", *3 * ("kg m",), *6 * ("kg m²",))


def rows(fit: Fit, score: Score) -> list[tuple[str, ...]]:
    """Return a header, and a row of figures for each joint."""
    lines: list[tuple[str, ...]] = [
        ("joint", "unit", "before", "after", "unfiltered", "after", "relative", "whiteness", "fit, not file")
    ]
    efforts = np.stack([score.before, score.after, score.before_unfiltered, score.unfiltered], axis=1)
    for j, (name, unit) in enumerate(zip(fit.robot.joint_names, effort_units(fit.robot), strict=True)):
        shares = percent(score.relative[j]), percent(score.whiteness[j])
        lines.append((name, unit, *map(number, efforts[j]), *shares, number(score.of_fit[j])))
    return lines


def as_text(fit: Fit) -> str:
    """Return the tables that the command prints."""
    scores = {"validation": fit.validation, "training": fit.training}
    lines = [
        *verdict(fit),
        f"{fit.robot.name}: {len(fit.regressor.base)} base parameters of {len(fit.robot.joints)} bodies; efforts of "
        f"the {fit.options.side} side; cut-off {number(fit.filter.cutoff)} Hz, {_velocities(fit)}",
        f"estimator {fit.options.estimator}; {fit.options.prior} distance from the file, weight {fit.prior_weight:g}",
    ]
    for which, score in scores.items():
        if score is not None:
            lines += ["", f"{which}, RMS residual of the robot file on {score.samples:,} samples{without_bias(fit)}"]
            lines += columns(rows(fit, score), right_from=2)
    lines += ["", *columns(term_rows(fit), right_from=1)] if fit.regressor.terms else []
    lines += ["", f"efforts left out of training: {_counts(fit, recorded=False)}"]
    if any(fit.counts.get(reason) for reason in _OF_RECORDING):
        lines.append(f"among all efforts of the recording: {_counts(fit, recorded=True)}")
    return "\n".join([*lines, *(f"note: {note}" for note in fit.notes)])


def without_bias(fit: Fit) -> str:
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
    kept = "all joints" if len(fit.kept) == fit.robot.n else ", ".join(fit.kept)
    return [
        *lines,
        f"identified parameters predict {which} efforts worse than the given ones of {', '.join(listed)}: the given "
        f"ones of {kept} are kept",
    ]


def term_rows(fit: Fit) -> list[tuple[str, ...]]:
    """Return a header, and for each joint the parameters of its terms with standard deviations."""
    terms = fit.regressor.terms
    lines: list[tuple[str, ...]] = [("joint", *(_with_unit(fit, term) for term in terms))]
    lines += [(name, *(term_cell(fit, term, j) for term in terms)) for j, name in enumerate(fit.robot.joint_names)]
    return lines


def term_cell(fit: Fit, term: str, j: int) -> str:
    """Return a term of a joint with its standard deviation, or the note that it is the file's."""
    if fit.term_of_file[term][j]:
        return "as in the file"
    return with_deviation(fit.terms[term][j], fit.term_deviations[term][j])


def base_rows(fit: Fit) -> list[tuple[str, ...]]:
    """Return a header, and the base parameters in words with their values."""
    file, identified = fit.regressor.parameters_of_file, fit.vector
    lines: list[tuple[str, ...]] = [("base parameter", "file", "linear estimate", "identified")]
    for k, words in enumerate(fit.regressor.base.words):
        linear = _if_known(fit.estimate.x[k], fit.base_deviations[k])
        lines.append((words, number(file[k]), linear, number(identified[k])))
    return lines


def with_deviation(value: float, deviation: float) -> str:
    """Return a number and its standard deviation, ``?`` where it is not identifiable."""
    return f"{number(value)} ± {number(deviation)}" if math.isfinite(deviation) else f"{number(value)} ± ?"


def _if_known(value: float, deviation: float) -> str:
    """A number and its deviation; a dash where nothing is known of it, as of a joint that was not recorded."""
    return with_deviation(value, deviation) if math.isfinite(deviation) or abs(value) > _ROUNDING else NOTHING


def as_json(fit: Fit) -> dict[str, Any]:
    """Return the results for JSON; unknown numbers are null."""
    inertial = fit.regressor.inertial
    return {
        "robot": fit.robot.name,
        "joints": list(fit.robot.joint_names),
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
        "base_parameters": _listed(fit.regressor.base.words, fit.estimate.x[:inertial], fit.base_deviations[:inertial]),
        "parameters": _listed(parameter_names(fit.robot), fit.parameters, fit.parameter_deviations),
        "not_in_file": not_in_file(fit),
        "notes": list(fit.notes),
    }


def _listed(names: Sequence[str], values: Array, deviations: Array) -> list[dict[str, Any]]:
    rows = zip(names, for_json(values), for_json(deviations), strict=True)
    return [{"name": name, "value": value, "deviation": deviation} for name, value, deviation in rows]


def comments(fit: Fit, about: Mapping[str, str]) -> str:
    """Return comments for a parameter file: each identified number with its standard deviation."""
    lines = ["Identified by eom_dynamics identify; values ± one standard deviation."]
    lines += [f"{name}: {value}" for name, value in about.items()]
    figures, which = _judged(fit)
    lines += [f"Failed: {line}" for line in verdict(fit)]
    lines += [f"Residuals are those{without_bias(fit)}"] if without_bias(fit) else []
    lines += [
        f"RMS residual on {which}, {name}: {before} before, {after} by this file; unfiltered {unfiltered} and {other}"
        for name, _, before, after, unfiltered, other, *_ in rows(fit, figures)[1:]
    ]
    if fit.options.inertia:
        lines.append("Inertias about the origins of the bodies, of the data and the prior together:")
        table = fit.parameters.reshape(-1, PARAMETERS), fit.parameter_deviations.reshape(-1, PARAMETERS)
        kinds = parameter_names(fit.robot)
        for i, (joint, values, spread) in enumerate(zip(fit.robot.joints, *table, strict=True)):
            cells = (
                f"{kinds[PARAMETERS * i + k]} {with_deviation(value, s)} {_INERTIAL_UNITS[k]}"
                for k, (value, s) in enumerate(zip(values, spread, strict=True))
            )
            lines += [f"  {joint.name}: {', '.join(cells)}"]
    for term in fit.regressor.terms:
        cells = (f"{name} {term_cell(fit, term, j)}" for j, name in enumerate(fit.robot.joint_names))
        lines.append(f"{term}: {', '.join(cells)}")
    lines += [f"Not part of this file: {line}" for line in not_in_file(fit)]
    lines += list(fit.notes)
    return "".join(f"# {line}\n" for line in lines)


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


def error_figures(errors: EffortErrors) -> dict[str, Any]:
    """Return RMS errors of efforts for JSON."""
    return {
        "rms_before": for_json(errors.before),
        "rms_after": for_json(errors.after),
        "relative_after": for_json(errors.relative),
    }


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
    found = ((_OF_RECORDING.get(reason), reason, count) for reason, count in fit.counts.items() if count)
    return ", ".join(f"{n:,} {own or reason}" for own, reason, n in found if (own is not None) == recorded) or "none"


def _velocities(fit: Fit) -> str:
    return "measured velocities" if fit.filter.measured_velocity else "differences of positions"


def _with_unit(fit: Fit, term: str) -> str:
    """A term with the unit of its parameter, or the units where joints of both kinds have it."""
    units = together([at_joint(TERMS[term].unit, joint.type) for joint in fit.robot.independent_joints])
    return f"{term} [{units}]" if units else term


def percent(value: float) -> str:
    """Return a share as a percentage."""
    return number(np.nan) if not math.isfinite(value) else f"{100 * value:.0f} %"
