# SPDX-License-Identifier: Apache-2.0
"""Robots by the names of robot_descriptions, of which a small one stands in: it clones no repositories."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path

import pytest
from urdf_arms import urdf_arm

from eom_dynamics import RobotDescriptionError, load_robot
from eom_dynamics.tools.cli.main import main

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
