# SPDX-License-Identifier: Apache-2.0
"""Recompute the iiwa example of a paper, and compare it with the published values.

    python examples/paper.py -o paper

writes a page with the paper's table and figures, how far each reading of the table is off, and the time of 10,000
evaluations by each route. Exit code 1 if an effort differs from the published one.

A. Müller and S. Kumar, "Closed-form time derivatives of the equations of motion of rigid body systems", Multibody
System Dynamics 53 (2021). The published values, paper.csv.gz, come from its MATLAB code, which uses the inertias of
the paper's table as inertias about the link frames, and applies a wrench at the tool.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import eom_dynamics as eom
from eom_dynamics.arrays import Array
from eom_dynamics.exceptions import EomDynamicsError, KernelError
from eom_dynamics.tools.pages import CURVE_POINTS, add_joints, html_page, over_time
from eom_dynamics.tools.quantity_text import number, relative
from eom_dynamics.tools.results import Result, ResultSection, TextTable, machine, show
from eom_dynamics.tools.writing import whole_folder
from eom_dynamics.trajectory import paper_motion, paper_wrench

TOLERANCE, DIFFERENCES_TOLERANCE = 1e-11, 1e-6
"""Allowed differences from the published values, and from differences of efforts, relative to the largest value."""

EVALUATIONS, BATCH = 10_000, 100_000

# Of numerical differentiation, s: its error is about STEP² ω² / 6.
STEP = 1e-4

NAMES, SYMBOLS, UNITS = ("tau", "taud", "taudd"), ("τ", "τ̇", "τ̈"), ("N m", "N m/s", "N m/s²")
WITH_UNITS = tuple(f"{symbol} [{unit}]" for symbol, unit in zip(SYMBOLS, UNITS, strict=True))

# Name, caption, unit, and row of [q, tau, taud, taudd]; of the last two also the order that is differentiated.
FIGURES = (
    ("q", "Figure 2, motion: joint variables q(t)", "rad", 0),
    ("tau", "Figure 2, inverse dynamics: joint efforts Q(t) = τ", "N m", 1),
    ("taud", "Figure 3a: first time derivative of the efforts, Q̇(t) = τ̇", "N m/s", 2),
    ("taudd", "Figure 3b: second time derivative of the efforts, Q̈(t) = τ̈", "N m/s²", 3),
    ("taud_differences", "Figure 4: τ̇, and numerical differentiation of τ", "N m/s", 2),
    ("taudd_differences", "Figure 4: τ̈, and numerical differentiation of τ̇", "N m/s²", 3),
)


def published_values() -> tuple[Array, Array]:
    """Times (201,), s, and q, tau, taud, taudd (4, 201, 7) of the paper's MATLAB code."""
    rows = np.loadtxt(Path(__file__).with_name("paper.csv.gz"), delimiter=",", skiprows=1)
    return rows[:, 0], rows[:, 1:].reshape(len(rows), 4, 7).swapaxes(0, 1)


def efforts(dynamics: eom.Dynamics, t: Array, *, wrench: bool = True) -> Array:
    """Tau, taud, taudd (3, N, 7) on the paper's motion, with or without its wrench at the tool."""
    at_tool = paper_wrench().derivatives(t, order=2) if wrench else ()
    return np.array(dynamics.inverse_dynamics(*paper_motion().derivatives(t), wrench=at_tool))


def largest(values: Array) -> list[float]:
    """Largest magnitudes of quantities (k, N, n)."""
    return [float(np.max(np.abs(each))) for each in values]


def seconds_by_route(robot: eom.Robot, rounds: int) -> dict[str, float]:
    """Time of :data:`EVALUATIONS` by each route, for random states without a wrench, s, the slowest first."""
    rng = np.random.default_rng(0)
    states = [rng.uniform(-scale, scale, (64, robot.n)) for scale in (np.pi, 2.0, 2.0, 2.0, 2.0)]
    each = [tuple(x.copy() for x in state) for state in zip(*states, strict=True)]

    def closed_form(q: Array, qd: Array, qdd: Array, qddd: Array, qdddd: Array) -> Any:
        return eom.equations_of_motion(robot, q, qd, qdd, qddd).efforts(qdddd)

    def one_by_one(route: Callable[..., Any]) -> None:
        for state in each:
            route(*state)

    routes: dict[str, Callable[..., Any]] = {"closed form, NumPy": closed_form}
    for backend, name in (("numpy", "Python"), ("native", "compiled")):
        try:
            routes[f"recursion, {name}"] = eom.Dynamics(robot, backend=backend).inverse_dynamics
        except KernelError as error:  # without a compiler
            print(f"no time of the {backend} backend: {error}", file=sys.stderr)
    found = {name: seconds(partial(one_by_one, f), rounds) / len(each) for name, f in routes.items()}
    many = [np.resize(x, (BATCH, robot.n)) for x in states]
    dynamics = eom.Dynamics(robot)
    batch = seconds(lambda: dynamics.inverse_dynamics(*many), rounds) / BATCH
    return {name: EVALUATIONS * x for name, x in [*found.items(), ("recursion, all in one call", batch)]}


