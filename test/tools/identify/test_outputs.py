# SPDX-License-Identifier: Apache-2.0
"""URDFs with identified inertias: read again, they are the identified robot, and have all else as it was."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from excited import true_robot

from eom_dynamics import Dynamics, ElasticArm, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.exceptions import RobotDescriptionError
from eom_dynamics.identification import Options
from eom_dynamics.identification.links.filtering import default_filter
from eom_dynamics.identification.links.parameters import with_link_parameters
from eom_dynamics.robot.model import STANDARD_GRAVITY
from eom_dynamics.robot.writers.mjcf import robot_as_mjcf
from eom_dynamics.robot.writers.urdf import robot_as_urdf
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


def test_other_files() -> None:
    for text, message in (("<robot", "not a URDF"), (URDF.replace("elbow", "knee"), "the URDF has no joint elbow")):
        with pytest.raises(RobotDescriptionError, match=message):
            patched_urdf(text, load_robot(URDF))


def test_massless_bodies_stay_so() -> None:
    robot = load_robot(URDF)
    light = replace(robot.joints[0], mass=0.0, center_of_mass=np.zeros(3), inertia_about_origin=np.zeros((3, 3)))
    text = patched_urdf(URDF, replace(robot, joints=(light, robot.joints[1])))
    assert text.count("<inertial>") == 2


def by_mujoco(text: str, q: Array, qd: Array, qdd: Array) -> Array:
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.gravity[:] = STANDARD_GRAVITY  # a URDF has none
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.qacc[:] = q, qd, qdd
    mujoco.mj_inverse(model, data)
    return np.array(data.qfrc_inverse)


def by_pinocchio(text: str, q: Array, qd: Array, qdd: Array) -> Array:
    pinocchio = pytest.importorskip("pinocchio")
    model = pinocchio.buildModelFromXML(text)
    model.gravity.linear = np.array(STANDARD_GRAVITY)
    rigid = pinocchio.rnea(model, model.createData(), q, qd, qdd)
    return np.array(rigid + model.damping * qd + model.friction * np.sign(qd))


@pytest.mark.parametrize("joint_friction", [False, True], ids=["ignored", "included"])
@pytest.mark.parametrize("side", ["joint", "motor"])
def test_friction_that_was_identified_is_the_only_one(side: str, joint_friction: bool) -> None:
    """MuJoCo and Pinocchio, which apply it, predict the efforts of the identified robot from its files.

    The shoulder of the URDF has a damping of 1 and a friction of 2; it is identified with 0.3 and 0.1.
    """
    given = load_robot(URDF)
    if joint_friction:
        given = Dynamics(given, friction=True, backend="numpy").robot
    options = Options(side=side).for_robot(given)
    terms = {"viscous": np.array([0.3, 0.2]), "coulomb": np.array([0.1, 0.4])}
    pi = Dynamics(given, backend="numpy").inertial_parameters
    robot = with_link_parameters(given, options, default_filter(given, 5.0, motor_side=side == "motor"), pi, terms)
    arm = ElasticArm(robot)
    patched, urdf, mjcf = patched_urdf(URDF, robot), robot_as_urdf(robot), robot_as_mjcf(robot)
    assert any("joint_friction: included" in line for line in urdf.lost)
    for q, qd, qdd in np.random.default_rng(0).uniform(-1, 1, (5, 3, 2)):
        qd = qd + np.copysign(0.5, qd)  # where tanh is a sign
        # A URDF that is read without friction, and the identified friction.
        expected = Dynamics(given, friction=False, backend="numpy").effort(q, qd, qdd)
        expected = expected + terms["viscous"] * qd + terms["coulomb"] * np.sign(qd)
        np.testing.assert_allclose(arm.feedforward(q, qd, qdd, 0 * q, 0 * q).motor_effort, expected, atol=1e-12)
        for found in (
            by_mujoco(patched, q, qd, qdd),
            by_mujoco(urdf.text, q, qd, qdd),
            by_mujoco(mjcf.text, q, qd, qdd),
            by_pinocchio(patched, q, qd, qdd),
            by_pinocchio(urdf.text, q, qd, qdd),
        ):
            np.testing.assert_allclose(found, expected, atol=1e-9)
