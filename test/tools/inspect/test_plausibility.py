# SPDX-License-Identifier: Apache-2.0
"""Resonances of elastic joints, and mistakes of units that inspect points out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from eom_dynamics import Robot, load_robot
from eom_dynamics.actuators import Motor
from eom_dynamics.actuators.springs import LinearSpring
from eom_dynamics.robot.model import Limits
from eom_dynamics.tools.inspect.plausibility import elastic_joints, warnings


def changed(**changes: Any) -> Robot:
    """The pendulum, of a point mass m l²."""
    robot = load_robot("pendulum")
    return replace(robot, joints=(replace(robot.joints[0], **changes),))


def lines(robot: Robot) -> list[str]:
    return warnings(robot, elastic_joints(robot))


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


@pytest.mark.parametrize("name", ["iiwa", "panda", "ur5e", "sea_planar_2r", "vsa_planar_2r", "planar_pr", "dual_arm"])
def test_packaged_robots_are_plausible(name: str) -> None:
    assert lines(load_robot(name)) == []


def test_mistakes_of_units_are_named() -> None:
    good = {"spring": LinearSpring(500.0), "rotor_inertia": 0.2, "gear_ratio": 100.0, "limits": Limits()}
    assert lines(changed(**good)) == []
    (line,) = lines(changed(**good | {"rotor_inertia": 0.2e-4}))[-1:]
    assert "must have the square of the ratio: 0.2" in line
    (line,) = lines(changed(**good | {"spring": LinearSpring(500.0 * np.pi / 180)}))
    assert "may be per degree: in N m/rad that is 500" in line
    (line,) = lines(changed(**good | {"spring": LinearSpring(5e6)}))
    assert "above the 1000 commands a second" in line
    actuator = changed().joints[0].actuator
    (line,) = lines(changed(**good, actuator=replace(actuator, motor=Motor(torque_constant=50.0))))
    assert "in mN m/A it is 0.05 N m/A" in line
    slow = replace(actuator, motor=Motor(speed_limit=100.0))
    (line,) = lines(changed(**good | {"limits": Limits(velocity=2.0)}, actuator=slow))
    assert "speed limit is 1 behind the gear, below the joint's velocity limit 2" in line
