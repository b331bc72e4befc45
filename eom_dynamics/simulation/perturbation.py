# SPDX-License-Identifier: Apache-2.0
"""Perturbed robot models."""

from __future__ import annotations

from dataclasses import replace

from ..actuators.friction import Friction
from ..robot import Robot
from ..robot.inertia import Inertial


def perturbed(
    robot: Robot, *, stiffness: float = 0.0, mass: float = 0.0, rotor_inertia: float = 0.0, friction: float = 0.0
) -> Robot:
    """Robot with other springs, bodies and motors.

    Args:
        robot: the robot.
        stiffness: relative change of the efforts of all springs at a given deflection: 0.1 is 10 % stiffer.
        mass: relative change of all masses and inertias, at the same centers of mass.
        rotor_inertia: relative change of all rotor inertias.
        friction: relative change of the friction of all motors, at the same velocities.
    """
    joints = tuple(
        replace(
            joint,
            mass=joint.mass * (1 + mass),
            inertia_about_origin=joint.inertia_about_origin * (1 + mass),
            spring=joint.spring.scaled(1 + stiffness),
            rotor_inertia=joint.rotor_inertia * (1 + rotor_inertia),
            actuator=replace(joint.actuator, friction=_scaled(joint.actuator.friction, 1 + friction)),
        )
        for joint in robot.joints
    )
    coupled = robot.coupled_stiffness
    if coupled is not None:
        coupled = (coupled[0], coupled[1].scaled(1 + stiffness))
    base = Inertial(robot.base.mass * (1 + mass), robot.base.center_of_mass, robot.base.about_origin * (1 + mass))
    return replace(robot, joints=joints, coupled_stiffness=coupled, base=base)


def _scaled(friction: Friction, factor: float) -> Friction:
    efforts = ("viscous", "coulomb", "static", "viscous_negative", "coulomb_negative")
    return replace(friction, **{name: factor * getattr(friction, name) for name in efforts})
