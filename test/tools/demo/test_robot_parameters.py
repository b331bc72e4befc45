# SPDX-License-Identifier: Apache-2.0
"""Parameter files of the demo's robot, read as the node reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from paths import CONFIG
from urdf_arms import urdf_arm

import eom_dynamics as eom
from eom_dynamics.tools.demo.run import parameter_file
from eom_dynamics.tools.robot_options import RobotOptions


def test_parameter_files_are_taken_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own.yaml").write_text((CONFIG / "iiwa.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for source, robot in (("planar_2r", "planar_2r"), ("own.yaml", "iiwa")):
        file = parameter_file(source, RobotOptions(), tmp_path)
        path = yaml.safe_load(file.read_text(encoding="utf-8"))["/**"]["ros__parameters"]["robot_file"]
        assert Path(path).is_absolute(), "the node runs in another folder"
        assert eom.load_robot(path).name == robot
        with pytest.raises(eom.RobotDescriptionError, match="select a part of a URDF only"):
            parameter_file(source, RobotOptions(tip=("a",)), tmp_path)


def test_a_urdf_becomes_parameters(tmp_path: Path) -> None:
    text = urdf_arm(joints=("shoulder", "elbow"))
    for name in ("arm.urdf", "arm.xml"):
        (tmp_path / name).write_text(text, encoding="utf-8")
    options = RobotOptions(root="base", tip=("shoulder_link",), branches="drop", unphysical="warn")
    for source in (text, str(tmp_path / "arm.urdf"), str(tmp_path / "arm.xml")):
        file = parameter_file(source, options, tmp_path)
        parameters = yaml.safe_load(file.read_text(encoding="utf-8"))["/**"]["ros__parameters"]
        assert parameters["robot_description"] == text
        section = {"root": "base", "tip": ["shoulder_link"], "branches": "drop", "unphysical": "warn"}
        assert parameters["urdf"] == section
    file = parameter_file(text, RobotOptions(), tmp_path)
    assert yaml.safe_load(file.read_text(encoding="utf-8")) == {"/**": {"ros__parameters": {"robot_description": text}}}


def test_other_formats_are_read_by_the_node(tmp_path: Path) -> None:
    path = tmp_path / "arm.xml"
    path.write_text("<mujoco/>", encoding="utf-8")
    file = parameter_file(str(path), RobotOptions(tip=("hand",)), tmp_path)
    parameters = {"robot_file": str(path), "urdf": {"tip": ["hand"]}}
    assert yaml.safe_load(file.read_text(encoding="utf-8")) == {"/**": {"ros__parameters": parameters}}
