# SPDX-License-Identifier: Apache-2.0
"""HTML page of an identification: residuals, efforts, friction over velocity, parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go

from ...arrays import Array
from ...identification import Fit, Recording, Score
from ...identification.filtering import FilteredSamples
from ...identification.joint_terms import TERMS, Motion
from ..pages.charts import CURVE_POINTS, add_line, chart, color, over_time, thinned
from ..pages.html_page import lines, place, results_page, section, table
from ..quantity_text import effort_units, number, position_units, together
from .elastic_section import add_dots, elastic_section
from .elastic_summary import method
from .run import IdentificationResult
from .summary import base_rows, percent, rows, term_rows, without_bias

# Dots of a friction map: more hide each other.
_DOTS = 1500

# Samples beyond which curves show those alone that the cut-off needs.
_LONG = 20_000

# Whiteness below which a residual is systematic.
_SYSTEMATIC = 0.5

# Apart on light and on dark ground, in all charts alike.
_MEASURED, _PREDICTED = color(0), color(1)

_FRICTION = ("viscous", "coulomb", "stribeck", "asymmetric")

_CHARTS = (
    "Click a curve in a legend to hide it, double-click to show it alone. Drag over a chart to zoom all charts over "
    "time, double-click to reset."
)

_RESIDUALS = (
    "RMS of predicted less measured effort by the given file (before) and by the new one (after): what the feedforward "
    "of each file gives for the filtered motion, beside efforts that are filtered in the same way, and as recorded "
    "(unfiltered); relative to the standard deviation of the measured effort; whiteness: share of the first "
    "autocorrelations of what the fit leaves that are those of white noise, 65 to 95 % if there is nothing left to "
    "explain; fit, not file: the same with what only the fit knows, dry friction that is filtered like the efforts, "
    "and terms that no file has."
)

_OF_FRICTION = "Dots: measured effort less that of the identified inertias and offsets. Line: identified friction."

_PARAMETERS = (
    "Bodies are counted from 1; m, mx, Ixx: mass (kg), first moment (kg m) and inertia (kg m²) about the origin of the "
    "body. The linear estimate uses the data alone, ± its standard deviation; the identified value is that of "
    "physically consistent inertias, close to the file where they are not identifiable."
)


def identification_page(found: IdentificationResult, about: Mapping[str, str]) -> str:
    """Make the page of the results, with names and values ``about`` the run at its foot."""
    name, fit = found.robot.name, found.link_fit
    elastic, figures = ("", {}) if found.elastic is None else elastic_section(found.elastic)
    if fit is None:
        assert found.elastic is not None
        lead = f"Springs and motors {method(found.elastic)}."
        sections = [lines("lead", [lead]), _notes(found.notes), elastic]
        return results_page("identify", name, f"Identification of {name}", sections, figures, about)
    which, recordings = ("validation", found.validation) if found.validation else ("training", found.training)
    efforts = _efforts(fit, *_longest(fit, recordings), which)
    friction, trials = _friction(fit, found.training), _trials(fit)
    lead = (
        f"{len(fit.regressor.base)} base parameters, {', '.join(fit.regressor.terms) or 'no terms'} of "
        f"{fit.robot.n} joints; cut-off {number(fit.filter.cutoff)} Hz; estimator {fit.options.estimator}."
    )
    scores = [f"<h3>{which}</h3>{table(_unbroken(rows(fit, score)), text_columns=2)}" for which, score in _scores(fit)]
    terms = table(term_rows(fit)) if fit.regressor.terms else ""
    base = table(base_rows(fit)) if fit.options.inertia else ""
    sections = [lines("lead", [lead]), _verdict(found, fit), _notes(found.notes), f'<p class="soft">{_CHARTS}</p>']
    sections += [section("Residuals", *scores, text=_RESIDUALS)]
    sections += [section("Measured and predicted effort", *map(place, efforts))]
    if friction:  # of the links; none where friction is that of the motors
        charts = f'<div class="pair">{"".join(map(place, friction))}</div>'
        sections += [section("Friction over velocity", charts, text=_OF_FRICTION)]
    sections += [elastic, section("Identified parameters", terms, base, text=_PARAMETERS)]
    sections += [section("Choice of the filter", *map(place, trials), text="" if trials else "The cut-off was given.")]
    figures |= efforts | friction | trials
    return results_page("identify", name, f"Identification of {name}", sections, figures, about)


def _verdict(found: IdentificationResult, fit: Fit) -> str:
    """Whether the new file is better, by how much, and what is still unexplained."""
    score, which = (fit.validation, "that it has not seen") if fit.validation else (fit.training, "of the training")
    failed = lines("verdict bad", [f"Failed: {line}." for line in found.failures])
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = score.after / score.before
    known = np.isfinite(ratio)
    if not known.any():
        return failed
    mean = float(np.exp(np.mean(np.log(np.maximum(ratio[known], 1e-12)))))
    kept = f" {', '.join(fit.kept)}: as in the file that was given." if fit.kept else ""
    lead = (
        f"On data {which}, the RMS error of the new file is {number(100 * mean)} % of that of the given one, in the "
        f"geometric mean of the joints.{kept}"
    )
    kind = "good" if not found.failures and mean < 1 else "bad"
    rest = score.whiteness < _SYSTEMATIC
    names = [name for name, left in zip(fit.robot.joint_names, rest, strict=True) if left]
    remaining = ""
    if names:
        remaining = (
            f"<p>What is left is systematic at {escape(', '.join(names))}: look for friction of another shape below, "
            "flexibility, a payload, or efforts of cables.</p>"
        )
    return f"{failed}{lines(f'verdict {kind}', [lead])}{_by_joint(fit, score)}{remaining}"


def _by_joint(fit: Fit, score: Score) -> str:
    """A table of what the new file changes at each joint, and what is still unexplained."""
    units = effort_units(fit.robot)
    header = ("joint", f"given [{together(units)}]", "new", "change", "left")
    values = zip(fit.robot.joint_names, score.before, score.after, score.relative, strict=True)
    cells = [header]
    for name, before, after, relative in values:
        change = percent(after / before - 1) if before > 0 else percent(np.nan)
        cells.append((name, number(before), number(after), change, percent(relative)))
    return table(cells, text_columns=1) + (
        f'<p class="soft">RMS errors of the effort that the given and the new file predict{escape(without_bias(fit))}. '
        "Left: that of the new file, relative to the standard deviation of the measured effort.</p>"
    )


def _unbroken(cells: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Rows whose units, such as N m, stay on one line where a page is narrow."""
    return [tuple(cell.replace(" ", "\N{NO-BREAK SPACE}") for cell in row) for row in cells]


