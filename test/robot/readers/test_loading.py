# SPDX-License-Identifier: Apache-2.0
"""Robots by file, text, and names of robot_descriptions; parameter files that complete a URDF; payloads."""

import contextlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from paths import CONFIG
from urdf_arms import urdf_arm

from eom_dynamics import (
    Dynamics,
    ElasticArm,
    RobotDescriptionError,
    RobotDescriptionWarning,
    load_robot,
    packaged_robots,
    robot_from_parameters,
)
from eom_dynamics.robot import Limits, Robot, robot_from_urdf
from eom_dynamics.robot.writers.urdf import robot_as_urdf
from eom_dynamics.tools.cli.main import main


@pytest.mark.parametrize("name", packaged_robots())
@pytest.mark.filterwarnings("error")
def test_packaged_robots_load_without_a_warning_and_are_elastic_but_for_legs(name: str) -> None:
    robot = load_robot(name)
    assert robot.name == name and robot.n == len(robot.joint_names) > 0
    assert np.all(np.isfinite(robot.stiffness) == (not name.endswith("leg"))) and np.all(robot.rotor_inertia > 0)


@pytest.mark.parametrize("name", packaged_robots())
def test_each_joint_of_a_packaged_robot_has_limits_that_hold_its_weight(name: str) -> None:
    """Without them, ``limits: refuse`` compares with nothing. The panda, with limits of its maker, needs 57 %.

    The torque limit of a motor also limits its joint.
    """
    robot = load_robot(name)
    limits = [joint.limits for joint in robot.independent_joints]
    velocity, effort = (np.array([getattr(x, key) for x in limits]) for key in ("velocity", "effort"))
    motors = [joint.actuator.motor.torque_limit * joint.gear_ratio for joint in robot.independent_joints]
    effort = np.minimum(effort, motors)
    assert np.isfinite(velocity).all() and np.isfinite(effort).all()
    ranges = np.array([x.upper - x.lower for x in limits])
    assert np.isfinite(ranges[[joint.type == "prismatic" for joint in robot.independent_joints]]).all()
    ends = np.random.default_rng(1).uniform(-1, 1, (2000, robot.n)) * np.clip(ranges, 0, 2 * np.pi) / 2
    middle = [x.lower + x.upper if np.isfinite(x.upper - x.lower) else 0.0 for x in limits]
    weight = np.abs(Dynamics(robot).gravity(0.5 * np.array(middle) + ends)).max(axis=0)
    assert (weight <= 0.6 * effort).all()


def test_the_robot_is_found_under_nested_namespaces_and_among_other_parameters(tmp_path: Path) -> None:
    section = (CONFIG / "iiwa.yaml").read_text().partition("/**:\n")[2]
    nested = "".join(f"  {line}\n" for line in section.splitlines())
    path = tmp_path / "arm.yaml"
    path.write_text(f"/other: {{ros__parameters: {{rate: 5}}}}\narm:\n  eom_dynamics:\n{nested}      coriolis: skew\n")
    assert load_robot(path).n == 7


def test_a_section_that_the_robot_leaves_without_effect_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "arm.yaml"
    path.write_text((CONFIG / "planar_2r.yaml").read_text() + "    urdf: {joints: {joint_1: {rotor_inertia: 3.0}}}\n")
    with pytest.warns(RobotDescriptionWarning, match=r"arm\.yaml.*effect"):
        assert np.all(load_robot(path).rotor_inertia == load_robot("planar_2r").rotor_inertia)


@pytest.mark.parametrize(
    ("text", "value"), [("2", 2), ("2.", 2), ("+2.5", 2.5), (".5", 0.5), ("1e1", 10), ("2.5E-1", 0.25), ("0x10", 16)]
)
def test_numbers_are_read_as_ros_reads_them(tmp_path: Path, text: str, value: float) -> None:
    path = tmp_path / "arm.yaml"
    path.write_text((CONFIG / "planar_2r.yaml").read_text().replace("mass: 2.0", f"mass: {text}"))
    assert load_robot(path).joints[0].mass == value


