# SPDX-License-Identifier: Apache-2.0
"""Transmissions of a URDF in which two motors move two joints."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from urdf_arms import urdf_arm

from eom_dynamics import ElasticArm, Robot, RobotDescriptionError, RobotDescriptionWarning, load_robot

ROS2 = """<ros2_control name="c" type="system"><transmission name="wrist">
  <plugin>transmission_interface/{kind}</plugin>
  <actuator name="m2" role="actuator2"><mechanical_reduction>-50</mechanical_reduction></actuator>
  <actuator name="m1" role="actuator1"><mechanical_reduction>40</mechanical_reduction>
    <motorInertia>1e-4</motorInertia></actuator>
  <joint name="shoulder" role="joint1"><offset>0.5</offset><mechanical_reduction>2</mechanical_reduction></joint>
  <joint name="elbow" role="joint2"><mechanical_reduction>4</mechanical_reduction></joint>
</transmission></ros2_control>"""

ROS1 = """<transmission name="wrist"><type>transmission_interface/{kind}</type>
  <actuator name="m1"><role>actuator1</role><mechanicalReduction>40</mechanicalReduction>
    <motorInertia>1e-4</motorInertia></actuator>
  <actuator name="m2"><role>actuator2</role><mechanicalReduction>-50</mechanicalReduction></actuator>
  <joint name="shoulder"><role>joint1</role><mechanicalReduction>2</mechanicalReduction></joint>
  <joint name="elbow"><role>joint2</role><mechanicalReduction>4</mechanicalReduction></joint></transmission>"""


def load(transmission: str, joints: tuple[str, ...] = ("shoulder", "elbow"), **options: object) -> Robot:
    return load_robot(urdf_arm(joints=joints).replace("</robot>", f"{transmission}</robot>"), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [ROS1, ROS2], ids=["ros_control", "ros2_control"])
@pytest.mark.parametrize("kind", ["DifferentialTransmission", "FourBarLinkageTransmission"])
def test_motors_move_the_joints_as_the_plugin_does(text: str, kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot = load(text.format(kind=kind))
    arm = ElasticArm(robot)
    np.testing.assert_array_equal(arm.gear_ratio, [40, -50])
    np.testing.assert_allclose(arm.rotor_inertia, [0.16, 0])
    assert robot.transmission is not None
    indices, transmission = robot.transmission
    assert indices == (0, 1)
    x = np.array([30.0, -20.0]) / [40, -50]  # motors, behind their gears
    expected = [(x[0] + x[1]) / (2 * 2), (x[0] - x[1]) / (2 * 4)]
    if kind.startswith("Four"):
        expected = [x[0] / 2, (x[1] - x[0] / 2) / 4]
    np.testing.assert_allclose(transmission.joints(x), expected)


def test_the_transmissions_of_two_arms_are_used_together_and_alone() -> None:
    left = ROS1.format(kind="DifferentialTransmission")
    right = left.replace("wrist", "ankle").replace("shoulder", "hip").replace("elbow", "knee")
    joints = ("shoulder", "elbow", "hip", "knee")
    robot = load(left + right, joints)
    assert robot.transmission is not None and robot.transmission[0] == (0, 1, 2, 3)
    matrix = robot.transmission[1].matrix
    np.testing.assert_array_equal(matrix[:2, :2], matrix[2:, 2:])
    assert not np.any(matrix[:2, 2:]) and not np.any(matrix[2:, :2])
    alone = load(left + right, joints, root="elbow_link").transmission
    assert alone is not None and alone[0] == (0, 1)
    with pytest.warns(RobotDescriptionWarning, match=r"transmission ankle .* is left out: knee does not move"):
        part = load(left + right, joints, tip="hip_link").transmission
    assert part is not None and part[0] == (0, 1)


LEFT_OUT = {
    "unknown kind": (ROS1.format(kind="SpatialTransmission"), "it couples several joints or motors"),
    "unknown joint": (
        ROS1.format(kind="DifferentialTransmission").replace("elbow", "wrist"),
        "wrist is not a joint with a motor of its own",
    ),
    "one joint": (
        ROS1.format(kind="DifferentialTransmission").replace("elbow", "shoulder"),
        "both joints are shoulder",
    ),
}


@pytest.mark.parametrize(("text", "reason"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_others_are_left_out_with_a_warning(text: str, reason: str) -> None:
    with pytest.warns(RobotDescriptionWarning, match=f"transmission wrist .* is left out: {reason}"):
        robot = load(text)
    assert robot.transmission is None and [joint.gear_ratio for joint in robot.joints] == [1, 1]


def test_a_joint_has_one_transmission() -> None:
    text = ROS1.format(kind="DifferentialTransmission")
    simple = '<transmission name="t"><joint name="elbow"/><actuator name="m"/></transmission>'
    with pytest.raises(RobotDescriptionError, match=r"transmission t: joint 'elbow' already has transmission wrist"):
        load(text + simple)
    with pytest.raises(RobotDescriptionError, match="the reduction must not be 0"):
        load(text.replace(">2<", ">0<"))
