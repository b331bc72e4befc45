# SPDX-License-Identifier: Apache-2.0
"""Limits of joints from files as written by MoveIt's setup assistant, along with a URDF."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import eom_dynamics as eom
from eom_dynamics.control.online_trajectory import motion_limits
from eom_dynamics.exceptions import RobotDescriptionError, StateError
from eom_dynamics.robot.readers.parameter_tree import robot_from_urdf
from eom_dynamics.ros.robot_argument import robot_parameters
from eom_dynamics.tools.cli.main import main

LINK = (
    '<link name="{}"><inertial><mass value="1"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/>'
    "</inertial></link>"
)

JOINT = '<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/><axis xyz="0 1 0"/>{}</joint>'

LIMIT = '<limit lower="-2" upper="2" velocity="3" effort="20"/>'

URDF = "".join(
    (
        '<robot name="arm"><link name="base"/>',
        *(LINK.format(name) for name in ("upper", "lower", "hand", "finger", "thumb", "camera")),
        JOINT.format("shoulder", "revolute", "base", "upper", LIMIT),
        JOINT.format("elbow", "continuous", "upper", "lower", '<limit velocity="3" effort="20"/>'),
        JOINT.format("rail", "prismatic", "lower", "hand", LIMIT),
        JOINT.format("grip", "prismatic", "hand", "finger", LIMIT),
        JOINT.format("follower", "prismatic", "hand", "thumb", LIMIT + '<mimic joint="grip"/>'),
        JOINT.format("mount", "fixed", "hand", "camera", ""),
        "</robot>",
    )
)

# As the setup assistant writes it for an arm with a gripper, with its comments.
MOVEIT = """\
# joint_limits.yaml allows the dynamics properties specified in the URDF to be overwritten or augmented as needed

# For beginners, we downscale velocity and acceleration limits.
default_velocity_scaling_factor: 0.1
default_acceleration_scaling_factor: 0.1

# Specific joint properties can be changed with the keys [max_position, min_position, max_velocity, max_acceleration]
# Joint limits can be turned off with [has_velocity_limits, has_acceleration_limits]
joint_limits:
  shoulder:
    has_velocity_limits: true
    max_velocity: 2.5
    has_acceleration_limits: true
    max_acceleration: 8
  elbow:
    has_velocity_limits: false
    max_velocity: 0
    has_acceleration_limits: true
    max_acceleration: 9.5
    angle_wraparound: true
  rail:
    has_position_limits: true
    min_position: -0.5
    max_position: 0.75
    has_acceleration_limits: true
    max_acceleration: 4.0
    has_deceleration_limits: true
    max_deceleration: 3.0
    has_jerk_limits: true
    max_jerk: 200.0
    has_effort_limits: true
    max_effort: 15.0
  grip:
    has_velocity_limits: true
    max_velocity: 0.5
    has_acceleration_limits: false
    max_acceleration: 0.0
  follower:
    has_acceleration_limits: true
    max_acceleration: 2.0
