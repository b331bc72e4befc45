# SPDX-License-Identifier: Apache-2.0
"""Parameter files of the demo's robot, read as the node reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from paths import CONFIG
from urdf_arms import urdf_arm

import eom_dynamics as eom
from eom_dynamics.tools.demo.robot_parameters import parameter_file
from eom_dynamics.tools.robot_options import RobotOptions


def test_parameter_files_are_taken_whole(tmp_path: Path) -> None:
    assert eom.load_robot(parameter_file("planar_2r", RobotOptions(), tmp_path)).name == "planar_2r"
    own = str(CONFIG / "iiwa.yaml")
    assert parameter_file(own, RobotOptions(), tmp_path) == Path(own)
    for source in ("planar_2r", own):
        with pytest.raises(eom.RobotDescriptionError, match="select a part of a URDF only"):
            parameter_file(source, RobotOptions(tip=("a",)), tmp_path)


def test_a_urdf_becomes_parameters(tmp_path: Path) -> None:
    text = urdf_arm(joints=("shoulder", "elbow"))
    (tmp_path / "arm.urdf").write_text(text, encoding="utf-8")
    options = RobotOptions(root="base", tip=("shoulder_link",), branches="drop", unphysical="warn")
    for source in (text, str(tmp_path / "arm.urdf")):
        file = parameter_file(source, options, tmp_path)
        parameters = yaml.safe_load(file.read_text(encoding="utf-8"))["/**"]["ros__parameters"]
        assert parameters["robot_description"] == text
        section = {"root": "base", "tip": ["shoulder_link"], "branches": "drop", "unphysical": "warn"}
        assert parameters["urdf"] == section
    file = parameter_file(text, RobotOptions(), tmp_path)
    assert yaml.safe_load(file.read_text(encoding="utf-8")) == {"/**": {"ros__parameters": {"robot_description": text}}}
