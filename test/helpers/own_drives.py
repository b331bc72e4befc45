# SPDX-License-Identifier: Apache-2.0
"""Robots that add efforts themselves, with drives in their own units."""

from dataclasses import replace

import numpy as np

from eom_dynamics import Robot
from eom_dynamics.actuators import Actuator, Friction, Gear, Motor
from eom_dynamics.actuators.drive_units import NO_FEEDBACK_DELAY, SI_UNITS, DriveUnits, FeedbackDelay

ODRIVE = DriveUnits(side="motor", sign=-1, units_per_turn=1.0, offset=0.25)  # turns, turns/s and N m of the motor shaft

CIA_402 = DriveUnits(
    side="motor",
    units_per_turn=4096.0,
    velocity_units_per_turn=60.0,
    offset=-100.0,
    effort="per_mille",
    rated_torque=1.3,
)
"""Counts of an encoder, turns a minute and per mille of the rated torque."""

CURRENT = DriveUnits(side="motor", effort="current")  # rad, rad/s and A at the motor shaft

EVERY_UNIT = (ODRIVE, CIA_402, CURRENT, SI_UNITS)


SIDES_IN_TURN = (
    (100.0, DriveUnits("joint", sign=-1)),
    (-50.0, DriveUnits("motor", units_per_turn=1.0, offset=0.25)),
    (1.0, DriveUnits(sign=-1, units_per_turn=1.0)),
    (80.0, SI_UNITS),
    (30.0, DriveUnits("joint", effort="current")),
    (200.0, CIA_402),
    (-20.0, DriveUnits("joint", offset=-0.3)),
)
"""Gear ratios and drives on both sides: of seven joints, the third without a gear, the fourth without a section."""


def on_both_sides(robot: Robot) -> Robot:
    """The robot of seven joints, the sixth prismatic, with drives on both sides of gears."""
    slide = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    joints = tuple(
        replace(
            joint,
            screw=slide if k == 5 else joint.screw,
            gear_ratio=gear_ratio,
            drive=units,
            actuator=replace(joint.actuator, motor=Motor(torque_constant=0.07)),
        )
        for k, (joint, (gear_ratio, units)) in enumerate(zip(robot.joints, SIDES_IN_TURN, strict=True))
    )
    return replace(robot, joints=joints)


AGES = FeedbackDelay(2e-4, 3e-4)  # of measurements in the drives


def with_drives(
    robot: Robot, *own: str, units: tuple[DriveUnits, ...] = EVERY_UNIT, ages: FeedbackDelay = NO_FEEDBACK_DELAY
) -> Robot:
    """The robot with these units at its joints in rotation, and its own efforts; with losses and friction."""
    actuator = Actuator(Friction(0.8, 0.3, 0.5, 0.3, 0.2), Gear(0.8, 2.0), Motor(torque_constant=0.07))
    joints = tuple(
        replace(
            joint,
            drive=units[k % len(units)],
            gear_ratio=50.0,
            damping=0.4,
            friction=0.7,
            actuator=replace(actuator, gear=Gear() if joint.spring.is_rigid else actuator.gear),
        )
        for k, joint in enumerate(robot.joints)
    )
    return replace(robot, joints=joints, joint_friction=True, compensated_by_robot=own, drive_feedback_delay=ages)
