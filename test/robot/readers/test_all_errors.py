# SPDX-License-Identifier: Apache-2.0
"""All that is wrong with a robot's file is reported at once, a line each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from chains import packaged_parameters
from paths import CONFIG
from urdf_arms import urdf_arm

from eom_dynamics import RobotDescriptionError, load_robot, robot_from_parameters
from eom_dynamics.robot import robot_from_urdf
from eom_dynamics.tools.cli.main import main


def broken() -> dict[str, Any]:
    parameters = packaged_parameters("dual_arm")
    joints = parameters["joints"]
    del parameters["inertia_reference"]
    parameters["colour"] = "red"
    parameters["gravity"] = [0.0, -9.81]
    joints["torso"]["type"] = "universal"
    joints["left_lift"] |= {"mass": -1.0, "screw": [0.0, 0.0, 2.0, 0.0, 0.0, 0.0], "sprung": True}
    joints["left_turn"]["elasticity"] = {"type": "cubic", "stiffness": 0.0, "cubic": "much"}
    joints["left_turn"]["gear_ratio"] = 0.0
    joints["left_elbow"]["actuator"] = {"friction": {"coulomb": -1.0}, "limits": {"current": 1.0}}
    joints["left_wrist"]["inertia"] = [1.0, 2.0]
    parameters["tools"]["left_hand"]["body"] = "leg"
    parameters["payloads"] = {"foot": {"mass": 1.0}, "right_hand": {"mass": 0.0}}
    return parameters


LINES = (
    "inertia_reference: missing",
    "gravity: must have 3 entries, has 2",
    "joints.torso.type: must be one of",
    "joints.left_lift.screw: the axis must be a unit vector, has length 2",
    "joints.left_lift.mass: must be positive, is -1",
    "joints.left_turn.elasticity.stiffness: must be positive, is 0",
    "joints.left_turn.elasticity.cubic: must be a number, is 'much'",
    "joints.left_turn.gear_ratio: must not be 0",
    "joints.left_elbow.actuator.friction.coulomb: must not be negative, is -1",
    "joints.left_wrist.inertia: must have 6 entries, has 2",
    "tools.left_hand.body: must be one of",
    "payloads.foot: there is no link or tool of this name",
    "payloads.right_hand.mass: must be positive, is 0",
    "colour: unknown entry",
)


def test_all_errors_of_a_file_are_one_exception(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RobotDescriptionError) as error:
        robot_from_parameters(broken(), "arm.yaml")
    errors = error.value.errors
    assert str(error.value) == "\n".join(errors) and len(errors) == len(LINES)
    for line, beginning in zip(errors, LINES, strict=True):
        assert line.startswith(f"arm.yaml: robot.{beginning}")
    path = tmp_path / "arm.yaml"
    path.write_text(yaml.safe_dump({"/**": {"ros__parameters": {"robot": broken()}}}))
    assert main(["inspect", str(path)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition("robot.")[2] for line in lines] == [line.partition("robot.")[2] for line in errors]


def test_all_errors_of_additions_to_a_urdf_are_one_exception() -> None:
    joints = {
        "shoulder": {"elasticity": {"type": "linear"}, "damping": -1.0},
        "elbow": {"limits": {"lower": 9.0, "jerk": 0.0}},
        "wrist": {},
    }
    with pytest.raises(RobotDescriptionError) as error:
        robot_from_urdf(urdf_arm(), {"joints": joints, "gravity": [1.0], "branches": "cut", "tip": []})
    assert [line.split(": ")[1] for line in error.value.errors] == [
        "urdf.joints.shoulder.damping",
        "urdf.joints.shoulder.elasticity.stiffness",
        "urdf.joints.elbow.limits.jerk",
        "urdf.joints.elbow.limits.lower",
        "urdf.joints.wrist",
        "urdf.gravity",
        "urdf.tip",
        "urdf.branches",
    ]


def test_an_error_hides_no_entry_from_the_check_of_names() -> None:
    group = {"joints": ["shoulder", "elbow"], "matrix": [1.0, 0.0, 0.0, 1.0]}
    section = {"coupled_stiffness": {**group, "matrix": [1.0]}, "transmission": group, "colour": "red"}
    with pytest.raises(RobotDescriptionError) as error:
        robot_from_urdf(urdf_arm(), section)
    assert [line.split(": ")[1] for line in error.value.errors] == ["urdf.coupled_stiffness.matrix", "urdf.colour"]


def test_a_file_of_nothing_but_errors_gives_a_bounded_message() -> None:
    parameters = packaged_parameters("planar_2r") | {f"entry_{i}": 0.0 for i in range(1000)}
    with pytest.raises(RobotDescriptionError) as error:
        robot_from_parameters(parameters)
    assert len(error.value.errors) == 21 and error.value.errors[-1] == "… and 980 more errors"


@pytest.mark.parametrize("text", ["[0, 0.5, 0]", "[0, 1, 0]"])
def test_integers_are_numbers_in_a_file(text: str) -> None:
    document = (CONFIG / "planar_2r.yaml").read_text().replace("mass: 2.0", "mass: 2")
    assert "[0.5, 0.0, 0.0]" in document
    robot = load_robot(document.replace("center_of_mass: [0.5, 0.0, 0.0]", f"center_of_mass: {text}"))
    assert robot.joints[0].mass == 2 and robot.joints[0].center_of_mass.tolist() == yaml.safe_load(text)
