# SPDX-License-Identifier: Apache-2.0
"""The arguments that name a robot: the same in every command that takes one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from urdf_arms import urdf_arm

from eom_dynamics import RobotDescriptionError
from eom_dynamics.tools.robot_options import RobotOptions

COMMANDS = {
    "codegen": ["codegen", "ROBOT", "-o", "out"],
    "convert": ["convert", "ROBOT", "-o", "out.yaml"],
    "demo": ["demo", "--robot", "ROBOT", "-o", "out"],
    "excite": ["excite", "ROBOT", "-o", "out"],
    "identify": ["identify", "bag", "--robot", "ROBOT", "-o", "out.yaml"],
    "inspect": ["inspect", "ROBOT"],
    "replay": ["replay", "bag", "-o", "out", "--robot", "ROBOT"],
    "report": ["report", "bag", "-o", "out.html", "--robot", "ROBOT"],
    "retime": ["retime", "ROBOT", "path.csv", "-o", "out"],
    "simulate": ["simulate", "ROBOT", "cosine", "-o", "out"],
}
"""Each command that takes a robot."""

NEEDS = {
    "demo": ["rclpy", "plotly"],
    **dict.fromkeys(("excite", "identify", "replay"), ("rosbags",)),
    **dict.fromkeys(("report", "retime", "simulate"), ("rosbags", "plotly")),
}
"""Libraries that a command looks for before it loads its robot."""

OPTIONS = (
    "--root base --tip left --tip right --tool hook --branches drop --unphysical warn --xacro size:=2 --xacro side:=l"
)


@pytest.fixture(params=COMMANDS)
def command(request, tmp_path: Path, monkeypatch) -> str:
    for module in NEEDS.get(request.param, []):
        pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    return request.param


def test_every_command_takes_the_same_options(command: str, monkeypatch, refused) -> None:
    loaded = []

    def load(options: RobotOptions, source: str) -> None:
        loaded.append((source, options))
        raise RobotDescriptionError("loaded")

    monkeypatch.setattr(RobotOptions, "load", load)
    assert refused(*COMMANDS[command], *OPTIONS.split()) == f"eom_dynamics {command}: loaded"
    xacro = (("size", "2"), ("side", "l"))
    assert loaded == [("ROBOT", RobotOptions("base", ("left", "right"), ("hook",), "drop", "warn", xacro))]


def test_a_robot_that_cannot_be_loaded_is_one_line_and_2(command: str, refused) -> None:
    Path("broken.yaml").write_text("/**: {ros__parameters: {robot: {name: [}}", encoding="utf-8")
    for robot in ("nobody", "missing.urdf", "broken.yaml"):
        line = refused(*(word.replace("ROBOT", robot) for word in COMMANDS[command]))
        assert line.startswith(f"eom_dynamics {command}: {robot}")
    assert [path.name for path in Path().iterdir()] == ["broken.yaml"]


def test_an_output_that_exists_is_kept_without_force(command: str, refused) -> None:
    words = [word.replace("ROBOT", "pendulum") for word in COMMANDS[command]]
    if command in ("inspect", "replay"):
        pytest.skip("inspect has no output, and replay compares its own with a manifest")
    output = Path(words[words.index("-o") + 1])
    mine = output if output.suffix else output / "mine"
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    line = refused(*words)
    assert line.startswith(f"eom_dynamics {command}: {output}: ") and "use --force to overwrite" in line
    assert [path for path in Path().rglob("*") if path.is_file()] == [mine] and mine.read_text() == "mine"


@pytest.mark.parametrize(
    ("command", "module"), [("report", "plotly"), ("report", "rosbags"), ("report", "rich"), ("view", "viser")]
)
def test_a_missing_library_is_named_with_its_extra(command: str, module: str, monkeypatch, refused) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    line = refused(command, "iiwa", *(["-o", "page.html"] if command == "report" else []))
    assert line.startswith(f"eom_dynamics {command}: {module} is not installed; run: make build EXTRAS={command}, or ")


def test_a_warning_is_one_line_on_stderr(tmp_path: Path, run) -> None:
    (tmp_path / "arm.urdf").write_text(urdf_arm().replace('izz="0.05"', 'izz="9"', 1), encoding="utf-8")
    command = [tmp_path / "arm.urdf", "--unphysical", "warn"]
    output = run("inspect", *command, "--json")
    (warning,) = output.json["warnings"]
    assert output.err == f"eom_dynamics inspect: warning: {warning}\n"
    code = ["-o", tmp_path / "code", "--language", "c", "--functions", "effort"]
    assert run("codegen", *command, *code).err == f"eom_dynamics codegen: warning: {warning}\n"
    run("inspect", *command[:1], "--unphysical", "refuse", code=2)
