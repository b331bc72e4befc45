# SPDX-License-Identifier: Apache-2.0
"""Xacro files: expanded as xacro does, and kept from doing anything else."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from eom_dynamics import RobotDescriptionError, load_robot

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


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of ROS 2 with an arm in urdf/, and a secret beside it."""
    root = tmp_path / "package"
    (root / "urdf/parts").mkdir(parents=True)
    (root / "package.xml").write_text("<package/>")
    (root / "urdf/parts/link.xacro").write_text(LINK)
    (tmp_path / "secret.xacro").write_text(LINK)
    (tmp_path / "secret.yaml").write_text("length: 0.5\n")
    return root


def arm(package: Path, extra: str = "") -> Path:
    path = package / "urdf/arm.urdf.xacro"
    path.write_text(ARM.replace("EXTRA", extra))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(RobotDescriptionError) as error:
        load_robot(path)
    message = str(error.value)
    assert message.startswith(f"{path}: ") and "\n" not in message
    return message.removeprefix(f"{path}: ")


def test_macros_properties_arguments_and_includes(package: Path) -> None:
    robot = load_robot(arm(package), xacro_arguments={"mass": "3.5"})
    assert robot.joint_names == ("upper_joint", "lower_joint")
    assert [joint.mass for joint in robot.joints] == [3.5, 3.5]
    np.testing.assert_array_equal(robot.joints[1].reference_pose[:3, 3], [0.5, 0, 0])


def test_a_relative_path(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arm(package)
    monkeypatch.chdir(package / "urdf")
    assert load_robot("arm.urdf.xacro").n == 2


def test_other_folders_of_the_package_may_be_read(package: Path) -> None:
    (package / "config").mkdir()
    (package / "config/values.yaml").write_text("reach: 0.7\n")
    extra = "<link name=\"${xacro.load_yaml('../config/values.yaml')['reach']}\"/>"
    assert "2 roots (base, 0.7)" in refusal(arm(package, extra))


def test_packages_in_the_ament_index_may_be_read(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ament_index_python")
    prefix = tmp_path / "prefix"
    (prefix / "share/parts/urdf").mkdir(parents=True)
    (prefix / "share/ament_index/resource_index/packages").mkdir(parents=True)
    (prefix / "share/ament_index/resource_index/packages/parts").write_text("")
    (prefix / "share/parts/urdf/link.xacro").write_text(LINK)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(prefix))
    assert load_robot(arm(package, '<xacro:include filename="$(find parts)/urdf/link.xacro"/>')).n == 2


SECRET = "{package}/../secret"
ATTACKS = {
    "include above": ('<xacro:include filename="../../secret.xacro"/>', "reads .*secret.xacro', outside of"),
    "include by full path": (f'<xacro:include filename="{SECRET}.xacro"/>', "reads .*secret.xacro', outside of"),
    "include a system's file": ('<xacro:include filename="/etc/passwd"/>', "reads '/etc/passwd', outside of"),
    "YAML above": ("${xacro.load_yaml('../../secret.yaml')}", "secret.yaml', outside of"),
    "include of a bomb": ('<xacro:include filename="bomb.xacro"/>', "document type declarations and entities are not"),
    "a file of a link": ('<xacro:include filename="link_to_secret.xacro"/>', "outside of"),
    "escape to open": (
        "${[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == 'FileLoader']}",
        "Use of invalid name|outside of|is not defined",
    ),
    "unknown macro": ("<xacro:no_such_macro/>", "unknown macro name: xacro:no_such_macro"),
    "unknown property": ("<link name='${nothing}'/>", "name 'nothing' is not defined"),
    "for ever": (
        "<xacro:property name='x' value='${python.sum(k for k in range(10**12))}'/>${x}",
        "xacro took more than",
    ),
    "memory": (
        "<xacro:property name='x' value='${len([0] * 10**10)}'/>${x}",
        r"when evaluating expression 'len\(\[0\]",
    ),
}


@pytest.mark.parametrize(("extra", "reason"), ATTACKS.values(), ids=ATTACKS)
def test_attack(package: Path, monkeypatch: pytest.MonkeyPatch, extra: str, reason: str) -> None:
    monkeypatch.setattr("eom_dynamics.robot.xacro._SECONDS", 5)
    (package / "urdf/bomb.xacro").write_text('<!DOCTYPE r [<!ENTITY a "b">]><robot name="&a;"/>')
    (package / "urdf/link_to_secret.xacro").symlink_to(package.parent / "secret.xacro")
    with pytest.raises(RobotDescriptionError, match=reason):
        load_robot(arm(package, extra.replace("{package}", str(package))))


def test_the_audit_stops_what_the_expressions_of_xacro_do_not(tmp_path: Path) -> None:
    """Asked directly, as an expression would that gets past the names that xacro forbids."""
    from eom_dynamics.robot.xacro_process import _audit

    for event, details in (
        ("open", (str(tmp_path / "out"), "w", 0)),
        ("open", ("/etc/passwd", "r", 0)),
        ("os.system", (b"true",)),
        ("subprocess.Popen", ("true", [], None, None)),
        ("socket.connect", (None, ("127.0.0.1", 9))),
        ("os.remove", ("file", -1)),
    ):
        with pytest.raises(RobotDescriptionError):
            _audit(event, details, [str(tmp_path)])
    _audit("open", (str(tmp_path / "in.xacro"), "r", 0), [str(tmp_path)])


def test_without_the_package_the_message_says_what_to_install(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xacro", None)
    assert "pip install eom_dynamics[urdf]" in refusal(arm(package))


def test_the_bounds_are_on_the_file_too(tmp_path: Path) -> None:
    with (tmp_path / "arm.xacro").open("wb") as file:
        file.truncate(100_000_000)
    assert "larger than" in refusal(tmp_path / "arm.xacro")
    assert "cannot be read: No such file" in refusal(tmp_path / "none.xacro")
