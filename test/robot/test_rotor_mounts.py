# SPDX-License-Identifier: Apache-2.0
"""Mounting of rotors: defaults, entries of files, and invalid entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from chains import packaged_parameters
from scipy.spatial.transform import Rotation
from textbook import body_poses

from eom_dynamics import Robot, RobotDescriptionError, robot_from_parameters
from eom_dynamics.robot.readers.parameter_tree import robot_from_urdf

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


def test_on_another_body_it_is_along_the_axis_of_the_arm_at_zero() -> None:
    parameters = packaged_parameters("iiwa")
    names = parameters["joint_names"]
    poses = body_poses(parameters, np.zeros(7))[:, :3, :3]
    for k, carrier in ((5, 3), (6, 6), (3, -1)):
        rotor = {"rotor": {"carrier": names[carrier] if carrier >= 0 else "base"}}
        mount = robot_from_parameters(packaged_parameters("iiwa", **{names[k]: rotor})).joints[k].mount
        body = poses[carrier] if carrier >= 0 else np.eye(3)
        assert mount.carrier == carrier
        np.testing.assert_allclose(mount.axis, body.T @ poses[k] @ [0, 0, 1], atol=1e-12)


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
    with pytest.raises(RobotDescriptionError, match=r"elbow\.rotor\.carrier: no link 'bracket' in this part"):
        robot_from_urdf(URDF, section | {"root": "upper"})