def _notes(notes: Sequence[str]) -> str:
    """A list of notes that opens on a click, since a recording may have many."""
    if not notes:
        return ""
    items = "".join(f"<li>{escape(line)}.</li>" for line in notes)
    return f"<details><summary>{len(notes)} note{'s' * (len(notes) > 1)}</summary><ul>{items}</ul></details>"


def _scores(fit: Fit) -> list[tuple[str, Score]]:
    return (
        [("Validation", fit.validation), ("Training", fit.training)] if fit.validation else [("Training", fit.training)]
    )


def _longest(fit: Fit, recordings: Sequence[Recording]) -> tuple[FilteredSamples, str]:
    """The longest motion of the first recording that has any, and the recording's name."""
    for recording in recordings:
        if samples := fit.prepare(recording, decimate=len(recording) > _LONG):
            return max(samples, key=len), recording.name
    raise AssertionError("a fit was judged by one of them")


def _efforts(fit: Fit, samples: FilteredSamples, name: str, which: str) -> dict[str, go.Figure]:
    predicted = fit.predict(samples)
    t = samples.t
    figures = {}
    for j, (joint, unit) in enumerate(zip(fit.robot.joint_names, effort_units(fit.robot), strict=True)):
        if np.isnan(samples.tau[:, j]).all():
            continue
        figure = over_time(f"{joint}: {name}, {which}", f"effort [{unit}]", t[0], t[-1])
        curves: dict[str, tuple[Array, dict[str, Any]]] = {
            "as recorded": (samples.measured[:, j], {"color": _MEASURED, "width": 1, "dash": "dot"}),
            "measured": (samples.tau[:, j], {"color": _MEASURED}),
            "predicted": (predicted[:, j], {"color": _PREDICTED, "width": 1}),
            "residual": (predicted[:, j] - samples.tau[:, j], {"color": "gray", "width": 1}),
        }
        for label, (values, line) in curves.items():
            kept = thinned(values, CURVE_POINTS)
            add_line(figure, t[kept], values[kept], label, line, unit=unit)
        figure.update_traces(visible="legendonly", selector={"name": "as recorded"})
        figures[f"effort_{j}"] = figure.update_layout(showlegend=True)
    return figures


