# SPDX-License-Identifier: Apache-2.0
"""Robots by file, by text, and by the names of robot_descriptions."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import CONFIG
from urdf_arms import urdf_arm

from eom_dynamics import RobotDescriptionError, RobotDescriptionWarning, load_robot, packaged_robots
from eom_dynamics.robot.writers.urdf import robot_as_urdf
from eom_dynamics.tools.cli.main import main


@pytest.mark.parametrize("name", packaged_robots())
def test_packaged_robots_load_without_a_warning_and_are_elastic_but_for_the_leg(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot = load_robot(name)
    assert robot.name == name and robot.n == len(robot.joint_names) > 0
    assert np.all(np.isfinite(robot.stiffness) == (name != "leg")) and np.all(robot.rotor_inertia > 0)


def test_paths_are_absolute_or_relative_to_the_working_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CONFIG)
    for source in (CONFIG / "iiwa.yaml", str(CONFIG / "iiwa.yaml"), "iiwa.yaml"):
        assert load_robot(source).name == "iiwa"


def test_the_robot_is_found_under_nested_namespaces_and_among_other_parameters(tmp_path: Path) -> None:
    section = (CONFIG / "iiwa.yaml").read_text().partition("/**:\n")[2]
    nested = "".join(f"  {line}\n" for line in section.splitlines())
    path = tmp_path / "arm.yaml"
    path.write_text(f"/other: {{ros__parameters: {{rate: 5}}}}\narm:\n  eom_dynamics:\n{nested}      coriolis: skew\n")
    assert load_robot(path).n == 7


def test_a_section_that_the_robot_leaves_without_effect_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "arm.yaml"
    path.write_text((CONFIG / "planar_2r.yaml").read_text() + "    urdf: {joints: {joint_1: {rotor_inertia: 3.0}}}\n")
    with pytest.warns(RobotDescriptionWarning, match=r"arm\.yaml: urdf: has no effect beside robot; write its entries"):
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


@pytest.mark.parametrize(
    ("old", "new", "meant"),
    [
        ("    robot:", "    robots:", "; is robots a misspelling of robot?"),
        ("ros__parameters", "ros_parameters", "; is ros_parameters a misspelling of ros__parameters?"),
        ("ros__parameters", "x", ""),
    ],
    ids=["robot", "parameters", "other"],
)
def test_misspelt_keys_at_the_top_are_named(old: str, new: str, meant: str) -> None:
    text = (CONFIG / "planar_2r.yaml").read_text(encoding="utf-8")
    with pytest.raises(RobotDescriptionError) as caught:
        load_robot(text.replace(old, new, 1))
    assert str(caught.value).endswith(f"no ros__parameters section has an entry robot{meant}")


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
    assert capsys.readouterr().out == ""  # what robot_descriptions prints is no result of a command
    assert main(["inspect", "arm_description", "--json"]) == 0
    assert capsys.readouterr().out.startswith("{")


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
        "cannot fetch it: could not resolve host: github.com; where there is a network, run python -m "
        "robot_descriptions pull far_description, and copy ",
    ),
    "ends the program": ("ending_description", "cannot fetch it: no git; where there is a network"),
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
    monkeypatch.setattr("eom_dynamics.extras._is_installed", lambda module: module != "robot_descriptions")
    with pytest.raises(
        RobotDescriptionError,
        match=r"^arm_description: robot_descriptions is not installed; .*\[descriptions\].*path of a",
    ):
        load_robot("arm_description")


def test_a_file_of_such_a_name_is_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm_description").mkdir()
    with warnings.catch_warnings(), pytest.raises(RobotDescriptionError, match="neither a packaged robot"):
        load_robot("arm_description")
