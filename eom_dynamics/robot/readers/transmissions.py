# SPDX-License-Identifier: Apache-2.0
"""Gear ratios and rotor inertias from the transmissions of a URDF.

Simple transmissions, one motor on one joint, are read in the forms in use::

    <transmission>                      ros_control, transmission_interface/SimpleTransmission
      <joint name="…"/> <actuator name="…"><mechanicalReduction>100</mechanicalReduction></actuator>
    <ros2_control> <transmission>       ros2_control, the same with <mechanical_reduction> in the joint
    <drake:rotor_inertia value="…"/>    with <drake:gear_ratio value="…"/>, in the actuator of the transmission

The inertia J of a rotor about its own shaft (``motorInertia``, ``drake:rotor_inertia``) is N² J on the link side of a
gear of ratio N. Transmissions that couple two joints are read by :mod:`.coupled_transmissions`; others are left out,
and listed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...number_rules import violation
from .coupled_transmissions import Coupled, read_coupled
from .element import Element

_RATIO = ("mechanicalReduction", "mechanical_reduction", "drake:gear_ratio")
_INERTIA = ("motorInertia", "motor_inertia", "drake:rotor_inertia")


class Reduction(NamedTuple):
    """Gear ratio, rotor inertia on the link side in kg m², and the location in the file."""

    ratio: float
    rotor_inertia: float
    where: str


class Transmissions(NamedTuple):
    """Transmissions of a URDF.

    Attributes:
        reductions: of simple transmissions, by joint name.
        coupled: transmissions of two joints, with the reductions of the motors in the places of the joints.
        left_out: one line for each of the others.
    """

    reductions: dict[str, Reduction]
    coupled: list[tuple[Coupled, dict[str, Reduction]]]
    left_out: list[str]


def transmissions(robot: Element) -> Transmissions:
    """Read the transmissions of a robot.

    Raises:
        RobotDescriptionError: a ratio is zero or not a number, an inertia is negative or not a number, or two
            transmissions drive the same joint.
    """
    found, driven = Transmissions({}, [], []), dict[str, str]()
    groups = [robot, *robot.all("ros2_control")]
    for element in (element for group in groups for element in group.all("transmission")):
        element.where = f"transmission {element.attributes.get('name', '')}"
        where = f"{element.where} (line {element.line})"
        joints, actuators = element.all("joint"), element.all("actuator")
        if len(joints) == 1 and len(actuators) <= 1:
            parts = (element, *element.children)
            names = [joints[0].attributes.get("name", "")]
            found.reductions.setdefault(names[0], _reduction(element, parts, where))
        else:
            ratios = {id(joint): _reduction(element, (joint,), where).ratio for joint in joints}
            coupled = read_coupled(element, where, ratios)
            if coupled is None:
                found.left_out.append(f"{where} is left out: it couples several joints or motors")
                continue
            names = list(coupled.joints)
            motors = [_reduction(element, (motor,), where) for motor in coupled.actuators]
            found.coupled.append((coupled, dict(zip(names, motors, strict=True))))
        for joint in dict.fromkeys(names):
            if joint in driven:
                element.refuse(f"joint {joint!r} already has {driven[joint]}")
            driven[joint] = where
    return found


def _reduction(transmission: Element, parts: Iterable[Element], where: str) -> Reduction:
    """The reduction and rotor inertia that children of these parts of a transmission give."""
    given = list(parts)
    ratio, inertia = _value(transmission, given, _RATIO), _value(transmission, given, _INERTIA)
    ratio, inertia = 1.0 if ratio is None else ratio, inertia or 0.0
    if ratio == 0:
        transmission.refuse("the reduction must not be 0")
    if reason := violation(inertia, "not negative"):
        transmission.refuse(f"the motor inertia {reason}")
    return Reduction(ratio, ratio**2 * inertia, where)


def _value(transmission: Element, parts: Iterable[Element], tags: tuple[str, ...]) -> float | None:
    """The number in the first child of these parts with one of these tags, as its text or attribute ``value``."""
    for part in parts:
        for child in part.children:
            if child.tag in tags:
                return transmission.parse(f"<{child.tag}>", child.attributes.get("value", child.text))
    return None
