# SPDX-License-Identifier: Apache-2.0
"""Arms that are not quite as their file says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..drivetrain.springs import (
    AnySpring,
    CoupledSpring,
    CubicSpring,
    DampedSpring,
    DeadZoneSpring,
    ExponentialPair,
    ExponentialSpring,
    LinearSpring,
    QuadraticPair,
    RigidSpring,
)
from ..exceptions import RobotDescriptionError
from ..robot import Robot

# The parameters that are proportional to the effort at a deflection, and the others, in the order of the constructor.
_SCALED: dict[Any, tuple[str, ...]] = {
    RigidSpring: (),
    LinearSpring: ("constant",),
    CubicSpring: ("linear", "cubic"),
    DampedSpring: ("constant", "damping"),
    DeadZoneSpring: ("outer", "inner"),
    ExponentialSpring: ("constant",),
    ExponentialPair: ("constant", "nominal"),
    QuadraticPair: ("constant", "slope", "nominal"),
}
_KEPT: dict[Any, tuple[str, ...]] = {
    DeadZoneSpring: ("half_gap", "width"),
    ExponentialSpring: ("growth",),
    ExponentialPair: ("growth",),
}


def with_model_error(robot: Robot, *, stiffness: float = 0.0, mass: float = 0.0) -> Robot:
    """The robot with other springs and bodies; rotors stay.

    Args:
        robot: as its file says.
        stiffness: relative change of all springs' efforts at a deflection: 0.1 is 10 % stiffer.
        mass: relative change of all masses and with them of all inertias, at the same centres of mass.

    Returns:
        The changed robot.

    Raises:
        RobotDescriptionError: a stiffness is to change of a kind of spring for which that is not defined.
    """
    joints = tuple(
        replace(
            joint,
            mass=joint.mass * (1 + mass),
            inertia_about_origin=joint.inertia_about_origin * (1 + mass),
            stiffness=joint.stiffness * (1 + stiffness),
            elasticity=_scaled(joint.elasticity, 1 + stiffness) if joint.elasticity and stiffness else joint.elasticity,
        )
        for joint in robot.joints
    )
    coupled = robot.coupled_stiffness
    if coupled:
        coupled = (coupled[0], CoupledSpring(coupled[1].matrix * (1 + stiffness)))
    return replace(robot, joints=joints, coupled_stiffness=coupled)


def _scaled(spring: AnySpring, factor: float) -> AnySpring:
    kind: Any = type(spring)
    if kind not in _SCALED:
        raise RobotDescriptionError(f"no error of stiffness is defined for springs of kind {spring.kind}")
    values = {name: factor * getattr(spring, name) for name in _SCALED[kind]}
    values |= {name: getattr(spring, name) for name in _KEPT.get(kind, ())}
    return kind(**values)