def test_a_byte_order_mark_does_not_matter(tmp_path: Path) -> None:
    for name, text in (("arm.yaml", (CONFIG / "planar_2r.yaml").read_text()), ("arm.urdf", urdf_arm())):
        path = tmp_path / name
        path.write_bytes(b"\xef\xbb\xbf" + text.encode())
        assert load_robot(path).n == load_robot("\ufeff" + text).n == 2


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder, urdf = tmp_path_factory.mktemp("dual_arm"), robot_as_urdf(load_robot("dual_arm")).text
    (folder / "dual_arm.urdf").write_text(urdf)
    (folder / "dual_arm.urdf.xacro").write_text(urdf)
    return {
        "file": str(CONFIG / "dual_arm.yaml"),
        "URDF": str(folder / "dual_arm.urdf"),
        "xacro": str(folder / "dual_arm.urdf.xacro"),
        "text": urdf,
    }


OPTIONS = (
    {"tools": ["left_hand", "right_hand"]},
    {"tip": "left_hand"},
    {"tip": ["left_hand", "right_elbow"], "branches": "drop", "tools": "right_elbow"},
    {"root": "left_lift", "tip": "left_hand"},
    {"root": "left_lift", "gravity": [1.0, 2.0, 3.0], "tools": "left_hand"},
    {"unphysical": "refuse", "tools": "left_hand"},
)


