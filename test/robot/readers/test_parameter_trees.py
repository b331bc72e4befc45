# SPDX-License-Identifier: Apache-2.0
"""Robots of parameter trees, and additions to a loaded robot from a section urdf."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from urdf_arms import urdf_arm

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


SPRING = {"type": "linear", "stiffness": 500.0}
GEAR = """<transmission name="t"><joint name="elbow"/><actuator name="m">
  <mechanicalReduction>10</mechanicalReduction><motorInertia>0.002</motorInertia></actuator></transmission>"""


def urdf(wrist: str = "revolute") -> str:
    """An arm with a geared elbow, and a wrist of a type, or one that mimics the elbow."""
    text = urdf_arm(joints=("shoulder", "elbow", "wrist")).replace("</robot>", f"{GEAR}</robot>")
    if wrist == "mimic":
        return text.replace(f"</joint>{GEAR}", f'<mimic joint="elbow"/></joint>{GEAR}')
    return text.replace('"wrist" type="revolute"', f'"wrist" type="{wrist}"')


def test_joints_get_springs_and_rotors() -> None:
    joints = {"elbow": {"elasticity": SPRING}, "shoulder": {"rotor_inertia": 0.7, "elasticity": {"type": "rigid"}}}
    robot = robot_from_urdf(urdf(), {"joints": joints})
    np.testing.assert_array_equal(robot.stiffness, [np.inf, 500.0, np.inf])
    np.testing.assert_allclose(robot.rotor_inertia, [0.7, 0.2, 0.0])  # the elbow's from the transmission
    assert robot_from_urdf(urdf(), {"joints": {"elbow": {"rotor_inertia": 3}}}).rotor_inertia[1] == 3


@pytest.mark.parametrize(
    ("wrist", "section", "reason"),
    [
        ("fixed", {"joints": {"wrist": {}}}, "parameters: urdf.joints.wrist: a fixed joint has no motor"),
        ("planar", {"joints": {"wrist": {}}}, "parameters: urdf.joints.wrist: a planar joint has no motor"),
        ("mimic", {"joints": {"wrist": {"elasticity": SPRING}}}, "parameters: urdf.joints.wrist: it mimics elbow"),
        ("revolute", {"joints": {"elbw": {}}}, "parameters: urdf.joints.elbw: unknown entry; did you mean elbow?"),
        (
            "revolute",
            {"joints": {"elbow": {"elasticity": {"stiffness": 1.0}}}},
            "parameters: urdf.joints.elbow.elasticity.type: missing",
        ),
        ("revolute", {"roots": "base"}, "parameters: urdf.roots: unknown entry; did you mean root?"),
        ("revolute", {"root": "bas"}, "/arm: root: no link 'bas'; did you mean base?"),
    ],
)
def test_invalid_entries_are_named(wrist: str, section: dict[str, Any], reason: str) -> None:
    with pytest.raises(RobotDescriptionError) as error:
        robot_from_urdf(urdf(wrist), section, "/arm")
    assert str(error.value).startswith(reason)
    assert "\n" not in str(error.value)
