# SPDX-License-Identifier: Apache-2.0
"""Resonances of elastic joints, and mistakes of units that inspect points out."""

from __future__ import annotations

import re
import warnings as warnings_module
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from urdf_arms import MASSLESS_TIP, urdf_arm

import eom_dynamics
from eom_dynamics import Robot, load_robot
from eom_dynamics.actuators import Motor
from eom_dynamics.actuators.springs import RIGID, LinearSpring
from eom_dynamics.exceptions import RobotDescriptionWarning
from eom_dynamics.robot import packaged_robots
from eom_dynamics.robot.model import Limits
from eom_dynamics.tools.inspect.plausibility import elastic_joints, motor_facts, poses, warnings


def changed(**changes: Any) -> Robot:
    """The pendulum, of a point mass m l²."""
    robot = load_robot("pendulum")
    return replace(robot, joints=(replace(robot.joints[0], **changes),))


def lines(robot: Robot) -> list[str]:
    return warnings(robot, elastic_joints(robot), motor_facts(robot, poses(robot)))


def test_frequencies_and_sag_of_a_pendulum() -> None:
    robot = changed(spring=LinearSpring(500.0), rotor_inertia=0.2, limits=Limits())
    joint = robot.joints[0]
    inertia = joint.inertia_about_origin[2, 2] if joint.screw[2] else joint.inertia_about_origin[1, 1]
    (row,) = elastic_joints(robot)
    assert row["link_frequency"] == pytest.approx(np.sqrt(500 / inertia) / (2 * np.pi), rel=1e-6)
    assert row["motor_frequency"] == pytest.approx(np.sqrt(500 / inertia + 500 / 0.2) / (2 * np.pi), rel=1e-6)
    weight = joint.mass * np.linalg.norm(robot.gravity) * np.linalg.norm(joint.center_of_mass)
    assert row["sag"] == pytest.approx(weight / 500, rel=1e-3)
    assert elastic_joints(changed(spring=LinearSpring(500.0), rotor_inertia=0.0)) == []


@pytest.mark.parametrize("name", packaged_robots())
def test_packaged_robots_are_plausible(name: str) -> None:
    assert lines(load_robot(name)) == []


@pytest.mark.parametrize("text", [urdf_arm(), urdf_arm(mass=60.0), MASSLESS_TIP])
def test_urdfs_are_plausible(text: str) -> None:
    with warnings_module.catch_warnings():
        warnings_module.simplefilter("ignore", RobotDescriptionWarning)
        assert lines(load_robot(text)) == []


def test_limits_of_fast_joints_and_large_numbers_for_none_are_plausible() -> None:
    assert lines(changed(limits=Limits(lower=-1e16, upper=1e16, velocity=1000.0))) == []
    assert lines(changed(limits=Limits(velocity=52.4))) == []


# Robot, pattern in its file, what is wrong in its place, joints that are named, and what is said.
FAULTS = [
    ("sea_planar_2r", r"rotor_inertia: .*", r"rotor_inertia: 1.0e-5", 2, "must have the square of the ratio: 0.1"),
    ("panda", r"rotor_inertia: 0.6", r"rotor_inertia: 6.0e-5", 4, "must have the square of the ratio: 0.6"),
    ("sea_planar_2r", r"stiffness: 400.0", r"stiffness: 6.98", 1, "may be per degree: in N m/rad that is 399.9"),
    ("panda", r"stiffness: 14000.0", r"stiffness: 244.0", 4, "may be per degree: in N m/rad that is 1.398e+04"),
    ("sea_planar_2r", r"stiffness: (\d)00.0", r"stiffness: \g<1>.0e+7", 2, "above the 1000 commands a second"),
    ("panda", r"lower: -2.8973, upper: 2.8973", r"lower: -166.0, upper: 166.0", 4, "if in degrees: -2.897, 2.897"),
    ("panda", r"velocity: 2.175", r"velocity: 124.6", 4, "if in degrees: 2.175"),
    ("sea_planar_2r", r"gear_ratio: 100.0", r"gear_ratio: 1.0", 2, "check gear_ratio 1, masses and limits"),
]


