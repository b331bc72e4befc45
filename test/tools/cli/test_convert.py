# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics convert``: files, warnings and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from eom_dynamics import load_robot
from eom_dynamics.tools.cli.main import main


def test_a_robot_becomes_a_urdf_and_a_parameter_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    urdf, again = tmp_path / "arm.urdf", tmp_path / "arm.yaml"
    assert main(["convert", "iiwa", "-o", str(urdf)]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("eom_dynamics convert: warning: springs (elasticity) are left out: iiwa_joint_1, ")
    assert main(["convert", str(urdf), "--tip", "iiwa_joint_4", "-o", str(again)]) == 0
    assert load_robot(again).joint_names == load_robot("iiwa").joint_names[:4]
    assert capsys.readouterr() == ("", "")


def test_files_are_overwritten_only_by_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "arm.yaml"
    path.write_text("mine")
    assert main(["convert", "pendulum", "-o", str(path)]) == 2
    assert path.read_text() == "mine" and "use --force" in capsys.readouterr().err
    assert main(["convert", "pendulum", "-o", str(path), "--force"]) == 0
    assert load_robot(path).name == "pendulum"


def test_the_format_is_that_of_the_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["convert", "pendulum", "-o", str(tmp_path / "arm.sdf")])
    assert "must end in .yaml, .yml, .urdf" in capsys.readouterr().err
