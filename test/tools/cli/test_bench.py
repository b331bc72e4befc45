# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics bench``: exit code and results."""

from __future__ import annotations

import json

import pytest

from eom_dynamics import load_robot
from eom_dynamics.tools.benchmark import robot_benchmark
from eom_dynamics.tools.cli.main import main


def test_results_as_json_and_text(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(robot_benchmark, "_BATCH", 10_000)
    assert main(["bench", "planar_2r", "--rounds", "1", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    native = results["one_state"]["native"]
    assert 0 < native["quartiles"][0] <= native["median"] <= native["quartiles"][1] < 0.1
    assert native["error"] < 1e-12
    # Of times a thousandfold apart, the order holds on a busy machine, too.
    closed_form = results["one_state"]["closed form"]["median"]
    assert native["median"] < closed_form
    assert 0 < results["batch"]["median"] < closed_form
    text = robot_benchmark.as_text(load_robot("planar_2r"), results)
    assert "native" in text and "processor: " in text and "million states per second" in text


def test_a_wrong_result_is_a_failed_check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(robot_benchmark, "_BATCH", 10)
    monkeypatch.setattr(robot_benchmark, "TOLERANCE", -1.0)
    assert main(["bench", "planar_2r", "--rounds", "1"]) == 1
    assert "eom_dynamics bench: failed: native: differs from the closed form by" in capsys.readouterr().err
