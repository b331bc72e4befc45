# SPDX-License-Identifier: Apache-2.0
"""Robots of parameter trees, and additions to a loaded robot from a section urdf."""

from __future__ import annotations

import numpy as np
import pytest

from eom_dynamics import RobotDescriptionError, load_robot, robot_from_parameters
from eom_dynamics.robot import Limits, robot_from_urdf

ZERO = {"xyz": [0.0, 0.0, 0.0], "rpy": [0.0, 0.0, 0.0]}


def test_a_tree_with_two_tools() -> None:
    robot = load_robot("dual_arm")
    assert [joint.parent for joint in robot.joints] == [-1, 0, 1, 2, 3, 0, 5, 6, 7]
    assert [(tool.name, tool.joint) for tool in robot.tools] == [("left_hand", 4), ("right_hand", 8)]
    assert robot.wrench_shape == (2, 6)
    assert robot.joints[3].limits == Limits(-2.4, 0.1, 2.5, 30.0)


def test_a_part_of_a_packaged_robot() -> None:
    left = load_robot("dual_arm", tip="left_hand")
    assert left.joint_names == ("torso", "left_lift", "left_turn", "left_elbow", "left_wrist")
    assert left.joints[0].mass == pytest.approx(18.0 + 2.4 + 2.8 + 1.7 + 0.8)
    assert [tool.name for tool in left.tools] == ["left_hand"]


def test_mimic_joints_and_fixed_bodies() -> None:
    body = {"mass": 1.0, "center_of_mass": [0.2, 0.0, 0.0], "inertia": [0.0, 0.0, 0.0, 0.01, 0.0, 0.01]}
    turn = {"type": "revolute", "screw": [0.0, 0.0, 1.0, 0.0, 0.0, 0.0], "origin": ZERO, **body}
    robot = robot_from_parameters(
        {
            "name": "fingers",
            "joint_names": ["one", "two", "tip"],
            "inertia_reference": "com",
            "joints": {
                "one": turn,
                "two": turn | {"mimic": {"joint": "one", "ratio": -1.5, "offset": 0.2}, "parent": "base"},
                "tip": {"type": "fixed", "origin": {"xyz": [0.4, 0.0, 0.0], "rpy": [0.0, 0.0, 0.0]}, **body},
            },
        }
    )
    assert robot.joint_names == ("one",)
    assert robot.joints[1].mass == 2 and robot.joints[1].mimic is not None
    np.testing.assert_array_equal(robot.coupling[0], [[1], [-1.5]])
    np.testing.assert_array_equal(robot.coupling[1], [0, 0.2])
    assert robot.merged == ("link tip into the body of two (1 kg)",)


INERTIAL = """<inertial><origin xyz="0 0 0.1"/><mass value="1"/>
  <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>"""


def link(name):
    return f'<link name="{name}">{INERTIAL}</link>'


def joint(name, kind, parent, child, more=""):
    return f"""<joint name="{name}" type="{kind}"><origin xyz="0.3 0 0.2"/><axis xyz="0 1 0"/>
      <parent link="{parent}"/><child link="{child}"/>{more}</joint>"""


URDF = f"""<robot name="arm">{"".join(map(link, ["base", "upper", "lower", "finger", "flange", "table"]))}
  {joint("shoulder", "revolute", "base", "upper")}
  {joint("elbow", "continuous", "upper", "lower")}
  {joint("grip", "prismatic", "lower", "finger", '<mimic joint="elbow"/>')}
  {joint("mount", "fixed", "lower", "flange")}
  {joint("slide", "planar", "base", "table")}
  <transmission name="t"><joint name="elbow"/><actuator name="m"><mechanicalReduction>10</mechanicalReduction>
    <motorInertia>0.002</motorInertia></actuator></transmission>
</robot>"""

SPRING = {"type": "linear", "stiffness": 500.0}


def test_joints_get_springs_and_rotors():
    joints = {"elbow": {"elasticity": SPRING}, "shoulder": {"rotor_inertia": 0.7, "elasticity": {"type": "rigid"}}}
    robot = robot_from_urdf(URDF, {"joints": joints})
    found = dict(zip(robot.joint_names, zip(robot.stiffness, robot.rotor_inertia, strict=True), strict=True))
    assert found["elbow"] == (500.0, pytest.approx(0.2))  # its rotor from the transmission
    assert found["shoulder"] == (np.inf, 0.7)
    assert robot_from_urdf(URDF, {"joints": {"elbow": {"rotor_inertia": 3}}}).rotor_inertia[1] == 3


REFUSED = [
    ({"joints": {"sholder": {}}}, "parameters: urdf.joints.sholder: unknown entry; did you mean shoulder?"),
    (
        {"joints": {"elbow": {"elasticity": {"stiffness": 1.0}}}},
        "parameters: urdf.joints.elbow.elasticity.type: missing",
    ),
    ({"joints": {"grip": {"elasticity": SPRING}}}, "parameters: urdf.joints.grip: it mimics elbow"),
    ({"joints": {"mount": {}}}, "parameters: urdf.joints.mount: a fixed joint has no motor"),
    ({"joints": {"slide": {}}}, "parameters: urdf.joints.slide: a planar joint has no motor"),
    ({"roots": "upper"}, "parameters: urdf.roots: unknown entry; did you mean root?"),
    ({"root": "uper"}, "/arm: root: no link 'uper'; did you mean upper?"),
]


@pytest.mark.parametrize(("section", "reason"), REFUSED, ids=[row[-1] for row in REFUSED])
def test_invalid_entries_are_named(section, reason):
    with pytest.raises(RobotDescriptionError) as error:
        robot_from_urdf(URDF, section, "/arm")
    assert str(error.value).startswith(reason)
    assert "\n" not in str(error.value)
