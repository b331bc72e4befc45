# SPDX-License-Identifier: Apache-2.0
"""Sweep over model errors: errors, table, verdicts, and charts of the best feedforward by region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import plotly.graph_objects as go

from ...arrays import Array
from ...robot import Robot
from ...simulation.model_errors import WAYS, ModelError, Sweep
from ..pages.charts import chart
from ..pages.numbers import for_json, number
from ..pages.style import color
from ..pages.units import milli, position_units, together
from ..text_tables import columns

LABELS = ("rigid", "τ/K", "τ/K, τ̇/K", "flatness: τ, τ̇, τ̈")
"""Names of the feedforwards, in the order of :data:`WAYS`."""

LONGEST = 2.0
"""Longest part of a motion that is simulated with all model errors, s."""

GRID = (-0.2, -0.1, 0.0, 0.1, 0.2)
"""Relative errors of stiffness and mass, all pairs."""

# Errors of one parameter alone, relative, and of the delay in s, each with both signs.
_ALONE = {
    "stiffness": (0.002, 0.01, 0.02, 0.05, 0.1, 0.2),
    "mass": (0.002, 0.01, 0.02, 0.05, 0.1, 0.2),
    "rotor_inertia": (0.05, 0.2),
    "friction": (0.2, 0.5),
    "delay": (2e-4, 1e-3),
}

# Relative errors of stiffness and of mass to which a model that was identified is known.
_KNOWN = 0.05

# What each feedforward but the last one lacks.
_MORE = ("τ/K, τ̇ and τ̈", "τ̇ and τ̈", "τ̈")

# Ways within this ratio of the best are as good.
_AS_GOOD = 1.05

# Ratio of two errors from which on a term is worth having.
_WORTH = 1.5

HEADER = ("real less modelled", *LABELS, "rigid / flatness", "least that is as good")
"""Titles of the columns of :func:`rows`."""


def model_errors(robot: Robot, period: float) -> tuple[ModelError, ...]:
    """The model errors of the sweep: none, pairs of stiffness and mass, one parameter alone, and commands not ahead."""
    errors = [ModelError(), *(ModelError(stiffness=s, mass=m) for s in GRID for m in GRID)]
    has_friction = not all(joint.actuator.friction.is_none for joint in robot.independent_joints)
    for name, sizes in _ALONE.items():
        if name != "friction" or has_friction:
            errors += [ModelError(**{name: sign * size}) for size in sizes for sign in (-1, 1)]
    lead = replace(robot, command_period=period).command_lead
    return tuple(dict.fromkeys([*errors, ModelError(delay=lead)]))


def least_as_good(rms: Array) -> int | None:
    """Index of the simplest feedforward with an error within 5 % of the least; None if all simulations end early."""
    if np.all(np.isnan(rms)):
        return None
    return int(np.argmax(np.where(np.isnan(rms), np.inf, rms) <= _AS_GOOD * np.nanmin(rms)))


def rows(sweep: Sweep) -> list[tuple[str, ...]]:
    """A row for each model error, below :data:`HEADER`."""
    shown = together(milli(position_units(sweep.robot)))
    result = []
    for error, rms in zip(sweep.errors, sweep.rms, strict=True):
        best = least_as_good(rms)
        errors = [f"{number(1e3 * x)} {shown}" if np.isfinite(x) else number(x) for x in rms]
        ratio = rms[0] / rms[-1]
        name = f"without lead: {_named(error)}" if error == ModelError(delay=sweep.lead) else _named(error)
        result.append((name, *errors, f"{number(ratio)} ×", "–" if best is None else LABELS[best]))
    return result


def verdicts(sweep: Sweep) -> list[str]:
    """Sentences on the benefit of each feedforward term over all model errors."""
    ratio = sweep.rms[:, 0] / sweep.rms[:, -1]
    known = np.isfinite(ratio)
    drives = "interpolated over" if sweep.robot.drive_interpolation == "linear" else "held for"
    lines = [
        *_headline(sweep),
        f"Motion {sweep.motion_frequency:.3g} rad/s, lowest resonance {sweep.resonance:.3g} rad/s, "
        f"ratio {sweep.motion_frequency / sweep.resonance:.2g}; commands {drives} {1e3 * sweep.period:g} ms, "
        f"acting {1e3 * sweep.robot.drive_delay:g} ms later; lead {1e3 * sweep.lead:g} ms; a PD of "
        f"{sweep.natural_frequency:g} rad/s on the motors.",
    ]
    if known.any():
        worse = int(np.sum(ratio[known] < 1))
        lines.append(
            f"Flatness against rigid feedforward: {compared(float(np.min(ratio[known])))} to "
            f"{compared(float(np.max(ratio[known])))}; worse with {worse} of {int(known.sum())} model errors."
        )
    exact = sweep.of(ModelError())
    if (unled := ModelError(delay=sweep.lead)) in sweep.errors and np.isfinite(gain := sweep.of(unled)[-1] / exact[-1]):
        lines.append(f"Without the lead the error with flatness is {compared(1 / gain)}.")
    for more, less, name in ((2, 1, "τ̇"), (3, 2, "τ̈")):
        if not np.all(np.isfinite(exact)):
            continue
        gain = exact[less] / exact[more]
        if gain < _WORTH:
            lines.append(f"{name} does not pay on this motion: with the exact model its error is {compared(gain)}.")
            continue
        *first, last = (x for x in (_below(sweep, parameter, less, more) for parameter in _ALONE) if x)
        lines.append(
            f"{name} pays at this ratio of motion to resonance ({compared(gain)} with the exact model, at least "
            f"{_WORTH:g} × smaller) up to errors of {', '.join(first)} and {last}, each alone and of both signs; "
            "beyond, the error of the model is larger than what it adds."
        )
    if not any(error.friction for error in sweep.errors):
        lines.append("Without friction in the model there is no error of it.")
    return lines


def _headline(sweep: Sweep) -> list[str]:
    """The feedforward to use with a model that is known to 5 %, and what the others would change, at worst."""
    errors = [ModelError(**{name: sign * _KNOWN}) for name in ("stiffness", "mass") for sign in (-1, 1)]
    if not set(errors) <= set(sweep.errors):
        return []
    rms = np.stack([sweep.of(error) for error in errors])
    if not np.isfinite(rms).all():
        return []
    worst = np.max(rms / np.min(rms, axis=1, keepdims=True), axis=0)
    k = int(np.argmax(worst <= max(_WORTH, np.min(worst))))
    advice = f"For an arm whose stiffness and masses are known to {100 * _KNOWN:g} %, use {LABELS[k]}"
    if k == len(LABELS) - 1:
        return [f"{advice}: τ/K alone has up to {number(float(np.max(rms[:, 1] / rms[:, -1])))} × its error."]
    change = np.ceil(100 * np.max(np.abs(rms[:, -1] / rms[:, k] - 1)))
    verb = "changes" if k == len(_MORE) - 1 else "change"
    return [f"{advice}: {_MORE[k]} {verb} the error by at most {change:g} %."]


def compared(ratio: float) -> str:
    """Compare an error with another in words, by the other's ratio to it: below 1, the error is larger."""
    if ratio < 1:
        return f"{number(1 / ratio)} × larger"
    return f"{number(ratio)} × smaller"


