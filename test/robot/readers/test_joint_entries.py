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
from eom_dynamics import robot_from_parameters
from eom_dynamics.robot.model import COMPENSATIONS
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.robot.writers.urdf import robot_as_urdf


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
