# SPDX-License-Identifier: Apache-2.0
"""Argument robot_file of the launch files: what the nodes receive for each kind of file."""

from pathlib import Path

import pytest
import yaml
from paths import CONFIG

import eom_dynamics as eom
from eom_dynamics.ros.robot_argument import robot_parameters, urdf_to_show


def test_a_robot_is_given_by_its_path_and_other_parameters_of_its_file_in_a_file(tmp_path: Path) -> None:
    for path in ("/robots/arm.urdf", str(CONFIG / "iiwa.yaml")):
        assert robot_parameters(path) == [{"robot_file": path}]
    file, others = tmp_path / "arm.yaml", "/left: {arm: {ros__parameters: {stream_rate: 1.0e+3, names: ['on', '1']}}}"
    file.write_text(f"/**: {{ros__parameters: {{robot: {{urdf: a.urdf}}}}}}\n{others}", encoding="utf-8")
    path, rest = robot_parameters(str(file))
    assert path == {"robot_file": str(file)}
    assert yaml.safe_load(Path(rest).read_text(encoding="utf-8")) == yaml.safe_load(others)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("/**: {ros__parameters: {target_delay: 2.0}}", "no ros__parameters section has an entry robot"),
        ("/**: {ros__parameters: {robot: 1}}", "robot: must be a section, is 1"),
        ("a: {ros__parameters: {robot: {}}}\nb: {ros__parameters: {robot: {}}}", "2 robots; a file must describe one"),
    ],
)
def test_a_parameter_file_without_a_robot_is_refused(text: str, error: str, tmp_path: Path) -> None:
    file = tmp_path / "arm.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(eom.RobotDescriptionError) as refusal:
        robot_parameters(str(file))
    assert str(refusal.value) == f"{file}: {error}"


def test_the_urdf_to_show_is_that_of_the_file_or_written_for_it(tmp_path: Path) -> None:
    text, root = urdf_to_show(str(CONFIG / "sea_planar_2r.yaml"), "left_")
    assert root == "left_base"
    assert eom.load_robot(text).joint_names == ("left_joint_1", "left_joint_2")
    (tmp_path / "arm.urdf").write_text(text.replace("left_base", "stand"), encoding="utf-8")
    (tmp_path / "arm.yaml").write_text("/**: {ros__parameters: {robot: {urdf: arm.urdf}}}", encoding="utf-8")
    for source in ("arm.urdf", "arm.yaml"):
        shown, root = urdf_to_show(str(tmp_path / source))
        assert root == "stand" and shown == (tmp_path / "arm.urdf").read_text(encoding="utf-8")
    assert urdf_to_show(shown) == (shown, "stand")