def seconds(call: Callable[[], Any], rounds: int) -> float:
    """Median time of a call, s."""
    call()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def inertial_table(robot: eom.Robot) -> TextTable:
    """The paper's table: mass, center of mass, and inertia about it."""
    pairs = [(i, j) for i in range(3) for j in range(i, 3)]
    header = ["body", "mass [kg]", *(f"c_{x} [m]" for x in "xyz")]
    header += [f"I_{'xyz'[i]}{'xyz'[j]} [kg m²]" for i, j in pairs]
    rows = []
    for i, joint in enumerate(robot.joints, start=1):
        inertia = joint.inertial.about_center_of_mass
        values = [joint.mass, *joint.center_of_mass, *(inertia[pair] for pair in pairs)]
        # The table has five decimals; a zero has no sign.
        rows.append([str(i), *(f"{round(float(x), 5) + 0.0:.5f}" for x in values)])
    return TextTable(header, rows, page_only=True)


class Comparison(NamedTuple):
    """Published and recomputed values, and relative differences of tau, taud, taudd, and of taud, taudd.

    The fine times have values of the published program's model, and central differences of its efforts.
    """

    t: Array  # (201,) s
    published: Array  # q, tau, taud, taudd (4, 201, 7)
    models: dict[tuple[str, bool], list[float]]  # largest differences by inertia reference and by wrench at the tool
    off: list[float]  # from the published values
    fine: Array  # (N,) s
    curves: Array  # q, tau, taud, taudd (4, N, 7)
    differences: Array  # taud, taudd (2, N, 7)
    apart: list[float]  # from differences

    @property
    def scale(self) -> list[float]:
        """Largest published tau, taud, taudd."""
        return largest(self.published[1:])

    @property
    def failures(self) -> list[str]:
        """Differences beyond tolerance."""
        return [
            f"{name} differs from {what} by {x:.1e} of the largest, tolerance {most:.0e}"
            for what, names, values, most in (
                ("the published values", NAMES, self.off, TOLERANCE),
                ("numerical differentiation", NAMES[1:], self.apart, DIFFERENCES_TOLERANCE),
            )
            for name, x in zip(names, values, strict=True)
            if not x <= most
        ]


def compare(dynamics: dict[str, eom.Dynamics]) -> Comparison:
    """Recompute the example with dynamics by inertia reference."""
    t, published = published_values()
    models = {
        (about, wrench): largest(efforts(dynamics[about], t, wrench=wrench) - published[1:])
        for about in ("link", "com")
        for wrench in (True, False)
    }
    scale = largest(published[1:])
    off = [x / most for x, most in zip(models["link", True], scale, strict=True)]
    fine = np.linspace(t[0], t[-1], 1001)
    curves = np.array([paper_motion().derivatives(fine)[0], *efforts(dynamics["link"], fine)])
    before, after = (efforts(dynamics["link"], fine + shift) for shift in (-STEP, STEP))
    differences = (after - before)[:2] / (2 * STEP)
    apart = [x / most for x, most in zip(largest(differences - curves[2:]), scale[1:], strict=True)]
    return Comparison(t, published, models, off, fine, curves, differences, apart)


def figures(comparison: Comparison, joints: Sequence[str]) -> dict[str, Any]:
    """Charts of :data:`FIGURES`, by name."""
    charts: dict[str, Any] = {}
    markers: dict[str, Any] = {"points": 60, "markers": True}  # few, so that the line below stays visible
    for name, caption, unit, row in FIGURES:
        figure = charts[name] = over_time(caption, unit, comparison.fine[0], comparison.fine[-1])
        units = (unit,) * len(joints)
        add_joints(figure, joints, units, comparison.fine, comparison.curves[row], points=CURVE_POINTS)
        if "differences" in name:
            add_joints(
                figure, joints, units, comparison.fine, comparison.differences[row - 2], kind="numerical", **markers
            )
        else:
            add_joints(figure, joints, units, comparison.t, comparison.published[row], kind="published", **markers)
    return charts


