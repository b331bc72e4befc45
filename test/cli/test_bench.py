# SPDX-License-Identifier: Apache-2.0
"""The command that times, by its exit code and what it prints."""

from __future__ import annotations

import json

import pytest

from eom_dynamics.cli import bench
from eom_dynamics.cli.main import main


def test_json_holds_times_and_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "planar_2r", "--rounds", "1", "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    native = measured["one_state"]["native"]
    assert 0 < native["quartiles"][0] <= native["median"] <= native["quartiles"][1] < 0.1
    assert native["error"] < 1e-12
    assert native["median"] < measured["one_state"]["closed form"]["median"]
    assert 0 < measured["batch"]["median"] < native["median"]


def test_text_names_the_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "planar_2r", "--rounds", "1"]) == 0
    text = capsys.readouterr().out
    assert "native" in text and "processor: " in text and "million states a second" in text


def test_a_wrong_result_is_a_failed_check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(bench, "_TOLERANCE", -1.0)
    assert main(["bench", "planar_2r", "--rounds", "1"]) == 1


@pytest.mark.parametrize("rounds", ["0", "-1", "many", "1.5"])
def test_rounds_must_be_a_positive_number(rounds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["bench", "--rounds", rounds])
    assert caught.value.code == 2
    assert "must be a positive whole number" in capsys.readouterr().err
