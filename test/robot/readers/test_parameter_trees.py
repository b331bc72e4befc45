# SPDX-License-Identifier: Apache-2.0
"""Robots of parameter trees, and additions to a loaded robot from a section urdf."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from chains import packaged_parameters

from eom_dynamics import RobotDescriptionError, load_robot, robot_from_parameters
from eom_dynamics.robot import Limits, robot_from_urdf


def edited(base: str, changes: dict[str, Any]) -> dict[str, Any]:
    """A packaged robot with some entries set, or removed if the value is an ellipsis."""
    parameters = packaged_parameters(base)
    for path, value in changes.items():
        *sections, entry = path.split(".")
        place = parameters
        for section in sections:
            place = place.setdefault(section, {})
        if value is ...:
            del place[entry]
        else:
            place[entry] = value
    return parameters


ZERO = {"xyz": [0.0, 0.0, 0.0], "rpy": [0.0, 0.0, 0.0]}
ELBOW = "joints.left_elbow"
HINGE = "joints.hinge"

# Of each robot, changed entries, and the beginning of the message.
BAD: dict[str, tuple[tuple[dict[str, Any], str], ...]] = {
    "dual_arm": (
        (
            {"joints.left_lift.parent": "right_lift"},
            "joints.left_lift.parent: must be one of base, torso, listed before this joint, is 'right_lift'",
        ),
        ({f"{ELBOW}.parent": "neck"}, f"{ELBOW}.parent: must be one of base, torso"),
        ({f"{ELBOW}.parent": 1}, f"{ELBOW}.parent: must be a string, is 1"),
        ({"tool_names": ["foot"]}, "tools.left_hand: unknown entry"),
        ({"tools.left_hand.origin": ...}, "tools.left_hand.origin: missing"),
        ({f"{ELBOW}.mimic": {"joint": "hip"}}, f"{ELBOW}.elasticity: unknown entry"),
        ({f"{ELBOW}.mimic": {"joint": "hip"}, f"{ELBOW}.elasticity": ...}, f"{ELBOW}.rotor_inertia: unknown entry"),
        (
            {f"{ELBOW}.mimic": {"joint": "hip"}, f"{ELBOW}.elasticity": ..., f"{ELBOW}.rotor_inertia": ...},
            f"{ELBOW}: fixed at 0 rad: its mimic leader 'hip' does not exist",
        ),
        (
            {
                f"{ELBOW}.mimic": {"joint": "torso", "ratio": 0.0},
                f"{ELBOW}.elasticity": ...,
                f"{ELBOW}.rotor_inertia": ...,
            },
            f"{ELBOW}: fixed at 0 rad: the mimic ratio of left_elbow is 0",
        ),
        ({f"{ELBOW}.mimic": {"joint": "torso", "factor": 2.0}}, f"{ELBOW}.mimic.factor: unknown"),
        ({f"{ELBOW}.limits.lower": 2.0}, f"{ELBOW}.limits.lower: must not exceed upper, 0.1"),
        ({f"{ELBOW}.limits.max": 2.0}, f"{ELBOW}.limits.max: unknown entry"),
        ({f"{ELBOW}.limits.velocity": 0.0}, f"{ELBOW}.limits.velocity: must be positive, is 0"),
        (
            {"joints.left_wrist": {"type": "fixed", "origin": ZERO, "center_of_mass": [0.0, 0.0, 0.1]}},
            "joints.left_wrist.center_of_mass: unknown entry",
        ),
    ),
    "pendulum": (
        ({"joint_names": ["base"]}, "joint_names: 'base' is reserved for the base"),
        ({"convention": "denavit"}, "convention: must be one of body_screws, spatial_screws"),
        ({"tool_names": ["foot"], "tools": ...}, "tool_names: 'foot' is neither a body"),
        ({"tool_names": ["hinge", "hinge"]}, "tool_names: 'hinge' is listed twice"),
        ({"tool_names": ..., "tools": {}}, "tools: unknown entry"),
        (
            {"tool_names": ["hinge"], "tools": {"hinge": {"body": "hinge", "origin": ZERO}}},
            "tools.hinge: is the name of a body",
        ),
        (
            {"tool_names": ["foot"], "tools": {"foot": {"body": "base", "origin": ZERO}}},
            "tools: 'foot' is fixed to the base",
        ),
        ({f"{HINGE}.damping": -1.0}, f"{HINGE}.damping: must not be negative, is -1"),
        ({f"{HINGE}.friction": -1.0}, f"{HINGE}.friction: must not be negative, is -1"),
        (
            {
                f"{HINGE}.type": "fixed",
                f"{HINGE}.screw": ...,
                f"{HINGE}.elasticity": ...,
                f"{HINGE}.rotor_inertia": ...,
            },
            "joint_names: at least one joint must move; all are fixed",
        ),
        ({f"{HINGE}.type": "fixed"}, f"{HINGE}.screw: unknown entry"),
        ({f"{HINGE}.type": "planar"}, f"{HINGE}.screw: unknown entry"),
        (
            {f"{HINGE}.type": "continuous", f"{HINGE}.screw": [0.0, 1.0, 0.0, 0.0, 0.1, 0.0]},
            f"{HINGE}.screw: the pitch of a continuous joint must be 0",
        ),
        (
            {f"{HINGE}.center_of_mass": [0.0, 0.3, 0.0]},
            f"{HINGE}: the mass matrix is singular, since no mass moves with hinge",
        ),
    ),
    "ur5e": (
        ({"joints.elbow_joint.screw": [0.0] * 6}, "joints.elbow_joint.screw: unknown entry"),
        ({"joints.elbow_joint.dh.d": ...}, "joints.elbow_joint.dh.d: missing"),
        ({"joints.elbow_joint.dh.beta": 0.0}, "joints.elbow_joint.dh.beta: unknown entry"),
        ({"joints.elbow_joint.dh.alpha": "pi/2"}, "joints.elbow_joint.dh.alpha: must be a number"),
        ({"joints.elbow_joint.dh": ...}, "joints.elbow_joint.dh: missing"),
        ({"joints.elbow_joint.type": "floating"}, "joints.elbow_joint.type: must be one"),
        ({"joints.elbow_joint.type": "helical"}, "joints.elbow_joint.pitch: missing"),
        (
            {"joints.elbow_joint.type": "helical", "joints.elbow_joint.pitch": 0.0},
            "joints.elbow_joint.pitch: a helical joint must have a pitch",
        ),
    ),
}


@pytest.mark.parametrize(("base", "changes", "reason"), [(base, *row) for base, rows in BAD.items() for row in rows])
def test_invalid_parameters(base: str, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(RobotDescriptionError) as error:
        robot_from_parameters(edited(base, changes), source="arm.yaml")
    assert str(error.value).startswith(f"arm.yaml: robot.{reason}")
    assert all("\n" not in line for line in error.value.errors)


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


def test_without_a_section_it_is_the_robot_of_load_robot():
    ours, theirs = robot_from_urdf(URDF), load_robot(URDF)
    assert ours.joint_names == theirs.joint_names
    assert np.all(np.isinf(ours.stiffness))
    np.testing.assert_array_equal(ours.rotor_inertia, theirs.rotor_inertia)


def test_joints_get_springs_and_rotors():
    joints = {"elbow": {"elasticity": SPRING}, "shoulder": {"rotor_inertia": 0.7, "elasticity": {"type": "rigid"}}}
    robot = robot_from_urdf(URDF, {"joints": joints})
    found = dict(zip(robot.joint_names, zip(robot.stiffness, robot.rotor_inertia, strict=True), strict=True))
    assert found["elbow"] == (500.0, pytest.approx(0.2))  # its rotor from the transmission
    assert found["shoulder"] == (np.inf, 0.7)
    assert robot_from_urdf(URDF, {"joints": {"elbow": {"rotor_inertia": 3}}}).rotor_inertia[1] == 3


@pytest.mark.parametrize("tip", ["flange", ["flange"]])
def test_the_other_entries_are_those_of_load_robot(tip):
    section = {"root": "upper", "tip": tip, "branches": "drop", "gravity": [0.0, 9.0, 0.0], "tools": ["lower"]}
    ours, theirs = robot_from_urdf(URDF, section), load_robot(URDF, **section)
    assert ours.joint_names == theirs.joint_names == ("elbow",)
    np.testing.assert_array_equal(ours.gravity, [0, 9, 0])
    assert [tool.name for tool in ours.tools] == ["lower"]
    assert sum(body.mass for body in ours.joints) == sum(body.mass for body in theirs.joints)


REFUSED = {
    "unknown joint": (
        {"joints": {"sholder": {}}},
        "parameters: urdf.joints.sholder: unknown entry; did you mean shoulder?",
    ),
    "unknown entry": (
        {"joints": {"elbow": {"stiffness": 1.0}}},
        "parameters: urdf.joints.elbow.stiffness: unknown entry",
    ),
    "no type": (
        {"joints": {"elbow": {"elasticity": {"stiffness": 1.0}}}},
        "parameters: urdf.joints.elbow.elasticity.type: missing",
    ),
    "mimic": ({"joints": {"grip": {"elasticity": SPRING}}}, "parameters: urdf.joints.grip: it mimics elbow"),
    "fixed": ({"joints": {"mount": {}}}, "parameters: urdf.joints.mount: a fixed joint has no motor"),
    "planar": ({"joints": {"slide": {}}}, "parameters: urdf.joints.slide: a planar joint has no motor"),
    "misspelt option": ({"roots": "upper"}, "parameters: urdf.roots: unknown entry; did you mean root?"),
    "no tip": ({"tip": []}, "parameters: urdf.tip: must be a string or a list of strings, is []"),
    "unknown root": ({"root": "uper"}, "/arm: root: no link 'uper'; did you mean upper?"),
}


@pytest.mark.parametrize(("section", "reason"), REFUSED.values(), ids=REFUSED)
def test_invalid_entries_are_named(section, reason):
    with pytest.raises(RobotDescriptionError) as error:
        robot_from_urdf(URDF, section, "/arm")
    assert str(error.value).startswith(reason)
    assert "\n" not in str(error.value)
