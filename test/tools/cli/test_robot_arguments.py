# SPDX-License-Identifier: Apache-2.0
"""The arguments that name a robot: the same in every command that takes one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from eom_dynamics import RobotDescriptionError
from eom_dynamics.tools.cli.main import main
from eom_dynamics.tools.robot_options import RobotOptions

COMMANDS = {
    "codegen": ["codegen", "ROBOT", "-o", "out"],
    "convert": ["convert", "ROBOT", "-o", "out.yaml"],
    "demo": ["demo", "--robot", "ROBOT", "-o", "out"],
    "inspect": ["inspect", "ROBOT"],
    "replay": ["replay", "bag", "-o", "out", "--robot", "ROBOT"],
    "report": ["report", "bag", "-o", "out.html", "--robot", "ROBOT"],
    "simulate": ["simulate", "ROBOT", "cosine", "-o", "out"],
}
"""Each command that takes a robot."""

NEEDS = {"demo": ["rclpy", "plotly"], "replay": ["rosbags"], "report": ["rosbags", "plotly"], "simulate": ["plotly"]}
"""Libraries that a command looks for before it loads its robot."""

OPTIONS = (
    "--root base --tip left --tip right --tool hook --branches drop --unphysical warn --xacro size:=2 --xacro side:=l"
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_the_same_options(command: str, tmp_path: Path, monkeypatch, capsys) -> None:
    for module in NEEDS.get(command, []):
        pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    loaded = []

    def load(options: RobotOptions, source: str) -> None:
        loaded.append((source, options))
        raise RobotDescriptionError("loaded")

    monkeypatch.setattr(RobotOptions, "load", load)
    assert main([*COMMANDS[command], *OPTIONS.split()]) == 2
    xacro = (("size", "2"), ("side", "l"))
    assert loaded == [("ROBOT", RobotOptions("base", ("left", "right"), ("hook",), "drop", "warn", xacro))]
    assert capsys.readouterr().err == f"eom_dynamics {command}: loaded\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_robot_that_cannot_be_loaded_is_one_line_and_2(command: str, tmp_path: Path, monkeypatch, capsys) -> None:
    for module in NEEDS.get(command, []):
        pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    Path("broken.yaml").write_text("/**: {ros__parameters: {robot: {name: [}}", encoding="utf-8")
    for robot in ("nobody", "missing.urdf", "broken.yaml"):
        assert main([word.replace("ROBOT", robot) for word in COMMANDS[command]]) == 2
        output = capsys.readouterr()
        assert not output.out
        assert output.err.startswith(f"eom_dynamics {command}: {robot}") and output.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["broken.yaml"]


@pytest.mark.parametrize(
    ("command", "module"), [("report", "plotly"), ("report", "rosbags"), ("report", "rich"), ("view", "viser")]
)
def test_a_missing_library_is_named_with_its_extra(command: str, module: str, monkeypatch, refused) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    line = refused(command, "iiwa", *(["-o", "page.html"] if command == "report" else []))
    assert line.startswith(f"eom_dynamics {command}: {module} is not installed; run: make build EXTRAS={command}, or ")


CART = (
    '<robot name="cart"><link name="world"/><link name="cart"><inertial><mass value="2"/>'
    '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="3"/></inertial></link><link name="hook"/>'
    '<joint name="rail" type="prismatic"><parent link="world"/><child link="cart"/>'
    '<limit lower="-1" upper="3" velocity="2" effort="5"/></joint>'
    '<joint name="weld" type="fixed"><parent link="cart"/><child link="hook"/><origin xyz="0 4 0"/></joint></robot>'
)


def test_a_warning_is_one_line_on_stderr(tmp_path: Path, capsys) -> None:
    (tmp_path / "cart.urdf").write_text(CART, encoding="utf-8")
    command = [str(tmp_path / "cart.urdf"), "--unphysical", "warn"]
    assert main(["inspect", *command, "--json"]) == 0
    output = capsys.readouterr()
    (warning,) = json.loads(output.out)["warnings"]
    assert output.err == f"eom_dynamics inspect: warning: {warning}\n" and "cart" in warning
    assert main(["codegen", *command, "-o", str(tmp_path / "code"), "--language", "c", "--functions", "effort"]) == 0
    assert capsys.readouterr().err == f"eom_dynamics codegen: warning: {warning}\n"
    assert main(["inspect", *command[:1], "--unphysical", "refuse"]) == 2
