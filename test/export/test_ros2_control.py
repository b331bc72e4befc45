# SPDX-License-Identifier: Apache-2.0
"""Exported package for ros2_control: descriptions, names, configuration, and its build where that can be."""

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from exported import export, renamed, robot, succeed, with_values
from managed_arm import controllers

import eom_dynamics.export as code
from eom_dynamics import Dynamics, ElasticArm, Robot
from eom_dynamics.actuators.drive_units import DriveUnits
from eom_dynamics.actuators.springs import RigidSpring
from eom_dynamics.control import headers
from eom_dynamics.control.headers import source
from eom_dynamics.control.measured import SAMPLE_REASONS
from eom_dynamics.control.settings import DEFAULTS, SAID
from eom_dynamics.elastic.bounds import bounds
from eom_dynamics.export.ros2_control import GENERIC_PACKAGE, package_name

ROBOTS = ("dual_arm", "vsa_planar_2r")
MORE_ROBOTS = [pytest.param(name, marks=pytest.mark.soak) for name in ("iiwa", "sea_planar_2r", "panda", "ur5e")]

# Of motors on the link side of their gears, rad/s.
SPEEDS = dict.fromkeys(("sea_planar_2r", "vsa_planar_2r"), 500.0 / 100.0)


def contents(subject: Robot, functions: str = code.PLANT) -> dict[str, bytes]:
    return code.LANGUAGES["ros2_control"].files(*with_values(subject, (functions,)))


def joints_of(description: bytes, path: str = "joint") -> list[str]:
    return [str(entry.get("name")) for entry in ElementTree.fromstring(description).findall(path)]


