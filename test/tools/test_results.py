# SPDX-License-Identifier: Apache-2.0
"""One result on the console, as JSON, on a page, and as an exit code; numbers and units as text."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from html_page import Page

import eom_dynamics as eom
from eom_dynamics.tools.quantity_text import (
    effort_units,
    microseconds,
    milli,
    number,
    position_units,
    relative,
    together,
)
from eom_dynamics.tools.results import Result, ResultSection, TextTable, show

TABLE = TextTable(("joint", "RMS"), [("a", "1.5"), ("b\n", "10")], "errors", failed={(1, 1)})
RESULT = Result(
    title="Title <i>",
    lead=["first"],
    facts={"duration": "2 s"},
    passed="all well",
    sections=[
        ResultSection("Section", lines=["a line"], caption="a caption", tables=[TABLE]),
        ResultSection(tables=[replace(TABLE, title="", page_only=True)]),
    ],
    notes=["a note"],
    warnings=["a warning"],
    files={"page": Path("page.html")},
    json={"errors": [1.5, 10]},
    about={"robot": "arm"},
)
TEXT = """\
first
duration: 2 s
all well

Section
a line

errors
joint  RMS
a      1.5
b\\n     10

note: a note
page: page.html
"""


def test_the_console_shows_text_and_the_exit_code_tells_failures(capsys) -> None:
    assert show("command", RESULT) == 0
    assert capsys.readouterr() == (TEXT, "command: warning: a warning\n")
    assert show("command", replace(RESULT, failures=["too large"])) == 1
    output = capsys.readouterr()
    assert output.out == TEXT.replace("all well\n", "") and output.err.endswith("command: failed: too large\n")
    assert RESULT.as_text(whole=True).count("joint  RMS") == 2
    assert show("command", Result(verbatim="code\n")) == 0 and capsys.readouterr() == ("code\n", "")


@pytest.mark.parametrize("failures", [0, 2, 12])
def test_a_result_by_joint_has_at_most_eight_lines_more_unless_verbose(failures: int, capsys) -> None:
    many = replace(
        RESULT,
        notes=[f"note {k}" for k in range(20)],
        failures=[f"failure {k}" for k in range(failures)],
        by_joint=["joint_2: bad", "joint_1: good"],
    )
    assert show("command", many, verbose=False) == (failures > 0)
    out, err = (text.splitlines() for text in capsys.readouterr())
    assert len(out) + len(err) == 8 + 2 and out[-2:] == many.by_joint
    assert err[0] == ("command: failed: failure 0" if failures else "command: warning: a warning")
    assert ("more lines, and tables: --verbose" in err[-1]) == (failures > 5) and "--verbose" in out[-3]
    show("command", many)
    assert capsys.readouterr().out.count("note: note") == 20


def test_json_has_the_files_and_notes_are_on_stderr(capsys) -> None:
    assert show("command", RESULT, as_json=True) == 0
    output = capsys.readouterr()
    assert json.loads(output.out) == {"errors": [1.5, 10], "page": "page.html"}
    assert output.err == "command: note: a note\ncommand: warning: a warning\n"
    assert json.loads(replace(RESULT, json=[1]).as_json()) == [1]
    assert show("command", Result(failures=["no motion"]), as_json=True) == 1
    assert capsys.readouterr() == ("", "command: failed: no motion\n")


def test_the_page_has_all_of_it() -> None:
    pytest.importorskip("plotly", reason="pages need plotly")
    from eom_dynamics.tools.pages import html_page

    html = html_page("command", replace(RESULT, sections=[*RESULT.sections, ResultSection("A", picture=b"png")]))
    page = Page(html)
    assert page.references == ["data:,", "data:image/png;base64,cG5n"]
    for text in (
        *("Title <i>", "2 sduration", "all well", "a caption", "a line", "errors", "1 note", "softwareeom_dynamics"),
    ):
        assert text in page.text
    assert html.count('<td class="number off">10</td>') == 2 and "<script" not in html
    failed = html_page("command", replace(RESULT, failures=["too large"]))
    assert "Failed: too large." in failed and "all well" not in failed


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0.0, "0"), (1.0, "1.00"), (-12.345, "-12.3"), (0.0001234, "0.000123"), (1234567.0, "1,230,000")),
        *((9.996, "10.0"), (999.6, "1,000"), (1.2345e-7, "1.23e-07"), (1e9, "1.00e+09")),
        *((math.nan, "–"), (math.inf, "inf")),
    ],
)
def test_numbers_have_three_significant_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_deviations_and_durations() -> None:
    assert [relative(value) for value in (1.26e-10, 0.0, math.nan)] == ["1.3e-10", "0", "–"]
    assert [microseconds(value) for value in (4e-4, 0.0125, math.nan)] == ["400 µs", "12.5 ms", "–"]


def test_units_of_revolute_and_prismatic_joints() -> None:
    robot = eom.load_robot("planar_pr")
    assert position_units(robot) == ("m", "rad") and effort_units(robot) == ("N", "N m")
    assert together(milli(position_units(robot))) == "mm or mrad"
    assert together(position_units(eom.load_robot("iiwa"))) == "rad"
