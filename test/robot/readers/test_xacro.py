# SPDX-License-Identifier: Apache-2.0
"""Xacro files: expansion, arguments, packages of the ament index, and errors on one line."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

from eom_dynamics import Robot, RobotDescriptionError, load_robot
from eom_dynamics.exceptions import RobotDescriptionWarning
from eom_dynamics.robot import robot_from_urdf
from eom_dynamics.robot.readers.urdf import expand_xacro

pytest.importorskip("xacro")

ARM = """<?xml version="1.0"?>
<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="mass" default="2"/>
  <xacro:property name="length" value="${0.25 * 2}"/>
  <xacro:include filename="parts/link.xacro"/>
  <link name="base"/>
  <xacro:body name="upper" parent="base" x="0"/>
  <xacro:body name="lower" parent="upper" x="${length}"/>
  EXTRA
</robot>
"""
LINK = """<?xml version="1.0"?>
<robot xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:macro name="body" params="name parent x">
    <link name="${name}"><inertial><origin xyz="${length / 2} 0 0"/><mass value="$(arg mass)"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="${1/12}" iyz="0" izz="${1/12}"/></inertial></link>
    <joint name="${name}_joint" type="continuous"><parent link="${parent}"/><child link="${name}"/>
      <origin xyz="${x} 0 0"/><axis xyz="0 0 1"/></joint>
  </xacro:macro>
</robot>
"""


def arm(folder: Path, extra: str = "") -> Path:
    (folder / "parts").mkdir(exist_ok=True)
    (folder / "parts/link.xacro").write_text(LINK)
    path = folder / "arm.urdf.xacro"
    path.write_text(ARM.replace("EXTRA", extra))
    return path


def error_of(path: Path, expand: Callable[[Path, dict[str, str]], object] = expand_xacro, **arguments: str) -> str:
    """Message of a refused file, without the name of the file."""
    with pytest.raises(RobotDescriptionError) as error:
        expand(path, arguments)
    message = str(error.value)
    assert message.startswith(f"{path}: ") and "\n" not in message
    return message.removeprefix(f"{path}: ")


def load(path: Path, arguments: dict[str, str]) -> Robot:
    return load_robot(path, xacro_arguments=arguments)


def test_lines_are_those_of_the_command_xacro(tmp_path: Path) -> None:
    text = LINK.replace('izz="${1/12}"', 'izz="9"')
    path = arm(tmp_path)
    (tmp_path / "parts/link.xacro").write_text(text)
    with pytest.warns(RobotDescriptionWarning) as caught:
        load_robot(path, branches="drop")
    (message, *_) = [str(warning.message) for warning in caught if "upper" in str(warning.message)]
    assert message.startswith(f"{path}: as the command xacro expands it: line ")
    number = int(message.split(": line ")[1].split(":")[0])
    command = [sys.executable, "-c", "import xacro; xacro.main()", str(path)]
    expanded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert "<inertial>" in expanded[number - 1] and 'name="upper"' in expanded[number - 2]


def test_macros_properties_arguments_and_includes(tmp_path: Path) -> None:
    arguments = {"mass": "3.5"}
    robot = load_robot(arm(tmp_path), xacro_arguments=arguments)
    assert robot.joint_names == ("upper_joint", "lower_joint")
    assert [joint.mass for joint in robot.joints] == [3.5, 3.5]
    np.testing.assert_array_equal(robot.joints[1].reference_pose[:3, 3], [0.5, 0, 0])
    assert arguments == {"mass": "3.5"}
    assert error_of(arm(tmp_path), mm="2") == "no xacro argument 'mm'; it has: mass"


@pytest.fixture
def ament_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    prefix = tmp_path / "prefix"
    (prefix / "share/parts/urdf").mkdir(parents=True)
    (prefix / "share/ament_index/resource_index/packages").mkdir(parents=True)
    (prefix / "share/ament_index/resource_index/packages/parts").write_text("")
    (prefix / "share/parts/urdf/link.xacro").write_text(LINK)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(prefix))
    return prefix


def test_without_ros_a_package_is_found_in_given_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For $(find …) in a xacro file and package:// in a parameter file; ament_index_python is not needed."""
    monkeypatch.setitem(sys.modules, "ament_index_python", None)
    monkeypatch.setitem(sys.modules, "ament_index_python.packages", None)
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    (tmp_path / "src/parts/urdf").mkdir(parents=True)
    (tmp_path / "src/parts/urdf/link.xacro").write_text(LINK)
    path = arm(tmp_path / "src/parts")
    path.write_text(path.read_text().replace("parts/link.xacro", "$(find parts)/urdf/link.xacro", 1))
    robot = {"/**": {"ros__parameters": {"robot": {"urdf": "package://parts/arm.urdf.xacro"}}}}
    (tmp_path / "arm.yaml").write_text(yaml.safe_dump(robot))
    message = error_of(path, load)
    assert "package 'parts' not found" in message and "set ROS_PACKAGE_PATH to the folder" in message
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"{tmp_path}/none{os.pathsep}{tmp_path}/src")
    with pytest.raises(RobotDescriptionError, match="package 'parts' not found"):
        load_robot(path)  # as it has no manifest
    (tmp_path / "src/parts/package.xml").write_text("<package/>")
    assert load_robot(path).n == load_robot(tmp_path / "arm.yaml").n == 2