@pytest.mark.parametrize("name", [*ROBOTS, *MORE_ROBOTS])
def test_package(name: str) -> None:
    """Descriptions, configuration and sources name the same plugins, joints and motors."""
    subject = robot(name)
    files = contents(subject)
    package = f"{name}_control"
    manifest = ElementTree.fromstring(files["package.xml"])
    assert manifest.findtext("name") == package
    needed = {entry.text for entry in manifest.findall("depend")}
    found = set(re.findall(r"find_package\((\w+)", files["CMakeLists.txt"].decode()))
    assert {"controller_interface", "hardware_interface", "eom_dynamics", "pluginlib"} <= needed <= found
    for file, plugin in (("controllers.xml", "FeedforwardController"), ("hardware.xml", "PlantSystem")):
        (entry,) = ElementTree.fromstring(files[file]).findall("class")
        assert entry.get("name") == f"{package}/{plugin}" and entry.get("type") == f"{package}::{plugin}"
        source = "feedforward_controller" if plugin == "FeedforwardController" else "plant_system"
        exported = f"PLUGINLIB_EXPORT_CLASS({package}::{plugin}, {entry.get('base_class_type')})"
        assert exported in files[f"src/{source}.cpp"].decode()
    messages = files["src/feedforward_controller_messages.cpp"].decode()
    for text in (*SAID.values(), *SAMPLE_REASONS.values()):  # as the node says it
        assert f'{text}"' in messages
    assert not re.search(r"@\w+@", messages)
    # Two controllers of one manager have topics of their own.
    text = files["src/feedforward_controller_parameters.cpp"].decode()
    topics = re.findall(r'create_subscription<[^>]*>\(\s*"([^"]*)"', text)
    assert topics and all(topic.startswith("~/") for topic in topics)
    sources = re.findall(r"c/\w+\.c\b", files["CMakeLists.txt"].decode())
    assert sorted(sources) == sorted(file for file in files if file.startswith("c/") and file.endswith(".c"))

    arm = ElasticArm(subject)
    configured = controllers(files["config/controllers.yaml"])
    given, *others = (
        configured[name]["ros__parameters"]
        for name in ("feedforward_controller", "joint_state_broadcaster", "joint_trajectory_controller")
    )
    assert tuple(given["joints"]) == subject.joint_names
    # Motors of rigid joints are the joints.
    rigid = arm.side.rigid[arm.side.motor_joint]
    assert [name in given["joints"] for name in given["motors"]] == rigid.tolist()
    parts = list(dict.fromkeys(given["joints"] + given["motors"]))
    assert len(parts) == subject.n + np.sum(~rigid)
    # Of the hardware alone, not of the feedforward controller.
    assert others[0] == {"joints": parts, "interfaces": ["position", "velocity"]}
    assert others[1]["joints"] == given["joints"]
    assert others[1]["command_joints"] == [f"feedforward_controller/{name}" for name in given["joints"]]
    constraints = others[1]["constraints"]
    tolerances = [constraints.pop(name) for name in given["joints"]]
    limits = np.minimum(bounds(arm).largest["velocity"], SPEEDS.get(name, np.inf))
    limits[np.isinf(limits)] = 1.0
    np.testing.assert_allclose([list(row.values()) for row in tolerances], np.outer(limits, [0.05, 0.01]))
    assert all(list(row) == ["trajectory", "goal"] for row in tolerances)
    assert constraints == {"goal_time": 0.3, "stopped_velocity_tolerance": pytest.approx(0.05 * limits.min())}
    assert configured.keys() - {"controller_manager"} < configured["controller_manager"]["ros__parameters"].keys()
    moveit = yaml.safe_load(files["config/moveit_controllers.yaml"])["moveit_simple_controller_manager"]
    assert moveit["joint_trajectory_controller"]["joints"] == given["joints"]
    np.testing.assert_allclose(given["motor_kp"], arm.motor_inertia * 70.0**2, rtol=1e-5)
    for kind in ("simulated", "mock"):
        description = files[f"description/{kind}.urdf"]
        assert joints_of(description) == joints_of(description, "ros2_control/joint") == parts
    places = re.search(r"MOTOR_AT\{(.*)\}", files["src/plant_system.cpp"].decode())
    assert places and [parts[int(k)] for k in places[1].split(", ")] == given["motors"]
    launch = files["launch/control.launch.py"].decode()
    compile(launch, "control.launch.py", "exec")
    assert 'choices=["simulated", "mock"]' in launch and f'"{package}"' in launch
    (hardware,) = ElementTree.fromstring(files["description/simulated.urdf"]).findall("ros2_control/hardware")
    drives = {str(entry.get("name")): str(entry.text).split(", ") for entry in hardware.findall("param")}
    assert {name: list(map(float, drives[name])) for name in ("motor_kp", "motor_kd")} == {
        name: given[name] for name in ("motor_kp", "motor_kd")
    }
    every = b"".join(files.values()).decode("ascii")
    assert not re.search(r"@\w+@", every)
    declared = yaml.safe_load(files["src/feedforward_controller_parameters.yaml"])[package]
    assert given.keys() < declared.keys()
    source = files["src/feedforward_controller_parameters.cpp"].decode()
    settings = re.findall(r"EOM_(?:NUMBER|CHOICE)\((\w+), ", files["include/eom/settings.hpp"].decode())
    assert "eom::SETTINGS" in source and 'find("safety")' in source
    gains = re.findall(r'"(\w+)"', source[source.index("GAINS[]") : source.index("number_of")])
    assert declared.keys() <= {"safety", *settings, *gains, *re.findall(r"\bgiven\.(\w+)", source)}


def test_motors_that_are_no_joints() -> None:
    """Of coupled springs and transmissions, and of drives with units of their own, also at rigid joints."""
    first, second = (replace(joint, spring=RigidSpring()) for joint in robot("planar_2r").joints)
    backwards = replace(robot("planar_2r"), joints=(first, replace(second, drive=DriveUnits(sign=-1))))
    for subject, shared in ((robot("shared"), []), (backwards, [first.name])):
        configured = controllers(contents(subject, code.FEEDFORWARD)["config/controllers.yaml"])
        given = configured["feedforward_controller"]["ros__parameters"]
        assert [name for name in given["motors"] if name in given["joints"]] == shared