@pytest.mark.parametrize(
    ("source", "options"),
    [*((source, options) for source in ("file", "URDF", "text") for options in OPTIONS), ("xacro", OPTIONS[4])],
    ids=str,
)
def test_options_apply_to_each_kind_of_source(sources: dict[str, str], source: str, options: dict[str, Any]) -> None:
    if source == "xacro":
        pytest.importorskip("xacro")
    robot, packaged = load_robot(sources[source], **options), load_robot("dual_arm", **options)
    assert robot.joint_names == packaged.joint_names
    np.testing.assert_array_equal(robot.gravity, packaged.gravity)
    assert [(tool.name, tool.joint) for tool in robot.tools] == [(tool.name, tool.joint) for tool in packaged.tools]
    for a, b in zip(robot.joints, packaged.joints, strict=True):
        np.testing.assert_allclose(a.spatial_inertia, b.spatial_inertia, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(a.reference_pose, b.reference_pose, rtol=1e-15, atol=1e-15)


MJCF = (
    '<mujoco model="by_mujoco"><worldbody><body><joint name="j"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    "</body></worldbody></mujoco>"
)
XACRO = (
    '<robot xmlns:xacro="http://ros.org/wiki/xacro" name="r"><xacro:arg name="name" default=""/>'
    '<xacro:include filename="$(find parts_of_it)/parts.xacro"/></robot>'
)


@pytest.fixture
def descriptions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the stand-in, with robots as a URDF, an MJCF model and a xacro file, and one without a network."""
    package = tmp_path / "robot_descriptions"
    package.mkdir()
    here = f"PACKAGE_PATH = {str(tmp_path)!r}\n"
    modules = {
        "__init__": "",
        "_cache": "",
        "arm_description": f"print('Cloning')\n{here}URDF_PATH = PACKAGE_PATH + '/arm.urdf'",
        "arm_mj_description": f"MJCF_PATH = {str(tmp_path / 'arm.xml')!r}",  # without a package
        "made_description": f"{here}XACRO_PATH = PACKAGE_PATH + '/arm.xacro'\nXACRO_ARGS = {{'name': 'made'}}",
        "plain_description": f"{here}XACRO_PATH = PACKAGE_PATH + '/arm.xacro'\nXACRO_ARGS = XACRO_PACKAGE_PATHS = None",
        "ending_description": "raise SystemExit('no git')",
        "far_description": "raise OSError('could not resolve host:\\n github.com')",
        "other_description": f"{here}SRDF_PATH = ''",
    }
    for name, text in modules.items():
        (package / f"{name}.py").write_text(text)
    arm = urdf_arm(joints=("a",))
    (tmp_path / "arm.urdf").write_text(arm)
    (tmp_path / "arm.xml").write_text(MJCF)
    (tmp_path / "arm.xacro").write_text(XACRO)
    (tmp_path / "package.xml").write_text("<package><name>parts_of_it</name></package>")
    (tmp_path / "parts.xacro").write_text(arm.replace('name="a"', 'name="$(arg name)"'))
    for module in [name for name in sys.modules if name.partition(".")[0] == "robot_descriptions"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("descriptions")
def test_names_are_robots(capsys: pytest.CaptureFixture[str]) -> None:
    assert load_robot("arm_description").joint_names == ("a",)
    assert capsys.readouterr().out == ""  # output of robot_descriptions is suppressed
    assert main(["inspect", "arm_description"]) == 0
    assert ": 1 joints, " in capsys.readouterr().out.partition("\n")[0]


@pytest.mark.usefixtures("descriptions")
@pytest.mark.skipif(importlib.util.find_spec("mujoco") is None, reason="MuJoCo is missing: pip install mujoco")
def test_an_mjcf_model() -> None:
    assert load_robot("arm_mj_description").name == "by_mujoco"


@pytest.mark.usefixtures("descriptions")
@pytest.mark.skipif(importlib.util.find_spec("xacro") is None, reason="xacro is missing: pip install xacro")
def test_a_xacro_file_has_the_arguments_and_the_packages_of_its_name() -> None:
    assert load_robot("made_description").joint_names == ("made",)
    assert load_robot("made_description", xacro_arguments={"name": "mine"}).joint_names == ("mine",)
    assert load_robot("plain_description", xacro_arguments={"name": "mine"}).joint_names == ("mine",)


BAD = {
    "offline": (
        "far_description",
        "cannot fetch it: could not resolve host: github.com; on a computer with network, run python -m "
        "robot_descriptions pull far_description, and copy ",
    ),
    "ends the program": ("ending_description", "cannot fetch it: no git; on a computer with network"),
    "unknown": ("armm_description", "robot_descriptions has no robot of this name; did you mean arm_description?"),
    "neither": ("other_description", "robot_descriptions has neither a URDF nor an MJCF of it"),
}


@pytest.mark.usefixtures("descriptions")
@pytest.mark.parametrize(("name", "reason"), BAD.values(), ids=BAD)
def test_errors_say_what_to_do(name: str, reason: str) -> None:
    with pytest.raises(RobotDescriptionError) as error:
        load_robot(name)
    assert str(error.value).startswith(f"{name}: ") and reason in str(error.value) and "\n" not in str(error.value)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eom_dynamics.exceptions._is_installed", lambda module: module != "robot_descriptions")
    with pytest.raises(
        RobotDescriptionError, match=r"arm_description.*robot_descriptions.*installed.*\[descriptions\]"
    ):
        load_robot("arm_description")


SPRING = {"type": "linear", "stiffness": 500.0}
ADDITIONS: dict[str, Any] = {
    "tip": "shoulder_link",
    "branches": "drop",
    "gravity": [0.0, 9.0, 0.0],
    "rotor_model": "complete",
    "joints": {
        "shoulder": {
            "limits": {"upper": 1.0, "effort": 5.0, "acceleration": 6.0, "jerk": 7.0, "effort_rate": 8.0},
            **{"gear_ratio": 50.0, "friction": 0.3, "damping": 0.2, "actuator": {"efficiency": 0.8}},
            **{"elasticity": SPRING, "rotor_inertia": 0.1, "rotor": {"carrier": "base"}},
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
    with pytest.raises(RobotDescriptionError, match=r"gravity.*shoulder_link"):
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
    with pytest.raises(RobotDescriptionError, match="parameter"):
        load_robot(path, xacro_arguments={"mass": "3.5"})


def test_a_file_of_a_package(tmp_path: Path, monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "arms/config", {"urdf": "urdf/arm.urdf"})
    (tmp_path / "arms/package.xml").write_text("")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path))
    assert load_robot("package://arms/config/" + path.name).n == 2
    assert main(["inspect", "package://arms/config/" + path.name]) == 0
    with pytest.raises(RobotDescriptionError, match=r"package://legs/arm\.yaml.*package.*'legs'"):
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
    with pytest.raises(RobotDescriptionError, match=r"robot\.urdf.*absolute.*package://"):
        robot_from_parameters({"urdf": "arm.urdf"})


def test_parameters_from_the_network_expand_no_xacro(tmp_path: Path) -> None:
    (tmp_path / "arm.xacro").write_text(urdf_arm())
    section = {"urdf": str(tmp_path / "arm.xacro")}
    urdf = urdf_arm().replace('name="arm"', 'name="expanded"', 1)
    assert robot_from_parameters(section, expand=lambda path, _: urdf).name == "expanded"


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
