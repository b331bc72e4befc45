# SPDX-License-Identifier: Apache-2.0
"""Argument robot_file of the launch files: parameters of the nodes for each kind of file."""

from pathlib import Path

import pytest
import yaml
from paths import CONFIG

import eom_dynamics as eom
from eom_dynamics.robot import packaged_robots
from eom_dynamics.robot.readers.parameter_file import find_robot
from eom_dynamics.ros.robot_argument import file_of_robot, robot_parameters, urdf_to_show


def test_a_robot_is_given_as_parameters_of_every_node_with_the_others_of_its_file(tmp_path: Path) -> None:
    assert robot_parameters("/robots/arm.urdf") == [{"robot_file": "/robots/arm.urdf"}]
    file, others = tmp_path / "arm.yaml", "/left: {arm: {ros__parameters: {stream_rate: 1.0e+3, names: ['on', '1']}}}"
    file.write_text(f"arm: {{ros__parameters: {{robot: {{urdf: a.urdf}}}}}}\n{others}", encoding="utf-8")
    (given,) = robot_parameters(str(file))
    expected = yaml.safe_load(others) | {"/**": {"ros__parameters": {"robot": {"urdf": str(tmp_path / "a.urdf")}}}}
    assert yaml.safe_load(Path(given).read_text(encoding="utf-8")) == expected


@pytest.mark.parametrize("name", packaged_robots())
def test_a_packaged_robot_is_named_and_the_same_as_parameters(name: str) -> None:
    (given,) = robot_parameters(file_of_robot(name))
    robots = [find_robot(Path(path).read_text(encoding="utf-8"), "")[0] for path in (given, CONFIG / f"{name}.yaml")]
    assert robots[0] == robots[1]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("/**: {ros__parameters: {stop_duration: 2.0}}", "no ros__parameters section has an entry robot"),
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
