# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics demo`` without ROS: files, output and errors, on answers computed in this process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recordings import recorded

import eom_dynamics as eom
from eom_dynamics.tools.cli import demo

pytest.importorskip("matplotlib", reason="matplotlib is missing: make build")
pytest.importorskip("plotly", reason="plotly is missing: make build")
pytest.importorskip("rich", reason="rich is missing: make build")

from eom_dynamics.tools.demo import processes, results
from eom_dynamics.tools.demo.evaluate import Plan, evaluate

SHORT = ["--rate", "200", "--duration", "0.5", "--robot", "planar_2r"]


@pytest.fixture
def played(monkeypatch) -> None:
    """Take the answers of a node without faults; leave out the picture, which has a test of its own."""
    monkeypatch.setattr(demo, "require_ros", lambda: None)
    monkeypatch.setattr(results, "picture", lambda *_: b"")
    monkeypatch.setattr(processes, "play", lambda plan, *_: recorded(plan))


@pytest.mark.usefixtures("played")
def test_the_table_of_results(tmp_path: Path, monkeypatch, run) -> None:
    monkeypatch.chdir(tmp_path)
    output = run("demo", *SHORT)
    lines = [line.split() for line in output.out.splitlines()]
    numbers = {" ".join(words[:2]): words[2] for words in lines if len(words) > 2}
    assert numbers["setpoints sent"] == numbers["commands received"] == "100"
    assert ["lost", "0", "tolerance", "0"] in lines
    assert "round trip" in numbers
    assert lines[-1] == ["page:", os.path.join("demo", "index.html")]
    assert sorted(os.listdir("demo")) == ["data.npz", "demo.png", "index.html", "results.json"]
    assert output.err == "" and "Passed: no answer lost" in Path("demo/index.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("played")
def test_answers_of_another_robot_fail(tmp_path: Path, monkeypatch, run) -> None:
    robot = eom.load_robot("planar_2r")
    first, second = robot.joints
    other = replace(robot, joints=(first, replace(second, mass=1.001 * second.mass)))
    monkeypatch.setattr(processes, "play", lambda plan, *_: recorded(Plan(other, 200.0, 0.5)))
    output = run("demo", *SHORT, "--json", "--force", "-o", str(tmp_path), code=1)
    assert json.loads(output.out)["passed"] is False
    assert "eom_dynamics demo: failed: all quantities against closed form: off by" in output.err
    assert "Failed: every answer against feedforward: off by" in (tmp_path / "index.html").read_text(encoding="utf-8")


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


def test_a_slow_machine_is_noted() -> None:
    plan = Plan(eom.load_robot("planar_2r"), rate=200.0, duration=0.5)
    right = recorded(plan)
    assert results.note(plan, evaluate(plan, right)) == ""
    late = {**right, "sent": 2.5 * right["sent"]}
    assert "99 of 100 setpoints were sent late: run again" in results.note(plan, evaluate(plan, late))
    assert "does not keep up with 200 Hz" in results.note(plan, evaluate(plan, recorded(plan, lateness=6e-3)))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("name", "lost"), [("planar_pr", 3), ("vsa_planar_2r", 100)])
def test_the_picture_of_joints_with_names_like_formulas(name: str, lost: int) -> None:
    robot = eom.load_robot(name)
    first, second = robot.joints
    odd = replace(robot, name="$x_{$", joints=(replace(first, name="$x_{$"), replace(second, name="_\x1b")))
    plan = Plan(odd, rate=200.0, duration=0.5)
    recording = recorded(plan, lost)
    png = results.picture(plan, recording, evaluate(plan, recording))
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    assert png.startswith(b"\x89PNG") and width > 1500 and width > 1.5 * height