def test_find_looks_in_the_ament_index(ament_index: Path, tmp_path: Path) -> None:
    path = arm(tmp_path, '<xacro:include filename="$(find parts)/urdf/link.xacro"/>')
    (tmp_path / "parts/link.xacro").write_text('<robot xmlns:xacro="http://www.ros.org/wiki/xacro"/>')
    path.write_text(path.read_text().replace("parts/link.xacro", "$(find parts)/urdf/link.xacro", 1))
    assert load_robot(path).n == 2


ERRORS = [
    ("<link name='$(arg side)'/>", "Undefined substitution argument side"),
    ("<xacro:no_such_macro/>", "unknown macro name: xacro:no_such_macro"),
    ("<link name='${a}'/>", "name 'a' is not defined when evaluating expression 'a'"),
    ("<link name='${1/0}'/>", "division by zero when evaluating expression '1/0'"),
    ('<xacro:include filename="hand.xacro"/>', "No such file or directory: "),
    ('<xacro:include filename="$(find hands)/hand.xacro"/>', "package 'hands' not found; source the workspace"),
    ("<link>", "mismatched tag: line 10, column 2"),
    ('<xacro:macro name="again" params=""><xacro:again/></xacro:macro><xacro:again/>', "recursion"),
    ("<link name=\"${'a' * 5 * 10**6}\"/>", "characters, may have 4000000"),
]


@pytest.mark.usefixtures("ament_index")
@pytest.mark.parametrize(("extra", "reason"), ERRORS, ids=[reason for _, reason in ERRORS])
def test_errors_are_one_line_that_names_the_file(tmp_path: Path, extra: str, reason: str) -> None:
    assert reason in error_of(arm(tmp_path, extra))


def test_a_xacro_file_reads_other_files_and_may_have_entities(tmp_path: Path) -> None:
    """No URDF may have entities: its document type is removed."""
    (tmp_path / "secret.yaml").write_text("mass: 4.5")
    path = arm(tmp_path, '<link name="${[k*k for k in range(3)][-1]}&tool;"/>')
    text = path.read_text().replace("?>\n", '?>\n<!DOCTYPE robot [<!ENTITY tool "_hand">]>\n', 1)
    path.write_text(text.replace('default="2"', f"default=\"${{xacro.load_yaml('{tmp_path}/secret.yaml')['mass']}}\""))
    text = expand_xacro(path, {})
    assert "DOCTYPE" not in text
    assert 'mass value="4.5"' in text and 'link name="4_hand"' in text


VALUES = {
    **{"${'%.1f' % v.arm.reach}": "0.7", "${' '.join([n.upper() for n in v['arm']['names']])}": "UPPER LOWER"},
    **{"${python.round(v.arm.angle, 2)}": "3.14", "${math.floor(pi)}": "3"},
    **{"${(lambda x: 2 * x)(3)}": "6", r"$(eval 2 * len${'\x28'}'ab'${'\x29'})": "4"},
}


def test_expressions_of_values_remain(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("arm: {reach: 0.7, names: [upper, lower], angle: !degrees 180}")
    load = "<xacro:property name='v' value=\"${xacro.load_yaml('values.yaml')}\"/>"
    text = expand_xacro(arm(tmp_path, load + "".join(f'<link name="{value}"/>' for value in VALUES)), {})
    assert re.findall('<link name="([^"]*)"/>', text)[1:] == list(VALUES.values())


def test_text_is_never_expanded(tmp_path: Path) -> None:
    text = arm(tmp_path).read_text()
    for load in (load_robot, robot_from_urdf):
        with pytest.raises(RobotDescriptionError, match=r"robot_description.*expand"):
            load(text)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "folder.xacro").mkdir()
    os.mkfifo(tmp_path / "pipe.xacro")
    assert "No such file or directory" in error_of(tmp_path / "none.xacro")
    for name in ("folder", "pipe"):
        assert error_of(tmp_path / f"{name}.xacro") == "cannot be read: not a file"
    (tmp_path / "arm.yaml").write_text("eom_dynamics:\n  ros__parameters:\n    robot:\n      urdf: pipe.xacro\n")
    with pytest.raises(RobotDescriptionError, match=r"pipe\.xacro.*cannot"):
        load_robot(tmp_path / "arm.yaml")


@pytest.mark.parametrize("source", ["iiwa", "arm.yaml", "arm.urdf", "<robot/>"])
def test_xacro_arguments_are_for_xacro_files(source: str) -> None:
    with pytest.raises(RobotDescriptionError, match=r"xacro_arguments.*\.xacro.*parameter"):
        load_robot(source, xacro_arguments={"mass": "1"})


def test_without_the_package_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xacro", None)
    assert "pip install '.[xacro]'" in error_of(arm(tmp_path), load)
