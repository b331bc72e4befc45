# SPDX-License-Identifier: Apache-2.0
"""Entries of joints and of the robot, shared by robot files and additions to a URDF: see docs/actuators.md.

Joints of a robot's own file and joints of a URDF, which they complete, have the same entries. A spring has the
type and the parameters that its class in :mod:`eom_dynamics.actuators.springs` declares. The robot's
``coupled_stiffness: {joints: [a, b], matrix: [K_aa, K_ab, K_ba, K_bb]}`` couples joints without an elasticity of their
own; its ``transmission`` of the same form gives the joint sides of the springs as the matrix times the motor
positions. Payloads are bodies fixed to a link or tool: their mass and inertia, in its frame, are added to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from ...actuators.actuator import Transmission
from ...actuators.drive_units import SI_UNITS
from ...actuators.parallel_springs import PARALLEL_LAWS
from ...actuators.parameters import (
    Declared,
    DeclaredEntry,
    ParameterError,
    declared_entries,
    finite,
    not_negative,
    positive,
    row,
)
from ...actuators.springs import SPRINGS, CoupledSpring, Spring
from ...actuators.springs.base import EffortLaw
from ...arrays import Array
from ...spelling import duplicates, hint, listed
from ..description import SINGLE_TYPES, Description, JointDescription, JointGroup, PayloadEntries, SharedElement
from ..inertia import Inertial, body_violation, symmetric
from .section import Section

Part = TypeVar("Part")

_READERS: Mapping[Callable[..., Any], Callable[[Section, str], Any]] = {
    finite: Section.number,
    positive: Section.positive,
    not_negative: Section.not_negative,
    row: Section.row,
}
"""How to read a parameter, by its check."""


_LAWS: Mapping[type, tuple[Mapping[str, type[Declared]], str | None]] = {
    Spring: (SPRINGS, None),
    EffortLaw: (PARALLEL_LAWS, "linear"),
}
"""Kinds of a law by their type in files, and the default type of an entry."""


def _law(of: type, section: Section) -> Declared:
    """Read the type of a law and its parameters."""
    kinds, default = _LAWS[of]
    kind = kinds[section.choice("type", sorted(kinds), default)]
    return kind(
        **{
            attribute: _READERS[declared.check](section, declared.name)
            for attribute, declared in kind.parameters().items()
            # A dataclass keeps the default of a field as an attribute of the class.
            if declared.name in section or not hasattr(kind, attribute)
        }
    )


def declared_values(kind: type, section: Section, present: Any = None, *, actuated: bool = True) -> dict[str, Any]:
    """Values of a section, by attribute, for the entries that a class declares.

    Parts that complete ``present``, an object of the class, keep its other values. The entries of motor and
    spring are read for an ``actuated`` joint only.
    """
    declared = [each for each in declared_entries(kind) if actuated or not each.entry.of_motor]
    values: dict[str, Any] = {}
    for name in dict.fromkeys(each.entry.section for each in declared):
        read = partial(_values, [each for each in declared if each.entry.section == name], present)
        values |= section.part(name, read, {}) if name else read(section)
    return values


def _values(declared: Sequence[DeclaredEntry], present: Any, section: Section) -> dict[str, Any]:
    return {
        each.attribute: _value(each, getattr(present, each.attribute, each.default), section)
        for each in declared
        if each.entry.is_inline or each.name in section or each.is_required
    }


def _value(declared: DeclaredEntry, present: Any, section: Section) -> Any:
    """Value of one entry, or of the part that it is."""
    _, name, kind, _, entry = declared
    if kind is float:
        return section.number(name, rule=entry.rule)
    if kind is np.ndarray or (kind is tuple and not entry.options):
        numbers = section.row(name) if entry.size is None else section.vector(name, entry.size)
        return numbers if kind is np.ndarray else tuple(numbers.tolist())
    if kind is tuple:
        return section.attempt(partial(_selection, name, entry.options), ())
    if kind is bool and not entry.options:
        return section.attempt(lambda part: part.flag(name), False)
    if entry.options:
        choice = section.choice(name, entry.options, otherwise=entry.options[0])
        return entry.options.index(choice) > 0 if kind is bool else choice
    if kind is str:
        return section.text(name)
    read = partial(_law, kind) if kind in _LAWS else partial(read_part, kind, present if entry.completes else None)
    return read(section) if entry.is_inline else section.part(name, read, present, declared_form(kind))


def read_part(kind: type[Part], present: Part | None, section: Section) -> Part:
    """Read a part by the entries that its class declares; other values are as in ``present``, or defaults.

    A part that names its place in files, ``where``, is given it.
    """
    declared = () if present is None else declared_entries(kind)  # type: ignore[arg-type]
    values = {each.attribute: getattr(present, each.attribute) for each in declared}
    place = {"where": section.name} if "where" in kind.__annotations__ else {}
    return kind(**place, **values | declared_values(kind, section))


def declared_form(kind: type) -> str:
    """Form of the section of a part, for errors; empty if its entries depend on its type."""
    names = [each.name for each in declared_entries(kind) if not each.entry.is_inline and not each.entry.section]
    return f"a section with {', '.join(names)}" if names else ""


def _selection(name: str, options: Sequence[str], section: Section) -> tuple[str, ...]:
    """Several of the options, in their order."""
    texts = section.texts(name)
    for text in texts:
        if text not in options:
            section.refuse(name, f"{text!r:.60} is not one of {', '.join(options)}")
    for text in duplicates(texts):
        section.refuse(name, f"{text!r} is listed twice")
    return tuple(option for option in options if option in texts)


def with_entries(joint: JointDescription, section: Section, *, actuated: bool = True) -> JointDescription:
    """Return a one-degree-of-freedom joint with the entries of its section; other properties remain.

    The entries of motor and spring are read for an actuated joint only.
    """
    joint = replace(joint, **declared_values(JointDescription, section, joint, actuated=actuated))
    section.attempt(partial(_check_joint, joint), None)
    return joint


def _check_joint(joint: JointDescription, section: Section) -> None:
    """Refuse entries that contradict each other, or the type of the joint."""
    spring, limits = joint.parallel_spring, joint.limits
    if limits.lower > limits.upper:
        section.refuse("limits.lower", f"must not exceed upper, {limits.upper:g}, is {limits.lower:g}")
    if spring is not None and spring.anchors is not None and joint.type not in ("revolute", "continuous"):
        section.refuse("parallel_spring.anchors", f"a {joint.type} joint has none, only a revolute one; leave them out")
    units = joint.drive
    try:
        units.scales(joint.gear_ratio, float(joint.actuator.motor.torque_constant))
    except ParameterError as error:
        section.refuse(f"drive.{error.name}", error.reason)
    if joint.type == "prismatic" and units.side != "motor":
        for name in ("units_per_turn", "velocity_units_per_turn"):
            if getattr(units, name) != getattr(SI_UNITS, name):
                reason = (
                    'a prismatic joint makes no turns; leave it out (m), or write "side: motor" for turns of the motor'
                )
                section.refuse(f"drive.{name}", reason)


def with_robot_entries(description: Description, robot: Section, *, groups: bool = True) -> Description:
    """Return a robot with these entries taken from its section; others remain.

    With ``groups``, the spring and the transmission of several joints are read as well.
    """
    robot.skip("coupled_stiffness", "transmission")  # even if other errors prevent reading them
    coupled, transmissions = description.coupled_stiffness, description.transmissions
    if groups:
        spring, transmission = robot.attempt(partial(_groups, description.joints), (None, None))
        coupled = spring or coupled
        if transmission is not None:
            joints = set(transmission.joints)
            transmissions = (*(group for group in transmissions if not joints & set(group.joints)), transmission)
    description = replace(
        description,
        coupled_stiffness=coupled,
        transmissions=transmissions,
        **declared_values(Description, robot, description),
    )
    robot.attempt(partial(_check_compensations, description.compensated_by_robot), None)
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
        single = [joint.name for joint in actuated if len(joint.spring.motor_suffixes) == 1]
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


def _check_compensations(names: Sequence[str], robot: Section) -> None:
    if "payload" in names and not {"gravity", "coriolis"} & set(names):
        robot.refuse("compensated_by_robot", "payload is a part of gravity and coriolis: add one of them")


def _with_payloads(description: Description, robot: Section) -> Description:
    """Return a robot with the payloads of its section, if any."""
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
        mass, center_of_mass, moments = read_part(PayloadEntries, None, section)
        payload = Inertial.about_center(mass, center_of_mass, symmetric(*moments))
        if section.has_errors:
            return Inertial.massless()
        if violation := body_violation(payload):
            section.refuse("inertia", f"{violation}; the order is xx xy xz yy yz zz, about the center of mass")
    return payload