@pytest.mark.parametrize(
    ("name", "package", "names"),
    [
        (
            "My <Arm> --2",
            "my_arm_2_control",
            ('a "b" <c> & \\ d', "Gelenk_\N{LATIN SMALL LETTER A WITH DIAERESIS}: #1 -- x"),
        ),
        ("class", "class_control", ("operator", "null")),
        ("@name@", "name_control", ("@type@", " @stored@")),
        ("back\\", "back_control", ("end\\", "\N{GRINNING FACE}")),
        ("${x}", "x_control", ("$(pwd)", "]]> -->")),
        ("  ", "robot_control", (" ", '"""\N{LINE SEPARATOR}')),
    ],
)
def test_names_of_any_robot(name: str, package: str, names: tuple[str, str]) -> None:
    """Names survive XML, YAML and C++, and stay out of identifiers and of what templates fill in."""
    subject = renamed(name, *names)
    files = contents(subject)
    assert package_name(code.project(subject, ["effort"])) == package
    for file, content in files.items():
        content.decode("ascii")
        if file.endswith((".xml", ".urdf")):
            ElementTree.fromstring(content)
        # A backslash at its end continues a comment.
        assert not re.search(rb"//[^\n]*\\\n", content), file
    given = controllers(files["config/controllers.yaml"])["feedforward_controller"]["ros__parameters"]
    assert tuple(given["joints"]) == names
    assert joints_of(files["description/mock.urdf"])[:2] == list(names)


@pytest.mark.parametrize("name", ["planar_2r", "test", "batch"])
def test_all_functions_for_one_state_and_nothing_else_is_compiled(name: str) -> None:
    sources = {Path(file).stem for file in contents(renamed(name, "a", "b")) if file.endswith(".c")}
    functions = ("inverse_dynamics", "motors", "drive", "feedforward", "spring_efforts", "plant")
    feedback = ("flat_state", "linearizing_snap", "linearizing_setpoint")
    assert sources == {f"{name}_{function}" for function in (*functions, *feedback)}


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "\x01", "\uffff"])
def test_names_that_cannot_be_written(name: str) -> None:
    for subject in (renamed(name, "a", "b"), renamed("arm", "a", name)):
        with pytest.raises(code.UnavailableError, match=rf"cannot have the name {re.escape(repr(name))}: rename it"):
            code.project_files(code.project(subject, [code.FEEDFORWARD]), ["ros2_control"])


def test_without_a_plant_there_is_no_simulation() -> None:
    files = contents(robot("sea_planar_2r"), code.FEEDFORWARD)
    assert not [name for name in files if "plant" in Path(name).name and not name.startswith("include/eom/")]
    assert "hardware.xml" not in files["CMakeLists.txt"].decode()
    assert 'default_value="mock", choices=["mock"]' in files["launch/control.launch.py"].decode()


def test_parameters_are_described_and_checked() -> None:
    """Of types and ranges that generate_parameter_library knows; defaults are those of the loop, and of the node."""
    files = contents(robot("iiwa"))
    (declared,) = yaml.safe_load(files["src/feedforward_controller_parameters.yaml"]).values()
    header = files["include/eom/settings.hpp"].decode()
    types = {"string_array": list, "double_array": list, "string": str, "double": float, "int": int, "bool": bool}
    for name, parameter in [*_parameters(declared)]:
        assert type(parameter["default_value"]) is types[parameter["type"]], name
        # It writes descriptions into C++ as they are.
        assert len(parameter["description"]) > 10 and not set('"\\`\n') & set(parameter["description"])
        assert parameter["type"] == "bool" or parameter["default_value"] == "" or parameter["validation"]
        if parameter["type"] in ("double", "int"):
            ((low, high),) = parameter["validation"].values()
            assert type(low) is type(high) is types[parameter["type"]] and low <= parameter["default_value"] <= high
            of_controller = name in {
                *("warning_period", "command_lead", "reference_lead", "state_publish_rate", "bandwidth")
            }
            loop = re.search(rf"\b{name} = ([\d.]+)[,;]", header)
            assert of_controller or float(loop[1]) == parameter["default_value"]  # type: ignore[index]
    for name in ("stop_duration", "ramp_duration", "resume_distance"):
        assert declared[name]["default_value"] == getattr(DEFAULTS, name)


@pytest.mark.parametrize(("period", "rate"), [(0.0, 1000), (0.004, 250), (0.0003, 3333)])
def test_the_manager_of_the_example_runs_once_in_a_period_of_the_drives(period: float, rate: int) -> None:
    files = contents(replace(robot("planar_2r"), command_period=period), code.FEEDFORWARD)
    configured = controllers(files["config/controllers.yaml"])["controller_manager"]["ros__parameters"]
    assert configured["update_rate"] == rate


