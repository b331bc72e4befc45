# SPDX-License-Identifier: Apache-2.0
"""Package for ros2_control: equal for every robot except configuration and description; its build."""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from compilation import run
from exported import export, renamed, robot, succeed, with_values, write
from managed_arm import controllers

import eom_dynamics.export as code
from eom_dynamics import Dynamics, ElasticArm, Robot, robot_from_parameters
from eom_dynamics.actuators.drive_units import DriveUnits
from eom_dynamics.actuators.springs import RigidSpring
from eom_dynamics.control import headers
from eom_dynamics.control.headers import source
from eom_dynamics.control.measured import SAMPLE_REASONS
from eom_dynamics.control.settings import DEFAULTS, SETTINGS, SHARED_MESSAGES
from eom_dynamics.elastic.limits import arm_limits
from eom_dynamics.export.ros2_control import PACKAGE

ROBOTS = ("dual_arm", "vsa_planar_2r")
MORE_ROBOTS = [pytest.param(name, marks=pytest.mark.soak) for name in ("iiwa", "sea_planar_2r", "panda", "ur5e")]

# Speed of motors on the link side of their gears, rad/s.
SPEEDS = dict.fromkeys(("sea_planar_2r", "vsa_planar_2r"), 500.0 / 100.0)


def contents(subject: Robot) -> dict[str, bytes]:
    return code.LANGUAGES["ros2_control"].files(*with_values(subject, (code.FEEDFORWARD,)))


def configuration(subject: Robot) -> dict[str, Any]:
    found = {name: text for name, text in contents(subject).items() if name.endswith("_controllers.yaml")}
    return controllers(next(text for name, text in found.items() if "moveit" not in name))


def written(robot_file: bytes) -> Robot:
    return robot_from_parameters(yaml.safe_load(robot_file)["/**"]["ros__parameters"]["robot"])


def joints_of(description: bytes, path: str = "joint") -> list[str]:
    return [str(entry.get("name")) for entry in ElementTree.fromstring(description).findall(path)]


def test_package() -> None:
    """Manifests, build and sources name the same packages and plugins; texts equal the node's."""
    files = contents(robot("vsa_planar_2r"))
    manifest = ElementTree.fromstring(files["package.xml"])
    assert manifest.findtext("name") == PACKAGE
    needed = {entry.text for entry in manifest.findall("depend")}
    found = set(re.findall(r"find_package\((\w+)", files["CMakeLists.txt"].decode()))
    assert {"controller_interface", "hardware_interface", "eom_dynamics", "pluginlib"} <= needed <= found
    compiled = set(re.findall(r"src/\w+\.cpp", files["CMakeLists.txt"].decode()))
    assert compiled == {name for name in files if name.endswith(".cpp")}
    # The loop is the library of eom_dynamics, and is not compiled again.
    assert "eom_dynamics::eom_loop" in files["CMakeLists.txt"].decode()
    assert not any("eom/" in name or "loop.cpp" in name for name in files)
    plugins = {
        "controllers.xml": ("FeedforwardController", "feedforward_controller"),
        "hardware.xml": ("SimulatedRobot", "simulated_robot"),
    }
    for file, (plugin, written) in plugins.items():
        (entry,) = ElementTree.fromstring(files[file]).findall("class")
        assert entry.get("name") == f"{PACKAGE}/{plugin}" and entry.get("type") == f"{PACKAGE}::{plugin}"
        exported = f"PLUGINLIB_EXPORT_CLASS({PACKAGE}::{plugin}, {entry.get('base_class_type')})"
        assert exported in files[f"src/{written}.cpp"].decode()
    messages = files["src/feedforward_controller_messages.cpp"].decode()
    said = (SHARED_MESSAGES[name] for name in ("until_rest", "standstill", "unchecked_steps"))
    for text in (*said, *SAMPLE_REASONS.values()):  # as the node says it
        assert f'{text}"' in messages
    # Two controllers of one manager have topics of their own.
    text = files["src/feedforward_controller_parameters.cpp"].decode()
    topics = re.findall(r'create_subscription<[^>]*>\(\s*"([^"]*)"', text)
    assert topics and all(topic.startswith("~/") for topic in topics)
    assert not any(re.search(rb"@\w+@", content) for content in files.values())
    compile(files["launch/control.launch.py"], "control.launch.py", "exec")
    declared = yaml.safe_load(files["src/feedforward_controller_parameters.yaml"])[PACKAGE]
    settings = re.findall(r"EOM_(?:NUMBER|CHOICE)\((\w+), ", headers.loop_headers()["include/eom/settings.hpp"])
    assert "eom::SETTINGS" in text and 'find("safety")' in text
    gains = re.findall(r'"(\w+)"', text[text.index("GAINS[]") : text.index("number_of")])
    assert declared.keys() <= {"safety", *settings, *gains, *re.findall(r"\bgiven\.(\w+)", text)}
    of_robot = {"kernel", "fingerprint", "robot_file", "command", "compile_timeout"}
    assert all(declared[name]["read_only"] for name in of_robot)


