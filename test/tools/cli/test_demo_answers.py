# SPDX-License-Identifier: Apache-2.0
"""Demo without ROS: right answers pass, every wrong answer is named; files, output and errors of the command."""

import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eom_dynamics.control.fields import COMMAND_FIELDS
from eom_dynamics.tools import processes
from eom_dynamics.tools.cli.demo import Plan
from eom_dynamics.tools.results import Result

pytest.importorskip("matplotlib", reason="matplotlib is missing: make build")
pytest.importorskip("plotly", reason="plotly is missing: make build")

Answers = dict[str, np.ndarray]


def recorded(plan: Plan, lost: int = 0, lateness: float = 3e-4) -> Answers:
    """Return the answers of a node without faults, except the first ``lost``, ``lateness`` s after each setpoint."""
    answers = {field: np.array(x) for field, x in plan.feedforward.items()}
    answers["round_trip"] = np.full(len(plan.t), lateness)
    for values in answers.values():
        values[:lost] = np.nan
    return {**answers, "sent": 12.5 + plan.t}


@cache
def plan_of(rate: float, duration: float) -> Plan:
    return Plan(rate, duration)


def checked(plan: Plan, answers: Answers, *, drawn: bool = False) -> Result:
    """Result of a run, without the picture unless ``drawn``, since that takes longest."""
    from eom_dynamics.tools.cli import demo

    with pytest.MonkeyPatch.context() as patch:
        if not drawn:
            patch.setattr(demo, "_picture", lambda *_: b"")
        return demo.demo_result(plan, answers, Path("index.html"))


def table(result: Result) -> dict[str, tuple[str, str]]:
    (rows,) = (part.rows for section in result.sections for part in section.tables)
    return {name: (value, note) for name, value, note in rows}


def tampered(answers: Answers, field: str, row: int, change: float, motor: int = -1) -> Answers:
    """Return the answers with a changed number of a field, by a share of the largest."""
    values = answers[field].copy()
    values[row, motor] += change * np.abs(values).max()
    return {**answers, field: values}


def test_right_answers_pass() -> None:
    plan = plan_of(200.0, 0.25)
    result = checked(plan, recorded(plan))
    found = table(result)
    assert result.failures == [] and result.notes == []
    assert (found["setpoints sent"][0], found["lost"][0], found["sent late"][0]) == ("50", "0", "0")
    assert found["round trip"] == ("300 µs", "median; 99 %: 300 µs, slowest: 300 µs")
    assert found["every answer against feedforward"][0] == "0"
    assert 0 < float(found["all quantities against closed form"][0]) < 1e-13


@pytest.mark.parametrize("field", COMMAND_FIELDS)
def test_every_wrong_quantity_is_found_by_both_computations(field: str) -> None:
    """Few setpoints, so that each is compared with the closed form."""
    plan = plan_of(100.0, 0.04)
    for motor in range(plan.robot.n):
        failures = checked(plan, tampered(recorded(plan), field, 2, 1e-6, motor)).failures
        assert len(failures) == 2 and all("off by" in line for line in failures), f"{field} of motor {motor}"


def test_a_single_wrong_number_is_found() -> None:
    """At a setpoint that is not compared with the closed form."""
    plan = plan_of(1000.0, 0.6)
    row = int(np.setdiff1d(np.arange(len(plan.t)), plan.rows)[100])
    (failure,) = checked(plan, tampered(recorded(plan), "effort_rate", row, np.nan)).failures
    assert failure.startswith("every answer against feedforward")


def test_lost_answers_fail_and_the_rest_is_compared() -> None:
    plan = plan_of(200.0, 0.25)
    lost = {name: x.copy() for name, x in recorded(plan).items()}
    for name in (*COMMAND_FIELDS, "round_trip"):
        lost[name][[3, 25]] = np.nan
    result = checked(plan, lost)
    remedy = "run again while the machine is idle, or at a lower rate: eom_dynamics demo --rate HZ"
    assert result.failures == [f"2 of 50 setpoints were not answered: {remedy}"]
    none = checked(plan, recorded(plan, lost=len(plan.t)), drawn=True)
    assert len(none.failures) == 3 and "no answers to compare" in none.failures[1]
    assert none.sections[0].picture.startswith(b"\x89PNG")


