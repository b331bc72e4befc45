# SPDX-License-Identifier: Apache-2.0
"""HTML page, picture and data files of the demo."""

from __future__ import annotations

import base64
import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from html_page import Page
from recordings import recorded

pytest.importorskip("plotly", reason="draws the page")

import eom_dynamics as eom
from eom_dynamics.messages.fields import COMMAND_FIELDS
from eom_dynamics.simulation import Comparison, compare_feedforward
from eom_dynamics.simulation.perturbation import perturbed
from eom_dynamics.tools.demo.evaluate import Answers, evaluate
from eom_dynamics.tools.demo.plan import Plan
from eom_dynamics.tools.demo.results import write_csv, write_npz
from eom_dynamics.tools.demo.tracking import compare
from eom_dynamics.tools.pages.numbers import number


@pytest.fixture(scope="module")
def plan() -> Plan:
    return Plan(eom.load_robot("planar_2r"), rate=200.0, duration=0.5)


def page_of(plan: Plan, recording: Answers, folder: Path, tracking: Comparison | str = "no time") -> Page:
    pytest.importorskip("plotly", reason="the page needs plotly")
    from eom_dynamics.tools.demo.demo_page import write_page

    write_page(folder / "index.html", plan, recording, evaluate(plan, recording), tracking)
    return Page((folder / "index.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Page:
    return page_of(plan, recorded(plan), tmp_path_factory.mktemp("page"))


def test_the_page_loads_nothing(page: Page) -> None:
    assert page.references == ["data:,"]
    assert not re.search(r"url\(|@import", page.styles)
    assert page.policy.startswith("default-src 'none';") and "http" not in page.policy
    *_, own = page.scripts
    assert not re.search(r"https?:|fetch\(|XMLHttpRequest|import\(", own)


def test_the_page_has_all_figures_and_numbers(page: Page, plan: Plan) -> None:
    figures = json.loads(page.scripts[-2])
    assert set(figures) >= {
        "effort",
        "effort_rate",
        "effort_acceleration",
        "position",
        "link_deflection",
        "motor_effort",
    }
    groups = {trace["legendgroup"] for trace in figures["effort_rate"]["data"]}
    assert groups == {f"joint {name}" for name in plan.robot.joint_names}
    assert "Passed: no answer lost" in page.text
    assert "100 of 100" in page.text and "300 µs" in page.text


def test_the_page_compares_the_feedforwards(plan: Plan, tmp_path: Path) -> None:
    tracking = compare(plan.robot, 0.2)
    assert isinstance(tracking, Comparison)
    page = page_of(plan, recorded(plan), tmp_path, tracking)
    (none,), (rigid,), (flatness,) = tracking.rms.T
    assert flatness < rigid < none
    assert all(f"{number(1e3 * rms)} mrad" in page.text for rms in (none, rigid, flatness))
    assert f"{number(rigid / flatness)} times" in page.text
    assert len(json.loads(page.scripts[-2])["tracking"]["data"]) == 3


def test_the_page_says_why_nothing_was_simulated(plan: Plan, tmp_path: Path) -> None:
    first, second = plan.robot.joints
    tracking = compare(replace(plan.robot, joints=(first, replace(second, rotor_inertia=0.0))))
    assert isinstance(tracking, str) and "rotor_inertia must be positive" in tracking
    page = page_of(plan, recorded(plan), tmp_path, tracking)
    assert f"Not simulated: {tracking}" in page.text
    impossible = perturbed(plan.robot, mass=-2.0)
    assert str(compare(impossible)).startswith("planar_2r: the mass matrix is not positive definite")
    assert "tracking" not in json.loads(page.scripts[-2])


def test_units_are_those_of_the_joints(tmp_path: Path) -> None:
    plan = Plan(eom.load_robot("planar_pr"), rate=200.0, duration=0.5)
    page = page_of(plan, recorded(plan), tmp_path)
    figures = json.loads(page.scripts[-2])
    assert figures["link_deflection"]["layout"]["yaxis"]["title"]["text"] == "mm or mrad"
    hover = {trace["legendgroup"]: trace["hovertemplate"] for trace in figures["motor_effort"]["data"]}
    assert [" N<" in text for text in hover.values()] == [True, False]
    assert " mm and " in page.text


def test_the_page_of_a_run_without_answers(plan: Plan, tmp_path: Path) -> None:
    page = page_of(plan, recorded(plan, lost=plan.count), tmp_path)
    assert "Failed: 100 of 100 setpoints were not answered" in page.text
    assert "Passed" not in page.text


def test_the_title_has_the_rate_that_was_measured(plan: Plan, page: Page, tmp_path: Path) -> None:
    assert "planar_2r, 200 times per second" in page.text
    remedy = "run again while the machine is idle, or with a lower --rate"
    right = recorded(plan)
    slow = page_of(plan, replace(right, sent=2.5 * right.sent, received=2.5 * right.sent + 3e-4), tmp_path)
    assert "planar_2r, 80 times per second (200 requested)" in slow.text
    assert slow.text.count(f"99 of 100 setpoints were sent late: {remedy}") == 1
    lossy = page_of(plan, recorded(plan, lost=25), tmp_path)
    assert "planar_2r, 150 times per second (200 requested)" in lossy.text
    assert lossy.text.count(remedy) == 1


def test_names_from_a_robots_file_are_text_and_no_markup(tmp_path: Path) -> None:
    nasty = "</script><b>"
    joint = {
        "type": "prismatic",
        "screw": [0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
        "origin": {"xyz": [0.0, 0.0, 0.0], "rpy": [0.0, 0.0, 0.0]},
        "mass": 1.0,
        "center_of_mass": [0.0, 0.0, 0.0],
        "inertia": [0.1, 0.0, 0.0, 0.1, 0.0, 0.1],
    }
    # Within a script element, this makes a browser take what follows for part of it.
    joint_name = "<!--<script>"
    robot = eom.robot_from_parameters(
        {"name": nasty, "joint_names": [joint_name], "inertia_reference": "com", "joints": {joint_name: joint}}
    )
    plan = Plan(robot, rate=200.0, duration=0.5)
    page = page_of(plan, recorded(plan), tmp_path)
    assert page.references == ["data:,"]
    assert nasty in page.text
    assert "<" not in page.scripts[-2]
    assert json.loads(page.scripts[-2])["effort"]["data"][0]["legendgroup"] == f"joint {joint_name}"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("lost", [3, 100])
def test_the_picture_of_joints_with_names_like_formulas(plan: Plan, lost: int, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the picture needs matplotlib")
    from matplotlib.image import imread

    from eom_dynamics.tools.demo.picture import write_picture

    first, second = plan.robot.joints
    odd = replace(plan.robot, name="$x_{$", joints=(replace(first, name="$x_{$"), replace(second, name="_\x1b")))
    plan = replace(plan, robot=odd)
    recording = recorded(plan, lost)
    write_picture(tmp_path / "demo.png", plan, recording, evaluate(plan, recording))
    height, width, _ = imread(tmp_path / "demo.png").shape
    assert width > 1500 and width > 1.5 * height


def test_npz_and_csv_hold_every_number(plan: Plan, tmp_path: Path) -> None:
    recording = recorded(plan, lost=2)
    write_npz(tmp_path / "data.npz", plan, recording)
    write_csv(tmp_path / "data.csv", plan, recording)
    with np.load(tmp_path / "data.npz") as data:
        assert data["joint_names"].tolist() == list(plan.robot.joint_names)
        for field in COMMAND_FIELDS:
            np.testing.assert_array_equal(data[field], recording.answers[field])
    with (tmp_path / "data.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == plan.count
    for i, joint in enumerate(plan.robot.joint_names):
        column = [float(row[f"effort_acceleration.{joint}"]) for row in rows]
        np.testing.assert_array_equal(column, recording.answers["effort_acceleration"][:, i])


def test_a_name_never_begins_a_cell_of_a_csv_file(plan: Plan, tmp_path: Path) -> None:
    first, second = plan.robot.joints
    names = ("a,=1+1", '@"b"')
    odd = replace(plan.robot, joints=(replace(first, name=names[0]), replace(second, name=names[1])))
    plan = replace(plan, robot=odd)
    write_csv(tmp_path / "data.csv", plan, recorded(plan))
    with (tmp_path / "data.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert not any(cell[0] in "=+-@" for cell in header) and {len(row) for row in rows} == {len(header)}
    assert {f"position.{name}" for name in names} < set(header)


def test_two_motors_at_a_joint_are_shown_with_it(tmp_path: Path) -> None:
    plan = Plan(eom.load_robot("vsa_planar_2r"), rate=200.0, duration=0.5)
    recording = recorded(plan)
    page = page_of(plan, recording, tmp_path)
    figures = json.loads(page.scripts[-2])
    for name in ("link_deflection", "motor_effort", "rotor_effort"):
        traces = figures[name]["data"]
        assert [trace["name"] for trace in traces] == list(plan.arm.motor_names)
        assert [trace["legendgroup"] for trace in traces] == [f"joint joint_{k}" for k in (1, 1, 2, 2)]
        assert len({trace["line"]["color"] for trace in traces}) == 2
    assert len(figures["position"]["data"]) == 6
    # Without friction or loss all that the springs leave is what rotors take.
    shown = [trace["y"] for trace in figures["rotor_effort"]["data"]]
    rotors = plan.arm.motor_inertia * recording.answers["motor_acceleration"]
    for motor, curve in enumerate(shown):
        values = np.frombuffer(base64.b64decode(curve["bdata"]), np.float32) if isinstance(curve, dict) else curve
        np.testing.assert_allclose(values, rotors[:, motor], rtol=1e-6, atol=1e-6)
    assert "Two motors at a joint are preloaded against each other" in page.text
    write_csv(tmp_path / "data.csv", plan, recording)
    with (tmp_path / "data.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    column = [float(row["motor_effort.joint_2_antagonist"]) for row in rows]
    np.testing.assert_array_equal(column, recording.answers["motor_effort"][:, 3])


def test_a_simulation_that_ends_early_is_named(tmp_path: Path) -> None:
    plan = Plan(eom.load_robot("vsa_planar_2r"), rate=200.0, duration=0.5)
    times = np.linspace(0.0, 0.2, 101)
    tracking = compare_feedforward(plan.robot, plan.motion, times, [0.0], tolerance=1e-6)
    page = page_of(plan, recorded(plan), tmp_path, tracking)
    assert "Note: with no feedforward and no feedback at all, the simulation ends at 0.07" in page.text
    assert "nan" not in page.text.lower()


def test_friction_of_the_motors_is_mentioned(tmp_path: Path) -> None:
    plan = Plan(eom.load_robot("sea_planar_2r"), rate=200.0, duration=0.5)
    page = page_of(plan, recorded(plan), tmp_path)
    assert "Passed: no answer lost" in page.text
    assert "effort on the rotor, friction and gear loss" in page.scripts[-2]