def _below(sweep: Sweep, parameter: str, less: int, more: int) -> str | None:
    """Largest error of a parameter up to which a way is worth having, with both signs; None if there are no errors."""
    most, sizes = 0.0, _ALONE[parameter]
    if ModelError(**{parameter: sizes[0]}) not in sweep.errors:
        return None
    for size in sizes:
        pair = [sweep.of(ModelError(**{parameter: sign * size})) for sign in (-1, 1)]
        if not all(rms[less] / rms[more] >= _WORTH for rms in pair):
            break
        most = size
    amount = _amount(parameter, most or sizes[0])
    which = "less than " if not most else "at least " if most == sizes[-1] else ""
    return f"{which}{amount} of {parameter.replace('_', ' ')}"


def _amount(parameter: str, value: float, sign: str = "") -> str:
    return f"{1e3 * value:{sign}.3g} ms" if parameter == "delay" else f"{100 * value:{sign}.3g} %"


def _named(error: ModelError) -> str:
    named = [
        f"{name.replace('_', ' ')} {_amount(name, value, '+')}" for name, value in error._asdict().items() if value
    ]
    return ", ".join(named) or "exact model"


def regions(sweep: Sweep) -> go.Figure:
    """Chart of the simplest feedforward that is as good as any, over errors of stiffness and mass."""
    cells = [[(ModelError(stiffness=s, mass=m), "") for s in GRID] for m in GRID]
    percent = [f"{100 * x:+g}" if x else "0" for x in GRID]
    title = "Stiffness and masses wrong"
    return _heat_map(title, sweep, cells, percent, percent, "error of all stiffness [%]", "error of all masses [%]")


