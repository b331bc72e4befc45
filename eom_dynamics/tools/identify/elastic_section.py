# SPDX-License-Identifier: Apache-2.0
"""Springs and motors on the page of an identification: spring curves with data, friction, resonances, numbers."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go

from ...arrays import Array
from ...identification import frequency_response
from ...identification.elastic_arm import measured
from ...identification.sampling import LowPass, rate_of
from ...robot import Joint
from ..pages.charts import add_line, chart, color, short
from ..pages.html_page import place, section, table
from ..quantity_text import effort_units, position_units
from .elastic import ElasticFit, ResonanceResult
from .elastic_summary import method, number_rows, residual_rows

# Dots of a chart: more hide each other. Points of a curve.
_DOTS, _CURVE = 1500, 201


def elastic_section(found: ElasticFit | ResonanceResult) -> tuple[str, dict[str, go.Figure]]:
    """Return the section as HTML, and its figures by the names of their HTML elements."""
    if isinstance(found, ResonanceResult):
        figures, about = _responses(found), "Response of the motors to their efforts, by averaged segments."
    else:
        figures = _springs(found) | _motor_friction(found)
        about = (
            "Springs: measured efforts over deflections, offsets taken away, filtered; the spring of the file and the "
            "identified one. Friction: measured efforts of motors less those of rotors and springs, over the velocity."
        )
    tables = [f"<h3>Identified numbers</h3>{table(number_rows(found), text_columns=4)}"]
    if isinstance(found, ElasticFit):
        scores = {"Validation": found.validation_score, "Training": found.training_score}
        tables += [
            f"<h3>{name}, RMS residual</h3>{table(residual_rows(found, score), text_columns=3)}"
            for name, score in scores.items()
            if score is not None
        ]
    charts = f'<div class="pair">{"".join(map(place, figures))}</div>'
    text = escape(f"Identified {method(found)}. {about}")
    return section("Springs and motors", charts, *tables, text=text), figures


def _springs(found: ElasticFit) -> dict[str, go.Figure]:
    figures = {}
    units = zip(effort_units(found.robot), position_units(found.robot), strict=True)
    for k, (joint, (effort, position)) in enumerate(zip(found.robot.independent_joints, units, strict=True)):
        spring = found.elasticity.springs.get(joint.name)
        if spring is None:
            continue
        delta, tau = _filtered_springs(found, k)
        offset = spring.parameters.get("offset", (0.0, 0.0))[0]
        figure = chart(f"{joint.name}: spring", f"deflection [{position}]", effort)
        if len(tau):
            add_dots(figure, delta, tau - offset, color(k))
        reach = delta if len(delta) else np.array([-1e-2, 1e-2])
        grid: Array = np.linspace(min(0.0, float(np.min(reach))), max(0.0, float(np.max(reach))), _CURVE, dtype=float)
        if not joint.spring.is_rigid:
            before = joint.spring.load(grid, np.zeros_like(grid))
            add_line(figure, grid, before, "file", {"color": "gray", "dash": "dash"})
        add_line(figure, grid, spring.spring.load(grid, np.zeros_like(grid)), "identified", {"color": "black"})
        if spring.table is not None:
            x, y, deviation = spring.table
            figure.add_scatter(
                x=x,
                y=short(y),
                error_y={"type": "data", "array": short(deviation)},
                mode="markers",
                marker={"color": "black", "symbol": "circle-open"},
                name="table",
            )
        figures[f"spring_{k}"] = figure.update_layout(showlegend=True)
    return figures


def _motor_friction(found: ElasticFit) -> dict[str, go.Figure]:
    figures = {}
    identified = found.applied_to(found.robot).independent_joints
    units = zip(effort_units(found.robot), position_units(found.robot), strict=True)
    for k, (joint, (effort, position)) in enumerate(zip(identified, units, strict=True)):
        motor = found.elasticity.motors.get(joint.name)
        if motor is None or motor.of_current:
            continue
        v, rest = _friction_samples(found, joint, k)
        if not len(v):
            continue
        figure = chart(f"{joint.name}: friction of the motor", f"velocity [{position}/s]", effort)
        add_dots(figure, v, rest - motor.parameters.get("offset", (0.0, 0.0))[0], color(k))
        grid = float(np.max(np.abs(v))) * np.sign(u := np.linspace(-1, 1, _CURVE)) * np.square(u)  # denser around zero
        add_line(figure, grid, motor.friction.effort(grid), "identified", {"color": "black"})
        figures[f"motor_friction_{k}"] = figure.update_layout(showlegend=True)
    return figures


def _responses(found: ResonanceResult) -> dict[str, go.Figure]:
    """Charts of the response of each motor to its own effort, with the identified resonances."""
    figures = {}
    motors, fit = found.motors, found.fit
    t = motors.t[0] + motors.period * np.arange(len(motors))
    units = zip(effort_units(found.robot), position_units(found.robot), strict=True)
    for k, (name, (effort, position)) in enumerate(zip(found.robot.joint_names, units, strict=True)):
        response = frequency_response(t, motors.q[:, k], motors.tau[:, k])
        inside = (response.frequency >= fit.band[0]) & (response.frequency <= fit.band[1])
        figure = chart(f"{name}: motion over effort", "frequency [Hz]", f"{position}/({effort})")
        gain = np.abs(response.response[inside])
        add_line(figure, response.frequency[inside], gain, "measured", {"color": color(k)})
        for label, frequencies, dash in (
            ("antiresonance", fit.antiresonance, "dot"),
            ("resonance", fit.resonance, "dash"),
        ):
            for f in frequencies:
                figure.add_vline(x=float(f), line={"color": "black", "dash": dash, "width": 1}, annotation_text=label)
        figure.update_xaxes(type="linear")
        figures[f"response_{k}"] = figure.update_yaxes(type="log")
    return figures


def _filtered_springs(found: ElasticFit, k: int) -> tuple[Array, Array]:
    """Deflections and efforts (N,) of the spring of a joint, without those of parts that are too short."""
    pairs = []
    for x in found.training:
        low_pass = _low_pass(found, k, x.t)
        if low_pass is not None and measured(x.tau[:, k]):
            pairs.append((low_pass.thinned(x.theta[:, k] - x.q[:, k]), low_pass.thinned(x.tau[:, k])))
    return _joined(pairs)


def _friction_samples(found: ElasticFit, joint: Joint, k: int) -> tuple[Array, Array]:
    """Velocities, and motor efforts less those of rotor, spring and gear loss (N,)."""
    pairs = []
    for x in found.training:
        low_pass = _low_pass(found, k, x.t)
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


def _low_pass(found: ElasticFit, k: int, t: Array) -> LowPass | None:
    """The filter of the fit of a motor; None if it or the part is too short."""
    motor = found.elasticity.motors.get(found.robot.joint_names[k])
    if motor is None:
        return None
    low_pass = LowPass((t[-1] - t[0]) / (len(t) - 1), motor.cutoff)
    return low_pass if len(t) > 4 * low_pass.reach + 16 else None


def add_dots(figure: go.Figure, x: Array, y: Array, shade: str) -> None:
    """Draw measured values, thinned."""
    kept = slice(None, None, max(1, len(x) // _DOTS))
    figure.add_scatter(
        x=short(x[kept]),
        y=short(y[kept]),
        mode="markers",
        marker={"size": 4, "color": shade, "opacity": 0.4},
        name="measured",
        hoverinfo="skip",
    )
