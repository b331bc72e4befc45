# SPDX-License-Identifier: Apache-2.0
"""Parameter files of trees: parents, tools, mimic joints, conventions; invalid ones and their errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from chains import packaged_parameters

from eom_dynamics import RobotDescriptionError, load_robot, robot_from_parameters
from eom_dynamics.robot import Limits


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
        ({f"{ELBOW}.parent": "left_elbow"}, f"{ELBOW}.parent: must be one of base, torso"),
        ({f"{ELBOW}.parent": "neck"}, f"{ELBOW}.parent: must be one of base, torso"),
        ({f"{ELBOW}.parent": 1}, f"{ELBOW}.parent: must be a string, is 1"),
        ({"tool_names": ["foot"]}, "tools.left_hand: unknown entry"),
        ({"tools.left_hand.body": "leg"}, "tools.left_hand.body: must be one of base"),
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
        ({"convention": ["dh"]}, "convention: must be one of body_screws"),
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
        ({f"{HINGE}.gear_ratio": 0.0}, f"{HINGE}.gear_ratio: must not be 0"),
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