def test_late_setpoints_are_counted_and_a_slow_machine_is_noted() -> None:
    plan = plan_of(100.0, 1.0)
    right = recorded(plan)
    late = checked(plan, {**right, "sent": right["sent"] + 0.0105 * (plan.t > 0.505)})
    assert table(late)["sent late"][0] == "49" and late.failures == []
    (note,) = late.notes
    assert note.startswith("this machine did not hold 100 Hz: 49 of 100 setpoints were sent late: run again")
    (note,) = checked(plan, recorded(plan, lateness=1.2e-2)).notes
    assert "does not keep up with 100 Hz" in note


@pytest.mark.parametrize(("tampers", "code"), [(False, 0), (True, 1)])
def test_page_and_picture_are_written(tampers: bool, code: int, tmp_path: Path, monkeypatch, run) -> None:
    from eom_dynamics.tools.cli import demo

    def answer(processes_: processes.Run, *_: object) -> None:
        right = recorded(plan_of(200.0, 0.25))
        np.savez(processes_.folder / "answers.npz", **(tampered(right, "effort", 7, 1e-3) if tampers else right))

    monkeypatch.setattr(demo, "require_ros", lambda: None)
    monkeypatch.setattr(demo, "_DURATION", 0.25)
    monkeypatch.setattr(processes.Run, "start", lambda *_: None)
    monkeypatch.setattr(processes.Run, "play", answer)
    monkeypatch.chdir(tmp_path)
    output = run("demo", "--rate", "200", code=code)
    assert sorted(os.listdir("demo")) == ["demo.png", "index.html"]
    page = Path("demo/index.html").read_text(encoding="utf-8")
    if tampers:
        assert "eom_dynamics demo: failed: every answer against feedforward: off by" in output.err
        assert "Failed: every answer against feedforward: off by" in page
    else:
        assert output.err == "" and "Passed: no answer lost" in page and "Passed: no answer lost" in output.out
        assert output.out.splitlines()[-1].split() == ["page:", os.path.join("demo", "index.html")]


def test_an_output_that_exists_is_kept_without_force(tmp_path: Path, monkeypatch, refused) -> None:
    from eom_dynamics.tools.cli import demo

    monkeypatch.setattr(demo, "require_ros", lambda: None)
    (tmp_path / "mine").write_text("mine")
    line = refused("demo", "-o", tmp_path)
    assert line.startswith(f"eom_dynamics demo: {tmp_path}: ") and "use --force to overwrite" in line
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_missing_library_is_named_with_its_remedy(tmp_path: Path, monkeypatch, refused) -> None:
    monkeypatch.setitem(sys.modules, "rclpy", None)
    line = refused("demo", "--force", "-o", tmp_path)
    assert line.startswith("eom_dynamics demo: rclpy is not installed; run: make build, or colcon build")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "its log is empty"),
        ("one\n\ntwo\n", "two"),
        ("[ERROR] [1.0] [eom_dynamics]: no\n  more of it\n[RTPS_TRANSPORT_SHM Error] port\n", "[eom_dynamics]: no"),
        ("eom_dynamics: wrong\n[RTPS_TRANSPORT_SHM Error] port\n", "eom_dynamics: wrong"),
        ("Traceback (most recent call last):\n  x\nImportError: y\nterminate called\n", "ImportError: y"),
        ("Fatal Python error: Aborted\n\nExtension modules: numpy (total: 1)\n", "Fatal Python error: Aborted"),
    ],
)
def test_the_most_telling_line_of_a_log(text: str, line: str) -> None:
    assert processes.telling_line(text).endswith(line)


def test_a_signal_while_a_process_starts_ends_it(monkeypatch) -> None:
    started, popen = [], subprocess.Popen

    def interrupted(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(popen(*arguments, **options))
        os.kill(os.getpid(), signal.SIGTERM)
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(SystemExit) as exit_, processes.Run() as run:
        run.start("it", "timeit", "-n1 -r1 __import__('time').sleep(60)")
    assert exit_.value.code == 128 + signal.SIGTERM
    assert started[0].returncode == -signal.SIGTERM and not run.folder.exists()
