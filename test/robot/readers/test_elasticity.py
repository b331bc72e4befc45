# SPDX-License-Identifier: Apache-2.0
"""Actuator data that no actuator can have is refused at loading, by file, parameter and reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import yaml
from chains import packaged_parameters

from eom_dynamics import RobotDescriptionError, robot_from_parameters
from eom_dynamics.robot.writers.parameters import robot_as_yaml

INF, NAN = float("inf"), float("nan")

VARIABLE = {"type": "variable", "lower": 50.0, "upper": 500.0, "nominal": 100.0}
DEAD_ZONE = {"type": "dead_zone", "stiffness": 1e4, "inner_stiffness": 10.0, "half_gap": 1e-3, "width": 1e-4}
TABLE = {"type": "tabulated", "deflections": [0.0, 0.1, 0.2], "efforts": [0.0, 1.0, 3.0]}
PAIR = {"type": "antagonistic_exponential", "stiffness": 50.0, "growth": 15.0, "nominal": 500.0}
FRICTION = {"viscous": 1.0, "coulomb": 2.0, "static": 3.0}

BAD_ELASTICITY = [
    ({"type": "linear", "stiffness": 0.0}, "stiffness", "must be positive"),
    ({"type": "linear", "stiffness": -1.0}, "stiffness", "must be positive"),
    ({"type": "linear", "stiffness": INF}, "stiffness", "must be finite"),
    ({"type": "linear", "stiffness": NAN}, "stiffness", "must be finite"),
    ({"type": "linear"}, "stiffness", "missing"),
    ({"type": "linear", "stiffness": 1.0, "growth": 1.0}, "growth", "unknown entry"),
    ({"type": "elastic"}, "type", "must be one of antagonistic_exponential, antagonistic_quadratic, cubic"),
    ({"type": "cubic", "stiffness": 100.0, "cubic": -1.0}, "cubic", "must not be negative"),
    ({"type": "cubic", "stiffness": -100.0, "cubic": 1.0}, "stiffness", "must be positive"),
    ({"type": "polynomial", "coefficients": [100.0, 5.0]}, "coefficients", "not monotone"),
    ({"type": "polynomial", "coefficients": [100.0, 0.0, -5.0]}, "coefficients", "not monotone"),
    ({"type": "polynomial", "coefficients": [-100.0]}, "coefficients", "not monotone"),
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
    ({"efficiency": -0.5}, "efficiency", "must be positive"),
    ({"smoothing_power": 0.0}, "smoothing_power", "must be positive"),
    ({"friction": FRICTION | {"viscous": -1.0}}, "friction.viscous", "must not be negative"),
    ({"friction": FRICTION | {"static": 1.0}}, "friction.static", "must be at least coulomb"),
    ({"friction": FRICTION | {"coulomb_negative": 4.0}}, "friction.static", "must be at least coulomb_negative"),
    ({"friction": FRICTION | {"viscous_negative": -1.0}}, "friction.viscous_negative", "must not be negative"),
    ({"friction": FRICTION | {"smoothing_velocity": 0.0}}, "friction.smoothing_velocity", "must be positive"),
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
