# SPDX-License-Identifier: Apache-2.0
"""Coupled URDF transmissions: two motors that move two joints together, such as differentials.

The plugins of ros_control and ros2_control, with positions x of joints and motors, reductions n of joints and motors:

- ``DifferentialTransmission``: x_j1 = (x_m1/n_m1 + x_m2/n_m2) / (2 n_j1), x_j2 = (x_m1/n_m1 - x_m2/n_m2) / (2 n_j2)
- ``FourBarLinkageTransmission``: x_j1 = x_m1/(n_m1 n_j1), x_j2 = (x_m2/n_m2 - x_m1/(n_m1 n_j1)) / n_j2

The reduction of a motor is the gear ratio of the joint in whose place the motor is, those of the joints are in the
matrix of the :class:`eom_dynamics.actuators.transmission.Transmission`. Offsets between the zeros of motors and joints
have no effect on efforts and are not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ...actuators.transmission import Transmission
from ...arrays import Array
from ..description import SINGLE_TYPES, JointDescription, JointGroup
from .element import Element

_INTERFACE = "transmission_interface/"


_MATRICES = MappingProxyType(
    {
        "DifferentialTransmission": lambda a, b: np.array([[1 / (2 * a), 1 / (2 * a)], [1 / (2 * b), -1 / (2 * b)]]),
        "FourBarLinkageTransmission": lambda a, b: np.array([[1 / a, 0.0], [-1 / (a * b), 1 / b]]),
    }
)
"""By plugin, functions of the reductions of both joints."""


class Coupled(NamedTuple):
    """Coupled transmission of two joints.

    Attributes:
        joints: names of the joints.
        actuators: elements of the motors in the places of the joints.
        matrix: T (2, 2) of theta = T phi.
        where: location in the file.
    """

    joints: tuple[str, str]
    actuators: tuple[Element, Element]
    matrix: Array
    where: str


def read_coupled(element: Element, where: str, ratio: Mapping[int, float]) -> Coupled | None:
    """Read a coupled transmission; None if its kind is unknown or it has not two motors and two joints.

    Args:
        ratio: reductions, by identity of the elements of joints; none is 0.
    """
    named = (child for child in element.children if child.tag in ("type", "plugin"))
    kinds = [child.text or child.attributes.get("plugin", "") for child in named]
    make = _MATRICES.get(kinds[0].strip().removeprefix(_INTERFACE)) if kinds else None
    joints, actuators = _by_role(element.all("joint"), "joint"), _by_role(element.all("actuator"), "actuator")
    if make is None or len(joints) != 2 or len(actuators) != 2:
        return None
    first, second = (joint.attributes.get("name", "") for joint in joints)
    matrix = make(*(ratio[id(joint)] for joint in joints))
    return Coupled((first, second), (actuators[0], actuators[1]), matrix, where)


def unusable(coupled: Coupled, joints: Sequence[JointDescription]) -> str | None:
    """Reason why a transmission cannot drive a robot's joints; None if it can."""
    able = {joint.name for joint in joints if joint.type in SINGLE_TYPES and joint.mimic is None}
    for name in coupled.joints:
        if name not in able:
            return f"{name} is not a joint with a motor of its own"
    return None if coupled.joints[0] != coupled.joints[1] else f"both joints are {coupled.joints[0]}"


def group(coupled: Coupled) -> JointGroup[Transmission]:
    """The transmission as a joint group, for any part of the robot with both joints."""
    return JointGroup(coupled.joints, Transmission(coupled.matrix), coupled.where, optional=True)


def _by_role(elements: Sequence[Element], kind: str) -> list[Element]:
    """Both elements in the order of their roles, ``joint1`` and ``joint2``; in that of the file if they have none."""
    roles = {_role(element): element for element in elements}
    named = [roles.get(f"{kind}{k}") for k in (1, 2)]
    if len(elements) == 2 and all(named):
        return [element for element in named if element is not None]
    return list(elements)


def _role(element: Element) -> str:
    texts = [child.text.strip() for child in element.all("role")]
    return texts[0] if texts else element.attributes.get("role", "")
