# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics demo`` with the real node over real DDS: passes, fails, and ends as it should."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from recordings import recorded

import eom_dynamics as eom
from eom_dynamics.cli import demo
from eom_dynamics.cli.main import main
from eom_dynamics.demo import run
from eom_dynamics.demo.evaluate import Recording, closed_form
from eom_dynamics.demo.plan import Plan
from eom_dynamics.stream.conversions import COMMAND_FIELDS

MISSING = [name for name in ("rclpy", "eom_dynamics.msg", "plotly", "rich") if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} missing: make build")

SHORT = ["--rate", "200", "--duration", "0.5"]


def test_every_setpoint_is_answered_with_the_right_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", *SHORT, "--json", "-o", str(tmp_path / "new" / "folder")]) == 0
    results = json.loads(capsys.readouterr().out)
    assert results["passed"] is True and results["failures"] == []
    assert (results["sent"], results["received"], results["lost"]) == (100, 100, 0)
    assert 0 < results["round_trip"]["p50"] <= results["round_trip"]["p99"] <= results["round_trip"]["max"]
    assert len(results["deviations"]) == 3 and all(d["value"] <= d["tolerance"] for d in results["deviations"])
    assert results["backend"] in ("native", "casadi", "numpy")

    page = Path(results["page"])
    assert page.is_file() and (page.parent / "demo.png").is_file() and (page.parent / "data.csv").is_file()
    plan = Plan(eom.load_robot("iiwa"), rate=200.0, duration=0.5)
    with np.load(page.parent / "data.npz") as data:
        np.testing.assert_array_equal(data["t"], plan.t)
        for i, t in enumerate(plan.t):
            tau, taud, taudd, _ = closed_form(plan, t)
            q, qd, qdd, *_ = plan.motion.derivatives(t)
            # Linear springs, and rotors.
            K, thetadd = plan.robot.stiffness, qdd + taudd / plan.robot.stiffness
            motors = (q + tau / K, qd + taud / K, thetadd, plan.robot.rotor_inertia * thetadd + tau)
            for field, expected in zip(COMMAND_FIELDS, (tau, taud, taudd, *motors), strict=True):
                np.testing.assert_allclose(data[field][i], expected, rtol=1e-10, atol=1e-9, err_msg=f"{field} at {t} s")


def test_the_table_and_a_robot_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_bytes((resources.files(eom) / "config" / "planar_2r.yaml").read_bytes())
    assert main(["demo", *SHORT, "--robot", "mine.yaml"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    numbers = {" ".join(words[:2]): words[2] for words in lines if len(words) > 2}
    assert numbers["setpoints sent"] == numbers["commands received"] == "100"
    assert ["lost", "0", "tolerance", "0"] in lines
    assert "round trip" in numbers
    assert lines[-1] == ["page:", os.path.join("demo", "index.html")]
    assert Path("demo/index.html").is_file()


def test_answers_for_another_robot_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.warns(eom.RobotDescriptionWarning):
        other = eom.load_robot("iiwa", inertia_reference="link")
    # The node reads the file as it stands; what it answers is held against another robot.
    monkeypatch.setattr(demo, "load_robot", lambda _: other)
    assert main(["demo", *SHORT, "-o", str(tmp_path)]) == 1
    output = capsys.readouterr()
    assert "eom_dynamics demo: failed: all quantities against closed form: off by" in output.err
    assert "Failed: all quantities" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_a_node_that_does_not_start_is_reported_by_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RMW_IMPLEMENTATION", "rmw_of_nobody")
    assert main(["demo", *SHORT, "-o", str(tmp_path)]) == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("eom_dynamics")]
    assert "rmw_of_nobody" in line


@pytest.mark.parametrize("module", ["rclpy", "eom_dynamics.msg", "plotly", "matplotlib", "rich"])
def test_what_is_missing_is_named_with_its_remedy(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["demo", "-o", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"eom_dynamics demo: {module} is missing: make build")
    assert error.count("\n") == 1


def test_a_folder_that_cannot_be_written_is_one_line_and_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["demo", "-o", str(tmp_path / "file" / "demo")]) == 2
    error = capsys.readouterr().err
    assert str(tmp_path) in error and error.count("\n") == 1


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc")
@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -9)]
)
def test_a_signal_ends_node_and_player_too(sent: signal.Signals, code: int, tmp_path: Path) -> None:
    mark = f"EOM_DYNAMICS_TEST={uuid.uuid4()}"
    name, value = mark.split("=")
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; from eom_dynamics.cli.main import main; sys.exit(main(['demo']))"],
        cwd=tmp_path,
        env={**os.environ, name: value},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while len(running(mark)) < 3:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(sent)
    _, error = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in error
    while running(mark):  # which nobody waits for where the command itself was killed
        assert sent == signal.SIGKILL and time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("name", eom.packaged_robots())
def test_every_packaged_robot_passes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With answers as they should be; what of them is simulated takes long, and has its own tests."""
    monkeypatch.setattr(run, "play", lambda plan, *_: recorded(plan))
    monkeypatch.setattr("eom_dynamics.demo.tracking.compare", lambda *_: "no time")
    assert main(["demo", *SHORT, "--robot", name, "--json", "-o", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["passed"] is True


def test_what_fails_on_the_way_leaves_the_last_run_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fill_the_disk(path: Path, *_: object) -> None:
        path.write_text("half a pa")
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(run, "play", lambda plan, *_: recorded(plan))
    assert main(["demo", *SHORT, "-o", str(tmp_path)]) == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(before) == ["data.csv", "data.npz", "demo.png", "index.html"]
    capsys.readouterr()
    monkeypatch.setattr("eom_dynamics.demo.page.write_page", fill_the_disk)
    assert main(["demo", *SHORT, "--robot", "planar_2r", "-o", str(tmp_path)]) == 2
    assert f"eom_dynamics demo: {tmp_path}: cannot be written: No space left on device\n" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_names_are_text_and_no_markup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    robot = replace(eom.load_robot("planar_2r"), name="[/foo] \x1b[31m:bomb:")
    monkeypatch.setattr(demo, "load_robot", lambda _: robot)

    def play(plan: Plan, _: str, report: Callable[[int, int], None]) -> Recording:
        report(1, 1)
        return recorded(plan)

    monkeypatch.setattr(run, "play", play)
    folder = tmp_path / "[" / "b]"  # which makes of its parent the mark "[/b]"
    assert main(["demo", *SHORT, "-o", str(folder)]) == 0
    output = capsys.readouterr()
    assert f"page: {folder / 'index.html'}\n" in output.out
    assert r"[/foo] \x1b[31m:bomb:" in output.err


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "it said nothing"),
        ("one\n\ntwo\n", "two"),
        ("[ERROR] [1.0] [eom_dynamics]: no\n  more of it\n[RTPS_TRANSPORT_SHM Error] port\n", "[eom_dynamics]: no"),
        ("eom_dynamics: wrong\n[RTPS_TRANSPORT_SHM Error] port\n", "eom_dynamics: wrong"),
        ("Traceback (most recent call last):\n  x\nImportError: y\nterminate called\n", "ImportError: y"),
        ("Fatal Python error: Aborted\n\nExtension modules: numpy (total: 1)\n", "Fatal Python error: Aborted"),
    ],
)
def test_the_last_words_are_those_that_tell_why(text: str, line: str) -> None:
    assert run.telling_line(text).endswith(line)


def running(mark: str) -> list[int]:
    """Processes whose environment holds the mark."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:  # another user's, or ended meanwhile
            continue
    return found
