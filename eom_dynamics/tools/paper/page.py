# SPDX-License-Identifier: Apache-2.0
"""HTML page of the paper's example: its table, its figures with the published values, and times of all routes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from ...arrays import Array
from ...robot import Robot
from ..pages.charts import add_joints, over_time, place
from ..pages.html_page import lines, results_page, section, table
from ..pages.numbers import number, relative
from ..pages.style import CURVE_POINTS, MARKERS
from .example import ModelDifference, PaperExample

EVALUATIONS = 10_000
"""Evaluations whose time is given, as many as those of the published program."""

UNITS = ("N m", "N m/s", "N m/s²")
"""Of tau, taud, taudd."""

SYMBOLS = ("τ", "τ̇", "τ̈")

_ROUTES = {
    "closed form": "closed form, NumPy",
    "native": "recursion, compiled",
    "casadi": "recursion, CasADi's virtual machine",
    "numpy": "recursion, Python",
    "Pinocchio rnea, tau only": "Pinocchio, rnea",
}


def write_page(path: Path, example: PaperExample, times: Mapping[str, float], about: Mapping[str, str]) -> None:
    """Write the page.

    Args:
        path: of the file.
        example: the results.
        times: of :data:`EVALUATIONS` by each route, s; see :func:`times_of_routes`.
        about: names and values for the foot of the page.
    """
    published = example.published
    quantities = zip(
        ("q", "tau", "taud", "taudd"),
        (
            "q(t) of the paper: joint variables, the given motion",
            "Q(t) of the paper, Figure 3b: joint efforts τ",
            "Q̇(t) of the paper: first time derivative of the efforts, τ̇",
            "Q̈(t) of the paper: second time derivative of the efforts, τ̈",
        ),
        ("rad", *UNITS),
        (example.q, *example.efforts),
        (published.q, *published.efforts),
        strict=True,
    )
    figures = {name: _figure(example, title, unit, x, marks) for name, title, unit, x, marks in quantities}
    failures = example.failures()
    passed = "Passed: all efforts are those of the published program."
    by_default = next(each for each in example.models if each.inertia_reference == "com" and each.wrench)
    sections = [
        lines(
            "lead",
            [
                "A. Müller and S. Kumar, Closed-form time derivatives of the equations of motion of rigid body "
                "systems, Multibody System Dynamics 53 (2021): its example, a KUKA LBR iiwa, recomputed."
            ],
        ),
        lines("verdict bad" if failures else "verdict good", [f"Failed: {x}." for x in failures] or [passed]),
        section(
            "Which figure takes which model",
            table(
                [["inertias of Table 1 about", "wrench at the tool", *_with_units()], *map(_model_row, example.models)],
                text_columns=2,
                strong={0},
            ),
            text="Table 1 gives inertias about the centres of mass, and so does the packaged robot. The figures of τ, "
            "τ̇ and τ̈ are those of the published program, which takes the same numbers about the origins of the link "
            'frames, as no physical body has them: <code>load_robot("iiwa", inertia_reference="link")</code>, with '
            "the wrench <code>paper_wrench()</code>, 10 sin(π t) in all components, at the tool. By default, efforts "
            f"differ by up to {number(by_default.largest[0])} N m. The figure of q takes no model. Below: largest "
            "differences from the published values.",
        ),
        section(
            "Figures 2 to 4",
            *(place(name, tall=True) for name in figures),
            text="In the order of the published program; the paper writes Q for τ. Lines are computed here; circles "
            "are some of the 201 published values, all of which are compared.",
        ),
        section("Differences from the published values", table(_difference_rows(example))),
        section(
            "Table 1: inertial parameters",
            table(inertial_rows(example.robot)),
            text="Of each body in its frame; inertias about the centre of mass.",
        ),
        section(
            f"Time of {EVALUATIONS:,} evaluations",
            table([["route", "gives", "time [s]", "one evaluation [µs]"], *_time_rows(times)], text_columns=2),
            text="Median time of one evaluation on this machine, multiplied; for random states of the iiwa without a "
            "wrench. Calls are of one state, but for the last row, from Python.",
        ),
    ]
    heading = "The iiwa of Müller and Kumar (2021)"
    path.write_text(results_page("paper", "iiwa", heading, sections, figures, about), encoding="utf-8")


def times_of_routes(results: Mapping[str, Any]) -> dict[str, float]:
    """Return the time of :data:`EVALUATIONS` by each route, s, the slowest first, a batch last.

    Args:
        results: of :func:`eom_dynamics.tools.benchmark.robot_benchmark.benchmark`.
    """
    medians = {_ROUTES.get(name, name): EVALUATIONS * way["median"] for name, way in results["one_state"].items()}
    slowest_first = dict(sorted(medians.items(), key=lambda each: -each[1]))
    return slowest_first | {
        f"{_ROUTES[results['batch']['backend']]}, all in one call": EVALUATIONS * results["batch"]["median"]
    }


def inertial_rows(robot: Robot) -> list[list[str]]:
    """Return the rows of the paper's table: mass, centre of mass, and inertia about it, with a header."""
    axes = ("xx", "xy", "xz", "yy", "yz", "zz")
    rows = [["body", "mass [kg]", *(f"c_{x} [m]" for x in "xyz"), *(f"I_{pair} [kg m²]" for pair in axes)]]
    for i, joint in enumerate(robot.joints, start=1):
        inertia = joint.inertial.about_center_of_mass
        values = [
            joint.mass,
            *joint.center_of_mass,
            *(inertia["xyz".index(pair[0]), "xyz".index(pair[1])] for pair in axes),
        ]
        # The table has five decimals; a zero has no sign.
        rows.append([str(i), *(f"{round(float(x), 5) + 0.0:.5f}" for x in values)])
    return rows


def _figure(example: PaperExample, title: str, unit: str, values: Array, published: Array) -> go.Figure:
    figure = over_time(title, unit, example.t[0], example.t[-1])
    names, units = example.robot.joint_names, (unit,) * example.robot.n
    add_joints(figure, names, units, example.t, values, points=CURVE_POINTS)
    add_joints(figure, names, units, example.published.t, published, points=MARKERS, kind="published", markers=True)
    return figure


def _with_units() -> list[str]:
    return [f"{symbol} [{unit}]" for symbol, unit in zip(SYMBOLS, UNITS, strict=True)]


def _model_row(model: ModelDifference) -> list[str]:
    about = {"link": "link frame", "com": "centre of mass"}[model.inertia_reference]
    return [about, "10 sin(π t)" if model.wrench else "none", *map(number, model.largest)]


def _difference_rows(example: PaperExample) -> Sequence[Sequence[str]]:
    rows = [["", "largest published value", "largest difference", "relative"]]
    for symbol, unit, most, largest, off in zip(
        SYMBOLS, UNITS, example.scale, example.models[0].largest, example.relative(), strict=True
    ):
        rows.append([f"{symbol} [{unit}]", number(most), relative(largest), relative(off)])
    return rows


def _time_rows(times: Mapping[str, float]) -> list[list[str]]:
    return [
        [
            route,
            "τ" if route == _ROUTES["Pinocchio rnea, tau only"] else "τ, τ̇, τ̈",
            number(seconds),
            number(1e6 * seconds / EVALUATIONS),
        ]
        for route, seconds in times.items()
    ]
