# SPDX-License-Identifier: Apache-2.0
"""Robots that add efforts themselves, and whose drives have units of their own."""

from dataclasses import replace

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


AGES = FeedbackDelay(2e-4, 3e-4)  # of what drives compare with their references


def with_drives(
    robot: Robot, *own: str, units: tuple[DriveUnits, ...] = EVERY_UNIT, ages: FeedbackDelay = NO_FEEDBACK_DELAY
) -> Robot:
    """The robot with these units at its joints in turn, that adds these efforts itself; with losses and friction."""
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
