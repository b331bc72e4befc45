# SPDX-License-Identifier: Apache-2.0
"""Multi-degree-of-freedom joints as chains of one-degree-of-freedom joints with massless bodies.

The chains are those of COMPOSITE_TYPES. A planar joint ``j`` becomes ``j_x``, ``j_y`` (translations along the axes of
its plane) and ``j_yaw`` (rotation about its normal). The rotation of a ball or floating joint is Rz(yaw) Ry(pitch)
Rx(roll), the URDF convention, which is singular at a pitch of ±pi/2.

The axes are those of the child link's frame at q = 0, or if another normal than its z axis is given, those of that
frame after a rotation by the smallest angle that takes z to the normal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .. import lie
from ..arrays import Array
from .description import COMPOSITE_TYPES, JointDescription


class Component(NamedTuple):
    """A joint with one variable: its name, and its screw (6,) in the child link's frame."""

    name: str
    screw: Array


def components(joint: JointDescription) -> list[Component]:
    """One-degree-of-freedom joints that make up a moving joint, from parent to child.

    The frames of all of them coincide with the child link's at q = 0.
    """
    if joint.type not in COMPOSITE_TYPES:
        return [Component(joint.name, joint.screw)]
    x, y, z = np.eye(3) if joint.type in ("ball", "floating") else _plane(joint.screw[:3])
    center = joint.screw[3:] if joint.type == "ball" else np.zeros(3)
    along = {"x": x, "y": y, "z": z}
    about = {"yaw": z, "pitch": y, "roll": x}
    screws = {name: lie.screw(axis, pitch=np.inf) for name, axis in along.items()}
    screws |= {name: lie.screw(axis, center) for name, axis in about.items()}
    return [Component(f"{joint.name}_{name}", screws[name]) for name in COMPOSITE_TYPES[joint.type]]


def _plane(normal: Array) -> Array:
    """Rows: two unit vectors in the plane, and its normal."""
    z = np.array([0.0, 0.0, 1.0])
    across = np.cross(z, normal)
    sine = float(np.linalg.norm(across))
    if sine == 0:
        return np.eye(3) if normal[2] > 0 else np.diag([1.0, -1.0, -1.0])
    R: Array = lie.exp([*(across / sine), 0.0, 0.0, 0.0], np.arctan2(sine, normal[2]))[:3, :3]
    return np.vstack([R[:, 0], R[:, 1], normal])
