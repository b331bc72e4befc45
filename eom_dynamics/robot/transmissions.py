# SPDX-License-Identifier: Apache-2.0
"""The gears that a URDF tells of: how often the motor turns for a turn of the joint, and the motor's inertia.

Read are simple transmissions, one motor on one joint, in the ways that URDF files write them::

    <transmission>                      ros_control, transmission_interface/SimpleTransmission
      <joint name="…"/> <actuator name="…"><mechanicalReduction>100</mechanicalReduction></actuator>
    <ros2_control> <transmission>       ros2_control, the same with <mechanical_reduction> in the joint
    <drake:rotor_inertia value="…"/>    with <drake:gear_ratio value="…"/>, in the joint's transmission's actuator

A motor of inertia J on its own shaft (``motorInertia``, ``drake:rotor_inertia``) is N² J on the link side of a gear
of ratio N. Transmissions that couple several joints are left out, and listed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..exceptions import RobotDescriptionError
from .xml import Element

_RATIO = ("mechanicalReduction", "mechanical_reduction", "drake:gear_ratio")
_INERTIA = ("motorInertia", "motor_inertia", "drake:rotor_inertia")


class Reduction(NamedTuple):
    """Motor turns for a turn of the joint, rotor inertia on the link side in kg m², and how messages name it."""

    ratio: float
    rotor_inertia: float
    where: str


def reductions(robot: Element, source: str) -> tuple[dict[str, Reduction], list[str]]:
    """The gears of a robot by joint, and a line on each transmission that is left out.

    Raises:
        RobotDescriptionError: a ratio is zero or no number, an inertia is negative or no number, or two
            transmissions drive one joint.
    """
    found: dict[str, Reduction] = {}
    left_out = []
    groups = [robot, *robot.all("ros2_control")]
    for element in (element for group in groups for element in group.all("transmission")):
        where = f"transmission {element.attributes.get('name', '')} (line {element.line})"
        joints, actuators = element.all("joint"), element.all("actuator")
        if len(joints) != 1 or len(actuators) > 1:
            left_out.append(f"{where} is left out: it couples several joints or motors")
            continue
        joint = joints[0].attributes.get("name", "")
        ratio, inertia = _value(element, _RATIO, where, source), _value(element, _INERTIA, where, source)
        ratio, inertia = 1.0 if ratio is None else ratio, inertia or 0.0
        if ratio == 0:
            raise RobotDescriptionError(f"{source}: {where}: its reduction must not be 0")
        if inertia < 0:
            raise RobotDescriptionError(f"{source}: {where}: its motor's inertia must not be negative, is {inertia:g}")
        if joint in found:
            raise RobotDescriptionError(f"{source}: {where}: joint {joint!r} has another, {found[joint].where}")
        found[joint] = Reduction(ratio, ratio**2 * inertia, where)
    return found, left_out


def _value(transmission: Element, tags: tuple[str, ...], where: str, source: str) -> float | None:
    """The number that an element of one of these tags holds, as text or ``value``, wherever it stands."""
    for parent in (transmission, *transmission.children):
        for child in parent.children:
            if child.tag in tags:
                text = child.attributes.get("value", child.text).strip()
                try:
                    number = float(text)
                except ValueError:
                    number = math.nan
                if not math.isfinite(number) or "_" in text:
                    raise RobotDescriptionError(
                        f"{source}: {where}: <{child.tag}> must be a finite number, is {text!r:.60}"
                    )
                return number
    return None
