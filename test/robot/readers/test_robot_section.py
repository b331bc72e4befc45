# SPDX-License-Identifier: Apache-2.0
"""The section robot: conventions of joints, values that are turned or merged, entries of joints, mounts of rotors."""

import copy
from typing import Any

import numpy as np
import pytest
import textbook
from chains import fixed_case, packaged_parameters
from described_trees import DescribedJoint, DescribedTree
from differences import deviation
from own_drives import CIA_402, ODRIVE
from scipy.spatial.transform import Rotation
from urdf_arms import urdf_arm

from eom_dynamics import Robot, RobotDescriptionError, equations_of_motion, load_robot, robot_from_parameters
from eom_dynamics.actuators.springs import RIGID
from eom_dynamics.arrays import Array
from eom_dynamics.kinematics import body_poses
from eom_dynamics.robot import robot_from_urdf
from eom_dynamics.robot.inertia import symmetric
from eom_dynamics.robot.readers.parameter_tree import completed
from eom_dynamics.robot.readers.section import Section
from eom_dynamics.robot.readers.urdf import description_from_urdf
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.robot.writers.urdf import robot_as_urdf

# Denavit-Hartenberg rows a, alpha, d, theta of an arm with rotated and shifted axes, and offsets in theta and d.
ROWS = (
    ("revolute", (0.1, np.pi / 2, 0.4, 0.3)),
    ("revolute", (0.5, 0.0, -0.1, -0.8)),
    ("prismatic", (0.05, -np.pi / 2, 0.3, 0.5)),
    ("revolute", (-0.2, 1.1, 0.2, 2.0)),
    ("revolute", (0.0, -0.7, 0.1, 0.0)),
)
BODY = {"mass": 2.0, "center_of_mass": [-0.1, 0.02, 0.03], "inertia": [0.05, 0.002, -0.003, 0.04, 0.001, 0.03]}


def along(axis: str, angle: float, distance: float) -> Array:
    """Rotation about and translation along an axis, by SciPy."""
    C = np.eye(4)
    C[:3, :3], C["xyz".index(axis), 3] = Rotation.from_euler(axis, angle).as_matrix(), distance
    return C


@pytest.mark.parametrize("convention", ["dh", "modified_dh"])
def test_denavit_hartenberg_tables(convention: str) -> None:
    rows = [{"type": kind, "dh": dict(zip(("a", "alpha", "d", "theta"), row, strict=True))} for kind, row in ROWS]
    joints = {f"joint_{i}": BODY | row for i, row in enumerate(rows)}
    section = {"name": "arm", "joint_names": [*joints], "convention": convention, "inertia_reference": "com"}
    q, C = np.random.default_rng(5).uniform(-2, 2, 5), np.eye(4)
    poses = body_poses(robot_from_parameters(section | {"joints": joints}), q)
    for pose, (kind, (a, alpha, d, theta)), x in zip(poses, ROWS, q, strict=True):
        about_x = along("x", alpha, a)
        about_z = along("z", theta, d + x) if kind == "prismatic" else along("z", theta + x, d)
        C = C @ (about_z @ about_x if convention == "dh" else about_x @ about_z)
        assert deviation(pose, C) < 1e-14


def test_spatial_screws_are_in_the_base_frame() -> None:
    case = fixed_case("mixed_chain", 4)
    section = copy.deepcopy(case.parameters) | {"convention": "spatial_screws"}
    for joint, C in zip(section["joints"].values(), textbook.body_poses(section, np.zeros(4)), strict=True):
        (w, v), R = np.reshape(joint["screw"], (2, 3)) @ C[:3, :3].T, C[:3, :3]
        joint["screw"] = [*w, *(v + np.cross(C[:3, 3], w))]
        joint["origin"] = {"xyz": C[:3, 3].tolist(), "rpy": Rotation.from_matrix(R).as_euler("xyz").tolist()}
    assert deviation(efforts(robot_from_parameters(section), case.motion), efforts(case.robot, case.motion)) < 1e-12


def efforts(robot: Robot, motion: Array) -> Array:
    return np.array(equations_of_motion(robot, *motion[:-1]).efforts(motion[-1]))


