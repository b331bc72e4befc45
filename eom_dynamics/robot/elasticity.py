# SPDX-License-Identifier: Apache-2.0
"""Springs, actuators and their couplings out of the sections of a robot's file, every entry checked.

The section ``elasticity`` of a joint, by its type (units SI; per rad at a joint that turns, per m at a slide):

.. code-block:: yaml

    {type: rigid}                                                    # as without the section
    {type: linear, stiffness: 1.0e4}
    {type: cubic, stiffness: 1.0e4, cubic: 5.0e5}
    {type: polynomial, coefficients: [1.0e4, 0.0, 5.0e5]}            # of delta, delta², …
    {type: exponential, stiffness: 1.0e4, growth: 30.0}
    {type: tabulated, deflections: [0.0, 0.001, 0.004], efforts: [0.0, 8.0, 50.0]}
    {type: dead_zone, stiffness: 1.0e4, inner_stiffness: 50.0, half_gap: 5.0e-4, width: 1.0e-4}
    {type: damped, stiffness: 1.0e4, damping: 20.0}
    {type: variable, lower: 50.0, upper: 1.0e4, nominal: 500.0}      # stiffness commanded over time
    {type: antagonistic_exponential, stiffness: 50.0, growth: 15.0, nominal: 500.0}
    {type: antagonistic_quadratic, stiffness: 50.0, slope: 2.0e3, nominal: 500.0}

The section ``actuator`` of a joint, all of it optional:

.. code-block:: yaml

    actuator:
      friction: {viscous: 5.0, coulomb: 2.0, static: 3.0, stribeck_velocity: 0.1, smoothing_velocity: 0.01}
      efficiency: 0.8
      smoothing_power: 0.1
      torque_constant: 0.1
      back_emf_constant: 0.1         # by default the torque constant
      resistance: 0.5
      limits: {torque: 2.0, speed: 400.0, current: 20.0, voltage: 48.0}

The section ``rotor`` of a joint, both entries optional: ``{carrier: upper_arm, axis: [0.0, 0.0, 1.0]}``, the body or
link that carries the rotor (by default the joint's parent) and the axis of its spin in the frame of that (by default
along the joint's axis, all joints at 0). The model of rotors that are carried by links reads it.

And of the robot ``coupled_stiffness: {joints: [a, b], matrix: [K_aa, K_ab, K_ba, K_bb]}`` for springs that act on
each other, instead of the elasticity of these joints, and ``transmission: {joints: [a, b], matrix: […]}`` for motors
that move several joints together, the joints' sides of the springs being the matrix times the motors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ..drivetrain.actuator import IDEAL_ACTUATOR, Actuator
from ..drivetrain.checks import ParameterError
from ..drivetrain.friction import FRICTIONLESS, Friction
from ..drivetrain.gear import Gear
from ..drivetrain.motor import Motor
from ..drivetrain.springs import (
    AnySpring,
    CubicSpring,
    DampedSpring,
    DeadZoneSpring,
    ExponentialPair,
    ExponentialSpring,
    LinearSpring,
    PolynomialSpring,
    QuadraticPair,
    RigidSpring,
    TabulatedSpring,
    VariableSpring,
)
from .description import Group, RotorDescription, Whole
from .section import Section

Array = NDArray[np.float64]


def read_elasticity(joint: Section) -> AnySpring:
    """The spring that a joint's section describes."""
    if "elasticity" not in joint:
        return RigidSpring()
    with joint.section("elasticity") as section, _named(section):
        return _SPRINGS[section.choice("type", tuple(_SPRINGS))](section)


def read_actuator(joint: Section) -> Actuator:
    """The actuator that a joint's section describes."""
    if "actuator" not in joint:
        return IDEAL_ACTUATOR
    with joint.section("actuator") as section:
        friction = _friction(section) if "friction" in section else FRICTIONLESS
        with _named(section):
            gear = Gear(**_given(section, "efficiency", "smoothing_power"))
            motor = _motor(section)
    return Actuator(friction, gear, motor)


