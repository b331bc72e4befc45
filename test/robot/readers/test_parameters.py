# SPDX-License-Identifier: Apache-2.0
"""Parameter trees and files: robots of their own, or that name a URDF or xacro file and complete it; payloads."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from chains import packaged_parameters
from urdf_arms import urdf_arm

from eom_dynamics import Dynamics, ElasticArm, Payload, RobotDescriptionError, lie, load_robot, robot_from_parameters
from eom_dynamics.robot import Limits, Robot, robot_from_urdf
from eom_dynamics.robot.inertia import symmetric
from eom_dynamics.tools.cli.main import main

SPRING = {"type": "linear", "stiffness": 500.0}
ADDITIONS: dict[str, Any] = {
    "tip": "shoulder_link",
    "branches": "drop",
    "gravity": [0.0, 9.0, 0.0],
    "rotor_model": "complete",
    "joints": {
        "shoulder": {
            "limits": {"upper": 1.0, "effort": 5.0, "acceleration": 6.0, "jerk": 7.0, "effort_rate": 8.0},
            "gear_ratio": 50.0,
            "friction": 0.3,
            "damping": 0.2,
            "actuator": {"efficiency": 0.8},
            "elasticity": SPRING,
            "rotor_inertia": 0.1,
            "rotor": {"carrier": "base"},
        }
    },
    "payloads": {"shoulder_link": {"mass": 2.0}},
}


def write(folder: Path, section: dict[str, Any], name: str = "arm.yaml") -> Path:
    (folder / "urdf").mkdir(parents=True, exist_ok=True)
    (folder / "urdf/arm.urdf").write_text(urdf_arm(), encoding="utf-8")
    path = folder / name
    path.write_text(yaml.safe_dump({"/**": {"ros__parameters": {"robot": section}}}), encoding="utf-8")
    return path


def assert_same(a: Robot, b: Robot) -> None:
    assert a.joint_names == b.joint_names and a.rotor_model == b.rotor_model
    np.testing.assert_array_equal(a.gravity, b.gravity)
    for one, other in zip(a.joints, b.joints, strict=True):
        np.testing.assert_array_equal(one.spatial_inertia, other.spatial_inertia)
        assert (one.limits, one.stiffness, one.damping) == (other.limits, other.stiffness, other.damping)


def test_a_file_names_a_urdf_and_completes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "robots", {"urdf": "urdf/arm.urdf", **ADDITIONS})
    robot = load_robot(path)
    (joint,) = robot.joints
    assert (joint.name, robot.rotor_model, robot.gravity[1]) == ("shoulder", "complete", 9.0)
    assert joint.limits == Limits(-3.0, 1.0, 10.0, 5.0, 6.0, 7.0, 8.0)
    assert (joint.gear_ratio, joint.friction, joint.damping, joint.rotor_inertia) == (50.0, 0.3, 0.2, 0.1)
    assert (joint.stiffness, joint.actuator.gear.efficiency, joint.mount.carrier, joint.mass) == (500.0, 0.8, -1, 3.0)
    assert_same(robot, robot_from_urdf(urdf_arm(), ADDITIONS))  # as the node completes a URDF
    absolute = {"urdf": str(tmp_path / "robots/urdf/arm.urdf"), **ADDITIONS}
    assert_same(robot, robot_from_parameters(absolute))
    assert_same(robot, load_robot(write(tmp_path, absolute).read_text()))  # a parameter file as text


def test_options_of_load_robot_take_precedence(tmp_path: Path) -> None:
    path = write(tmp_path, {"urdf": "urdf/arm.urdf", "tip": "shoulder_link", "tools": "shoulder_link"})
    robot = load_robot(path, tip="elbow_link", gravity=[1.0, 2.0, 3.0])
    assert robot.joint_names == ("shoulder", "elbow")
    assert [tool.name for tool in robot.tools] == ["elbow_link"] and robot.gravity.tolist() == [1.0, 2.0, 3.0]
    write(tmp_path, {"urdf": "urdf/arm.urdf", "root": "shoulder_link", "gravity": [0.0, 0.0, -1.0]})
    assert load_robot(path).joint_names == ("elbow",)
    with pytest.raises(
        RobotDescriptionError, match="gravity is given in the frame of shoulder_link, the base is to be"
    ):
        load_robot(path, root="base")


def test_xacro_arguments_are_in_the_file(tmp_path: Path) -> None:
    pytest.importorskip("xacro")
    section = {"urdf": "urdf/arm.xacro", "xacro_arguments": {"mass": 3.5, "name": "arm", "heavy": True}}
    path = write(tmp_path, section)
    arguments = "".join(f'<xacro:arg name="{name}" default="0"/>' for name in section["xacro_arguments"])
    text = urdf_arm().replace("<robot ", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" ', 1)
    text = text.replace('value="1.0"', 'value="$(arg mass)"').replace('name="arm"', 'name="$(arg name)_$(arg heavy)"')
    (tmp_path / "urdf/arm.xacro").write_text(text.replace("<link", f"{arguments}<link", 1), encoding="utf-8")
    robot = load_robot(path)
    assert robot.name == "arm_true" and robot.joints[0].mass == 3.5
    write(tmp_path, {**section, "xacro_arguments": {"mas": 3.5, "name": "arm", "heavy": True}})
    with pytest.raises(RobotDescriptionError, match="xacro argument 'mas' does not exist; did you mean mass"):
        load_robot(path)
    with pytest.raises(RobotDescriptionError, match="a parameter file names them in robot"):
        load_robot(path, xacro_arguments={"mass": "3.5"})


def test_a_file_of_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "arms/config", {"urdf": "urdf/arm.urdf"})
    (tmp_path / "arms/package.xml").write_text("")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path))
    assert load_robot("package://arms/config/" + path.name).n == 2
    assert main(["inspect", "package://arms/config/" + path.name]) == 0
    with pytest.raises(RobotDescriptionError, match=r"^package://legs/arm\.yaml: package 'legs' not found; source the"):
        load_robot("package://legs/arm.yaml")
    for name, problem in (("legs/arm.yaml", "package 'legs' not found; source the"), ("arms/x.yaml", "cannot be read")):
        with contextlib.suppress(SystemExit):
            assert main(["codegen", "--language=loop", f"package://{name}"]) == 2
        assert problem in capsys.readouterr().err


REFUSED = [
    ({"joints": {"sholder": {}}}, "robot.joints.sholder: unknown entry; did you mean shoulder?"),
    ({"name": "arm"}, "robot.name: unknown entry"),
    ({"urdf": "urdf/leg.urdf"}, "robot.urdf: there is no file '"),
    ({"urdf": "urdf/arm.stl"}, "robot.urdf: must be a file of .xml, .mjcf, .urdf, .xacro, is "),
    ({"xacro_arguments": {"a": 1}}, "robot.xacro_arguments: are for .xacro files; remove them"),
    (
        {"payloads": {"elbow_link": {"mass": 1.0, "inertia": [1.0, 0.0, 0.0, 0.1, 0.0, 0.1]}}},
        "robot.payloads.elbow_link.inertia: the largest principal moment",
    ),
]


@pytest.mark.parametrize(("section", "reason"), REFUSED, ids=[row[-1] for row in REFUSED])
def test_invalid_entries_are_named(tmp_path: Path, section: dict[str, Any], reason: str) -> None:
    with pytest.raises(RobotDescriptionError) as error:
        load_robot(write(tmp_path, {"urdf": "urdf/arm.urdf", **section}))
    assert reason in str(error.value) and "\n" not in str(error.value)


def test_parameters_without_a_file_need_an_absolute_path() -> None:
    with pytest.raises(RobotDescriptionError, match=r"parameters: robot\.urdf: must be an absolute path or package://"):
        robot_from_parameters({"urdf": "arm.urdf"})


def test_parameters_from_the_network_expand_no_xacro(tmp_path: Path) -> None:
    (tmp_path / "arm.xacro").write_text(urdf_arm())
    section = {"urdf": str(tmp_path / "arm.xacro")}
    urdf = urdf_arm().replace('name="arm"', 'name="expanded"', 1)
    assert robot_from_parameters(section, expand=lambda path, _: urdf).name == "expanded"


def test_a_payload_acts_at_its_link_or_tool() -> None:
    mass, center, moments = 1.5, [0.1, 0.0, 0.05], [0.02, 0.001, 0.0, 0.03, 0.0, 0.04]
    payload = {"mass": mass, "center_of_mass": center, "inertia": moments}
    loaded = robot_from_parameters(packaged_parameters("dual_arm") | {"payloads": {"left_hand": payload}})
    held = Dynamics(load_robot("dual_arm"), backend="numpy")
    states = np.random.default_rng(1).uniform(-0.5, 0.5, (3, loaded.n))
    expected = held.effort(*states, payload=Payload(mass, center, moments, "left_hand"))
    np.testing.assert_allclose(Dynamics(loaded, backend="numpy").effort(*states), expected, atol=1e-12)
    robots = [robot_from_urdf(urdf_arm(), {"payloads": x}) for x in ({"elbow_link": payload}, {})]
    added = np.subtract(*(robot.joints[1].inertia_about_origin for robot in robots))
    c = lie.skew(center)
    np.testing.assert_allclose(added, symmetric(*moments) + mass * c.T @ c, atol=1e-15)


def test_a_transmission_and_a_coupled_spring_complete_a_urdf() -> None:
    group = {"joints": ["shoulder", "elbow"], "matrix": [0.5, 0.5, 0.5, -0.5]}
    stiffness = {"joints": ["shoulder", "elbow"], "matrix": [300.0, 20.0, 20.0, 200.0]}
    arm = ElasticArm(robot_from_urdf(urdf_arm(), {"transmission": group, "coupled_stiffness": stiffness}))
    assert arm.transmission is not None and arm.coupled is not None


GEAR = """<transmission name="t"><joint name="elbow"/><actuator name="m">
  <mechanicalReduction>10</mechanicalReduction><motorInertia>0.002</motorInertia></actuator></transmission>"""


def geared_urdf(wrist: str = "revolute") -> str:
    text = urdf_arm(joints=("shoulder", "elbow", "wrist")).replace("</robot>", f"{GEAR}</robot>")
    if wrist == "mimic":
        return text.replace(f"</joint>{GEAR}", f'<mimic joint="elbow"/></joint>{GEAR}')
    return text.replace('"wrist" type="revolute"', f'"wrist" type="{wrist}"')


def test_joints_get_springs_and_rotors() -> None:
    joints = {"elbow": {"elasticity": SPRING}, "shoulder": {"rotor_inertia": 0.7, "elasticity": {"type": "rigid"}}}
    robot = robot_from_urdf(geared_urdf(), {"joints": joints})
    np.testing.assert_array_equal(robot.stiffness, [np.inf, 500.0, np.inf])
    np.testing.assert_allclose(robot.rotor_inertia, [0.7, 0.2, 0.0])  # the elbow's from the transmission
    assert robot_from_urdf(geared_urdf(), {"joints": {"elbow": {"rotor_inertia": 3}}}).rotor_inertia[1] == 3


@pytest.mark.parametrize(
    ("wrist", "section", "reason"),
    [
        ("fixed", {"joints": {"wrist": {}}}, "parameters: urdf.joints.wrist: a fixed joint has no motor"),
        ("mimic", {"joints": {"wrist": {}}}, "parameters: urdf.joints.wrist: it mimics elbow"),
        ("revolute", {"roots": "base"}, "parameters: urdf.roots: unknown entry; did you mean root?"),
        ("revolute", {"root": "bas"}, "/arm: root: no link 'bas'; did you mean base?"),
    ],
)
def test_invalid_entries_of_additions_are_named(wrist: str, section: dict[str, Any], reason: str) -> None:
    with pytest.raises(RobotDescriptionError) as error:
        robot_from_urdf(geared_urdf(wrist), section, "/arm")
    assert str(error.value).startswith(reason)
    assert "\n" not in str(error.value)
