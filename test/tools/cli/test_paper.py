# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics paper``: differences from the published values, the page, and a failed check."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from html_page import Page

from eom_dynamics.tools.benchmark import robot_benchmark
from eom_dynamics.tools.cli.main import main
from eom_dynamics.tools.paper import example
from eom_dynamics.tools.paper.page import inertial_rows

pytest.importorskip("plotly", reason="pages need plotly")


@pytest.fixture(autouse=True)
def timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times as of a benchmark, which takes seconds."""
    medians = {"native": 5e-7, "closed form": 7e-4, "Pinocchio rnea, tau only": 1e-6}
    batch = {"states": 100_000, "backend": "native", "median": 2e-7}
    results = {"one_state": {name: {"median": median} for name, median in medians.items()}, "batch": batch}
    monkeypatch.setattr(robot_benchmark, "benchmark", lambda robot, rounds: results)


def test_the_example_of_the_paper(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "-o", str(tmp_path / "out"), "--json"]) == 0
    output = capsys.readouterr()
    assert output.err == "", "no warning of the inertias about the link frames, of which the page tells"
    found = json.loads(output.out)
    figures, *others = found["differences"]
    assert (figures["inertia_reference"], figures["wrench"]) == ("link", True)
    assert figures["largest"][0] < 1e-11 < 1 < min(each["largest"][0] for each in others)
    assert list(found["time_of_10000"].items()) == [
        ("closed form, NumPy", pytest.approx(7.0)),
        ("Pinocchio, rnea", pytest.approx(0.01)),
        ("recursion, compiled", pytest.approx(0.005)),
        ("recursion, compiled, all in one call", pytest.approx(0.002)),
    ]
    text = Path(found["page"]).read_text(encoding="utf-8")
    page = Page(text)
    assert page.references == ["data:,"] and page.places == {"q", "tau", "taud", "taudd"}
    assert "Passed" in page.text and "differ by up to 3.32 N m" in page.text
    titles = ("q(t) of the paper: ", "Q(t) of the paper, Figure 3b: ", "Q̇(t) of the paper: ", "Q̈(t) of the paper: ")
    assert [title for title in titles if json.dumps(title)[1:-1] not in text] == []


def test_a_difference_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    published = example.published_trajectory()
    taud = published.taud.copy()
    taud[100, 3] += 1e-6
    monkeypatch.setattr(example, "published_trajectory", lambda: replace(published, taud=taud))
    assert main(["paper", "-o", str(tmp_path)]) == 1
    assert "failed: taud: differs from the published values by 2.6e-09 of the largest" in capsys.readouterr().err
    assert "Passed" not in Page((tmp_path / "index.html").read_text(encoding="utf-8")).text


def test_the_table_is_that_of_the_file() -> None:
    header, first, *_, last = inertial_rows(example.load_robot("iiwa"))
    assert header[:3] == ["body", "mass [kg]", "c_x [m]"] and header[-1] == "I_zz [kg m²]"
    assert " ".join(first) == "1 3.94781 -0.00351 0.00160 -0.03139 0.00455 0.00000 0.00000 0.00454 0.00001 0.00029"
    assert " ".join(last) == "7 0.35432 -0.03466 -0.02324 0.07138 0.00795 0.00022 -0.00029 0.01089 -0.00029 0.00294"
