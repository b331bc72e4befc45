# SPDX-License-Identifier: Apache-2.0
"""Springs, actuators and couplings of joints from the sections of a robot file.

The section ``elasticity`` of a joint has the ``type`` of the spring and its parameters, as the classes in
:mod:`eom_dynamics.actuators.springs` declare them (SI units; per rad at joints that turn, per m at prismatic ones):

.. code-block:: yaml

    elasticity: {type: cubic, stiffness: 1.0e4, cubic: 5.0e5}

The section ``actuator`` of a joint; all entries are optional:

.. code-block:: yaml

    actuator:
      friction: {viscous: 5.0, coulomb: 2.0, static: 3.0, stribeck_velocity: 0.1, smoothing_velocity: 0.01,
                 viscous_negative: 4.0, coulomb_negative: 1.5}   # of negative velocities; by default the same
      efficiency: 0.8
      smoothing_power: 0.1
      torque_constant: 0.1
      back_emf_constant: 0.1         # by default the torque constant
      resistance: 0.5
      limits: {torque: 2.0, speed: 400.0, current: 20.0, voltage: 48.0}

The section ``drive`` of a joint, for a drive whose numbers are not in SI units behind the gear; entries are those of
:class:`.DriveUnits`, all optional, and ``side`` is ``motor`` by default:

.. code-block:: yaml

    drive: {side: motor, sign: -1, units_per_turn: 1.0, offset: 0.25, effort: torque}

The section ``rotor`` of a joint, for the complete rotor model; both entries are optional:
``{carrier: upper_arm, axis: [0.0, 0.0, 1.0]}``, the body or link that carries the rotor (by default the joint's parent)
and its spin axis in the frame of that link (by default along the joint's axis, all joints at 0).

The robot's ``coupled_stiffness: {joints: [a, b], matrix: [K_aa, K_ab, K_ba, K_bb]}`` couples joints without an
elasticity of their own. Its ``transmission: {joints: [a, b], matrix: […]}`` gives the joint sides of the springs as
the matrix times the motor positions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from ...actuators.actuator import IDEAL_ACTUATOR, Actuator, Gear, Motor
from ...actuators.drive_units import EFFORTS, SIDES, DriveUnits
from ...actuators.friction import FRICTIONLESS, Friction
from ...actuators.parameters import Declared, ParameterError, finite, not_negative, positive, row
from ...actuators.springs import RIGID, SPRINGS, CoupledSpring, Spring
from ...actuators.transmission import Transmission
from ...arrays import Array
from ...exceptions import RobotDescriptionError
from ...spelling import listed
from ..description import SINGLE_TYPES, JointDescription, JointGroup, RotorDescription, SharedElement
from .section import Section

Law = TypeVar("Law", bound=Declared)

_READERS: Mapping[Callable[..., Any], Callable[[Section, str], Any]] = {
    finite: Section.number,
    positive: Section.positive,
    not_negative: Section.not_negative,
    row: Section.row,
}
"""How to read a parameter, by its check."""


def read_spring(joint: Section) -> Spring:
    """Read the spring of a joint's section."""
    if "elasticity" not in joint:
        return RIGID
    with joint.section("elasticity") as section, named(section):
        return read_law(section, SPRINGS)


def read_law(section: Section, kinds: Mapping[str, type[Law]], default: str | None = None) -> Law:
    """Read the type of a law and its parameters."""
    kind = kinds[section.choice("type", sorted(kinds), default)]
    return kind(
        **{
            attribute: _READERS[declared.check](section, declared.name)
            for attribute, declared in kind.parameters().items()
            # A dataclass keeps the default of a field as an attribute of the class.
            if declared.name in section or not hasattr(kind, attribute)
        }
    )


def read_actuator(joint: Section) -> Actuator:
    """Read the actuator of a joint's section."""
    if "actuator" not in joint:
        return IDEAL_ACTUATOR
    with joint.section("actuator") as section:
        friction = _friction(section) if "friction" in section else FRICTIONLESS
        with named(section):
            gear = Gear(**_given(section, "efficiency", "smoothing_power"))
            motor = _motor(section)
    return Actuator(friction, gear, motor)


