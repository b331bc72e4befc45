# SPDX-License-Identifier: Apache-2.0
"""Rotors as separate bodies on the links that carry them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .. import lie
from ..arrays import Array
from ..spelling import unused_name
from .model import Joint, Robot, RotorMount

_Z = np.array([0.0, 0.0, 1.0])


class RotorBody(NamedTuple):
    """A rotor on the motor side of its gear.

    Attributes:
        name: name of the motor.
        mount: body that carries it, and spin axis.
        inertia: about the spin axis, kg m².
    """

    name: str
    mount: RotorMount
    inertia: float


def with_rotor_bodies(robot: Robot, rotors: Sequence[RotorBody]) -> Robot:
    """Add a body for each rotor to a robot; the rotor angles, rad, follow the joint variables.

    A rotor has inertia about its spin axis only: its mass and its transverse inertia belong to the link that carries
    it, whether or not it spins. The dynamics do not depend on the rotor angles.

    Args:
        robot: the robot.
        rotors: in the order of their angles.
    """
    bodies = [_body(robot, rotor) for rotor in rotors]
    return replace(robot, joints=(*robot.joints, *bodies), coupled_stiffness=None, transmission=None)


def _body(robot: Robot, rotor: RotorBody) -> Joint:
    return Joint(
        name=unused_name(f"{rotor.name}_rotor", {joint.name for joint in robot.joints}),
        screw=np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]),
        reference_pose=lie.pose(_rotation_to(rotor.mount.axis), np.zeros(3)),
        parent=rotor.mount.carrier,
        mass=0.0,
        center_of_mass=np.zeros(3),
        inertia_about_origin=np.diag([0.0, 0.0, rotor.inertia]),
    )


def _rotation_to(axis: Array) -> Array:
    """A rotation matrix (3, 3) whose third column is the axis, with exact zeros and ones for an axis along z."""
    if abs(axis @ _Z) == 1.0:
        return np.diag([1.0, axis[2], axis[2]])
    x = np.cross(_Z, axis)
    x = x / np.linalg.norm(x)
    return np.stack([x, np.cross(axis, x), axis], axis=1)
