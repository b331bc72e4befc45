# SPDX-License-Identifier: Apache-2.0
"""Charts of an identification: efforts, friction over velocity, springs with data, resonances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from ...arrays import Array
from ...identification import Fit, Recording, frequency_response
from ...identification.elastic.arm import low_pass_of, measured
from ...identification.links.regressor import TERMS, Motion
from ...identification.sampling import rate_of
from ...robot import Joint
from ..pages import add_line, chart, color, drawn, over_time, short
from ..quantity_text import effort_units, position_units
from ..results import ResultSection
from .elastic import ElasticFit, ResonanceResult

Charts = dict[str, go.Figure]

_DOTS, _CURVE = 1500, 201  # dots of a chart: more hide each other. Points of a curve.
_LONG = 20_000  # samples beyond which curves show only the samples that the cut-off needs
_MEASURED, _PREDICTED = color(0), color(1)  # apart on light and on dark ground, in all charts alike
_FRICTION = ("viscous", "coulomb")


def link_sections(fit: Fit, training: Sequence[Recording], validation: Sequence[Recording]) -> list[ResultSection]:
    """Return sections with efforts, and with friction over velocity unless the motors have the friction."""
    which, recordings = ("validation", validation) if validation else ("training", training)
    sections = [
        ResultSection("Measured and predicted effort", charts=_efforts(fit, recordings, which)),
        ResultSection(
            "Friction over velocity",
            caption="Dots: measured effort minus efforts of the identified inertias and offsets. Line: identified "
            "friction.",
            charts=_friction(fit, training),
        ),
    ]
    return [section for section in sections if section.charts]


def _efforts(fit: Fit, recordings: Sequence[Recording], which: str) -> Charts:
    """Draw measured and predicted efforts of the longest motion of the first recording that has any."""
    prepared = ((fit.prepare(x, decimate=len(x) > _LONG), x.name) for x in recordings)
    parts, name = next((parts, name) for parts, name in prepared if parts)
    samples = max(parts, key=len)
    predicted = fit.predict(samples)
    t = samples.t
    figures = {}
    curves: dict[str, tuple[Array, dict[str, Any]]] = {
        "as recorded": (samples.measured, {"color": _MEASURED, "width": 1, "dash": "dot"}),
        "measured": (samples.tau, {"color": _MEASURED}),
        "predicted": (predicted, {"color": _PREDICTED, "width": 1}),
        "residual": (predicted - samples.tau, {"color": "gray", "width": 1}),
    }
    for j, (joint, unit) in enumerate(zip(fit.robot.joint_names, effort_units(fit.robot), strict=True)):
        if np.isnan(samples.tau[:, j]).all():
            continue
        figure = over_time(f"{joint}: {name}, {which}", f"effort [{unit}]", t[0], t[-1])
        for label, (values, line) in curves.items():
            add_line(figure, t, values[:, j], label, line, unit=unit)
        figure.update_traces(visible="legendonly", selector={"name": "as recorded"})
        figures[f"effort_{j}"] = figure.update_layout(showlegend=True)
    return figures


def _friction(fit: Fit, training: Sequence[Recording]) -> Charts:
    """Draw efforts less inertial efforts and offsets, over velocity; empty without friction of joints."""
    laws = [name for name in _FRICTION if name in fit.regressor.terms]
    if not laws:
        return {}
    samples = [part for recording in training for part in fit.prepare(recording, decimate=True)]
    step = max(1, sum(map(len, samples)) // _DOTS)
    samples = [part[::step] for part in samples]
    joints = zip(fit.robot.joint_names, effort_units(fit.robot), position_units(fit.robot), strict=True)
    figures = {}
    # Measured efforts less all that is predicted but friction.
    rest = [x.tau - fit.predict(x) + sum(x.bases[name] * fit.terms[name] for name in laws) for x in samples]
    for j, (joint, unit, position) in enumerate(joints):
        used = [part.used[:, j] for part in samples]
        v = np.concatenate([fit.filter.rates(part.qd)[rows, j] for part, rows in zip(samples, used, strict=True)])
        if not len(v):
            continue
        effort = np.concatenate([values[rows, j] for values, rows in zip(rest, used, strict=True)])
        figure = chart(joint, f"velocity [{position}/s]", f"friction [{unit}]")
        _add_dots(figure, v, effort, _MEASURED)
        u = np.linspace(-1, 1, 401)
        grid = u * np.abs(u) * np.where(u < 0, max(0.0, -np.min(v)), max(0.0, np.max(v)))  # denser around zero
        motion = Motion(grid, np.zeros_like(grid), smoothing_velocity=float(fit.filter.smoothing_velocity[j]))
        law = np.sum([fit.terms[name][j] * TERMS[name].basis(motion) for name in laws], axis=0)
        add_line(figure, grid, law, "identified", {"color": _PREDICTED})
        figures[f"friction_{j}"] = figure
    return figures


def elastic_charts(elastic: ElasticFit | ResonanceResult) -> Charts:
    """Draw responses of the motors to their efforts, or springs and motor friction."""
    return _responses(elastic) if isinstance(elastic, ResonanceResult) else _springs(elastic) | _motor_friction(elastic)


def _springs(elastic: ElasticFit) -> Charts:
    figures = {}
    units = zip(effort_units(elastic.robot), position_units(elastic.robot), strict=True)
    for k, (joint, (effort, position)) in enumerate(zip(elastic.robot.independent_joints, units, strict=True)):
        spring = elastic.elasticity.springs.get(joint.name)
        if spring is None:
            continue
        samples = [
            (low_pass.thinned(x.theta[:, k] - x.q[:, k]), low_pass.thinned(x.tau[:, k]))
            for x in elastic.training
            if (low_pass := low_pass_of(elastic.elasticity, joint.name, x, k, 4)) is not None and measured(x.tau[:, k])
        ]
        delta, tau = _joined(samples)
        offset = spring.parameters.get("offset", (0.0, 0.0))[0]
        figure = chart(f"{joint.name}: spring", f"deflection [{position}]", effort)
        _add_dots(figure, delta, tau - offset, color(k))
        least, most = (delta.min(), delta.max()) if len(delta) else (-1e-2, 1e-2)
        grid: Array = np.linspace(min(0.0, least), max(0.0, most), _CURVE, dtype=float)
        laws = {"identified": (spring.spring, {"color": "black"})}
        if not joint.spring.is_rigid:
            laws = {"file": (joint.spring, {"color": "gray", "dash": "dash"}), **laws}
        for label, (law, line) in laws.items():
            add_line(figure, grid, law.load(grid, np.zeros_like(grid)), label, line)
        if spring.table is not None:
            x, y, deviation = spring.table
            bars = {"type": "data", "array": short(deviation)}
            marker = {"color": "black", "symbol": "circle-open"}
            figure.add_scatter(x=x, y=short(y), error_y=bars, mode="markers", marker=marker, name="table")
        figures[f"spring_{k}"] = figure.update_layout(showlegend=True)
    return figures


def _motor_friction(elastic: ElasticFit) -> Charts:
    figures = {}
    identified = elastic.applied_to(elastic.robot).independent_joints
    units = zip(effort_units(elastic.robot), position_units(elastic.robot), strict=True)
    for k, (joint, (effort, position)) in enumerate(zip(identified, units, strict=True)):
        motor = elastic.elasticity.motors.get(joint.name)
        if motor is None or motor.of_current:
            continue
        v, rest = _friction_samples(elastic, joint, k)
        if not len(v):
            continue
        figure = chart(f"{joint.name}: friction of the motor", f"velocity [{position}/s]", effort)
        _add_dots(figure, v, rest - motor.parameters.get("offset", (0.0, 0.0))[0], color(k))
        grid = float(np.max(np.abs(v))) * np.sign(u := np.linspace(-1, 1, _CURVE)) * np.square(u)  # denser around zero
        add_line(figure, grid, motor.friction.effort(grid), "identified", {"color": "black"})
        figures[f"motor_friction_{k}"] = figure.update_layout(showlegend=True)
    return figures


def _responses(elastic: ResonanceResult) -> Charts:
    figures = {}
    motors, fit = elastic.motors, elastic.fit
    t = motors.t[0] + motors.period * np.arange(len(motors))
    units = zip(effort_units(elastic.robot), position_units(elastic.robot), strict=True)
    for k, (name, (effort, position)) in enumerate(zip(elastic.robot.joint_names, units, strict=True)):
        response = frequency_response(t, motors.q[:, k], motors.tau[:, k])
        inside = (response.frequency >= fit.band[0]) & (response.frequency <= fit.band[1])
        figure = chart(f"{name}: motion over effort", "frequency [Hz]", f"{position}/({effort})")
        gain = np.abs(response.response[inside])
        add_line(figure, response.frequency[inside], gain, "measured", {"color": color(k)})
        for label, dash in (("antiresonance", "dot"), ("resonance", "dash")):
            frequencies = getattr(fit, label)
            for f in frequencies[(frequencies >= fit.band[0]) & (frequencies <= fit.band[1])]:
                figure.add_vline(x=float(f), line={"color": "black", "dash": dash, "width": 1}, annotation_text=label)
        figure.update_xaxes(type="linear")
        figures[f"response_{k}"] = figure.update_yaxes(type="log")
    return figures


def _friction_samples(elastic: ElasticFit, joint: Joint, k: int) -> tuple[Array, Array]:
    """Velocities, and motor efforts less the efforts of rotor, spring and gear loss (N,)."""
    pairs = []
    for x in elastic.training:
        low_pass = low_pass_of(elastic.elasticity, joint.name, x, k, 4)
        if low_pass is None or not measured(x.tau[:, k]) or not measured(x.motor_effort[:, k]):
            continue
        velocity = rate_of(x.theta[:, k], low_pass.period)
        columns = (velocity[2:-2], rate_of(velocity, low_pass.period), x.tau[4:-4, k], x.motor_effort[4:-4, k])
        v, acceleration, tau, effort = (low_pass.thinned(s) for s in columns)
        pairs.append((v, effort - joint.rotor_inertia * acceleration - joint.actuator.gear.load(tau, v)))
    return _joined(pairs)


def _joined(pairs: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    nothing = np.zeros(0)
    return np.concatenate([nothing, *(x for x, _ in pairs)]), np.concatenate([nothing, *(y for _, y in pairs)])


def _add_dots(figure: go.Figure, x: Array, y: Array, shade: str) -> None:
    if len(x):
        style = {"mode": "markers", "marker": {"size": 4, "color": shade, "opacity": 0.4}, "hoverinfo": "skip"}
        figure.add_scatter(x=short(drawn(x, _DOTS)), y=short(drawn(y, _DOTS)), name="measured", **style)
