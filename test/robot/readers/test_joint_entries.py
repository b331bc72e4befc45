# SPDX-License-Identifier: Apache-2.0
"""Entries of joints: springs, actuators, couplings, and units of drives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import yaml
from chains import packaged_parameters
from own_drives import CIA_402, ODRIVE
from paths import CONFIG, ROOT

import eom_dynamics as eom
from eom_dynamics import RobotDescriptionError, robot_from_parameters
from eom_dynamics.robot.model import COMPENSATIONS
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.robot.writers.urdf import robot_as_urdf

INF, NAN = float("inf"), float("nan")

VARIABLE = {"type": "variable", "lower": 50.0, "upper": 500.0, "nominal": 100.0}
DEAD_ZONE = {"type": "dead_zone", "stiffness": 1e4, "inner_stiffness": 10.0, "half_gap": 1e-3, "width": 1e-4}
TABLE = {"type": "tabulated", "deflections": [0.0, 0.1, 0.2], "efforts": [0.0, 1.0, 3.0]}
PAIR = {"type": "antagonistic_exponential", "stiffness": 50.0, "growth": 15.0, "nominal": 500.0}
FRICTION = {"viscous": 1.0, "coulomb": 2.0, "static": 3.0}

BAD_ELASTICITY = [
    ({"type": "linear", "stiffness": 0.0}, "stiffness", "must be positive"),
    ({"type": "linear", "stiffness": NAN}, "stiffness", "must be finite"),
    ({"type": "linear"}, "stiffness", "missing"),
    ({"type": "linear", "stiffness": 1.0, "growth": 1.0}, "growth", "unknown entry"),
    ({"type": "elastic"}, "type", "must be one of antagonistic_exponential, antagonistic_quadratic, cubic"),
    ({"type": "cubic", "stiffness": 100.0, "cubic": -1.0}, "cubic", "must not be negative"),
    ({"type": "polynomial", "coefficients": [100.0, 5.0]}, "coefficients", "not monotone"),
    ({"type": "polynomial", "coefficients": [0.0, 0.0, 5.0]}, "coefficients", "its stiffness is 0"),
    ({"type": "polynomial", "coefficients": [1.0, 3.0, 2.0]}, "coefficients", "not monotone"),
    ({"type": "polynomial", "coefficients": []}, "coefficients", "at least one number"),
    ({"type": "exponential", "stiffness": 100.0, "growth": 0.0}, "growth", "must be positive"),
    (TABLE | {"efforts": [0.0, 1.0, 1.0]}, "efforts", "must increase"),
    (TABLE | {"deflections": [0.0, 0.2, 0.1]}, "deflections", "must increase"),
    (TABLE | {"efforts": [0.0, 1.0]}, "efforts", "must have as many entries as deflections, 3; has 2"),
    (TABLE | {"efforts": [0.5, 1.0, 2.0]}, "deflections", "(0, 0)"),
    (TABLE | {"deflections": [-0.2, -0.1, 0.0], "efforts": [-2.0, -1.0, 0.0]}, "deflections", "above 0"),
    (TABLE | {"deflections": [0.0], "efforts": [0.0]}, "deflections", "at least two"),
    (DEAD_ZONE | {"inner_stiffness": 2e4}, "inner_stiffness", "must not exceed stiffness"),
    (DEAD_ZONE | {"inner_stiffness": 0.0}, "inner_stiffness", "must be positive"),
    (DEAD_ZONE | {"width": 0.0}, "width", "must be positive"),
    (DEAD_ZONE | {"half_gap": -1e-3}, "half_gap", "must be positive"),
    ({"type": "damped", "stiffness": 100.0, "damping": 0.0}, "damping", "must be positive"),
    (VARIABLE | {"lower": 600.0}, "lower", "must not exceed upper"),
    (VARIABLE | {"nominal": 10.0}, "nominal", "must lie within"),
    (VARIABLE | {"lower": -1.0}, "lower", "must be positive"),
    (PAIR | {"nominal": 90.0}, "nominal", "must be at least 100"),
    (PAIR | {"growth": -15.0}, "growth", "must be positive"),
    (PAIR | {"type": "antagonistic_quadratic"}, "slope", "missing"),
]

BAD_ACTUATORS = [
    ({"efficiency": 1.1}, "efficiency", "must not exceed 1"),
    ({"efficiency": 0.0}, "efficiency", "must be positive"),
    ({"smoothing_power": 0.0}, "smoothing_power", "must be positive"),
    ({"friction": FRICTION | {"viscous": -1.0}}, "friction.viscous", "must not be negative"),
    ({"friction": FRICTION | {"static": 1.0}}, "friction.static", "must be at least coulomb"),
    ({"friction": FRICTION | {"coulomb_negative": 4.0}}, "friction.static", "must be at least coulomb_negative"),
    ({"friction": FRICTION | {"viscous_negative": -1.0}}, "friction.viscous_negative", "must not be negative"),
    ({"friction": FRICTION | {"smoothing_velocity": 0.0}}, "friction.smoothing_velocity", "must be positive"),
    ({"friction": FRICTION | {"presliding_distance": 0.0}}, "friction.presliding_distance", "must be positive"),
    ({"friction": FRICTION | {"stribeck": 1.0}}, "friction.stribeck", "unknown entry"),
    ({"torque_constant": 0.0}, "torque_constant", "must be positive"),
    ({"resistance": -1.0}, "resistance", "must not be negative"),
    ({"back_emf_constant": -1.0}, "back_emf_constant", "must not be negative"),
    ({"limits": {"torque": 0.0}}, "limits.torque", "must be positive"),
    ({"limits": {"current": 10.0}}, "torque_constant", "missing; the current limit needs it"),
    ({"torque_constant": 0.1, "limits": {"voltage": 48.0}}, "resistance", "the voltage limit needs both"),
    ({"limits": {"force": 10.0}}, "limits.force", "unknown entry"),
    ({"ratio": 100.0}, "ratio", "unknown entry"),
]

JOINTS = ["joint_1", "joint_2"]

BAD_GROUPS = [
    ("coupled_stiffness", {"joints": JOINTS, "matrix": [2.0, 1.0, 0.0, 2.0]}, "matrix", "must be symmetric"),
    ("coupled_stiffness", {"joints": JOINTS, "matrix": [1.0, 2.0, 2.0, 1.0]}, "matrix", "positive definite"),
    ("coupled_stiffness", {"joints": JOINTS, "matrix": [1.0, 0.0, 0.0]}, "matrix", "must have 4 entries"),
    ("coupled_stiffness", {"joints": ["joint_1"], "matrix": [1.0]}, "joints", "at least two"),
    ("coupled_stiffness", {"joints": ["joint_1", "wrist"], "matrix": [1.0] * 4}, "joints", "'wrist' is not a joint"),
    ("transmission", {"joints": JOINTS, "matrix": [1.0, 1.0, 1.0, 1.0]}, "matrix", "must be invertible"),
    ("transmission", {"joints": JOINTS}, "matrix", "missing"),
]


def refusal(parameters: dict[str, Any]) -> str:
    with pytest.raises(RobotDescriptionError) as caught:
        robot_from_parameters(parameters, source="arm.yaml")
    return str(caught.value)


@pytest.mark.parametrize(("elasticity", "entry", "reason"), BAD_ELASTICITY, ids=str)
def test_bad_elasticity(elasticity: dict[str, Any], entry: str, reason: str) -> None:
    parameters = packaged_parameters("planar_2r")
    parameters["joints"]["joint_2"]["elasticity"] = elasticity
    message = refusal(parameters)
    assert message.startswith(f"arm.yaml: robot.joints.joint_2.elasticity.{entry}: ")
    assert reason in message


@pytest.mark.parametrize(("actuator", "entry", "reason"), BAD_ACTUATORS, ids=str)
def test_bad_actuator(actuator: dict[str, Any], entry: str, reason: str) -> None:
    parameters = packaged_parameters("planar_2r")
    parameters["joints"]["joint_2"]["actuator"] = actuator
    message = refusal(parameters)
    assert message.startswith(f"arm.yaml: robot.joints.joint_2.actuator.{entry}: ")
    assert reason in message


@pytest.mark.parametrize(("key", "group", "entry", "reason"), BAD_GROUPS, ids=str)
def test_bad_group(key: str, group: dict[str, Any], entry: str, reason: str) -> None:
    parameters = packaged_parameters("planar_2r")
    for joint in parameters["joints"].values():
        del joint["elasticity"]
    message = refusal(parameters | {key: group})
    assert message.startswith(f"arm.yaml: robot.{key}.{entry}: ")
    assert reason in message


def test_a_joint_has_one_spring() -> None:
    group = {"joints": JOINTS, "matrix": [2.0, 0.0, 0.0, 2.0]}
    message = refusal(packaged_parameters("planar_2r") | {"coupled_stiffness": group})
    assert message.startswith(
        "arm.yaml: robot.coupled_stiffness.joints: 'joint_1' is not a joint without an elasticity; those are none"
    )


def test_two_motors_of_a_joint_are_in_no_transmission() -> None:
    parameters = packaged_parameters("planar_2r")
    parameters["joints"]["joint_2"]["elasticity"] = PAIR
    message = refusal(parameters | {"transmission": {"joints": JOINTS, "matrix": [1.0, 0.0, 0.0, 1.0]}})
    assert message.startswith("arm.yaml: robot.transmission.joints: 'joint_2' is not a joint with one motor")


def test_friction_that_differs_by_direction_is_read_and_written() -> None:
    """The breakaway effort is by default that of the direction with more dry friction."""
    parameters = packaged_parameters("planar_2r")
    parameters["joints"]["joint_1"]["actuator"] = {
        "friction": {"viscous": 2.0, "viscous_negative": 1.0, "coulomb": 0.5, "coulomb_negative": 0.8}
    }
    robot = robot_from_parameters(parameters)
    again = robot_from_parameters(yaml.safe_load(robot_as_yaml(robot).text)["/**"]["ros__parameters"]["robot"])
    for each in (robot, again):
        law = each.joints[0].actuator.friction
        np.testing.assert_allclose(law.effort(np.array([3.0, -3.0])), [6.5, -3.8], rtol=1e-15)
        assert law.static == 0.8


FILE = yaml.safe_load((CONFIG / "sea_planar_2r.yaml").read_text(encoding="utf-8"))


def text(robot: dict[str, Any] | None = None, **joint: Any) -> str:
    """The file with entries of the robot, and of its first joint, where None removes one."""
    tree = yaml.safe_load(yaml.safe_dump(FILE))
    section = tree["/**"]["ros__parameters"]["robot"]
    section |= robot or {}
    first = section["joints"][section["joint_names"][0]]
    for name, value in joint.items():
        first[name] = {**first.get(name, {}), **value} if isinstance(value, dict) else value
        if value is None:
            del first[name]
    return str(yaml.safe_dump(tree))


def test_entries_are_read_written_and_read_again() -> None:
    drive = {"sign": -1, "units_per_turn": 1, "offset": 0.25}
    robot = eom.load_robot(text({"compensated_by_robot": ["friction", "gravity"]}, drive=drive))
    assert robot.compensated_by_robot == ("gravity", "friction") and robot.joints[0].drive == ODRIVE
    per_mille = {"velocity_units_per_turn": 60.0, "effort": "per_mille", "rated_torque": 1.3}
    other = eom.load_robot(text(drive={"units_per_turn": 4096, "offset": -100.0, **per_mille}))
    assert other.joints[0].drive == CIA_402 and other.has_own_drives
    for each in (robot, other):
        written = robot_as_yaml(each)
        again = eom.load_robot(written.text)
        assert [x.drive for x in again.joints] == [x.drive for x in each.joints]
        assert again.compensated_by_robot == each.compensated_by_robot and not written.lost
    lost = robot_as_urdf(robot).lost
    assert any("units of drives" in line for line in lost)
    assert "compensated_by_robot gravity, friction is left out" in lost


def test_a_file_without_them_has_none() -> None:
    robot = eom.load_robot(text())
    assert not robot.has_own_drives and robot.compensated_by_robot == ()


@pytest.mark.parametrize(
    ("robot", "joint", "reason"),
    [
        ({"compensated_by_robot": ["mass"]}, {}, "'mass' is not one of gravity, coriolis, friction, payload"),
        ({"compensated_by_robot": ["gravity", "gravity"]}, {}, "'gravity' is listed twice"),
        ({"compensated_by_robot": ["payload"]}, {}, "payload needs gravity or coriolis beside it"),
        ({"compensated_by_robot": []}, {}, "must be a string or a list of strings, is []"),
        ({"gravity": "compensated_by_robot"}, {}, "robot.gravity: must be a list of 3 numbers"),
        ({}, {"drive": {"side": "gear"}}, "drive.side: must be one of motor, joint, is 'gear'"),
        ({}, {"drive": {"sign": 0.5}}, "drive.sign: must be 1 or -1, is 0.5; a gear ratio is the joint's gear_ratio"),
        ({}, {"drive": {"units_per_turn": 0}}, "drive.units_per_turn: must be positive, is 0"),
        ({}, {"drive": {"units_per_turn": "turns"}}, "drive.units_per_turn: must be a number, is 'turns'"),
        ({}, {"drive": {"offset": float("inf")}}, "drive.offset: must be finite"),
        ({}, {"drive": {"ratio": 50.0}}, "drive.ratio: unknown entry"),
        ({}, {"drive": {"torque_constant": 0.1}}, "drive.torque_constant: unknown entry"),
        ({}, {"drive": {"effort": "watt"}}, "drive.effort: must be one of torque, current, per_mille, is 'watt'"),
        ({}, {"drive": {"effort": "per_mille"}}, "drive.rated_torque: missing; effort: per_mille needs it"),
        ({}, {"drive": {"rated_torque": 1.0}}, "drive.rated_torque: needs effort: per_mille"),
        ({}, {"drive": "turns"}, "drive: must be a section, is 'turns'"),
    ],
)
def test_unusable_entries_are_refused(robot: dict[str, Any], joint: dict[str, Any], reason: str) -> None:
    with pytest.raises(eom.RobotDescriptionError) as error:
        eom.load_robot(text(robot, **joint))
    assert reason in str(error.value) and str(error.value).count("\n") == 0


def test_current_needs_the_torque_constant_of_the_motor() -> None:
    drive = {"effort": "current"}
    with pytest.raises(eom.RobotDescriptionError, match="effort: current needs the torque_constant of the actuator"):
        eom.load_robot(
            text(drive=drive).replace("torque_constant: 0.05", "# none", 1).replace("current: 20.0", "# none")
        )
    robot = eom.load_robot(text(drive=drive, actuator={"torque_constant": 0.07}))
    scales = robot.joints[0].drive.scales(robot.joints[0].gear_ratio, 0.07)
    assert np.isclose(scales.effort, 1 / (0.07 * robot.joints[0].gear_ratio))


def test_a_prismatic_joint_makes_no_turns() -> None:
    tree = yaml.safe_load((CONFIG / "planar_pr.yaml").read_text(encoding="utf-8"))
    section = tree["/**"]["ros__parameters"]["robot"]
    slider = next(x for x in section["joints"].values() if x["type"] == "prismatic")
    slider["drive"] = {"side": "joint", "units_per_turn": 1.0}
    with pytest.raises(eom.RobotDescriptionError, match="units_per_turn: a prismatic joint makes no turns"):
        eom.load_robot(str(yaml.safe_dump(tree)))
    slider["drive"] = {"side": "motor", "units_per_turn": 1.0}
    assert eom.load_robot(str(yaml.safe_dump(tree))).has_own_drives
    slider["drive"] = {"side": "joint", "sign": -1, "offset": 0.2}
    robot = eom.load_robot(str(yaml.safe_dump(tree)))
    again = eom.load_robot(robot_as_yaml(robot).text)
    assert [x.drive for x in again.joints] == [x.drive for x in robot.joints] and again.has_own_drives


def test_additions_to_a_urdf_have_them(tmp_path: Any) -> None:
    from urdf_arms import urdf_arm

    (tmp_path / "arm.urdf").write_text(urdf_arm())
    name = eom.load_robot(urdf_arm()).joint_names[0]
    section = {
        "urdf": "arm.urdf",
        "compensated_by_robot": ["gravity"],
        "joints": {name: {"gear_ratio": 50.0, "drive": {"units_per_turn": 1.0, "sign": -1, "offset": 0.25}}},
    }
    (tmp_path / "arm.yaml").write_text(yaml.safe_dump({"/**": {"ros__parameters": {"robot": section}}}))
    robot = eom.load_robot(tmp_path / "arm.yaml")
    assert robot.compensated_by_robot == ("gravity",) and robot.joints[0].drive == ODRIVE


def test_examples_of_drivers_use_them() -> None:
    drivers = ROOT / "examples" / "drivers"
    robot = eom.load_robot(drivers / "odrive_robot.yaml")
    assert [(joint.drive.side, joint.drive.sign) for joint in robot.joints] == [("motor", 1.0), ("motor", -1.0)]
    for name in ("fr3", "lbr", "ur5e"):
        file = yaml.safe_load((drivers / f"{name}_robot.yaml").read_text(encoding="utf-8"))
        (entries,) = (each["ros__parameters"]["robot"]["compensated_by_robot"] for each in file.values())
        assert entries and set(entries) <= set(COMPENSATIONS)
