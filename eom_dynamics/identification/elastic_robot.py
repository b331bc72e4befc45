# SPDX-License-Identifier: Apache-2.0
"""Robots with identified springs and motors, ready for :mod:`eom_dynamics.robot.writers`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np

from ..actuators.springs import AntagonisticPair, DampedSpring, LinearSpring, Spring
from ..robot import Joint, Robot
from ..spelling import hint
from .exceptions import IdentificationError
from .motor import MotorFit
from .resonance import ResonanceFit
from .springs import CoupledSpringFit, SpringFit

Fit = TypeVar("Fit")


def with_springs(robot: Robot, fits: Mapping[str, SpringFit]) -> Robot:
    """The robot with identified springs, by joint; antagonistic pairs keep their nominal stiffness.

    Raises:
        IdentificationError: the robot has no such independent joint.
    """
    return _changed(robot, fits, lambda joint, fit: replace(joint, spring=_commanded(fit.spring, joint.spring)))


def with_coupled_spring(robot: Robot, fit: CoupledSpringFit) -> Robot:
    """The robot with an identified stiffness matrix of its coupled spring.

    Raises:
        IdentificationError: the robot has no coupled spring of as many joints.
    """
    if robot.coupled_stiffness is None or len(robot.coupled_stiffness[0]) != len(fit.spring.matrix):
        raise IdentificationError(f"{robot.name} has no coupled spring of {len(fit.spring.matrix)} joints")
    return replace(robot, coupled_stiffness=(robot.coupled_stiffness[0], fit.spring))


def with_motors(robot: Robot, fits: Mapping[str, MotorFit]) -> Robot:
    """The robot with identified rotors, motor friction, gear loss and torque constants, by joint.

    Raises:
        IdentificationError: the robot has no such independent joint.
    """
    return _changed(
        robot,
        fits,
        lambda joint, fit: replace(joint, rotor_inertia=fit.rotor_inertia[0], actuator=fit.actuator(joint.actuator)),
    )


def with_resonance(robot: Robot, fit: ResonanceFit) -> Robot:
    """The robot with linear springs, rotors and motor friction of all joints, identified from the motor side.

    Damped springs of the file get the damping. Coulomb friction that was not fitted, and joints whose stiffness is not
    identifiable, stay as they are.

    Raises:
        IdentificationError: the robot has another number of joints.
    """
    if len(fit.stiffness) != robot.n:
        raise IdentificationError(f"{robot.name} has {robot.n} joints, the fit has {len(fit.stiffness)}")
    identifiable = {name: k for k, name in enumerate(robot.joint_names) if fit.identifiable[k]}
    return _changed(robot, identifiable, lambda joint, k: _resonant(joint, fit, k))


def _changed(robot: Robot, fits: Mapping[str, Fit], change: Callable[[Joint, Fit], Joint]) -> Robot:
    for name in fits:
        if name not in robot.joint_names:
            raise IdentificationError(f"{robot.name} has no joint {name}; {hint(name, robot.joint_names)}")
    return replace(
        robot, joints=tuple(change(joint, fits[joint.name]) if joint.name in fits else joint for joint in robot.joints)
    )


def _resonant(joint: Joint, fit: ResonanceFit, k: int) -> Joint:
    stiffness, damping = float(fit.stiffness[k, 0]), float(fit.damping[k, 0])
    damped = isinstance(joint.spring, DampedSpring) and damping > 0
    own = {"viscous": float(fit.viscous[k, 0])}
    if np.any(fit.coulomb):
        own |= dict.fromkeys(("coulomb", "static"), float(fit.coulomb[k, 0]))
    return replace(
        joint,
        spring=DampedSpring(stiffness, damping) if damped else LinearSpring(stiffness),
        rotor_inertia=float(fit.rotor_inertia[k, 0]),
        actuator=replace(joint.actuator, friction=replace(joint.actuator.friction, **own)),
    )


def _commanded(spring: Spring, before: Spring) -> Spring:
    if isinstance(spring, AntagonisticPair) and type(spring) is type(before) and isinstance(before, AntagonisticPair):
        return replace(spring, nominal=before.nominal)  # type: ignore[type-var]
    return spring
