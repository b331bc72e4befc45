# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics demo`` without ROS: files, output and errors, on answers computed in this process."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import sys
from dataclasses import replace
from importlib import resources
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest
from recordings import recorded

import eom_dynamics as eom
from eom_dynamics.tools.cli import demo
from eom_dynamics.tools.cli.main import main
from eom_dynamics.tools.demo import processes, run

MISSING = [name for name in ("matplotlib", "plotly", "rich") if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} missing: make build")

SHORT = ["--rate", "200", "--duration", "0.5", "--robot", "planar_2r"]


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the answers of a node without faults; leave out simulation and picture, which have tests of their own."""
    monkeypatch.setattr(demo, "require_ros", lambda: None)
    monkeypatch.setattr("eom_dynamics.tools.demo.results.write_picture", lambda path, *_: path.touch())
    monkeypatch.setattr(run, "play", lambda plan, *_: recorded(plan))
    monkeypatch.setattr("eom_dynamics.tools.demo.tracking.compare", lambda *_: "no time")


@pytest.mark.usefixtures("played")
def test_the_table_of_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_bytes((resources.files(eom) / "config" / "planar_2r.yaml").read_bytes())
    assert main(["demo", *SHORT, "--robot", "mine.yaml"]) == 0
    output = capsys.readouterr()
    lines = [line.split() for line in output.out.splitlines()]
    numbers = {" ".join(words[:2]): words[2] for words in lines if len(words) > 2}
    assert numbers["setpoints sent"] == numbers["commands received"] == "100"
    assert ["lost", "0", "tolerance", "0"] in lines
    assert "round trip" in numbers
    assert lines[-1] == ["page:", os.path.join("demo", "index.html")]
    assert sorted(os.listdir("demo")) == ["data.csv", "data.npz", "demo.png", "index.html"]
    assert output.err == ""


@pytest.mark.usefixtures("played")
def test_answers_of_another_robot_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    robot = eom.load_robot("planar_2r")
    first, second = robot.joints
    other = replace(robot, joints=(first, replace(second, mass=1.001 * second.mass)))
    monkeypatch.setattr(run, "play", lambda plan, *_: recorded(replace(plan, robot=other)))
    assert main(["demo", *SHORT, "--json", "--force", "-o", str(tmp_path)]) == 1
    output = capsys.readouterr()
    assert json.loads(output.out)["passed"] is False
    assert "eom_dynamics demo: failed: all quantities against closed form: off by" in output.err
    assert "Failed: all quantities" in (tmp_path / "index.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("played")
@pytest.mark.parametrize("gain", [4.0, 400.0])
def test_lost_setpoints_leave_an_identification_its_success(
    gain: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missed = [] if gain > 5 else ["identification: the tracking error fell 4.00 times, not 5 times"]
    monkeypatch.setattr(run, "play", lambda plan, *_: recorded(plan, lost=25))
    monkeypatch.setattr(demo, "_identify", lambda *_: {"gain": gain, "failures": missed, "text": "its table"})
    monkeypatch.setattr("eom_dynamics.tools.demo.results.write_results", lambda folder, *_, **__: folder)
    arguments = [*SHORT, "--robot", "sea_planar_2r", "--identify", "--force", "-o", str(tmp_path)]
    assert main(["demo", *arguments]) == 1
    lost, last = capsys.readouterr().err.splitlines()[-2:]
    assert "failed: 25 of 100 setpoints were not answered: run again while the machine is idle" in lost
    expected = (
        "failed: identification: the tracking error fell 4" if gain < 5 else "identification succeeded: it runs in"
    )
    assert last.startswith(f"eom_dynamics demo: {expected}")


@pytest.mark.parametrize(
    ("module", "remedy"),
    [
        ("rclpy", "run: make build"),
        ("eom_dynamics.msg", "run: make build"),
        ("plotly", "run: make build EXTRAS=demo, or pip install 'eom_dynamics[demo]'"),
    ],
)
def test_a_missing_library_is_named_with_its_remedy(
    module: str, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if module != "rclpy":
        monkeypatch.setitem(sys.modules, "rclpy", ModuleType("rclpy"))
        sys.modules["rclpy"].__spec__ = ModuleSpec("rclpy", None)
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["demo", "--force", "-o", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"eom_dynamics demo: {module} is not installed; {remedy}")
    assert error.count("\n") == 1


@pytest.mark.usefixtures("played")
def test_a_folder_that_cannot_be_written_is_one_line_and_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["demo", "-o", str(tmp_path / "file" / "demo")]) == 2
    error = capsys.readouterr().err
    assert str(tmp_path) in error and error.count("\n") == 1


@pytest.mark.usefixtures("played")
def test_a_failure_while_writing_leaves_the_last_run_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fill_the_disk(path: Path, *_: object, **__: object) -> None:
        path.write_text("half a pa")
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    (tmp_path / "index.html").write_text("the last run", encoding="utf-8")
    monkeypatch.setattr("eom_dynamics.tools.demo.results.write_page", fill_the_disk)
    assert main(["demo", *SHORT, "--force", "-o", str(tmp_path)]) == 2
    assert f"eom_dynamics demo: {tmp_path}: cannot be written: No space left on device\n" in capsys.readouterr().err
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("index.html", "the last run")]


@pytest.mark.usefixtures("played")
def test_paths_are_not_read_as_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "[" / "b]"  # which makes of its parent the mark "[/b]"
    assert main(["demo", *SHORT, "--force", "-o", str(folder)]) == 0
    assert f"page: {folder / 'index.html'}\n" in capsys.readouterr().out


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


def test_model_errors_belong_to_an_identification(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", *SHORT, "--mass-error", "0.1", "-o", str(tmp_path)]) == 2
    assert "--stiffness-error and --mass-error need --identify" in capsys.readouterr().err


@pytest.mark.usefixtures("played")
def test_sources_without_the_example_and_with_few_folders_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "_HERE", Path("/eom/eom_dynamics/tools/cli/demo.py"))
    assert main(["demo", *SHORT, "--robot", "sea_planar_2r", "--identify", "-o", str(tmp_path)]) == 2
    assert "of the sources, which is not installed here" in capsys.readouterr().err