def test_all_but_three_folders_is_the_same_for_every_robot() -> None:
    one, other = contents(robot("vsa_planar_2r")), contents(robot("iiwa"))
    same = {name for name, text in one.items() if other.get(name) == text}
    of_robot = {name for name in one.keys() | other.keys() if name.split("/")[0] in ("config", "description")}
    assert same == one.keys() - of_robot and len(of_robot) == 8 and not any(name.endswith(".c") for name in same)


@pytest.mark.parametrize("name", [*ROBOTS, *MORE_ROBOTS])
def test_files_of_a_robot(name: str) -> None:
    """Description and configuration name the same joints and motors, and the robot file is the robot."""
    subject, files = robot(name), contents(robot(name))
    arm, again = ElasticArm(subject), written(files[f"config/{name}.yaml"])
    motion = np.full((5, subject.n), 0.1)
    for got, wanted in zip(ElasticArm(again).feedforward(*motion), arm.feedforward(*motion), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)
    configured = controllers(files[f"config/{name}_controllers.yaml"])
    given, *others = (
        configured[each]["ros__parameters"]
        for each in ("feedforward_controller", "joint_state_broadcaster", "joint_trajectory_controller")
    )
    assert given["robot_file"] == f"package://{PACKAGE}/config/{name}.yaml"
    assert tuple(given["joints"]) == subject.joint_names
    # Motors of rigid joints are the joints.
    rigid = arm.side.rigid[arm.side.motor_joint]
    assert [name in given["joints"] for name in given["motors"]] == rigid.tolist()
    parts = list(dict.fromkeys(given["joints"] + given["motors"]))
    assert len(parts) == subject.n + np.sum(~rigid)
    # As the simulated robot finds them.
    ends = ["" if each else "_motor" for each in rigid]
    assert given["motors"] == [f"{motor}{end}" for motor, end in zip(arm.motor_names, ends, strict=True)]
    # For the hardware only, not for the feedforward controller.
    assert others[0] == {"joints": parts, "interfaces": ["position", "velocity"]}
    assert others[1]["joints"] == given["joints"]
    assert others[1]["command_joints"] == [f"feedforward_controller/{name}" for name in given["joints"]]
    constraints = others[1]["constraints"]
    tolerances = [constraints.pop(name) for name in given["joints"]]
    limits = np.minimum(arm_limits(arm).largest["velocity"], SPEEDS.get(name, np.inf))
    limits[np.isinf(limits)] = 1.0
    np.testing.assert_allclose([list(row.values()) for row in tolerances], np.outer(limits, [0.05, 0.01]))
    assert all(list(row) == ["trajectory", "goal"] for row in tolerances)
    assert constraints == {"goal_time": 0.3, "stopped_velocity_tolerance": pytest.approx(0.05 * limits.min())}
    assert configured.keys() - {"controller_manager"} < configured["controller_manager"]["ros__parameters"].keys()
    moveit = yaml.safe_load(files[f"config/{name}_moveit_controllers.yaml"])["moveit_simple_controller_manager"]
    assert moveit["joint_trajectory_controller"]["joints"] == given["joints"]
    np.testing.assert_allclose(given["motor_kp"], arm.motor_inertia * 70.0**2, rtol=1e-5)
    description = files[f"description/{name}.urdf"]
    assert joints_of(description) == joints_of(description, "ros2_control/joint") == parts
    (hardware,) = ElementTree.fromstring(description).findall("ros2_control/hardware")
    assert hardware.findtext("plugin") == f"{PACKAGE}/SimulatedRobot"
    drives = {str(entry.get("name")): str(entry.text) for entry in hardware.findall("param")}
    assert drives["robot_file"] == given["robot_file"]
    for gain in ("motor_kp", "motor_kd"):
        assert list(map(float, drives[gain].split(", "))) == given[gain]
    declared = yaml.safe_load(files["src/feedforward_controller_parameters.yaml"])[PACKAGE]
    assert given.keys() < declared.keys()