def sections(comparison: Comparison, robot: eom.Robot, routes: dict[str, float]) -> list[ResultSection]:
    """Sections of the page, with times of :data:`EVALUATIONS` by route, s."""
    titles = {"link": "link frame", "com": "center of mass"}
    readings = [
        [titles[frame], "10 sin(π t)" if wrench else "none", *map(number, x)]
        for (frame, wrench), x in comparison.models.items()
    ]
    columns = WITH_UNITS, comparison.scale, comparison.models["link", True], [float("nan"), *comparison.apart]
    apart_from = [
        [symbol, number(most), relative(x), relative(x / most), relative(y)]
        for symbol, most, x, y in zip(*columns, strict=True)
    ]
    times = [(route, number(x), number(1e6 * x / EVALUATIONS)) for route, x in routes.items()]
    of_differences = ("", "largest published value", "from the published values", "relative")
    return [
        ResultSection(
            "Models of the figures",
            caption="Table 1 gives inertias about the centers of mass, and so does the packaged robot. The figures "
            "of τ, τ̇ and τ̈ are those of the published program, which takes the same numbers about the origins of "
            'the link frames, as no physical body has them: load_robot("iiwa", inertia_reference="link"), with the '
            "wrench paper_wrench(), 10 sin(π t) in all components, at the tool. By default, efforts differ by up "
            f"to {number(comparison.models['com', True][0])} N m. The figure of q takes no model. Below: largest "
            "differences from the published values.",
            tables=[TextTable(("inertias of Table 1 about", "wrench at the tool", *WITH_UNITS), readings, "", 2)],
        ),
        ResultSection(
            "Figures 2 to 4",
            caption="The paper writes Q for τ. Lines are computed here; circles are some of the 201 published "
            "values, all of which are compared, and in Figure 4 central differences over "
            f"{1e3 * STEP:g} ms before and after.",
            charts=figures(comparison, robot.joint_names),
        ),
        ResultSection("Differences", tables=[TextTable((*of_differences, "from differences, relative"), apart_from)]),
        ResultSection(
            "Table 1: inertial parameters",
            caption="Of each body in its frame; inertias about the center of mass.",
            tables=[inertial_table(robot)],
        ),
        ResultSection(
            f"Time of {EVALUATIONS:,} evaluations of τ, τ̇, τ̈",
            caption="Median time of one evaluation on this machine, multiplied; for random states of the iiwa "
            "without a wrench. Each call from Python computes one state, except in the last row.",
            tables=[TextTable(("route", "time [s]", "one evaluation [µs]"), times)],
        ),
    ]


def main() -> int:
    """Compute, write and print; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="paper.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("paper"), help="folder; default: %(default)s")
    parser.add_argument("--force", action="store_true", help="overwrite files of the same names")
    parser.add_argument("--rounds", type=int, default=10, help="samples per time; default: %(default)s")
    options = parser.parse_args()
    with warnings.catch_warnings():
        # About the link frames, the table is of no physical body: the page says so.
        warnings.simplefilter("ignore", eom.RobotDescriptionWarning)
        robots = {about: eom.load_robot("iiwa", inertia_reference=about) for about in ("link", "com")}
    comparison = compare({about: eom.Dynamics(robot) for about, robot in robots.items()})
    result = Result(
        title="The iiwa of Müller and Kumar (2021)",
        lead=[
            "A. Müller and S. Kumar, Closed-form time derivatives of the equations of motion of rigid body systems, "
            "Multibody System Dynamics 53 (2021): its example, a KUKA LBR iiwa, recomputed."
        ],
        passed="Passed: all efforts equal the published program's.",
        sections=sections(comparison, robots["com"], seconds_by_route(robots["com"], options.rounds)),
        failures=comparison.failures,
        files={"page": options.output / "index.html"},
        about={"machine": machine()},
    )
    try:
        with whole_folder(options.output, force=options.force) as aside:
            (aside / "index.html").write_text(html_page("examples/paper.py", result), encoding="utf-8")
    except EomDynamicsError as error:
        print(f"paper.py: {error}", file=sys.stderr)
        return 2
    return show("paper.py", result)


if __name__ == "__main__":
    raise SystemExit(main())