"""

EXPECTED = {
    "shoulder": {"lower": -2.0, "upper": 2.0, "velocity": 2.5, "effort": 20.0, "acceleration": 8.0},
    "elbow": {"velocity": 3.0, "effort": 20.0, "acceleration": 9.5},
    "rail": {"lower": -0.5, "upper": 0.75, "velocity": 3.0, "effort": 15.0, "acceleration": 3.0, "jerk": 200.0},
    "grip": {"lower": -2.0, "upper": 2.0, "velocity": 0.5, "effort": 20.0},
    "follower": {"lower": -2.0, "upper": 2.0, "velocity": 3.0, "effort": 20.0, "acceleration": 2.0},
}
"""Known limits of each joint: the file overrides and completes the URDF."""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "arm.urdf").write_text(URDF, encoding="utf-8")
    (tmp_path / "joint_limits.yaml").write_text(MOVEIT, encoding="utf-8")
    return tmp_path / "arm.urdf", tmp_path / "joint_limits.yaml"


def known(robot: eom.Robot) -> dict[str, dict[str, float]]:
    return {joint.name: joint.limits.known for joint in robot.joints}


def test_limits_of_a_file_replace_and_add_to_those_of_a_urdf(files: tuple[Path, Path]) -> None:
    urdf, limits = files
    assert "acceleration" not in known(eom.load_robot(urdf))["shoulder"]
    assert known(eom.load_robot(urdf, joint_limits=limits)) == EXPECTED
    assert known(eom.load_robot(URDF, joint_limits=str(limits))) == EXPECTED


def test_a_robot_file_names_limits_beside_its_urdf(files: tuple[Path, Path]) -> None:
    """Relative to its folder; limits in the file itself take precedence."""
    urdf, _ = files
    robot = {"urdf": "arm.urdf", "joint_limits": "joint_limits.yaml"}
    robot["joints"] = {"shoulder": {"limits": {"acceleration": 5.0}}}  # type: ignore[assignment]
    path = urdf.parent / "arm.yaml"
    path.write_text(yaml.safe_dump({"/**": {"ros__parameters": {"robot": robot}}}), encoding="utf-8")
    changed = {**EXPECTED, "shoulder": {**EXPECTED["shoulder"], "acceleration": 5.0}}
    assert known(eom.load_robot(path)) == changed
    (file,) = robot_parameters(str(path))
    assert isinstance(file, str)
    assert known(eom.load_robot(file)) == changed
    assert known(eom.load_robot(path, tip="hand"))["rail"] == EXPECTED["rail"]


def test_the_section_of_a_node_names_limits_for_any_source(files: tuple[Path, Path]) -> None:
    _, limits = files
    assert known(robot_from_urdf(URDF, {"joint_limits": str(limits)})) == EXPECTED
    with pytest.raises(RobotDescriptionError, match=r"^parameters: urdf\.joint_limits: must be an absolute path"):
        robot_from_urdf(URDF, {"joint_limits": "joint_limits.yaml"})


def test_a_file_with_the_section_of_a_node_is_read(files: tuple[Path, Path]) -> None:
    urdf, limits = files
    section = {"robot_description_planning": yaml.safe_load(MOVEIT)}
    limits.write_text(yaml.safe_dump({"/**": {"ros__parameters": section}}), encoding="utf-8")
    assert known(eom.load_robot(urdf, joint_limits=limits)) == EXPECTED


def test_targets_need_the_limits(files: tuple[Path, Path]) -> None:
    """Joints of the gripper, without limits in the file, are not in this part."""
    urdf, limits = files
    options: dict[str, Any] = {"tip": "hand", "branches": "drop"}
    with pytest.raises(StateError, match=r"no limit of acceleration.*joint_limits"):
        motion_limits(eom.ElasticArm(eom.load_robot(urdf, **options)))
    found = motion_limits(eom.ElasticArm(eom.load_robot(urdf, joint_limits=limits, **options)))
    np.testing.assert_array_equal(found.acceleration, [8.0, 9.5, 3.0])


def test_the_command_line_takes_limits(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    urdf, limits = files
    assert main(["inspect", str(urdf), "--joint-limits", str(limits), "--template"]) == 0
    text = capsys.readouterr().out
    assert f'joint_limits: "{limits}"' in text
    path = urdf.parent / "filled.yaml"
    path.write_text(text, encoding="utf-8")
    robot = eom.load_robot(path)
    assert known(robot)["rail"] == EXPECTED["rail"]


LACKS = "the robot has no joint of this name with one variable"

REFUSED = {
    "an unknown joint": ("  elbow:\n", "  elbwo:\n", rf"joint_limits\.elbwo: {LACKS}; did you mean elbow\?"),
    "a fixed joint": ("  elbow:\n", "  mount:\n", rf"joint_limits\.mount: {LACKS}; "),
    "a misspelt entry": ("max_jerk", "max_jrek", r"rail\.max_jerk: missing; is max_jrek a misspelling"),
    "no number": ("max_velocity: 2.5", "max_velocity: fast", r"joint_limits\.shoulder\.max_velocity: must be a number"),
    "zero": ("max_velocity: 2.5", "max_velocity: 0.0", r"joint_limits\.shoulder\.max_velocity: must be positive, is 0"),
    "a flag that is a number": ("max_velocity: 2.5\n", "max_velocity: 2.5\n    has_jerk_limits: 1\n", "true or false"),
    "no value": ("    max_acceleration: 8\n", "", r"joint_limits\.shoulder\.max_acceleration: missing$"),
    "ends in the wrong order": ("min_position: -0.5", "min_position: 1.5", r"rail\.min_position: must not exceed"),
    "a range of a continuous joint": ("    angle_wraparound: true", "    max_position: 1.0", "elbow.max_position: a"),
    "no section of a joint": ("  follower:\n", "  follower: 3\n  x:\n", "follower: must be a section"),
    "no limits": ("joint_limits:", "limits:", "no section joint_limits, must be one, as in a file of MoveIt"),
    "no YAML": ("joint_limits:", "joint_limits: {", "not valid YAML"),
}


@pytest.mark.parametrize(("before", "after", "reason"), REFUSED.values(), ids=REFUSED)
def test_wrong_files_are_refused_with_file_joint_and_entry(
    files: tuple[Path, Path], before: str, after: str, reason: str
) -> None:
    urdf, limits = files
    assert MOVEIT.count(before) == 1
    limits.write_text(MOVEIT.replace(before, after), encoding="utf-8")
    with pytest.raises(RobotDescriptionError, match=reason) as error:
        eom.load_robot(urdf, joint_limits=limits)
    assert str(error.value).startswith(f"{limits}: ")
    with pytest.raises(RobotDescriptionError, match=reason):
        robot_from_urdf(URDF, {"joint_limits": str(limits)})


def test_a_missing_file_is_refused(files: tuple[Path, Path]) -> None:
    urdf, limits = files
    limits.unlink()
    with pytest.raises(RobotDescriptionError, match="cannot be read: No such file"):
        eom.load_robot(urdf, joint_limits=limits)
    with pytest.raises(RobotDescriptionError, match="package 'nowhere' not found"):
        eom.load_robot(urdf, joint_limits="package://nowhere/joint_limits.yaml")


def test_smallest_values_are_limits_too(files: tuple[Path, Path]) -> None:
    urdf, limits = files
    text = MOVEIT.replace("max_velocity: 2.5", "max_velocity: 2.5\n    min_velocity: -1.5")
    limits.write_text(text, encoding="utf-8")
    assert known(eom.load_robot(urdf, joint_limits=limits))["shoulder"]["velocity"] == 1.5
