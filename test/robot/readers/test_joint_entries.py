# SPDX-License-Identifier: Apache-2.0
"""Entries of joints: friction by direction, units of drives, and efforts that the robot adds itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import yaml
from chains import packaged_parameters
from own_drives import CIA_402, ODRIVE
from paths import ROOT
from urdf_arms import urdf_arm

from eom_dynamics import Robot, RobotDescriptionError, load_robot, robot_from_parameters
from eom_dynamics.robot import robot_from_urdf
from eom_dynamics.robot.model import COMPENSATIONS
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.robot.writers.urdf import robot_as_urdf

OWN_UNITS = {"sign": -1, "units_per_turn": 1.0, "offset": 0.25}


def robot_with(base: str, joint: str, compensated: tuple[str, ...] = (), **entries: dict[str, Any]) -> Robot:
    """A packaged robot with more entries of one of its joints."""
    parameters = packaged_parameters(base)
    for name, entry in entries.items():
        parameters["joints"][joint].setdefault(name, {}).update(entry)
    return robot_from_parameters(parameters | ({"compensated_by_robot": list(compensated)} if compensated else {}))


def test_friction_that_differs_by_direction_is_read_and_written() -> None:
    """The breakaway effort is by default that of the direction with more dry friction."""
    friction = {"viscous": 2.0, "viscous_negative": 1.0, "coulomb": 0.5, "coulomb_negative": 0.8}
    robot = robot_with("planar_2r", "joint_1", actuator={"friction": friction})
    for found in (robot, load_robot(robot_as_yaml(robot).text)):
        law = found.joints[0].actuator.friction
        np.testing.assert_allclose(law.effort(np.array([3.0, -3.0])), [6.5, -3.8], rtol=1e-15)
        assert law.static == 0.8


def test_units_of_drives_are_read_written_and_read_again() -> None:
    plain = load_robot("sea_planar_2r")
    assert not plain.has_own_drives and plain.compensated_by_robot == ()
    robot = robot_with("sea_planar_2r", "joint_1", ("friction", "gravity"), drive=OWN_UNITS)
    assert robot.compensated_by_robot == ("gravity", "friction") and robot.joints[0].drive == ODRIVE
    per_mille = {"velocity_units_per_turn": 60.0, "effort": "per_mille", "rated_torque": 1.3}
    other = robot_with("sea_planar_2r", "joint_1", drive={"units_per_turn": 4096, "offset": -100.0, **per_mille})
    assert other.joints[0].drive == CIA_402 and other.has_own_drives
    slider = robot_with("planar_pr", "slide", drive={"side": "joint", "sign": -1, "offset": 0.2})
    for found in (robot, other, slider):
        written = robot_as_yaml(found)
        again = load_robot(written.text)
        assert [x.drive for x in again.joints] == [x.drive for x in found.joints] and again.has_own_drives
        assert again.compensated_by_robot == found.compensated_by_robot and not written.lost
    lost = robot_as_urdf(robot).lost
    assert any("units of drives" in line for line in lost)
    assert "compensated_by_robot gravity, friction is left out" in lost


def test_currents_are_those_of_the_torque_constant() -> None:
    joint = robot_with(
        "sea_planar_2r", "joint_1", drive={"effort": "current"}, actuator={"torque_constant": 0.07}
    ).joints[0]
    assert np.isclose(joint.drive.scales(joint.gear_ratio, 0.07).effort, 1 / (0.07 * joint.gear_ratio))


def test_a_prismatic_joint_makes_no_turns() -> None:
    with pytest.raises(RobotDescriptionError, match="units_per_turn: a prismatic joint makes no turns"):
        robot_with("planar_pr", "slide", drive={"side": "joint", "units_per_turn": 1.0})
    assert robot_with("planar_pr", "slide", drive={"side": "motor", "units_per_turn": 1.0}).has_own_drives


def test_additions_to_a_urdf_have_them() -> None:
    joints = {"shoulder": {"gear_ratio": 50.0, "drive": OWN_UNITS}}
    robot = robot_from_urdf(urdf_arm(), {"compensated_by_robot": ["gravity"], "joints": joints})
    assert robot.compensated_by_robot == ("gravity",) and robot.joints[0].drive == ODRIVE


def test_examples_of_drivers_use_them() -> None:
    drivers = ROOT / "examples" / "drivers"
    robot = load_robot(drivers / "odrive_robot.yaml")
    assert [(joint.drive.side, joint.drive.sign) for joint in robot.joints] == [("motor", 1.0), ("motor", -1.0)]
    for name in ("fr3", "lbr", "ur5e"):
        file = yaml.safe_load((drivers / f"{name}_robot.yaml").read_text(encoding="utf-8"))
        (entries,) = (node["ros__parameters"]["robot"]["compensated_by_robot"] for node in file.values())
        assert entries and set(entries) <= set(COMPENSATIONS)
