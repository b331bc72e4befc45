# SPDX-License-Identifier: Apache-2.0
"""What joints of all types come down to: joints with one variable each, or none.

Planar and floating joints are rows of joints with one variable each, which bodies without mass connect.

A planar joint named ``j`` becomes ``j_x``, ``j_y`` (slides along the axes of its plane) and ``j_yaw`` (a turn about
its normal); a floating one ``j_x``, ``j_y``, ``j_z`` and then ``j_yaw``, ``j_pitch``, ``j_roll``: its rotation is
that of the URDF convention, Rz(yaw) Ry(pitch) Rx(roll), whose rates are singular at a pitch of ±pi/2.

The axes of a plane are those of the child link's frame at 0 where the normal is its z axis; for another normal,
that frame is first turned the shortest way to bring z to the normal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import lie
from .description import JointDescription

Array = NDArray[np.float64]


class Element(NamedTuple):
    """One joint of a row: its name, and its screw (6,) in the child link's frame."""

    name: str
    screw: Array


def elements(joint: JointDescription) -> list[Element]:
    """The row of single joints that a joint which moves consists of, from the parent to the child.

    All of them have their frame where the child link is at 0.
    """
    if joint.type == "planar":
        x, y, z = _plane(joint.screw[:3])
        return [
            Element(f"{joint.name}_x", _slide(x)),
            Element(f"{joint.name}_y", _slide(y)),
            Element(f"{joint.name}_yaw", _turn(z)),
        ]
    if joint.type == "floating":
        x, y, z = np.eye(3)
        slides = [Element(f"{joint.name}_{name}", _slide(axis)) for name, axis in (("x", x), ("y", y), ("z", z))]
        turns = [Element(f"{joint.name}_{name}", _turn(axis)) for name, axis in (("yaw", z), ("pitch", y), ("roll", x))]
        return slides + turns
    return [Element(joint.name, joint.screw)]


def frozen(joint: JointDescription) -> JointDescription:
    """The joint fixed where its own variable, or that of its leader, is zero."""
    if joint.mimic is None or joint.type == "fixed":
        return replace(joint, type="fixed", mimic=None)
    origin = joint.origin @ lie.exp(joint.screw, joint.mimic.offset)
    return replace(joint, type="fixed", mimic=None, origin=origin)


def _slide(axis: Array) -> Array:
    return np.concatenate([np.zeros(3), axis])


def _turn(axis: Array) -> Array:
    return np.concatenate([axis, np.zeros(3)])


def _plane(normal: Array) -> Array:
    """Rows: two unit vectors in the plane, and its normal."""
    z = np.array([0.0, 0.0, 1.0])
    across = np.cross(z, normal)
    sine = float(np.linalg.norm(across))
    if sine == 0:
        return np.eye(3) if normal[2] > 0 else np.diag([1.0, -1.0, -1.0])
    R: Array = lie.exp(_turn(across / sine), np.arctan2(sine, normal[2]))[:3, :3]
    return np.vstack([R[:, 0], R[:, 1], normal])
