# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics inspect``: text, JSON and warnings."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest

import eom_dynamics as eom
from eom_dynamics.codegen.programs import PROGRAMS
from eom_dynamics.tools.cli.main import main
from eom_dynamics.tools.inspect import facts
from eom_dynamics.tools.inspect.facts import robot_facts
from eom_dynamics.tools.inspect.text import as_text


def test_text_and_json_are_the_facts(capsys: pytest.CaptureFixture[str]) -> None:
    expected = robot_facts(eom.load_robot("planar_2r"))
    assert main(["inspect", "planar_2r"]) == 0
    assert capsys.readouterr().out == f"{as_text(expected)}\n"
    assert main(["inspect", "planar_2r", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {**expected, "warnings": []}


def test_a_suspicious_inertia_table_is_shown_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(facts, "PROGRAMS", {"effort": PROGRAMS["effort"]})
    monkeypatch.setattr(facts, "reach", lambda robot, tool: 1.0)
    packaged = (resources.files(eom) / "config" / "iiwa.yaml").read_text(encoding="utf-8")
    file = tmp_path / "link.yaml"
    file.write_text(packaged.replace("inertia_reference: com", "inertia_reference: link"), encoding="utf-8")
    assert main(["inspect", str(file)]) == 0
    output = capsys.readouterr()
    assert output.out.startswith("iiwa: 7 joints") and output.err.count("\n") == 1
    assert output.err.startswith("eom_dynamics inspect: warning: ") and "inertia_reference" in output.err
