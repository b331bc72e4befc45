# SPDX-License-Identifier: Apache-2.0
"""Planar and floating joints as rows of joints with one variable each, connected by massless bodies.

A planar joint ``j`` becomes ``j_x``, ``j_y`` (translations along the axes of its plane) and ``j_yaw`` (rotation
about its normal). A floating joint becomes ``j_x``, ``j_y``, ``j_z``, ``j_yaw``, ``j_pitch``, ``j_roll``: its rotation
is Rz(yaw) Ry(pitch) Rx(roll), the URDF convention, which is singular at a pitch of ±pi/2.

The axes of a plane are those of the child link's frame at q = 0 if its normal is the z axis; for another normal, that
frame is first rotated by the smallest angle that takes z to the normal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .. import lie
from ..arrays import Array
from .description import JointDescription


class Component(NamedTuple):
    """A joint with one variable: its name, and its screw (6,) in the child link's frame."""

    name: str
    screw: Array


def components(joint: JointDescription) -> list[Component]:
    """The joints with one variable that make up a moving joint, from parent to child.

    The frames of all of them coincide with the child link's at q = 0.
    """
    if joint.type not in ("planar", "floating"):
        return [Component(joint.name, joint.screw)]
    planar = joint.type == "planar"
    x, y, z = _plane(joint.screw[:3]) if planar else np.eye(3)
    moves, turns = {"x": x, "y": y} if planar else {"x": x, "y": y, "z": z}, {"yaw": z}
    if not planar:
        turns |= {"pitch": y, "roll": x}
    screws = {name: [0.0, 0.0, 0.0, *axis] for name, axis in moves.items()}
    screws |= {name: [*axis, 0.0, 0.0, 0.0] for name, axis in turns.items()}
    return [Component(f"{joint.name}_{name}", np.array(screw)) for name, screw in screws.items()]


def _plane(normal: Array) -> Array:
    """Rows: two unit vectors in the plane, and its normal."""
    z = np.array([0.0, 0.0, 1.0])
    across = np.cross(z, normal)
    sine = float(np.linalg.norm(across))
    if sine == 0:
        return np.eye(3) if normal[2] > 0 else np.diag([1.0, -1.0, -1.0])
    R: Array = lie.exp([*(across / sine), 0.0, 0.0, 0.0], np.arctan2(sine, normal[2]))[:3, :3]
    return np.vstack([R[:, 0], R[:, 1], normal])
