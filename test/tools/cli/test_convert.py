# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics convert``: files, warnings and errors."""

from __future__ import annotations

import re
from pathlib import Path

from eom_dynamics import load_robot
from eom_dynamics.robot import formats
from eom_dynamics.tools.cli.main import main


def test_a_robot_becomes_a_urdf_and_a_parameter_file(tmp_path: Path, run) -> None:
    urdf, again = tmp_path / "arm.urdf", tmp_path / "arm.yaml"
    lines = run("convert", "iiwa", "-o", str(urdf)).err.splitlines()
    assert lines[0].startswith("eom_dynamics convert: warning: springs (elasticity) are left out: iiwa_joint_1, ")
    assert run("convert", urdf, "--tip", "iiwa_joint_4", "-o", again) == ("", "")
    assert load_robot(again).joint_names == load_robot("iiwa").joint_names[:4]


def test_a_parameter_file_too_large_to_be_read_is_refused(tmp_path: Path, monkeypatch, refused) -> None:
    small = formats.PARAMETER_FILE._replace(largest=1000)
    monkeypatch.setattr(formats, "FORMATS", (small, *formats.FORMATS[1:]))
    reason = (
        r"\S+/arm.yaml: not written: it would have \d+ bytes, and at most 1000 can be read; leave out a part of the "
        r"robot by --tip, or write a .xml, or write a .urdf"
    )
    assert re.search(reason, refused("convert", "iiwa", "-o", tmp_path / "arm.yaml"))
    assert main(["convert", "iiwa", "-o", str(tmp_path / "arm.urdf")]) == 0
