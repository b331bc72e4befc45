# SPDX-License-Identifier: Apache-2.0
"""The command line as a whole: exit codes, and errors on one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import eom_dynamics
from eom_dynamics.cli.main import main


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out.strip() == f"eom_dynamics {eom_dynamics.__version__}"


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--help"], ["inspect", "--help"]])
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 0
    assert "usage: eom_dynamics" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "COMMAND"),
        (["dance"], "dance"),
        (["inspect"], "ROBOT"),
        (["inspect", "iiwa", "--loud"], "--loud"),
        (["demo", "--rate", "fast"], "fast"),
        (["demo", "--rate", "nan"], "nan"),
        (["demo", "--rate", "10"], "--rate"),
        (["demo", "--duration", "-1"], "--duration"),
    ],
)
def test_wrong_use_is_one_line_and_2(arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    output = capsys.readouterr()
    assert not output.out
    assert named in output.err and "--help" in output.err
    assert output.err.count("\n") == 1


@pytest.mark.parametrize("command", [["inspect"], ["demo", "--robot"]])
@pytest.mark.parametrize("robot", ["nobody", "missing.yaml", "broken.yaml"])
def test_a_robot_that_cannot_be_loaded_is_one_line_and_2(
    command: list[str], robot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.yaml").write_text("/**: {ros__parameters: {robot: {name: [}}", encoding="utf-8")
    assert main([*command, robot]) == 2
    output = capsys.readouterr()
    assert not output.out
    assert output.err.startswith(f"eom_dynamics {command[0]}: {robot}")
    assert output.err.count("\n") == 1


def test_help_needs_none_of_the_plotting_libraries() -> None:
    code = (
        "import sys; from eom_dynamics.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: sys.exit(', '.join({'matplotlib', 'plotly', 'rich', 'rclpy'} & set(sys.modules)) or 0)"
    )
    path = str(Path(eom_dynamics.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", code], cwd=path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