@pytest.mark.parametrize(("name", "pattern", "wrong", "count", "said"), FAULTS)
def test_a_file_with_a_fault_is_told(
    name: str, pattern: str, wrong: str, count: int, said: str, tmp_path: Path
) -> None:
    packaged = (resources.files(eom_dynamics) / "config" / f"{name}.yaml").read_text(encoding="utf-8")
    text, replaced = re.subn(pattern, wrong, packaged)
    assert replaced == count
    file = tmp_path / "arm.yaml"
    file.write_text(text, encoding="utf-8")
    with warnings_module.catch_warnings():
        warnings_module.simplefilter("ignore", RobotDescriptionWarning)
        found = lines(load_robot(str(file)))
    # The value differs by joint.
    told = [line for line in found if re.split(": |it is |that is ", said)[0] in line]
    assert len({line.split(":")[0] for line in told}) == count
    assert any(said in line for line in told)
    # Nothing else is complained of but a resonance, which a rotor without the square of the ratio raises, too.
    others = [line for line in found if line not in told]
    assert not others or (pattern.startswith("rotor") and all("commands a second" in line for line in others))


def test_motor_numbers_on_both_sides_of_the_gear() -> None:
    """By hand: shaft inertia B/N², and torque, current and voltage that hold the weight of both links."""
    robot = load_robot("sea_planar_2r")
    first, second = motor_facts(robot, np.zeros((1, 2)))
    g = 9.80665
    # Bodies of 2 kg at 0.5 m and of 1 kg at 0.9 m; at rest an efficiency of 0.9 takes nothing.
    weight = (2.0 * 0.5 + 1.0 * 0.9) * g
    assert first["torque"] == pytest.approx(weight / 100, rel=1e-9)
    assert first["current"] == pytest.approx(weight / 100 / 0.05) and first["voltage"] == pytest.approx(
        0.5 * first["current"]
    )
    assert first["rotor_inertia"] == 0.2 and first["shaft_inertia"] == pytest.approx(0.2 / 100**2)
    assert (first["speed_limit"], first["torque_limit"], second["current_limit"]) == (500.0, 0.9, 12.0)
    assert first["speed"] is None and second["torque_constant"] == 0.05
    limited = changed(gear_ratio=50.0, limits=Limits(velocity=2.0))
    assert motor_facts(limited, np.zeros((1, 1)))[0]["speed"] == 100.0
    assert motor_facts(changed(gear_ratio=1.0, rotor_inertia=0.0, spring=RIGID), np.zeros((1, 1))) == []


def test_a_pair_swings_with_both_motors() -> None:
    row = elastic_joints(load_robot("vsa_planar_2r"))[0]
    K, B = 250.0, 0.4
    links = K / (2 * np.pi * row["link_frequency"]) ** 2
    assert row["motor_frequency"] == pytest.approx(np.sqrt(K / links + K / B) / (2 * np.pi))


def test_a_motor_slower_than_its_joint_is_told() -> None:
    good = {"spring": LinearSpring(500.0), "rotor_inertia": 0.2, "gear_ratio": 100.0}
    actuator = changed().joints[0].actuator
    slow = replace(actuator, motor=Motor(speed_limit=100.0))
    (line,) = lines(changed(**good, limits=Limits(velocity=2.0), actuator=slow))
    assert "speed limit is 1 behind the gear, below the joint's velocity limit 2" in line


@pytest.mark.parametrize(
    ("pattern", "wrong", "said"),
    [
        (r"mass: (\d)", r"mass: \g<1>000", "mass is 3000 kg at a length of 0.9 m; if masses are in g, it is 3 kg"),
        (r"xyz: \[0.5", r"xyz: [500.0", "lengths add up to 500.4 m; if they are in mm, to 0.5004 m"),
    ],
)
def test_units_of_the_whole_arm(pattern: str, wrong: str, said: str) -> None:
    text = (resources.files(eom_dynamics) / "config" / "sea_planar_2r.yaml").read_text(encoding="utf-8")
    assert lines(load_robot(re.sub(pattern, wrong, text))) == [said]


def test_limits_in_degrees_are_one_line_a_joint() -> None:
    slow = replace(changed().joints[0].actuator, motor=Motor(speed_limit=100.0))
    (line,) = lines(changed(limits=Limits(lower=-115.0, upper=115.0, velocity=170.0), actuator=slow))
    assert line.endswith("lower -115 rad, upper 115 rad, velocity 170 rad/s; if in degrees: -2.007, 2.007, 2.967")
