# SPDX-License-Identifier: Apache-2.0
"""The paper's example: differences from the published values, the page, and a failed check."""

import json
import re
from pathlib import Path

import paper
import pytest
from html_page import Page


@pytest.fixture(autouse=True)
def timed(monkeypatch) -> None:
    """Times as if measured, which takes seconds."""
    monkeypatch.setattr(paper, "seconds_by_route", lambda robot, rounds: {"closed form, NumPy": 7.0, "batch": 0.002})


def run(folder: Path, monkeypatch) -> int:
    monkeypatch.setattr("sys.argv", ["paper.py", "-o", str(folder)])
    return paper.main()


def test_the_example_of_the_paper(tmp_path: Path, monkeypatch, capsys) -> None:
    assert run(tmp_path / "out", monkeypatch) == 0
    output = capsys.readouterr()
    assert output.err == "", "no warning of the inertias about the link frames, of which the page tells"
    assert re.search(r"Time of 10,000 evaluations .*\nroute .*\nclosed form, NumPy +7\.00 ", output.out)
    text = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.references == ["data:,"] and page.places == {name for name, *_ in paper.FIGURES}
    assert "Passed" in page.text and "differ by up to 3.32 N m" in page.text
    captions = ("Figure 2, motion: ", "Figure 3a: first", "Figure 3b: second", "Figure 4: τ̇, and numerical")
    assert [caption for caption in captions if json.dumps(caption)[1:-1] not in text] == []
    assert run(tmp_path / "out", monkeypatch) == 2
    assert "is not empty; name another folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "error", "failure"),
    [
        (2, 1e-6, "failed: taud differs from the published values by 2.6e-09 of the largest"),
        (None, 0.0, "failed: taudd differs from numerical differentiation by 1.5e-07"),
    ],
)
def test_a_difference_fails(row: int | None, error: float, failure: str, tmp_path: Path, monkeypatch, capsys) -> None:
    t, published = paper.published_values()
    if row is None:
        monkeypatch.setattr(paper, "DIFFERENCES_TOLERANCE", 1e-7)
    else:
        published[row, 100, 3] += error
    monkeypatch.setattr(paper, "published_values", lambda: (t, published))
    assert run(tmp_path, monkeypatch) == 1
    assert failure in capsys.readouterr().err
    assert "Passed" not in Page((tmp_path / "index.html").read_text(encoding="utf-8")).text