def read_rotor(joint: Section) -> RotorDescription | None:
    """Where a joint's section says that the rotor spins."""
    if "rotor" not in joint:
        return None
    with joint.section("rotor") as section:
        carrier = section.text("carrier") if "carrier" in section else None
        axis = section.vector("axis", 3) if "axis" in section else None
        if axis is not None:
            length = float(np.linalg.norm(axis))
            if length == 0:
                section.refuse("axis", "must point somewhere, is zero")
            axis = axis / length
    return RotorDescription(section.name, carrier, axis)


def read_group(
    robot: Section, key: str, joints: Sequence[str], what: str, whole: Callable[[Array], Whole]
) -> Group[Whole]:
    """Joints by name, and what a square matrix makes of them.

    Args:
        robot: the robot's section.
        key: name of the section within.
        joints: names that may be there.
        what: these joints are.
        whole: makes a coupled spring or transmission of a matrix (g, g).
    """
    with robot.section(key) as section, _named(section):
        names = tuple(section.names("joints"))
        for name in names:
            if name not in joints:
                section.refuse("joints", f"{name!r} is not a joint {what}; such are {', '.join(joints)}")
        if len(names) < 2:
            section.refuse("joints", "must be at least two")
        g = len(names)
        return Group(names, whole(section.vector("matrix", g * g).reshape(g, g)), section.name)


def _friction(actuator: Section) -> Friction:
    with actuator.section("friction") as section, _named(section):
        coulomb = section.not_negative("coulomb", 0.0)
        return Friction(
            viscous=section.not_negative("viscous", 0.0),
            coulomb=coulomb,
            static=section.not_negative("static", coulomb),
            **_given(section, "stribeck_velocity", "smoothing_velocity"),
        )


def _motor(actuator: Section) -> Motor:
    limits: dict[str, float] = {}
    if "limits" in actuator:
        with actuator.section("limits") as section:
            for name in ("torque", "speed", "current", "voltage"):
                limits |= {f"{key}_limit": value for key, value in _given(section, name).items()}
    return Motor(
        resistance=actuator.not_negative("resistance") if "resistance" in actuator else math.nan,
        back_emf_constant=actuator.not_negative("back_emf_constant") if "back_emf_constant" in actuator else math.nan,
        **_given(actuator, "torque_constant"),
        **limits,
    )


def _given(section: Section, *names: str) -> dict[str, float]:
    """The positive numbers among these that the section has."""
    return {name: section.positive(name) for name in names if name in section}


@contextmanager
def _named(section: Section) -> Iterator[None]:
    """Give the error of a parameter the name that it has in the file."""
    try:
        yield
    except ParameterError as error:
        section.refuse(error.name, error.reason)


_SPRINGS: Mapping[str, Callable[[Section], AnySpring]] = MappingProxyType(
    {
        "linear": lambda s: LinearSpring(s.positive("stiffness")),
        "rigid": lambda _: RigidSpring(),
        "cubic": lambda s: CubicSpring(s.positive("stiffness"), s.not_negative("cubic")),
        "polynomial": lambda s: PolynomialSpring(s.row("coefficients")),
        "exponential": lambda s: ExponentialSpring(s.positive("stiffness"), s.positive("growth")),
        "tabulated": lambda s: TabulatedSpring(s.row("deflections"), s.row("efforts")),
        "dead_zone": lambda s: DeadZoneSpring(
            s.positive("stiffness"), s.positive("inner_stiffness"), s.positive("half_gap"), s.positive("width")
        ),
        "damped": lambda s: DampedSpring(s.positive("stiffness"), s.positive("damping")),
        "variable": lambda s: VariableSpring(s.positive("lower"), s.positive("upper"), s.positive("nominal")),
        "antagonistic_exponential": lambda s: ExponentialPair(
            s.positive("stiffness"), s.positive("growth"), s.positive("nominal")
        ),
        "antagonistic_quadratic": lambda s: QuadraticPair(
            s.positive("stiffness"), s.positive("slope"), s.positive("nominal")
        ),
    }
)
"""By the type in a file: the spring of a section."""
