# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics convert``: files, warnings and errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eom_dynamics import load_robot
from eom_dynamics.robot import formats
from eom_dynamics.tools.cli.main import main


def test_a_robot_becomes_a_urdf_and_a_parameter_file(tmp_path: Path, capsys) -> None:
    urdf, again = tmp_path / "arm.urdf", tmp_path / "arm.yaml"
    assert main(["convert", "iiwa", "-o", str(urdf)]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("eom_dynamics convert: warning: springs (elasticity) are left out: iiwa_joint_1, ")
    assert main(["convert", str(urdf), "--tip", "iiwa_joint_4", "-o", str(again)]) == 0
    assert load_robot(again).joint_names == load_robot("iiwa").joint_names[:4]
    assert capsys.readouterr() == ("", "")


def test_files_are_overwritten_only_by_force(tmp_path: Path, refused) -> None:
    path = tmp_path / "arm.yaml"
    path.write_text("mine")
    assert path.read_text() == "mine" and "use --force" in refused("convert", "pendulum", "-o", str(path))
    assert main(["convert", "pendulum", "-o", str(path), "--force"]) == 0
    assert load_robot(path).name == "pendulum"


def test_a_parameter_file_too_large_to_be_read_is_refused(tmp_path: Path, monkeypatch, refused) -> None:
    small = formats.PARAMETER_FILE._replace(largest=1000)
    monkeypatch.setattr(formats, "FORMATS", (small, *formats.FORMATS[1:]))
    reason = (
        r"\S+/arm.yaml: not written: it would have \d+ bytes, and at most 1000 can be read; leave out a part of the "
        r"robot by --tip, or write a .xml, or write a .urdf"
    )
    assert re.search(reason, refused("convert", "iiwa", "-o", tmp_path / "arm.yaml"))
    assert main(["convert", "iiwa", "-o", str(tmp_path / "arm.urdf")]) == 0


@pytest.mark.parametrize("output", ["file/arm.yaml", "file/folder/arm.yaml"])
def test_a_place_under_a_file_is_named(output: str, tmp_path: Path, refused) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    reason = f"{tmp_path / output}: cannot be written: {tmp_path / 'file'} is not a folder"
    assert refused("convert", "pendulum", "-o", tmp_path / output) == f"eom_dynamics convert: {reason}"


def test_an_unknown_link_is_one_of_the_option(tmp_path: Path, refused) -> None:
    for option in ("root", "tip"):
        line = refused("convert", "panda", f"--{option}", "fer_link3", "-o", tmp_path / "arm.yaml")
        assert f" panda.yaml: {option}: no link 'fer_link3'; " in line and "known are base, fer_joint1, " in line