@pytest.mark.parametrize("name", ["planar_2r", *MORE_ROBOTS])
def test_the_gains_hold_a_rigid_arm_without_rotors(name: str) -> None:
    """Under a tenth of its weight that the feedforward does not know, at 1 kHz with a delay of a cycle."""
    joints = (replace(joint, spring=RigidSpring(), rotor_inertia=0.0) for joint in robot(name).joints)
    arm = replace(robot(name), name="rigid", joints=tuple(joints))
    files = code.LANGUAGES["ros2_control"].files(*with_values(arm, (code.FEEDFORWARD,)))
    text = files["config/controllers.yaml"].decode()
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


def test_the_controller_of_every_robot_is_that_of_one() -> None:
    """But for names, and where its loop comes from."""
    own, generic = contents(robot("planar_2r")), code.generic_files()
    assert GENERIC_PACKAGE not in own
    header = "include/{}/feedforward_controller.hpp"
    for name in (header, *(f"src/feedforward_controller{part}.cpp" for part in ("", "_parameters", "_messages"))):
        same = own[name.format("planar_2r_control")].decode().partition("#")[2]
        renamed = generic[name.format(GENERIC_PACKAGE)].partition("#")[2]
        same = same.replace("planar_2r_control", GENERIC_PACKAGE).replace("PLANAR_2R_CONTROL", GENERIC_PACKAGE.upper())
        assert renamed == same
    assert all(own[name].decode() == text for name, text in generic.items() if name.startswith("include/eom/"))
    for name, text in generic.items():
        assert not re.search(r"@\w+@", text), name
        if name.endswith(".xml"):
            ElementTree.fromstring(text)
    parameters = "src/feedforward_controller_parameters.yaml"
    (of_robot,), (of_all,) = (yaml.safe_load(files[parameters]).values() for files in (own, generic))
    loop = of_all.keys() - of_robot.keys()
    assert loop == {"kernel", "fingerprint", "robot_file", "command", "compile_timeout"}
    assert all(of_all[name]["read_only"] for name in loop)
    assert loop == set(re.findall(r"\bgiven\.(\w+)", generic["src/robot_loop.cpp"]))
    given = controllers(generic["config/controllers.yaml"])["feedforward_controller"]["ros__parameters"]
    assert given.keys() < of_all.keys()
    example = robot(given["robot_file"])
    of_example = controllers(contents(example)["config/controllers.yaml"])
    front = "joint_trajectory_controller"
    assert controllers(generic["config/controllers.yaml"])[front] == of_example[front]
    np.testing.assert_allclose(given["motor_kp"], 70.0**2 * example.rotor_inertia)
    np.testing.assert_allclose(given["motor_kd"], 2 * 70.0 * example.rotor_inertia)


def test_the_interface_of_loops_has_a_digest_of_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which another comment leaves alone, and another member does not."""
    written = headers.loop_headers.__wrapped__
    abi = re.compile(r"ROBOT_ABI = (0x[0-9a-f]{8});")
    before = abi.search(written()["include/eom/robot_table.hpp"])
    for changed, same in (("// Other words.", True), ("int another;", False)):
        monkeypatch.setattr(headers, "source", lambda name, text=changed: source(name) + text)
        after = abi.search(written()["include/eom/robot_table.hpp"])
        assert (after[1] == before[1]) is same  # type: ignore[index]


def test_single_precision_is_refused() -> None:
    with pytest.raises(code.UnavailableError, match="double precision only"):
        code.project_files(code.project(robot("planar_2r"), [code.PLANT], precision="single"), ["ros2_control"])


def _installed(package: str) -> bool:
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return any((Path(prefix) / "share" / package / "cmake").is_dir() for prefix in prefixes)


@pytest.mark.skipif(
    not (_installed("controller_interface") and _installed("eom_dynamics") and shutil.which("cmake")),
    reason="ros2_control is not installed, or eom_dynamics is not in a workspace",
)
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", ["sea_planar_2r", "vsa_planar_2r"])
def test_builds_and_passes_its_tests(name: str, tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    export(robot(name), "ros2_control", package, [code.PLANT])
    succeed(["cmake", "-S", package, "-B", "build", f"-DCMAKE_INSTALL_PREFIX={tmp_path / 'installed'}"], tmp_path)
    succeed(["cmake", "--build", "build", "--target", "install"], tmp_path)
    assert "100% tests passed" in succeed(["ctest", "--test-dir", "build", "--output-on-failure"], tmp_path)