def _friction(fit: Fit, training: Sequence[Recording]) -> dict[str, go.Figure]:
    """Charts of what is left of efforts without inertias and offsets, over velocity."""
    own = [name for name in _FRICTION if name in fit.regressor.terms]
    if not own:
        return {}
    samples = [part for recording in training for part in fit.prepare(recording, decimate=True)]
    step = max(1, sum(map(len, samples)) // _DOTS)
    samples = [part[::step] for part in samples]
    laws = zip(fit.robot.joint_names, effort_units(fit.robot), position_units(fit.robot), strict=True)
    figures = {}
    rest = [_rest(fit, part, own) for part in samples]
    for j, (joint, unit, position) in enumerate(laws):
        used = [part.used[:, j] for part in samples]
        v = np.concatenate([fit.filter.rates(part.qd)[rows, j] for part, rows in zip(samples, used, strict=True)])
        if not len(v):
            continue
        effort = np.concatenate([values[rows, j] for values, rows in zip(rest, used, strict=True)])
        figure = chart(joint, f"velocity [{position}/s]", f"friction [{unit}]")
        add_dots(figure, v, effort, _MEASURED)
        u = np.linspace(-1, 1, 401)
        grid = u * np.abs(u) * np.where(u < 0, max(0.0, -np.min(v)), max(0.0, np.max(v)))  # denser around zero
        motion = Motion(
            grid,
            np.zeros_like(grid),
            smoothing_velocity=float(fit.filter.smoothing_velocity[j]),
            stribeck_velocity=float(fit.filter.stribeck_velocity[j]),
        )
        law = sum((fit.terms[name][j] * TERMS[name].basis(motion) for name in own), np.zeros_like(grid))
        add_line(figure, grid, law, "identified", {"color": _PREDICTED})
        figures[f"friction_{j}"] = figure
    return figures


def _rest(fit: Fit, samples: FilteredSamples, own: Sequence[str]) -> Array:
    """Measured efforts (N, n) less all that is predicted but friction."""
    friction = sum((samples.bases[name] * fit.terms[name] for name in own), np.zeros_like(samples.tau))
    return np.asarray(samples.tau - fit.predict(samples) + friction)


def _trials(fit: Fit) -> dict[str, go.Figure]:
    """Chart of the error of held-out efforts over the cut-off, if it was chosen."""
    if not fit.trials:
        return {}
    figure = chart(
        "RMS error of held-out efforts as recorded, geometric mean of the joints",
        "cut-off [Hz]",
        f"error [{together(effort_units(fit.robot))}]",
        group="",
    )
    for k, measured in enumerate((False, True)):
        found = [t for t in fit.trials if t.measured_velocity == measured and np.isfinite(t.error)]
        if found:
            cutoffs, errors = [t.cutoff for t in found], np.exp([t.error for t in found])
            label = "measured velocities" if measured else "differences of positions"
            add_line(figure, cutoffs, errors, label, {"color": color(k)}, mode="lines+markers")
    return {"trials": figure.update_xaxes(type="log", dtick="D2").update_layout(showlegend=True)}
