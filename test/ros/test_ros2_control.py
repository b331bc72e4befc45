# SPDX-License-Identifier: Apache-2.0
"""A bag of setpoints through the node, through ``replay``, and through the controller: the same commands."""

import os
import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from bag_files import OPTIONAL, SETPOINT, START, STORE, read_bag, setpoint, write_bag
from exported import export, robot, succeed
from managed_arm import controllers
from paths import CONFIG

from eom_dynamics import ElasticArm
from eom_dynamics.control.fields import STIFFNESS_FIELDS
from eom_dynamics.control.settings import Status
from eom_dynamics.export import FEEDFORWARD, loop_library
from eom_dynamics.robot.writers.urdf import robot_as_urdf
from eom_dynamics.tools.cli.main import main

PREFIXES = [Path(prefix) for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)]


def _installed(package):
    return any((prefix / "share" / package / "cmake").is_dir() for prefix in PREFIXES)


pytestmark = [
    pytest.mark.skipif(
        not (_installed("controller_manager") and _installed("eom_dynamics") and shutil.which("cmake")),
        reason="ros2_control is not installed, or eom_dynamics is not in a workspace",
    ),
    # Compiles a package and a controller manager.
    pytest.mark.timeout(1200),
]

ROBOTS = ("sea_planar_2r", "vsa_planar_2r")

TOLERANCE = 1e-12

COMMAND = [sys.executable, "-m", "eom_dynamics.tools.cli.main", "codegen", "--language", "loop"]

FIELDS = ("effort", "effort_rate", "effort_acceleration", "effort", "motor_position", "motor_velocity", "motor_effort")
"""Fields of a FeedforwardCommand, in the order of the columns: state interfaces, then commands."""


def recorded(arm, size, path):
    """A bag of a smooth motion with wrenches and stiffness, and increasing times; some setpoints cannot be used."""
    n, tools, names, messages = arm.robot.n, len(arm.robot.tools), arm.robot.joint_names, []
    phase, tool_phase = 1.3 * np.arange(n), 0.7 * np.arange(6 * tools)
    w, rest = 4.0 + 0.3 * np.arange(n), np.where(arm.variable, arm.stiffness, 0.0)
    for i in range(400):
        t = 1e-3 * i
        motion = [0.4 * size * w**k * np.sin(w * t + phase + k * np.pi / 2) for k in range(5)]
        wrench = [3.0 * 5.0**k * np.sin(5.0 * t + tool_phase + k * np.pi / 2) for k in range(3)]
        stiffness = [rest * (k == 0) + 0.1 * rest * 2.0**k * np.sin(2.0 * t + phase + k * np.pi / 2) for k in range(3)]
        if i % 97 == 50:
            motion[i % 5][i % n] = (np.nan, np.inf, 1e300)[i % 3]
        optional = dict(zip(OPTIONAL, [*wrench, *stiffness], strict=True))
        if not arm.variable.any():
            optional = {name: values for name, values in optional.items() if name not in STIFFNESS_FIELDS}
        time = START + 1_000_000 * (i + 1)
        messages.append((time, setpoint(time, names, motion, **optional)))
    return write_bag(path, {"/setpoint": (SETPOINT, messages)})


def built(name, folder, target="play_setpoints", **definitions):
    """Folder of the build of programs for a robot; the package, with the robot's files, is in ``package``."""
    package, build = folder / "package", folder / "build"
    if not build.exists():
        package.mkdir()
        export(robot(name), "ros2_control", package, [FEEDFORWARD])
        sizes = {
            "JOINTS": robot(name).n,
            "MOTORS": len(ElasticArm(robot(name)).motor_names),
            "TOOLS": len(robot(name).tools),
        }
        given = {"PACKAGE_FOLDER": package, "CMAKE_INSTALL_PREFIX": folder / "installed", **sizes}
        given |= {"KERNEL": loop_library(robot(name)).path, "CHECKS_FOLDER": Path(__file__).parents[1] / "export"}
        configured = [f"-D{key}={value}" for key, value in (given | definitions).items()]
        succeed(["cmake", "-S", Path(__file__).with_name("controller_manager"), "-B", build, *configured], folder)
    succeed(["cmake", "--build", build, "--target", target], folder)
    return build


def mock(name, package, described):
    """Description of mock hardware that repeats its commands as states; with links of the robot if so wanted.

    Motors of rigid joints are the joints, so that motor efforts have an interface of their own.
    """
    description = ElementTree.parse(package / f"description/{name}.urdf").getroot()
    hardware = description.find("ros2_control")
    plugin = hardware.find("hardware")
    plugin.clear()
    ElementTree.SubElement(plugin, "plugin").text = "mock_components/GenericSystem"
    for joint in hardware.findall("joint"):
        for kind in ("command_interface", "state_interface"):
            known = [entry.get("name") for entry in joint.findall(kind)]
            for interface in {"effort", "motor_effort"}.difference(known):
                ElementTree.SubElement(joint, kind, name=interface)
    if described:
        description = ElementTree.fromstring(robot_as_urdf(robot(name)).text)
        description.append(hardware)
    return ElementTree.tostring(description, encoding="unicode")


