# SPDX-License-Identifier: Apache-2.0
"""Robots written as parameter files and URDFs: they load to equal robots, and losses are named."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from chains import fixed_case, packaged_parameters
from example_robots import example_urdfs
from same_dynamics import assert_same_dynamics
from springs import EVERY_KIND
from urdf_arms import urdf_arm

from eom_dynamics import ElasticArm, Robot, RobotDescriptionError, load_robot, robot_from_parameters
from eom_dynamics.actuators.springs import CubicSpring
from eom_dynamics.lie import rotation_from_rpy
from eom_dynamics.robot.writers import Written, rpy
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.robot.writers.urdf import robot_as_urdf

WRITERS = {"YAML": robot_as_yaml, "URDF": robot_as_urdf}
EXAMPLES = ("romeo_small", "tiago", "hyq_no_sensors")


def loaded(written: Written, robot: Robot, *, tools: bool = True) -> Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_robot(
            written.text, gravity=robot.gravity, tools=[tool.name for tool in robot.tools] if tools else ()
        )


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("name", ["iiwa", "ur5e", "planar_pr", "dual_arm", "leg"])
def test_packaged_robots(name: str, write: Callable[[Robot], Written]) -> None:
    robot = load_robot(name)
    again = loaded(write(robot), robot)
    assert_same_dynamics(robot, again)
    order = [robot.joint_names.index(joint) for joint in again.joint_names]
    np.testing.assert_allclose(again.rotor_inertia, robot.rotor_inertia[order], rtol=1e-15)
    assert [x.gear_ratio for x in again.joints] == [robot.independent_joints[i].gear_ratio for i in order]


IN_USE = {path.stem: path for path in example_urdfs() if path.stem in EXAMPLES}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("path", IN_USE.values(), ids=IN_USE)
@pytest.mark.filterwarnings("ignore")
def test_robots_in_use(path: Path, write: Callable[[Robot], Written]) -> None:
    robot = load_robot(path)
    again = loaded(write(robot), robot)
    assert_same_dynamics(robot, again)
    names = {frame.name for frame in robot.frames} - {"base"}
    assert names <= {frame.name for frame in again.frames}


def test_screws_off_the_origin_and_helical_joints() -> None:
    robot = fixed_case("mixed_chain", 2).robot
    assert_same_dynamics(robot, loaded(robot_as_yaml(robot), robot))
    with pytest.raises(RobotDescriptionError, match=r"joint_3.*helical"):
        robot_as_urdf(robot)
    part = load_robot(robot_as_yaml(robot).text, tip="joint_2", branches="drop")
    assert_same_dynamics(part, loaded(robot_as_urdf(part), part))


def test_mimic_planar_and_floating_joints() -> None:
    text = urdf_arm(joints=("a", "b", "c")).replace('name="b" type="revolute"', 'name="b" type="planar"')
    text = text.replace("</joint></robot>", '<mimic joint="a" multiplier="-2" offset="0.3"/></joint></robot>')
    for kind in ("planar", "floating"):
        robot = load_robot(text.replace("planar", kind))
        for write in WRITERS.values():
            assert_same_dynamics(robot, loaded(write(robot), robot))


@pytest.mark.parametrize("kind", sorted({*EVERY_KIND, "small"} - {"rigid"}))
def test_springs_motors_and_limits_are_kept_in_a_parameter_file(kind: str) -> None:
    parameters = packaged_parameters("sea_planar_2r")
    parameters["joints"]["joint_1"]["elasticity"] = {"type": "linear", "stiffness": 400.0}
    parameters["joints"]["joint_2"] |= {
        "rotor": {"carrier": "base" if kind == "small" else "joint_1", "axis": [0.0, 0.6, 0.8]},
        "limits": {"upper": 1.0, "jerk": 20.0},
    }
    robot = replace(robot_from_parameters(parameters | {"rotor_model": "complete"}), joint_friction=True)
    springs = EVERY_KIND | {"small": CubicSpring(300.0, 1e-5)}  # a number that YAML would read as a text
    robot = replace(robot, joints=(robot.joints[0], replace(robot.joints[1], spring=springs[kind])))
    again = loaded(robot_as_yaml(robot), robot)
    states = 0.1 * np.random.default_rng(1).uniform(-1, 1, (5, 2))
    one, other = ElasticArm(robot).feedforward(*states), ElasticArm(again).feedforward(*states)
    np.testing.assert_allclose(other.motor_effort, one.motor_effort, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(ElasticArm(again).drive(other).current, ElasticArm(robot).drive(one).current)
    assert again.joints[1].limits == robot.joints[1].limits and again.joint_friction


def test_coupled_springs_and_transmissions_are_kept_in_a_parameter_file() -> None:
    parameters = packaged_parameters("planar_2r")
    for joint in parameters["joints"].values():
        joint.pop("elasticity")
    names = parameters["joint_names"]
    coupled = {"joints": names, "matrix": [300.0, 20.0, 20.0, 200.0]}
    transmission = {"joints": names, "matrix": [0.5, 0.5, 0.5, -0.5]}
    robot = robot_from_parameters(parameters | {"coupled_stiffness": coupled, "transmission": transmission})
    again = loaded(robot_as_yaml(robot), robot)
    assert again.coupled_stiffness is not None and again.transmission is not None
    np.testing.assert_array_equal(again.coupled_stiffness[1].matrix, [[300, 20], [20, 200]])
    np.testing.assert_array_equal(again.transmission[1].matrix, [[0.5, 0.5], [0.5, -0.5]])


def test_what_a_urdf_cannot_say_is_named() -> None:
    lost = robot_as_urdf(load_robot("sea_planar_2r")).lost
    assert lost[0] == "springs (elasticity) are omitted: joint_1, joint_2"
    assert lost[1] == "losses and constants of actuators are omitted: joint_1, joint_2"
    assert lost[2] == "deviations of efforts (effort_spread) are omitted: joint_1, joint_2"
    assert lost[3].startswith("friction is joint friction; load the URDF with joint_friction: included")
    assert lost[4].startswith("gravity [0.0, -9.80665, 0.0] is omitted")
    arm = replace(load_robot(urdf_arm()), implausible="accept", drive_interpolation="linear")
    assert [line.split(" ")[0] for line in robot_as_urdf(arm).lost] == ["implausible:", "command_period"]
    assert robot_as_urdf(load_robot(urdf_arm())).lost == ()
    assert robot_as_yaml(load_robot("vsa_planar_2r")).lost == ()


def test_names_that_a_parameter_file_cannot_have() -> None:
    robot = load_robot(urdf_arm(joints=("arm/shoulder",)))
    with pytest.raises(RobotDescriptionError, match=r"'arm/shoulder'.*2.*parameter"):
        robot_as_yaml(robot)


@pytest.mark.parametrize("pitch", [-np.pi / 2, np.pi / 2, 1.5707963, 0.3])
def test_angles_of_a_rotation_are_accurate_at_a_right_angle(pitch: float) -> None:
    R = rotation_from_rpy([0.4, pitch, -2.0])
    np.testing.assert_allclose(rotation_from_rpy(rpy(R)), R, atol=1e-15)