def regions_alone(sweep: Sweep) -> go.Figure:
    """The same over errors of one parameter alone: stiffness, mass, rotor inertia, friction, delay."""
    cells, names = [], []
    for name, sizes in reversed(_ALONE.items()):
        small, large = sizes[-2:]
        row = [(ModelError(**{name: x}), _amount(name, x, "+")) for x in (-large, -small, small, large)]
        if all(error in sweep.errors for error, _ in row):
            cells.append(row)
            names.append(name.replace("_", " "))
    return _heat_map(
        "One parameter wrong", sweep, cells, ["− −", "−", "+", "+ +"], names, "size and sign of its error", ""
    )


def _heat_map(
    title: str,
    sweep: Sweep,
    cells: Sequence[Sequence[tuple[ModelError, str]]],
    columns: Sequence[str],
    rows: Sequence[str],
    x_title: str,
    y_title: str,
) -> go.Figure:
    """Chart of the simplest feedforward as good as any for rows of errors, each with a text for its cell."""
    figure = chart(title, x_title, y_title)
    short = [label.split(":")[0] for label in LABELS]
    all_rms = [[sweep.of(error) for error, _ in row] for row in cells]
    ratios = [[f"{number(rms[0] / rms[-1])} ×" for rms in row] for row in all_rms]
    colors = [color(k) for k in (1, 2, 3, 0)]
    scale: list[list[Any]] = []
    for k, shade in enumerate(colors):
        scale += [[k / len(colors), shade], [(k + 1) / len(colors), shade]]
        # Entries of the legend: that of a heat map would be a bar, for which a narrow screen has no room.
        marker = {"color": shade, "symbol": "square", "size": 12}
        figure.add_scatter(x=[None], y=[None], mode="markers", marker=marker, name=LABELS[k])
    figure.add_heatmap(
        x=columns,
        y=rows,
        z=[[np.nan if (best := least_as_good(rms)) is None else best for rms in row] for row in all_rms],
        text=[
            ["<br>".join(filter(None, (label, ratio))) for (_, label), ratio in zip(*both, strict=True)]
            for both in zip(cells, ratios, strict=True)
        ],
        customdata=[
            [
                "<br>".join([_named(error), *(f"{name} {number(1e3 * x)}" for name, x in zip(short, rms, strict=True))])
                for (error, _), rms in zip(*both, strict=True)
            ]
            for both in zip(cells, all_rms, strict=True)
        ],
        texttemplate="%{text}",
        textfont={"size": 12},
        hovertemplate="%{customdata}<extra></extra>",
        zmin=-0.5,
        zmax=len(WAYS) - 0.5,
        colorscale=scale,
        xgap=2,
        ygap=2,
        opacity=0.75,
        showscale=False,
    )
    figure.update_layout(hovermode="closest", showlegend=True)
    return figure.update_xaxes(type="category").update_yaxes(type="category")


def as_text(sweep: Sweep) -> str:
    """The table and the verdicts as plain text."""
    table = columns([HEADER, *rows(sweep)], right_from=1)
    return "\n".join(["over errors of the model, with sampled commands:", *table, "", *verdicts(sweep)])


def as_json(sweep: Sweep) -> dict[str, Any]:
    """The numbers of the sweep for JSON; None for a motion that ends early."""
    return {
        "ways": list(WAYS),
        "period": sweep.period,
        "natural_frequency": sweep.natural_frequency,
        "motion_frequency": sweep.motion_frequency,
        "resonance": sweep.resonance,
        "errors": [error._asdict() for error in sweep.errors],
        "rms": for_json(sweep.rms),
        "verdicts": verdicts(sweep),
    }
