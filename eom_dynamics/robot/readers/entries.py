# SPDX-License-Identifier: Apache-2.0
"""Entries of joints and of the robot, shared by robot files and additions to a URDF: see docs/actuators.md.

They are the same for the joints of a robot's own file and for those of a URDF, which they complete. A spring has the
type and the parameters that its class in :mod:`eom_dynamics.actuators.springs` declares. The robot's
``coupled_stiffness: {joints: [a, b], matrix: [K_aa, K_ab, K_ba, K_bb]}`` couples joints without an elasticity of their
own; its ``transmission`` of the same form gives the joint sides of the springs as the matrix times the motor
positions. Payloads are bodies fixed to a link or tool, whose mass and inertia are added to it, by its name and in its
frame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from ...actuators.actuator import Actuator, Gear, Motor
from ...actuators.drive_units import EFFORTS, SIDES, DriveUnits
from ...actuators.friction import FRICTIONLESS, Friction
from ...actuators.parallel_springs import PARALLEL_LAWS, Anchors, ParallelSpring
from ...actuators.parameters import Declared, finite, not_negative, positive, row
from ...actuators.springs import SPRINGS, CoupledSpring
from ...actuators.transmission import Transmission
from ...arrays import Array
from ...spelling import duplicates, hint, listed
from ..description import SINGLE_TYPES, Description, JointDescription, JointGroup, RotorDescription, SharedElement
from ..inertia import Inertial, body_violation, symmetric
from ..model import (
    COMPENSATIONS,
    DRIVE_INTERPOLATIONS,
    ENDS,
    JOINT_FRICTION,
    ROTOR_MODELS,
    EffortSpread,
    FeedbackDelay,
    Limits,
    ModelUncertainty,
)
from .section import Section

Law = TypeVar("Law", bound=Declared)
Numbers = TypeVar("Numbers", FeedbackDelay, ModelUncertainty)

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

    The entries of motor and spring are read for an actuated joint only.
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
        spring=section.part("elasticity", lambda part: read_law(part, SPRINGS), joint.spring),
        actuator=section.part("actuator", _actuator, joint.actuator),
        rotor_inertia=section.not_negative("rotor_inertia", joint.rotor_inertia),
        gear_ratio=section.number("gear_ratio", joint.gear_ratio, "not zero"),
        rotor=section.part("rotor", _rotor, joint.rotor),
        effort_spread=section.part("effort_spread", _effort_spread, joint.effort_spread),
    )
    return replace(joint, drive=section.part("drive", partial(_drive, joint), joint.drive))


def _limits(present: Limits, section: Section) -> Limits:
    given = {x: section.number(x) if x in ENDS else section.positive(x) for x in vars(present) if x in section}
    limits = replace(present, **given)
    if limits.lower > limits.upper:
        section.refuse("lower", f"must not exceed upper, {limits.upper:g}, is {limits.lower:g}")
    return limits


def _parallel_spring(joint_type: str, section: Section) -> ParallelSpring:
    law = read_law(section, PARALLEL_LAWS, default="linear")
    if "anchors" not in section:
        return ParallelSpring(law, section.number("rest_position", 0.0))
    if joint_type not in ("revolute", "continuous"):
        section.refuse("anchors", f"a {joint_type} joint has none, only a revolute one; leave them out")
    with section.section("anchors") as anchors:
        return ParallelSpring(law, anchors=Anchors(*(anchors.number(field.name) for field in fields(Anchors))))


def _actuator(section: Section) -> Actuator:
    friction = section.part("friction", _friction, FRICTIONLESS)
    gear = Gear(**_given(section, "efficiency", "smoothing_power"))
    limits = section.part("limits", lambda part: _given(part, "torque", "speed", "current", "voltage"), {})
    constants = _given(section, "resistance", "back_emf_constant", rule="not negative")
    constants |= _given(section, "torque_constant") | {f"{name}_limit": limit for name, limit in limits.items()}
    return Actuator(friction, gear, Motor(**constants))


def _friction(section: Section) -> Friction:
    coulomb = section.not_negative("coulomb", 0.0)
    negative = _given(section, "viscous_negative", "coulomb_negative", rule="not negative")
    largest = max(coulomb, negative.get("coulomb_negative", 0.0))
    return Friction(
        viscous=section.not_negative("viscous", 0.0),
        coulomb=coulomb,
        static=section.not_negative("static") if "static" in section else largest,
        **negative,
        **_given(section, "stribeck_velocity", "smoothing_velocity", "presliding_distance"),
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


def _effort_spread(section: Section) -> EffortSpread:
    velocity, deviation = (section.row(name) for name in ("velocity", "deviation"))
    if velocity[0] < 0 or not (np.diff(velocity) > 0).all():
        section.refuse("velocity", f"must not be negative, and must increase, is {velocity.tolist()}")
    if len(deviation) != len(velocity) or not (deviation > 0).all():
        section.refuse("deviation", f"must be positive, one for each velocity, is {deviation.tolist()}")
    rows, time = (tuple(velocity.tolist()), tuple(deviation.tolist())), section.positive("correlation_time")
    noise = section.not_negative("noise", 0.0), section.number("noise_time", 1e-3, "positive")
    return EffortSpread(*rows, time, *noise, section.not_negative("velocity_noise", 0.0))


def _given(section: Section, *names: str, rule: str = "positive") -> dict[str, float]:
    """Those of these entries that the section has, as numbers by a rule."""
    return {name: section.number(name, rule=rule) for name in names if name in section}


def with_robot_entries(description: Description, robot: Section, *, groups: bool = True) -> Description:
    """Return a robot with these entries taken from its section; others remain.

    With ``groups`` the spring and the transmission that several joints share are read, too.
    """
    robot.skip("coupled_stiffness", "transmission")  # also where others prevent reading them
    coupled, transmissions = description.coupled_stiffness, description.transmissions
    if groups:
        spring, transmission = robot.attempt(partial(_groups, description.joints), (None, None))
        coupled = spring or coupled
        if transmission is not None:
            joints = set(transmission.joints)
            transmissions = (*(group for group in transmissions if not joints & set(group.joints)), transmission)
    ignored = JOINT_FRICTION[0]
    friction = robot.choice(
        "joint_friction", JOINT_FRICTION, JOINT_FRICTION[description.joint_friction], otherwise=ignored
    )
    description = replace(
        description,
        coupled_stiffness=coupled,
        transmissions=transmissions,
        rotor_model=robot.choice("rotor_model", ROTOR_MODELS, description.rotor_model, otherwise=ROTOR_MODELS[0]),
        joint_friction=friction != ignored,
        command_period=robot.not_negative("command_period", description.command_period),
        drive_delay=robot.not_negative("drive_delay", description.drive_delay),
        drive_interpolation=robot.choice(
            "drive_interpolation", tuple(DRIVE_INTERPOLATIONS), description.drive_interpolation, otherwise="none"
        ),
        # References of an age are their Taylor polynomials.
        drive_feedback_delay=_numbers(
            description.drive_feedback_delay, "drive_feedback_delay", "[0, 0.1]", "SECONDS", robot
        ),
        uncertainty=_numbers(description.uncertainty, "uncertainty", "[0, 1)", "FRACTION", robot),
        compensated_by_robot=robot.attempt(partial(_compensations, description.compensated_by_robot), ()),
    )
    return robot.attempt(partial(_with_payloads, description), description)


def _groups(
    joints: Sequence[JointDescription], robot: Section
) -> tuple[JointGroup[CoupledSpring] | None, JointGroup[Transmission] | None]:
    """The coupled spring and the transmission; None where absent. An error in one leaves the other unread."""
    actuated = [joint for joint in joints if joint.type in SINGLE_TYPES and joint.mimic is None]
    coupled = transmission = None
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
    with robot.section(key) as section:
        names = tuple(section.names("joints"))
        for name in names:
            if name not in joints:
                section.refuse("joints", f"{name!r} is not a joint {what}; those are {listed(joints) or 'none'}")
        if len(names) < 2:
            section.refuse("joints", "must be at least two")
        g = len(names)
        return JointGroup(names, make(section.vector("matrix", g * g).reshape(g, g)), section.name)


def _numbers(present: Numbers, key: str, rule: str, unit: str, robot: Section) -> Numbers:
    """A section of numbers; those that are not given remain."""
    if key not in robot:
        return present
    form = ", ".join(f"{name}: {unit}" for name in present._fields)
    with robot.section(key, f"{{{form}}}") as section:
        return present._replace(**{name: section.number(name, x, rule) for name, x in present._asdict().items()})


def _compensations(present: tuple[str, ...], robot: Section) -> tuple[str, ...]:
    """The efforts that the robot adds itself, in the order of COMPENSATIONS."""
    key = "compensated_by_robot"
    if key not in robot:
        return present
    names = robot.texts(key)
    for name in names:
        if name not in COMPENSATIONS:
            robot.refuse(key, f"{name!r:.60} is not one of {', '.join(COMPENSATIONS)}")
    for name in duplicates(names):
        robot.refuse(key, f"{name!r} is listed twice")
    if "payload" in names and not {"gravity", "coriolis"} & set(names):
        robot.refuse(key, "payload needs gravity or coriolis beside it, of which it is a part")
    return tuple(name for name in COMPENSATIONS if name in names)


def _with_payloads(description: Description, robot: Section) -> Description:
    """Return a robot with the payloads of its section, which may have none."""
    if "payloads" not in robot:
        return description
    links = dict(description.links)
    frames = {frame.name: frame for frame in description.frames}
    with robot.section("payloads") as payloads:
        for name in payloads:
            payload = payloads.attempt(partial(_read, name, [*links, *frames]), None)
            if payload is None:
                continue
            if name in frames:
                payload = payload.moved(frames[name].pose)
            link = links[frames[name].link if name in frames else name]
            links[link.name] = replace(link, inertial=(link.inertial or Inertial.massless()) + payload)
    return replace(description, links=links)


def _read(name: str, known: Sequence[str], payloads: Section) -> Inertial:
    """The payload at a link or frame of those known, in its frame."""
    if name in payloads and name not in known:
        payloads.refuse(name, f"there is no link or tool of this name; {hint(name, known)}")
    with payloads.section(name) as section:
        payload = Inertial.about_center(
            section.positive("mass"),
            section.vector("center_of_mass", 3, default=np.zeros(3).tolist()),
            symmetric(*section.vector("inertia", 6, default=np.zeros(6).tolist())),
        )
        if section.has_errors:
            return Inertial.massless()
        if violation := body_violation(payload):
            section.refuse("inertia", f"{violation}; the order is xx xy xz yy yz zz, about the centre of mass")
    return payload