def test_motors_that_are_no_joints() -> None:
    """Coupled springs and transmissions, and drives with their own units, also at rigid joints."""
    first, second = (replace(joint, spring=RigidSpring()) for joint in robot("planar_2r").joints)
    backwards = replace(robot("planar_2r"), joints=(first, replace(second, drive=DriveUnits(sign=-1))))
    for subject, shared in ((robot("shared"), []), (backwards, [first.name])):
        given = configuration(subject)["feedforward_controller"]["ros__parameters"]
        assert [name for name in given["motors"] if name in given["joints"]] == shared


@pytest.mark.parametrize(
    ("name", "file", "names"),
    [
        ("My <Arm> --2", "my_arm_2", ('a "b" <c> & \\ d', "Gelenk_\N{LATIN SMALL LETTER A WITH DIAERESIS}: #1 -- x")),
        ("class", "class", ("operator", "null")),
        ("@name@", "name", ("@type@", "@stored@")),
        ("back\\", "back", ("end\\", "\N{GRINNING FACE}")),
        ("${x}", "x", ("$(pwd)", "]]> -->")),
        ("-", "robot", ("-", '"""')),
    ],
)
def test_names_of_any_robot(name: str, file: str, names: tuple[str, str]) -> None:
    """Names survive XML and YAML, and do not interfere with templates."""
    files = contents(renamed(name, *names))
    for path, content in files.items():
        if path.endswith((".xml", ".urdf")):
            ElementTree.fromstring(content)
    given = controllers(files[f"config/{file}_controllers.yaml"])["feedforward_controller"]["ros__parameters"]
    again = written(files[f"config/{file}.yaml"])
    assert tuple(given["joints"]) == names == again.joint_names and again.name == name
    assert joints_of(files[f"description/{file}.urdf"])[:2] == list(names)


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "\x01", "\uffff"])
def test_names_that_cannot_be_written(name: str) -> None:
    for subject in (renamed(name, "a", "b"), renamed("arm", "a", name)):
        with pytest.raises(code.UnavailableError, match=re.escape(repr(name))):
            code.project_files(code.project(subject, [code.FEEDFORWARD]), ["ros2_control"])


def test_names_that_no_robot_file_has() -> None:
    with pytest.raises(code.UnavailableError, match=r"'a.b'.*2.*parameter"):
        code.project_files(code.project(renamed("arm", "a.b", "c"), [code.FEEDFORWARD]), ["ros2_control"])


def test_without_a_plant_there_is_no_simulation() -> None:
    description = contents(robot("carried"))["description/carried.urdf"].decode()
    assert "mock_components/GenericSystem" in description and "SimulatedRobot" not in description


def test_parameters_are_described_and_checked() -> None:
    """Types and ranges are known to generate_parameter_library; defaults equal the loop's and the node's."""
    files = contents(robot("iiwa"))
    (declared,) = yaml.safe_load(files["src/feedforward_controller_parameters.yaml"]).values()
    header = headers.loop_headers()["include/eom/settings.hpp"]
    types = {"string_array": list, "double_array": list, "string": str, "double": float, "int": int, "bool": bool}
    for name, parameter in [*_parameters(declared)]:
        assert type(parameter["default_value"]) is types[parameter["type"]], name
        # It writes descriptions into C++ without escapes.
        assert len(parameter["description"]) > 10 and not set('"\\`\n') & set(parameter["description"])
        assert parameter["type"] == "bool" or parameter["default_value"] == "" or parameter["validation"]
        if parameter["type"] in ("double", "int"):
            ((low, high),) = parameter["validation"].values()
            assert type(low) is type(high) is types[parameter["type"]] and low <= parameter["default_value"] <= high
            loop = re.search(rf"\b{name} = ([\d.]+)[,;]", header)
            assert (loop is not None) == (name in SETTINGS and bool(SETTINGS[name].of_loop)), name
            assert loop is None or float(loop[1]) == parameter["default_value"] or parameter["default_value"] < 0
    for name in ("stop_duration", "start_tolerance"):
        assert declared[name]["default_value"] == DEFAULTS[name]


@pytest.mark.parametrize(("period", "rate"), [(0.0, 1000), (0.004, 250), (0.0003, 3333)])
def test_the_manager_of_the_example_runs_once_in_a_period_of_the_drives(period: float, rate: int) -> None:
    configured = configuration(replace(robot("planar_2r"), command_period=period))
    assert configured["controller_manager"]["ros__parameters"]["update_rate"] == rate