UR5E_ORIGINS = (
    *(([0, 0, 0.1625], [0, 0, 0]), ([0, 0, 0], [np.pi / 2, 0, 0]), ([-0.425, 0, 0], [0, 0, 0])),
    *(([-0.3922, 0, 0.1333], [0, 0, 0]), ([0, -0.0997, 0], [np.pi / 2, 0, 0])),
    ([0, 0.0996, 0], [np.pi / 2, np.pi, np.pi]),
)
UR5E_INERTIALS = (
    *(([0, -0.00193, -0.02561], np.pi / 2), ([-0.2125, 0, 0.11336], 0.0), ([-0.2422, 0, 0.0265], 0.0)),
    *(([0, -0.01634, -0.0018], np.pi / 2), ([0, 0.01634, -0.0018], -np.pi / 2), ([0, 0, -0.001159], 0.0)),
)


def test_ur5e_is_that_of_the_manufacturers_urdf() -> None:
    """The packaged robot is a DH table; the values above are from the manufacturer's URDF, which has other frames."""
    joints: list[DescribedJoint] = []
    rows = zip(packaged_parameters("ur5e")["joints"].items(), UR5E_ORIGINS, UR5E_INERTIALS, strict=True)
    for (name, entries), (xyz, rpy), (center, roll) in rows:
        parent, body = joints[-1].link if joints else "base", symmetric(*entries["inertia"])
        joint = DescribedJoint(name, "revolute", parent, xyz, rpy, np.eye(3)[2], mass=entries["mass"], inertia=body)
        joint.inertial_xyz, joint.inertial_rpy = np.array(center), np.array([roll, 0.0, 0.0])
        joints.append(joint)
    text = DescribedTree(joints, []).urdf()
    states = np.random.default_rng(5).uniform(-2, 2, (5, 6))
    for ours, theirs in zip(efforts(load_robot("ur5e"), states), efforts(load_robot(text), states), strict=True):
        assert deviation(ours, theirs) < 1e-12


def robot_with(**entries: Any):
    return robot_from_parameters(packaged_parameters("planar_2r", joint_1=entries))


def test_axis_off_the_origin_is_scaled_with_its_moment() -> None:
    screw = robot_with(screw=[0.0, 0.0, 1.000005, 0.0, -0.3, 0.0]).joints[0].screw
    np.testing.assert_allclose(screw, [0, 0, 1, 0, -0.3 / 1.000005, 0], rtol=1e-15)


def test_parameters_are_left_alone() -> None:
    parameters = packaged_parameters("iiwa")
    robot_from_parameters(parameters)
    assert parameters == packaged_parameters("iiwa")


OWN_UNITS = {"side": "motor", "sign": -1, "units_per_turn": 1.0, "offset": 0.25}


def robot_with_entries(base: str, joint: str, compensated: tuple[str, ...] = (), **entries: dict[str, Any]) -> Robot:
    parameters = packaged_parameters(base)
    for name, entry in entries.items():
        parameters["joints"][joint].setdefault(name, {}).update(entry)
    return robot_from_parameters(parameters | ({"compensated_by_robot": list(compensated)} if compensated else {}))


def test_friction_that_differs_by_direction_is_read_and_written() -> None:
    """The default breakaway effort is by the direction with more dry friction."""
    friction = {"viscous": 2.0, "viscous_negative": 1.0, "coulomb": 0.5, "coulomb_negative": 0.8}
    robot = robot_with_entries("planar_2r", "joint_1", actuator={"friction": friction})
    for found in (robot, load_robot(robot_as_yaml(robot).text)):
        law = found.joints[0].actuator.friction
        np.testing.assert_allclose(law.effort(np.array([3.0, -3.0])), [6.5, -3.8], rtol=1e-15)
        assert law.static == 0.8


def test_units_of_drives_are_read_written_and_read_again() -> None:
    plain = load_robot("sea_planar_2r")
    assert not plain.has_own_drives and plain.compensated_by_robot == ()
    robot = robot_with_entries("sea_planar_2r", "joint_1", ("friction", "gravity"), drive=OWN_UNITS)
    assert robot.compensated_by_robot == ("gravity", "friction") and robot.joints[0].drive == ODRIVE
    per_mille = {"side": "motor", "velocity_units_per_turn": 60.0, "effort": "per_mille", "rated_torque": 1.3}
    other = robot_with_entries(
        "sea_planar_2r", "joint_1", drive={"units_per_turn": 4096, "offset": -100.0, **per_mille}
    )
    assert other.joints[0].drive == CIA_402 and other.has_own_drives
    slider = robot_with_entries("planar_pr", "slide", drive={"side": "joint", "sign": -1, "offset": 0.2})
    for found in (robot, other, slider):
        written = robot_as_yaml(found)
        again = load_robot(written.text)
        assert [x.drive for x in again.joints] == [x.drive for x in found.joints] and again.has_own_drives
        assert again.compensated_by_robot == found.compensated_by_robot and not written.lost
    lost = robot_as_urdf(robot).lost
    assert any("units of drives" in line for line in lost)
    assert "compensated_by_robot gravity, friction is omitted" in lost


