# SPDX-License-Identifier: Apache-2.0
"""URDFs with identified inertias: read again, they are the identified robot, and have all else as it was."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from excited import true_robot

pytest.importorskip("rosbags", reason="rosbags is not installed")

from eom_dynamics import Dynamics, load_robot
from eom_dynamics.exceptions import RobotDescriptionError
from eom_dynamics.tools.identify.outputs import patched_urdf

URDF = """<?xml version="1.0"?>
<robot name="arm">
  <!-- of the workshop -->
  <link name="base">
    <inertial><mass value="3"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
  </link>
  <link name="upper">
    <inertial><origin xyz="0 0 0.1"/><mass value="2"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>
    <visual><geometry><box size="1 2 3"/></geometry></visual>
  </link>
  <link name="cover">
    <inertial><mass value="0.5"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>
  </link>
  <link name="fore">
    <inertial><origin xyz="0.1 0 0" rpy="0.3 0.2 0.1"/><mass value="1"/>
      <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"/></inertial>
  </link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="50" velocity="3"/><dynamics damping="1" friction="2"/></joint>
  <joint name="screws" type="fixed"><parent link="upper"/><child link="cover"/><origin xyz="0 0.1 0.2"/></joint>
  <joint name="elbow" type="revolute"><parent link="cover"/><child link="fore"/><origin xyz="0 0 0.3"/>
    <axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="50" velocity="3"/></joint>
</robot>
"""


def test_patched() -> None:
    robot = load_robot(URDF)
    true = true_robot(robot)
    text = patched_urdf(URDF, true)
    again = load_robot(text)
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 20, 2))
    ours, desired = (Dynamics(r, friction=True, backend="numpy").effort(q, qd, qdd) for r in (again, true))
    np.testing.assert_allclose(ours, desired, atol=1e-12)
    for kept in ("<!-- of the workshop -->", '<box size="1 2 3"', 'lower="-2"', '<mass value="3"'):
        assert kept in text
    assert text.count("<inertial>") == 3  # base, upper with its cover, fore


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<robot", "not a URDF"),
        (URDF.replace('name="elbow"', 'name="knee"'), "the URDF has no joint elbow"),
    ],
)
def test_other_files(text: str, message: str) -> None:
    with pytest.raises(RobotDescriptionError, match=message):
        patched_urdf(text, load_robot(URDF))


def test_massless_bodies_stay_so() -> None:
    robot = load_robot(URDF)
    light = replace(robot.joints[0], mass=0.0, center_of_mass=np.zeros(3), inertia_about_origin=np.zeros((3, 3)))
    text = patched_urdf(URDF, replace(robot, joints=(light, robot.joints[1])))
    assert text.count("<inertial>") == 2