@pytest.mark.parametrize("name", ["planar_2r", *MORE_ROBOTS])
def test_the_gains_hold_a_rigid_arm_without_rotors(name: str) -> None:
    """Under a tenth of its weight that the feedforward does not know, at 1 kHz with a delay of a cycle."""
    joints = (replace(joint, spring=RigidSpring(), rotor_inertia=0.0) for joint in robot(name).joints)
    arm = replace(robot(name), name="rigid", joints=tuple(joints))
    text = contents(arm)["config/rigid_controllers.yaml"].decode()
    given = controllers(text)["feedforward_controller"]["ros__parameters"]
    kp, kd = np.array(given["motor_kp"]), np.array(given["motor_kd"])
    assert "70 rad/s (11 Hz), critically damped" in text
    np.testing.assert_allclose(kp, 35.0 * kd, rtol=1e-5)
    dynamics = Dynamics(arm)
    for start in np.random.default_rng(3).uniform(-1.5, 1.5, (3, arm.n)):
        q, qd, waiting = start, np.zeros(arm.n), np.zeros(arm.n)
        for _ in range(1000):
            tau = 0.9 * dynamics.gravity(start) + kp * (start - q) - kd * qd
            qd = qd + 1e-3 * dynamics.forward_dynamics(q, qd, waiting)
            q, waiting = q + 1e-3 * qd, tau
        assert np.max(np.abs(q - start)) < 0.1 and np.max(np.abs(qd)) < 0.5


def _parameters(declared: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, entry in declared.items():
        if "type" in entry:
            yield name, entry
        else:
            yield from _parameters(entry)


def test_the_interface_of_loops_has_a_digest_of_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another comment does not change it, another member does."""
    written = headers.loop_headers.__wrapped__
    abi = re.compile(r"ROBOT_ABI = (0x[0-9a-f]{8});")
    before = abi.search(written()["include/eom/robot_table.hpp"])
    for changed, same in (("// Other words.", True), ("int another;", False)):
        monkeypatch.setattr(headers, "source", lambda name, text=changed: source(name) + text)
        after = abi.search(written()["include/eom/robot_table.hpp"])
        assert (after[1] == before[1]) is same  # type: ignore[index]


def _installed(package: str) -> bool:
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return any((Path(prefix) / "share" / package / "cmake").is_dir() for prefix in prefixes)


LISTS = """\
cmake_minimum_required(VERSION 3.22)
project(host LANGUAGES C CXX)
find_package(ament_cmake REQUIRED)
find_package(eom_dynamics REQUIRED)
add_executable(host main.cpp)
target_compile_options(host PRIVATE -Wall -Wextra -Wconversion -Wshadow -Werror)
target_link_libraries(host eom_dynamics::eom_loop)
"""

HOST = """\
#include <eom/loop.h>

#include <cstdio>
#include <cstring>

int main()
{
    eom_robot *robot = eom_robot_make(2, 2, 1);
    eom_robot_free(robot);
    std::puts(std::strcmp(eom_loop_digest(), EOM_LOOP_DIGEST) == 0 ? eom_loop_digest() : "is of other headers");
}
"""


@pytest.mark.skipif(
    not (_installed("eom_dynamics") and shutil.which("cmake")),
    reason="ament_cmake is missing, or eom_dynamics is not in a workspace",
)
def test_other_packages_link_the_loop(tmp_path: Path) -> None:
    """Without a warning; it is the library that Python loads, or has the same sources."""
    write({"CMakeLists.txt": LISTS, "main.cpp": HOST}, tmp_path)
    prefixes = os.environ["AMENT_PREFIX_PATH"].replace(os.pathsep, ";")
    given = [f"-DCMAKE_PREFIX_PATH={prefixes}", f"-DPython3_EXECUTABLE={sys.executable}"]
    for command in (["-S", tmp_path, "-B", tmp_path / "build", *given], ["--build", tmp_path / "build"]):
        done = run(["cmake", *command], tmp_path)
        assert done.returncode == 0 and "warning" not in (done.stdout + done.stderr).lower(), done.stdout + done.stderr
    assert succeed([tmp_path / "build/host"], tmp_path).strip() == headers.loop_digest()


@pytest.mark.skipif(
    not (_installed("controller_interface") and _installed("eom_dynamics") and shutil.which("cmake")),
    reason="ros2_control is not installed, or eom_dynamics is not in a workspace",
)
@pytest.mark.timeout(1200)
def test_builds(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    export(robot("sea_planar_2r"), "ros2_control", package, [code.FEEDFORWARD])
    succeed(["cmake", "-S", package, "-B", "build", f"-DCMAKE_INSTALL_PREFIX={tmp_path / 'installed'}"], tmp_path)
    succeed(["cmake", "--build", "build", "--target", "install"], tmp_path)
