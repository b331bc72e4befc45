# SPDX-License-Identifier: Apache-2.0
"""Robots from valid parameters."""

from array import array
from typing import Any

import numpy as np
import pytest
from chains import chain_parameters, packaged_parameters
from differences import deviation
from hypothesis import given, settings
from scipy.spatial.transform import Rotation

from eom_dynamics import robot_from_parameters
from eom_dynamics.robot.description import COMPOSITE_TYPES, JOINT_TYPES
from eom_dynamics.robot.readers import robot_section


def robot_with(**entries: Any):
    """The planar 2R with other entries of its first joint."""
    parameters = packaged_parameters("planar_2r")
    parameters["joints"]["joint_1"].update(entries)
    return robot_from_parameters(parameters)


@settings(max_examples=10)
@given(parameters=chain_parameters())
def test_joints_are_as_described(parameters: dict[str, Any]) -> None:
    """Inertia by the parallel-axis theorem entry by entry: I_xx + m (y² + z²), I_xy - m x y, …"""
    robot = robot_from_parameters(parameters)
    assert robot.joint_names == tuple(parameters["joint_names"])
    for i, joint in enumerate(robot.joints):
        given_joint = parameters["joints"][joint.name]
        assert joint.parent == i - 1
        assert joint.mass == given_joint["mass"]
        np.testing.assert_array_equal(joint.center_of_mass, given_joint["center_of_mass"])
        np.testing.assert_allclose(joint.screw, given_joint["screw"], rtol=1e-15, atol=1e-15)  # it is normalised
        np.testing.assert_array_equal(joint.reference_pose[:3, 3], given_joint["origin"]["xyz"])
        xx, xy, xz, yy, yz, zz = given_joint["inertia"]
        m, (x, y, z) = joint.mass, joint.center_of_mass
        xx, yy, zz = xx + m * (y**2 + z**2), yy + m * (x**2 + z**2), zz + m * (x**2 + y**2)
        xy, xz, yz = xy - m * x * y, xz - m * x * z, yz - m * y * z
        assert deviation(joint.inertia_about_origin, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) < 1e-15


def test_order_of_joints_is_that_of_joint_names() -> None:
    parameters = packaged_parameters("iiwa")
    parameters["joints"] = dict(reversed(parameters["joints"].items()))
    assert robot_from_parameters(parameters).joint_names == tuple(parameters["joint_names"])


def test_axis_of_six_digits_is_normalised() -> None:
    screw = robot_with(screw=[0.577350, 0.577350, 0.577350, 0.0, 0.0, 0.0]).joints[0].screw
    np.testing.assert_allclose(np.linalg.norm(screw[:3]), 1, rtol=1e-15)


def test_axis_off_the_origin_is_scaled_with_its_moment() -> None:
    screw = robot_with(screw=[0.0, 0.0, 1.000005, 0.0, -0.3, 0.0]).joints[0].screw
    np.testing.assert_allclose(screw, [0, 0, 1, 0, -0.3 / 1.000005, 0], rtol=1e-15)


def test_rpy_are_rotations_about_the_fixed_axes_in_order() -> None:
    rpy = [0.3, -0.5, 0.7]
    rotation = robot_with(origin={"xyz": [0.0, 0.0, 0.0], "rpy": rpy}).joints[0].reference_pose[:3, :3]
    np.testing.assert_allclose(rotation, Rotation.from_euler("xyz", rpy).as_matrix(), rtol=1e-15, atol=1e-16)


def test_gravity_is_standard_unless_given() -> None:
    parameters = packaged_parameters("planar_2r")
    np.testing.assert_array_equal(robot_from_parameters(parameters).gravity, [0, -9.80665, 0])
    del parameters["gravity"]
    np.testing.assert_array_equal(robot_from_parameters(parameters).gravity, [0, 0, -9.80665])


def test_zero_gravity_is_allowed() -> None:
    parameters = packaged_parameters("planar_2r") | {"gravity": [0.0, 0.0, 0.0]}
    assert not np.any(robot_from_parameters(parameters).gravity)


def test_joint_without_elasticity_is_rigid_and_without_rotor() -> None:
    parameters = packaged_parameters("planar_2r")
    del parameters["joints"]["joint_1"]["elasticity"], parameters["joints"]["joint_1"]["rotor_inertia"]
    robot = robot_from_parameters(parameters)
    np.testing.assert_array_equal(robot.stiffness, [np.inf, 300])
    np.testing.assert_array_equal(robot.rotor_inertia, [0, 0.1])


def test_joint_that_is_called_rigid_is() -> None:
    np.testing.assert_array_equal(robot_with(elasticity={"type": "rigid"}).stiffness, [np.inf, 300])


@pytest.mark.parametrize("as_list", [list, tuple, lambda x: array("d", x)], ids=["list", "tuple", "array.array"])
def test_lists_of_any_kind_are_accepted(as_list) -> None:
    robot = robot_with(center_of_mass=as_list([0.1, 0.2, 0.3]))
    np.testing.assert_array_equal(robot.joints[0].center_of_mass, [0.1, 0.2, 0.3])


def test_integers_are_numbers() -> None:
    robot = robot_with(mass=2, center_of_mass=[1, 0, 0])
    assert robot.joints[0].mass == 2
    assert robot.joints[0].center_of_mass.dtype == float


def test_parameters_are_left_alone() -> None:
    parameters = packaged_parameters("iiwa")
    robot_from_parameters(parameters)
    assert parameters == packaged_parameters("iiwa")


def test_consistent_inertia_about_the_link_frame_gives_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    parameters = packaged_parameters("planar_2r")
    for joint in parameters["joints"].values():
        moment = joint["mass"] * joint["center_of_mass"][0] ** 2
        joint["inertia"] = [0.0, 0.0, 0.0, moment, 0.0, moment]
    about_link = robot_from_parameters(parameters | {"inertia_reference": "link"})
    assert not recwarn.list
    about_com = robot_from_parameters(packaged_parameters("planar_2r"))
    for a, b in zip(about_link.joints, about_com.joints, strict=True):
        np.testing.assert_allclose(a.spatial_inertia, b.spatial_inertia, rtol=1e-15)


def test_a_joint_type_of_several_variables_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cylindrical joint, along and about the normal that is given."""
    monkeypatch.setitem(COMPOSITE_TYPES, "cylindrical", ("z", "yaw"))
    monkeypatch.setattr(robot_section, "JOINT_TYPES", (*JOINT_TYPES, "cylindrical"))
    parameters = packaged_parameters("planar_2r")
    joint = parameters["joints"]["joint_2"]
    kept = {name: joint[name] for name in ("origin", "mass", "center_of_mass", "inertia")}
    parameters["joints"]["joint_2"] = kept | {"type": "cylindrical", "normal": [0.0, 1.0, 0.0]}
    robot = robot_from_parameters(parameters)
    assert robot.joint_names == ("joint_1", "joint_2_z", "joint_2_yaw")
    screws = [joint.screw.round(15).tolist() for joint in robot.joints[1:]]
    assert screws == [[0.0, 0.0, 0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]]
    assert [joint.mass for joint in robot.joints[1:]] == [0.0, joint["mass"]]
