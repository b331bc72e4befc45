# SPDX-License-Identifier: Apache-2.0
"""Page, picture and data: complete, and sufficient in themselves."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import eom_dynamics as eom
from eom_dynamics.demo.data import write_csv, write_npz
from eom_dynamics.demo.evaluate import COMMAND_FIELDS, Recording, evaluate
from eom_dynamics.demo.plan import Plan

# Attributes by which a page loads something, or leads away from itself.
LOADING = {"src", "srcset", "href", "data", "action", "poster", "background", "xlink:href"}


class Page(HTMLParser):
    """What a browser sees of a page: references, texts of scripts and styles, and the text to read."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.references: list[str] = []
        self.scripts: list[str] = []
        self.styles = ""
        self.text = ""
        self.policy = ""
        self._within = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._within = tag
        self.references += [value or "" for name, value in attributes if name in LOADING]
        given = dict(attributes)
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"] or ""
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within == "script":
            self.scripts[-1] += data
        elif self._within == "style":
            self.styles += data
        else:
            self.text += data


def recorded(plan: Plan, lost: int = 0) -> Recording:
    arm = eom.ElasticArm(plan.robot)
    command = arm.feedforward(*plan.motion.derivatives(plan.t), wrench=plan.wrench.derivatives(plan.t, order=2))
    answers = {field: np.array(values) for field, values in zip(COMMAND_FIELDS, command, strict=True)}
    received = plan.t + 3e-4
    received[:lost] = np.nan
    for values in answers.values():
        values[:lost] = np.nan
    return Recording(plan.t, received, answers, "numpy")


@pytest.fixture(scope="module")
def plan() -> Plan:
    return Plan(eom.load_robot("planar_2r"), rate=200.0, duration=0.5)


def page_of(plan: Plan, recording: Recording, folder: Path) -> Page:
    pytest.importorskip("plotly", reason="the page needs plotly")
    from eom_dynamics.demo.page import write_page

    write_page(folder / "index.html", plan, recording, evaluate(plan, recording))
    return Page((folder / "index.html").read_text(encoding="utf-8"))


def test_the_page_loads_nothing(plan: Plan, tmp_path: Path) -> None:
    page = page_of(plan, recorded(plan), tmp_path)
    assert page.references == ["data:,"]
    assert not re.search(r"url\(|@import", page.styles)
    assert page.policy.startswith("default-src 'none';") and "http" not in page.policy
    *_, own = page.scripts
    assert not re.search(r"https?:|fetch\(|XMLHttpRequest|import\(", own)


def test_the_page_has_all_figures_and_numbers(plan: Plan, tmp_path: Path) -> None:
    page = page_of(plan, recorded(plan), tmp_path)
    figures = json.loads(page.scripts[-2])
    assert set(figures) >= {"effort", "effort_rate", "effort_acceleration", "position", "deflection", "round_trip"}
    names = {trace["meta"] for trace in figures["effort_rate"]["data"]}
    assert names == set(plan.robot.joint_names)
    assert "Passed: nothing lost" in page.text
    assert "100 of 100" in page.text and "300 µs" in page.text


def test_the_page_says_what_failed(plan: Plan, tmp_path: Path) -> None:
    page = page_of(plan, recorded(plan, lost=7), tmp_path)
    assert "Failed: 7 of 100 setpoints were not answered" in page.text
    assert "Passed" not in page.text


def test_a_page_of_a_run_without_answers(plan: Plan, tmp_path: Path) -> None:
    page = page_of(plan, recorded(plan, lost=plan.count), tmp_path)
    assert "Failed: 100 of 100 setpoints were not answered" in page.text


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
    assert nasty in page.text and joint_name in page.text
    assert "<" not in page.scripts[-2]
    assert json.loads(page.scripts[-2])["effort"]["data"][0]["meta"] == joint_name


@pytest.mark.parametrize("lost", [0, 3, 100])
def test_the_picture_is_a_picture(plan: Plan, lost: int, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the picture needs matplotlib")
    from matplotlib.image import imread

    from eom_dynamics.demo.picture import write_picture

    recording = recorded(plan, lost)
    write_picture(tmp_path / "demo.png", plan, recording, evaluate(plan, recording))
    height, width, _ = imread(tmp_path / "demo.png").shape
    assert width > 1500 and width > 1.5 * height


@pytest.mark.filterwarnings("error")
def test_names_in_the_picture_are_no_formulas(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the picture needs matplotlib")
    from eom_dynamics.demo.picture import write_picture

    robot = eom.load_robot("planar_2r")
    first, second = robot.joints
    odd = replace(robot, name="$x_{$", joints=(replace(first, name="$x_{$"), replace(second, name="_\x1b")))
    plan = Plan(odd, rate=200.0, duration=0.5)
    recording = recorded(plan)
    write_picture(tmp_path / "demo.png", plan, recording, evaluate(plan, recording))
    assert (tmp_path / "demo.png").is_file()


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
