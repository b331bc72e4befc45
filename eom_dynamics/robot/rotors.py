# SPDX-License-Identifier: Apache-2.0
"""A robot with its rotors as bodies of their own, each on the link that carries it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import lie
from .model import Frame, Joint, Robot, RotorMount

Array = NDArray[np.float64]

_Z = np.array([0.0, 0.0, 1.0])


class RotorBody(NamedTuple):
    """A rotor before its gear.

    Attributes:
        name: of its motor.
        mount: where it spins.
        inertia: about the axis of its spin, kg m².
    """

    name: str
    mount: RotorMount
    inertia: float


def with_rotor_bodies(robot: Robot, rotors: Sequence[RotorBody]) -> Robot:
    """The robot with a body for each rotor; the rotors' angles come after the joint variables.

    A rotor has inertia about its spin axis alone. Its mass and its inertia about the axes across belong to the link
    that carries it, which feels them whether or not the rotor spins. The angle of a rotor changes nothing.

    Args:
        robot: the robot.
        rotors: in the order of their angles, rad.
    """
    bodies = [_body(robot, rotor) for rotor in rotors]
    frames: tuple[Frame, ...] = robot.tools
    return replace(robot, joints=(*robot.joints, *bodies), tools=frames, coupled_stiffness=None, transmission=None)


def _body(robot: Robot, rotor: RotorBody) -> Joint:
    taken = {joint.name for joint in robot.joints}
    name = f"{rotor.name}_rotor"
    while name in taken:
        name += "_"
    return Joint(
        name=name,
        screw=np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]),
        reference_pose=lie.pose(_rotation_to(rotor.mount.axis), np.zeros(3)),
        parent=rotor.mount.carrier,
        mass=0.0,
        center_of_mass=np.zeros(3),
        inertia_about_origin=np.diag([0.0, 0.0, rotor.inertia]),
    )


def _rotation_to(axis: Array) -> Array:
    """A rotation matrix (3, 3) whose third column is the axis, made of zeros and ones where it can be."""
    if abs(axis @ _Z) == 1.0:
        return np.diag([1.0, axis[2], axis[2]])
    x = np.cross(_Z, axis)
    x = x / np.linalg.norm(x)
    return np.stack([x, np.cross(axis, x), axis], axis=1)