def played(name, bag, limits, folder, described=False, **source):
    """Status, columns of :data:`FIELDS`, and those of the C function, of each setpoint of a bag."""
    subject = robot(name)
    program, package = built(name, folder, "install") / "play_setpoints", folder / "package"
    (folder / "mock.urdf").write_text(mock(name, package, described))
    parameters = controllers(package / f"config/{name}_controllers.yaml")
    given = parameters["feedforward_controller"]["ros__parameters"]
    commands = ["motor_effort", "motor_position", "motor_velocity", "joint_effort"]
    names = {each: given[each] for each in ("joints", "motors")}
    parameters["feedforward_controller"]["ros__parameters"] = names | {
        **source,
        "commands": commands,
        "command_interfaces": {"motor_effort": "motor_effort"},
        "safety": "permissive",
        "limits": limits,
    }
    (folder / "parameters.yaml").write_text(yaml.safe_dump(parameters))
    with (folder / "setpoints").open("wb") as file:
        for _, message in read_bag(bag)["/setpoint"]:
            data = bytes(STORE.serialize_cdr(message, SETPOINT))
            file.write(np.int64(len(data)).tobytes() + data)
    prefixes = os.pathsep.join([str(folder / "installed"), os.environ["AMENT_PREFIX_PATH"]])
    libraries = os.pathsep.join([str(folder / "installed/lib"), os.environ.get("LD_LIBRARY_PATH", "")])
    environment = ["env", f"AMENT_PREFIX_PATH={prefixes}", f"LD_LIBRARY_PATH={libraries}"]
    succeed([*environment, program, "mock.urdf", "parameters.yaml", "setpoints", "commands"], folder)
    n, m = subject.n, len(ElasticArm(subject).motor_names)
    rows = np.fromfile(folder / "commands").reshape(-1, 1 + 7 * n + 6 * m)
    return np.split(rows, np.cumsum([1] + 4 * [n] + 3 * [m] + 3 * [n] + 2 * [m]), axis=1)


def assert_same(computed, expected):
    computed, expected = np.asarray(computed), np.asarray(expected)
    assert np.max(np.abs(computed - expected)) <= TOLERANCE * max(1.0, np.max(np.abs(expected)))


@pytest.mark.parametrize(("name", "size"), [("sea_planar_2r", 1.0), ("iiwa", 0.3)])
def test_the_node_replay_and_the_controller_give_the_same_commands(name, size, start, tmp_path):
    """All with reported limits; and the controller without has the bits of the C function."""
    arm = ElasticArm(robot(name))
    bag = recorded(arm, size, tmp_path / "bag")
    offline = tmp_path / "offline"
    assert main(["replay", str(bag), "--robot", name, "--limits", "warn", "-o", str(offline)]) == 0
    replayed = [message for _, message in read_bag(offline)["/feedforward"]]

    client = start("--params-file", CONFIG / f"{name}.yaml", "-p", "limits:=warn")
    for _, message in read_bag(bag)["/setpoint"]:
        client.publish_serialized(bytes(STORE.serialize_cdr(message, SETPOINT)))
    client.wait(lambda: len(client.feedforward) >= len(replayed), f"{len(replayed)} answers")

    kernel = {"kernel": str(loop_library(robot(name)).path)}
    status, *columns = played(name, bag, "warn", tmp_path, **kernel)
    stamps = [message.header.stamp for _, message in read_bag(bag)["/setpoint"]]
    row_of = {(stamp.sec, stamp.nanosec): row for row, stamp in enumerate(stamps)}
    fresh = set()
    for one, live in zip(replayed, client.feedforward, strict=True):
        assert one.header.stamp.nanosec == live.header.stamp.nanosec and one.held == live.held
        row = row_of[one.header.stamp.sec, one.header.stamp.nanosec]
        if not one.held:
            fresh.add(row)
        for field, values in zip(FIELDS, columns, strict=False):
            assert_same(values[row], getattr(one, field))
            assert_same(values[row], getattr(live, field))
    assert {row for row, (each,) in enumerate(status) if each == Status.FRESH.value} == fresh
    assert 3 <= len(stamps) - len(fresh) <= 4

    _, tau, taud, taudd, effort, *motors, a, b, c, x, y, z = played(name, bag, "ignore", tmp_path, **kernel)
    for got, function in zip((tau, taud, taudd, effort, *motors), (a, b, c, a, x, y, z), strict=True):
        np.testing.assert_array_equal(got, function)

    # Equal bits with a library that it compiles.
    _, *compiled = played(name, bag, "ignore", tmp_path, robot_file=name, command=COMMAND)
    for got, of_robot in zip(compiled, (tau, taud, taudd, effort, *motors), strict=False):
        np.testing.assert_array_equal(got, of_robot)
    # The description of the manager, which has no springs.
    if arm.rigid.all():
        _, *described = played(name, bag, "ignore", tmp_path, described=True, command=COMMAND)
        for got, of_robot in zip(described, (tau, taud, taudd, effort, *motors), strict=False):
            assert_same(got, of_robot)


@pytest.mark.parametrize("name", ROBOTS)
def test_cases_of_the_controller(name, tmp_path):
    program = built(name, tmp_path, "test_controller") / "test_controller"
    assert "PASSED" in succeed([program], tmp_path)


def test_a_robot_with_more_joints_that_is_refused_leaves_no_reports(tmp_path):
    """Warnings of the robot before would be read beyond the end of the joints of the next robot."""
    larger = tmp_path / "larger.so"
    assert main(["codegen", "--language=loop", "iiwa", "-o", str(larger)]) == 0
    checked = {"LARGER_KERNEL": larger, "CMAKE_CXX_FLAGS": "-O0 -fsanitize=address"}
    build = built("sea_planar_2r", tmp_path, "test_controller", **checked)
    # Of ROS 2 itself, which is not compiled for it.
    options = "ASAN_OPTIONS=detect_leaks=0:new_delete_type_mismatch=0:alloc_dealloc_mismatch=0"
    run = ["env", options, build / "test_controller", "--gtest_filter=*ReportsOfAnotherRobot"]
    assert "[  PASSED  ] 1 test" in succeed(run, tmp_path)
