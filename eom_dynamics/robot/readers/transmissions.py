# SPDX-License-Identifier: Apache-2.0
"""Gear ratios and rotor inertias from the transmissions of a URDF.

Simple transmissions, one motor on one joint, are read in the forms in use::

    <transmission>                      ros_control, transmission_interface/SimpleTransmission
      <joint name="…"/> <actuator name="…"><mechanicalReduction>100</mechanicalReduction></actuator>
    <ros2_control> <transmission>       ros2_control, the same with <mechanical_reduction> in the joint
    <drake:rotor_inertia value="…"/>    with <drake:gear_ratio value="…"/>, in the actuator of the transmission

The inertia J of a rotor about its own shaft (``motorInertia``, ``drake:rotor_inertia``) is N² J on the link side of a
gear of ratio N. Transmissions that couple several joints are left out, and listed.
"""

from __future__ import annotations

from typing import NamedTuple

from .element import Element
from .numbers import negative_violation

_RATIO = ("mechanicalReduction", "mechanical_reduction", "drake:gear_ratio")
_INERTIA = ("motorInertia", "motor_inertia", "drake:rotor_inertia")


class Reduction(NamedTuple):
    """Gear ratio, rotor inertia on the link side in kg m², and the location in the file."""

    ratio: float
    rotor_inertia: float
    where: str


def reductions(robot: Element) -> tuple[dict[str, Reduction], list[str]]:
    """The reductions of a robot by joint name, and one line for each transmission that is left out.

    Raises:
        RobotDescriptionError: a ratio is zero or not a number, an inertia is negative or not a number, or two
            transmissions drive the same joint.
    """
    found: dict[str, Reduction] = {}
    left_out = []
    groups = [robot, *robot.all("ros2_control")]
    for element in (element for group in groups for element in group.all("transmission")):
        element.where = f"transmission {element.attributes.get('name', '')}"
        where = f"{element.where} (line {element.line})"
        joints, actuators = element.all("joint"), element.all("actuator")
        if len(joints) != 1 or len(actuators) > 1:
            left_out.append(f"{where} is left out: it couples several joints or motors")
            continue
        joint = joints[0].attributes.get("name", "")
        ratio, inertia = _value(element, _RATIO), _value(element, _INERTIA)
        ratio, inertia = 1.0 if ratio is None else ratio, inertia or 0.0
        if ratio == 0:
            element.refuse("the reduction must not be 0")
        if reason := negative_violation(inertia):
            element.refuse(f"the motor inertia {reason}")
        if joint in found:
            element.refuse(f"joint {joint!r} already has {found[joint].where}")
        found[joint] = Reduction(ratio, ratio**2 * inertia, where)
    return found, left_out


def _value(transmission: Element, tags: tuple[str, ...]) -> float | None:
    """The number in the first descendant with one of these tags, as its text or attribute ``value``."""
    for parent in (transmission, *transmission.children):
        for child in parent.children:
            if child.tag in tags:
                return transmission.parse(f"<{child.tag}>", child.attributes.get("value", child.text))
    return None