def read_drive(joint: Section, described: JointDescription) -> DriveUnits:
    """Read the units of the drive from a joint's section; ``described`` is the joint with its gear and motor."""
    if "drive" not in joint:
        return described.drive
    with joint.section("drive") as section, named(section):
        units = DriveUnits(
            side=section.choice("side", SIDES, SIDES[0], otherwise=SIDES[0]),
            effort=section.choice("effort", EFFORTS, EFFORTS[0], otherwise=EFFORTS[0]),
            sign=section.number("sign", 1.0),
            offset=section.number("offset", 0.0),
            **_given(section, "units_per_turn", "velocity_units_per_turn", "rated_torque"),
        )
        if described.type == "prismatic" and units.side == "joint":
            for name in ("units_per_turn", "velocity_units_per_turn"):
                if name in section:
                    section.refuse(name, "a prismatic joint makes no turns; a drive behind its gear counts m")
        units.scales(described.gear_ratio, float(described.actuator.motor.torque_constant))
        return units


def read_rotor(joint: Section) -> RotorDescription | None:
    """Read the rotor mount of a joint's section; None if it has none."""
    if "rotor" not in joint:
        return None
    with joint.section("rotor") as section:
        carrier = section.text("carrier") if "carrier" in section else None
        axis = section.vector("axis", 3) if "axis" in section else None
        if axis is not None:
            length = float(np.linalg.norm(axis))
            if length == 0:
                section.refuse("axis", "must not be zero")
            axis = axis / length
    return RotorDescription(section.name, carrier, axis)


def read_groups(
    joints: Sequence[JointDescription], robot: Section
) -> tuple[JointGroup[CoupledSpring] | None, JointGroup[Transmission] | None]:
    """Read the coupled spring and the transmission from a robot's section; None where absent."""
    actuated = [joint for joint in joints if joint.type in SINGLE_TYPES and joint.mimic is None]
    coupled = transmission = None
    robot.skip("coupled_stiffness", "transmission")  # an error in one leaves the other unread
    if "coupled_stiffness" in robot:
        free = [joint.name for joint in actuated if joint.spring.is_rigid]
        coupled = _group(robot, "coupled_stiffness", free, "without an elasticity", CoupledSpring)
    if "transmission" in robot:
        single = [joint.name for joint in actuated if len(joint.spring.motors) == 1]
        transmission = _group(robot, "transmission", single, "with one motor", Transmission)
    return coupled, transmission


def _group(
    robot: Section, key: str, joints: Sequence[str], what: str, make: Callable[[Array], SharedElement]
) -> JointGroup[SharedElement]:
    """Read a coupling of joints by a square matrix."""
    with robot.section(key) as section, named(section):
        names = tuple(section.names("joints"))
        for name in names:
            if name not in joints:
                section.refuse("joints", f"{name!r} is not a joint {what}; those are {listed(joints) or 'none'}")
        if len(names) < 2:
            section.refuse("joints", "must be at least two")
        g = len(names)
        return JointGroup(names, make(section.vector("matrix", g * g).reshape(g, g)), section.name)


def _friction(actuator: Section) -> Friction:
    with actuator.section("friction") as section, named(section):
        coulomb = section.not_negative("coulomb", 0.0)
        negative = {
            name: section.not_negative(name) for name in ("viscous_negative", "coulomb_negative") if name in section
        }
        largest = max(coulomb, negative.get("coulomb_negative", 0.0))
        return Friction(
            viscous=section.not_negative("viscous", 0.0),
            coulomb=coulomb,
            static=section.not_negative("static") if "static" in section else largest,
            **negative,
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
    """Those of these entries that the section has, as positive numbers."""
    return {name: section.positive(name) for name in names if name in section}


@contextmanager
def named(section: Section) -> Iterator[None]:
    """Add file and section to errors of parameters; drop those that follow from earlier errors."""
    try:
        yield
    except ParameterError as error:
        if section.has_errors:
            raise RobotDescriptionError from None  # nothing to add
        section.refuse(error.name, error.reason)
