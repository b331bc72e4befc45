# SPDX-License-Identifier: Apache-2.0
"""Non-geometric entries of a joint in a parameter file: limits, friction, gear, motor and spring.

They are the same for the joints of a robot's own file and for those of a URDF, which they complete.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from ...actuators.actuator import IDEAL_ACTUATOR, Actuator, Gear, Motor
from ...actuators.drive_units import EFFORTS, SIDES, DriveUnits
from ...actuators.friction import FRICTIONLESS, Friction
from ...actuators.parallel_springs import PARALLEL_LAWS, Anchors, ParallelSpring
from ...actuators.parameters import Declared, finite, not_negative, positive, row
from ...actuators.springs import RIGID, SPRINGS
from ..description import JointDescription, RotorDescription
from ..model import Limits
from .section import Section

Law = TypeVar("Law", bound=Declared)

_BOUNDS = ("lower", "upper")
_RATES = ("velocity", "effort", "acceleration", "jerk", "effort_rate", "effort_rms")

_READERS: Mapping[Callable[..., Any], Callable[[Section, str], Any]] = {
    finite: Section.number,
    positive: Section.positive,
    not_negative: Section.not_negative,
    row: Section.row,
}
"""How to read a parameter, by its check."""


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


def with_entries(joint: JointDescription, section: Section, *, actuated: bool = True) -> JointDescription:
    """Return a one-degree-of-freedom joint with the entries of its section in place of its own.

    Args:
        actuated: whether it has a motor; the entries of motor and spring are not read for a joint that has none.
    """
    joint = replace(
        joint,
        limits=section.part("limits", partial(_limits, joint.limits), joint.limits),
        damping=section.not_negative("damping", joint.damping),
        friction=section.not_negative("friction", joint.friction),
        constant_effort=section.number("constant_effort", joint.constant_effort),
        parallel_spring=section.part("parallel_spring", partial(_parallel_spring, joint.type), joint.parallel_spring),
    )
    if not actuated:
        return joint
    joint = replace(
        joint,
        spring=section.part("elasticity", lambda part: read_law(part, SPRINGS), RIGID),
        actuator=section.part("actuator", _actuator, IDEAL_ACTUATOR),
        rotor_inertia=section.not_negative("rotor_inertia", joint.rotor_inertia),
        gear_ratio=section.number("gear_ratio", joint.gear_ratio, "not zero"),
        rotor=section.part("rotor", _rotor, None),
    )
    return replace(joint, drive=section.part("drive", partial(_drive, joint), joint.drive))


def _limits(present: Limits, section: Section) -> Limits:
    lower, upper = (section.number(x) if x in section else getattr(present, x) for x in _BOUNDS)
    rates = {rate: section.positive(rate) for rate in _RATES if rate in section}
    if lower > upper:
        section.refuse("lower", f"must not exceed upper, {upper:g}, is {lower:g}")
    return replace(present, lower=lower, upper=upper, **rates)


def _parallel_spring(joint_type: str, section: Section) -> ParallelSpring:
    law = read_law(section, PARALLEL_LAWS, default="linear")
    if "anchors" not in section:
        return ParallelSpring(law, section.number("rest_position", 0.0))
    if joint_type not in ("revolute", "continuous"):
        section.refuse("anchors", f"a {joint_type} joint has none, only a revolute one; leave them out")
    with section.section("anchors") as anchors:
        return ParallelSpring(law, anchors=Anchors(*(anchors.number(field.name) for field in fields(Anchors))))


def _actuator(section: Section) -> Actuator:
    friction, limits = FRICTIONLESS, dict[str, float]()
    if "friction" in section:
        with section.section("friction") as part:
            friction = _friction(part)
    gear = Gear(**_given(section, "efficiency", "smoothing_power"))
    if "limits" in section:
        with section.section("limits") as part:
            limits = {f"{x}_limit": y for x, y in _given(part, "torque", "speed", "current", "voltage").items()}
    constants = _given(section, "resistance", "back_emf_constant", rule="not negative")
    return Actuator(friction, gear, Motor(**constants, **_given(section, "torque_constant"), **limits))


def _friction(section: Section) -> Friction:
    coulomb = section.not_negative("coulomb", 0.0)
    negative = _given(section, "viscous_negative", "coulomb_negative", rule="not negative")
    largest = max(coulomb, negative.get("coulomb_negative", 0.0))
    return Friction(
        viscous=section.not_negative("viscous", 0.0),
        coulomb=coulomb,
        static=section.not_negative("static") if "static" in section else largest,
        **negative,
        **_given(section, "stribeck_velocity", "smoothing_velocity"),
    )


def _drive(joint: JointDescription, section: Section) -> DriveUnits:
    """Units of the drive of a joint, which has its gear and motor."""
    units = DriveUnits(
        side=section.choice("side", SIDES, SIDES[0], otherwise=SIDES[0]),
        effort=section.choice("effort", EFFORTS, EFFORTS[0], otherwise=EFFORTS[0]),
        sign=section.number("sign", 1.0),
        offset=section.number("offset", 0.0),
        **_given(section, "units_per_turn", "velocity_units_per_turn", "rated_torque"),
    )
    if joint.type == "prismatic" and units.side == "joint":
        for name in ("units_per_turn", "velocity_units_per_turn"):
            if name in section:
                section.refuse(name, "a prismatic joint makes no turns; a drive behind its gear counts m")
    units.scales(joint.gear_ratio, float(joint.actuator.motor.torque_constant))
    return units


def _rotor(section: Section) -> RotorDescription:
    carrier = section.text("carrier") if "carrier" in section else None
    axis = section.vector("axis", 3) if "axis" in section else None
    if axis is not None:
        if not (length := float(np.linalg.norm(axis))):
            section.refuse("axis", "must not be zero")
        axis = axis / length
    return RotorDescription(section.name, carrier, axis)


def _given(section: Section, *names: str, rule: str = "positive") -> dict[str, float]:
    """Those of these entries that the section has, as numbers by a rule."""
    return {name: section.number(name, rule=rule) for name in names if name in section}