def test_a_prismatic_joint_makes_no_turns() -> None:
    with pytest.raises(RobotDescriptionError, match=r"units_per_turn.*turns"):
        robot_with_entries("planar_pr", "slide", drive={"side": "joint", "units_per_turn": 1.0})
    assert robot_with_entries("planar_pr", "slide", drive={"side": "motor", "units_per_turn": 1.0}).has_own_drives


def test_what_additions_do_not_name_remains() -> None:
    given = {
        "elasticity": {"type": "linear", "stiffness": 300.0},
        "actuator": {"friction": {"viscous": 0.1}},
        "rotor_inertia": 0.2,
    }
    shoulders, robot = [], description_from_urdf(urdf_arm(), "arm.urdf")
    for joints in ({"shoulder": given}, {"shoulder": {"limits": {"velocity": 1.5}}}):
        with Section({"joints": joints}, "urdf", "parameters") as additions:
            robot = completed(robot, additions)
        shoulders += [joint for joint in robot.joints if joint.name == "shoulder"]
    before, after = shoulders
    assert before.spring != RIGID and after.limits.velocity == 1.5
    for name in ("spring", "actuator", "rotor_inertia", "rotor", "gear_ratio"):
        assert getattr(after, name) == getattr(before, name), name


URDF = """<robot name="two"><link name="base"/><link name="bracket"/><link name="upper">{0}</link><link name="lower">{0}
</link><joint name="mount" type="fixed"><parent link="base"/><child link="bracket"/>
<origin rpy="1.5707963 0 0"/></joint>
<joint name="shoulder" type="revolute"><parent link="bracket"/><child link="upper"/>
<axis xyz="0 1 0"/><limit effort="1" velocity="1" lower="-1" upper="1"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0 0 0.3" rpy="0 0 0.5"/>
<axis xyz="1 0 0"/><limit effort="1" velocity="1" lower="-1" upper="1"/></joint></robot>""".format(
    '<inertial><mass value="1"/><origin xyz="0.1 0.1 0.1"/>'
    '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>'
)


def arm(**rotor: Any) -> Robot:
    return robot_from_parameters(packaged_parameters("planar_2r", joint_2={"rotor": rotor}))


def test_axes_are_made_unit_vectors_of_the_carrier() -> None:
    mount = arm(carrier="joint_2", axis=[3.0, 0.0, -4.0]).joints[1].mount
    assert mount.carrier == 1
    np.testing.assert_allclose(mount.axis, [0.6, 0.0, -0.8], rtol=1e-15)
    assert arm(axis=[0.0, 2.0, 0.0]).joints[1].mount.carrier == 0


def test_links_of_a_urdf_carry_rotors_in_their_own_frames() -> None:
    section = {
        "rotor_model": "complete",
        "joints": {
            "shoulder": {"rotor": {"axis": [0.0, 0.0, 1.0]}},
            "elbow": {"rotor_inertia": 0.1, "rotor": {"carrier": "bracket"}},
        },
    }
    robot = robot_from_urdf(URDF, section)
    assert robot.rotor_model == "complete"
    bracket = Rotation.from_euler("xyz", [1.5707963, 0, 0]).as_matrix()
    shoulder, elbow = (joint.mount for joint in robot.joints)
    assert (shoulder.carrier, elbow.carrier) == (-1, -1)
    np.testing.assert_allclose(shoulder.axis, bracket[:, 2], atol=1e-15)
    turn = Rotation.from_euler("xyz", [0, 0, 0.5]).as_matrix()
    np.testing.assert_allclose(elbow.axis, bracket @ turn @ [1, 0, 0], atol=1e-15)
    part = robot_from_urdf(URDF, {"root": "upper"})
    assert part.joints[0].mount.carrier == -1
    with pytest.raises(RobotDescriptionError, match=r"elbow\.rotor\.carrier.*'bracket'"):
        robot_from_urdf(URDF, section | {"root": "upper"})
