# SPDX-License-Identifier: Apache-2.0
"""Gear ratios and rotor inertias from the transmissions of a URDF.

Simple transmissions, one motor on one joint, are read in the forms in use::

    <transmission>                      ros_control, transmission_interface/SimpleTransmission
      <joint name="…"/> <actuator name="…"><mechanicalReduction>100</mechanicalReduction></actuator>
    <ros2_control> <transmission>       ros2_control, the same with <mechanical_reduction> in the joint
    <drake:rotor_inertia value="…"/>    with <drake:gear_ratio value="…"/>, in the actuator of the transmission

The inertia J of a rotor about its own shaft (``motorInertia``, ``drake:rotor_inertia``) is N² J on the link side of a
gear of ratio N.

Transmissions with two motors that move two joints together are read from plugins of ros_control and ros2_control,
with positions x of joints and motors, reductions n of joints and motors; others are left out, and listed:

- ``DifferentialTransmission``: x_j1 = (x_m1/n_m1 + x_m2/n_m2) / (2 n_j1), x_j2 = (x_m1/n_m1 - x_m2/n_m2) / (2 n_j2)
- ``FourBarLinkageTransmission``: x_j1 = x_m1/(n_m1 n_j1), x_j2 = (x_m2/n_m2 - x_m1/(n_m1 n_j1)) / n_j2

The reduction of a motor is the gear ratio of its joint; the reductions of joints are in the matrix of the
:class:`eom_dynamics.actuators.transmission.Transmission`. Offsets between the zeros of motors and joints have no
effect on efforts and are not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from ..description import SINGLE_TYPES, JointDescription
from .xml import Element

_MATRICES = MappingProxyType(
    {
        "DifferentialTransmission": lambda a, b: np.array([[1 / (2 * a), 1 / (2 * a)], [1 / (2 * b), -1 / (2 * b)]]),
        "FourBarLinkageTransmission": lambda a, b: np.array([[1 / a, 0.0], [-1 / (a * b), 1 / b]]),
    }
)
"""By plugin, functions of the reductions of both joints."""

_RATIO = ("mechanicalReduction", "mechanical_reduction", "drake:gear_ratio")
_INERTIA = ("motorInertia", "motor_inertia", "drake:rotor_inertia")


class Reduction(NamedTuple):
    """Gear ratio, rotor inertia on the link side in kg m², and the location in the file."""

    ratio: float
    rotor_inertia: float
    where: str


class Coupled(NamedTuple):
    """Matrix T (2, 2), theta = T phi, of two joints by name, with the reductions of the motors in their places."""

    joints: tuple[str, str]
    motors: tuple[Reduction, Reduction]
    matrix: Array
    where: str

    def unusable(self, joints: Sequence[JointDescription]) -> str | None:
        """Reason why the transmission cannot drive a robot's joints; None if it can."""
        able = {joint.name for joint in joints if joint.type in SINGLE_TYPES and joint.mimic is None}
        for name in self.joints:
            if name not in able:
                return f"{name} is not a joint with a motor of its own"
        return None if self.joints[0] != self.joints[1] else f"both joints are {self.joints[0]}"


def transmissions(robot: Element) -> tuple[dict[str, Reduction], list[Coupled], list[str]]:
    """Read the transmissions of a robot: simple ones by joint name, transmissions of two joints, a line for each other.

    Raises RobotDescriptionError if a ratio is zero or not a number, an inertia is negative or not a number, or two
    transmissions drive the same joint.
    """
    reductions, pairs, left_out, driven = dict[str, Reduction](), list[Coupled](), list[str](), dict[str, str]()
    groups = [robot, *robot.all("ros2_control")]
    for element in (element for group in groups for element in group.all("transmission")):
        element.where = f"transmission {element.attributes.get('name', '')}"
        where = f"{element.where} (line {element.line})"
        joints, actuators = element.all("joint"), element.all("actuator")
        if len(joints) == 1 and len(actuators) <= 1:
            names = [joints[0].attributes.get("name", "")]
            reductions.setdefault(names[0], _reduction(element, (element, *element.children), where))
        elif coupled := _coupled(element, where):
            names = list(coupled.joints)
            pairs.append(coupled)
        else:
            left_out.append(f"{where} is left out: it couples several joints or motors")
            continue
        for joint in dict.fromkeys(names):
            if joint in driven:
                element.refuse(f"joint {joint!r} already has {driven[joint]}")
            driven[joint] = where
    return reductions, pairs, left_out


def _coupled(element: Element, where: str) -> Coupled | None:
    """Read a coupled transmission; None if its kind is unknown or it has not two motors and two joints."""
    joints, actuators = (_by_role(element.all(kind), kind) for kind in ("joint", "actuator"))
    reductions = [_reduction(element, (joint,), where).ratio for joint in joints]
    named = (child for child in element.children if child.tag in ("type", "plugin"))
    kinds = [child.text or child.attributes.get("plugin", "") for child in named]
    matrix = _MATRICES.get(kinds[0].strip().removeprefix("transmission_interface/")) if kinds else None
    if matrix is None or len(joints) != 2 or len(actuators) != 2:
        return None
    first, second = (joint.attributes.get("name", "") for joint in joints)
    motors = _reduction(element, actuators[:1], where), _reduction(element, actuators[1:], where)
    return Coupled((first, second), motors, matrix(*reductions), where)


def _by_role(elements: Sequence[Element], kind: str) -> Sequence[Element]:
    """Both elements in the order of their roles, ``joint1`` and ``joint2``; in the order of the file without roles."""
    roles = {}
    for element in elements:
        texts = [child.text.strip() for child in element.all("role")]
        roles[texts[0] if texts else element.attributes.get("role", "")] = element
    named = [roles[role] for role in (f"{kind}1", f"{kind}2") if role in roles]
    return named if len(elements) == len(named) == 2 else elements


def _reduction(transmission: Element, parts: Sequence[Element], where: str) -> Reduction:
    """The reduction and rotor inertia that children of these parts of a transmission give."""
    ratio = _value(transmission, parts, _RATIO, 1.0)
    if ratio == 0:
        transmission.refuse("the reduction must not be 0")
    inertia = _value(transmission, parts, _INERTIA, 0.0, "not negative")
    return Reduction(ratio, ratio**2 * inertia, where)


def _value(
    transmission: Element, parts: Sequence[Element], tags: Sequence[str], default: float, rule: str = "finite"
) -> float:
    """The number in the first child of these parts with one of these tags, as its text or attribute ``value``."""
    for child in (child for part in parts for child in part.children):
        if child.tag in tags:
            return transmission.parse(f"<{child.tag}>", child.attributes.get("value", child.text), rule)
    return default
