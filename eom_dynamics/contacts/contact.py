# SPDX-License-Identifier: Apache-2.0
"""Point and surface contacts between a body of a robot and its surroundings, or another body.

The frame of a contact is fixed to a body. Contact forces act on the robot at its origin; their z axis is the normal,
which points to the robot. A sticking contact admits no motion of a point (3 rows) or of a surface (6 rows). A sliding
contact admits the tangential motion, and friction is part of the direction of the remaining forces:

    point:    f = f_n (-mu e; 1) for the unit direction e of sliding,
    surface:  moments m_x, m_y and force f_n remain; m_z = mu (m_x e_x + m_y e_y), since friction acts at the centre
              of pressure (-m_y, m_x)/f_n. All points of the surface slide alike: it does not spin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .. import lie
from ..arguments import real_array
from ..arrays import Array
from ..exceptions import ContactError
from ..spelling import shown
from .cones import FrictionCone, WrenchCone

# Tolerance of rotation matrices and unit vectors.
_ORTHONORMAL = 1e-9


@dataclass(frozen=True, eq=False)
class PointContact:
    """Point contact, which transmits a force (3,).

    Attributes:
        name: name of the contact.
        frame: name of the robot frame that is in contact.
        friction: coefficient of friction mu, positive.
        pose: pose (4, 4) of the contact frame in this robot frame.
        axes: rotation (3, 3) from the contact axes to the axes of the surroundings. Its last column is the normal, see
            :func:`axes_of_normal`. None selects the axes of the contact frame, which move with it.
        on: name of the other robot frame, for contact of the robot with itself; None for the surroundings.
    """

    name: str
    frame: str
    friction: float
    pose: Array = field(default_factory=lambda: np.eye(4))
    axes: Array | None = field(default_factory=lambda: np.eye(3))
    on: str | None = None
    cone: FrictionCone = field(init=False, repr=False)

    rows: ClassVar = (3, 4, 5)
    """Rows of a twist (angular; linear) that a sticking contact keeps at zero."""

    def __post_init__(self) -> None:
        _check_placement(self)
        object.__setattr__(self, "cone", FrictionCone(self.friction))

    @property
    def size(self) -> int:
        """Number of entries of the contact force."""
        return len(self.rows)

    def sliding(self, direction: ArrayLike) -> tuple[Array, Array]:
        """Constraints P (1, 3) of a sliding contact, and the force D (1, 3) per unit of normal force.

        The direction (2,) is a unit vector along x and y.
        """
        x, y = self.friction * real_array(direction, "direction", (2,))
        return np.array([[0.0, 0.0, 1.0]]), np.array([[-x, -y, 1.0]])


@dataclass(frozen=True, eq=False)
class SurfaceContact:
    """Flat polygonal contact, which transmits a wrench (6,), moment first.

    Attributes:
        name, frame, friction, on: as for :class:`PointContact`.
        corners: at least three corners (m, 2), m, in the xy plane of the contact frame.
        pose: pose (4, 4) of the contact frame in ``frame``; its z axis points to the robot.
        axes: as for :class:`PointContact`, by default None.
    """

    name: str
    frame: str
    friction: float
    corners: Array
    pose: Array = field(default_factory=lambda: np.eye(4))
    axes: Array | None = None
    on: str | None = None
    cone: WrenchCone = field(init=False, repr=False)

    rows: ClassVar = (0, 1, 2, 3, 4, 5)

    def __post_init__(self) -> None:
        _check_placement(self)
        object.__setattr__(self, "cone", WrenchCone(self.corners, self.friction))
        object.__setattr__(self, "corners", self.cone.corners)

    @classmethod
    def rectangle(
        cls, name: str, frame: str, friction: float, half_lengths: Sequence[float], pose: ArrayLike | None = None
    ) -> SurfaceContact:
        """Rectangular contact centred on the origin of its frame, with half lengths (x, y), m."""
        X, Y = real_array(half_lengths, "half_lengths", (2,)).tolist()
        if not (X > 0 and Y > 0):
            raise ContactError(f"half_lengths must be positive, are {X:g} and {Y:g}")
        corners = np.array([[X, Y], [-X, Y], [-X, -Y], [X, -Y]])
        placed = real_array(np.eye(4) if pose is None else pose, "pose", (4, 4))
        return cls(name, frame, friction, corners, placed)

    @property
    def size(self) -> int:
        """Number of entries of the contact wrench."""
        return len(self.rows)

    def points(self) -> tuple[PointContact, ...]:
        """Point contacts at the corners, named after the surface: ``foot 0``, ``foot 1``, ….

        Their forces are redundant, so that only their sum is determined.
        """
        first = PointContact(self.name, self.frame, self.friction, self.pose, self.axes, self.on)
        places = [self.pose @ lie.pose(np.eye(3), [x, y, 0.0]) for x, y in self.corners]
        return tuple(replace(first, name=f"{self.name} {i}", pose=place) for i, place in enumerate(places))

    def sliding(self, direction: ArrayLike) -> tuple[Array, Array]:
        """Constraints P (3, 6) of a sliding contact, and the wrenches D (3, 6) per unit of m_x, m_y and f_n."""
        x, y = self.friction * real_array(direction, "direction", (2,))
        P = np.eye(6)[[0, 1, 5]]
        return P, P + np.array([[0, 0, x, 0, 0, 0], [0, 0, y, 0, 0, 0], [0, 0, 0, -x, -y, 0]])


Contact: TypeAlias = PointContact | SurfaceContact
"""A contact of either kind."""


def axes_of_normal(normal: ArrayLike) -> Array:
    """Shortest rotation (3, 3) of the z axis onto a normal (3,) of any length.

    For a normal below the xy plane: half a turn about x, then the shortest rotation of the -z axis.

    Raises:
        ContactError: the normal is zero.
    """
    n = real_array(normal, "normal", (3,))
    largest = float(np.max(np.abs(n)))
    if not largest:
        raise ContactError("the normal of a contact is zero")
    turn = np.diag([1.0, -1.0, -1.0]) if n[2] < 0 else np.eye(3)
    # Scaled first: squares of entries could overflow or vanish.
    n = n / largest
    x, y, z = turn @ n / np.linalg.norm(n)
    v = lie.skew([-y, x, 0.0])
    return turn @ (np.eye(3) + v + v @ v / (1 + z))


def _check_placement(contact: Contact) -> None:
    """Replace pose and axes by arrays, and check them and the names.

    Raises:
        ContactError: a name is not a string, friction is not positive, or a rotation is invalid.
        StateError: pose or axes have the wrong shape or are not finite.
    """
    for name in ("name", "frame"):
        if not isinstance(getattr(contact, name), str) or not getattr(contact, name):
            raise ContactError(f"{name} of a contact must be a text, is {shown(getattr(contact, name))}")
    if contact.on is not None and (not isinstance(contact.on, str) or not contact.on):
        raise ContactError(f"{contact.name}: on must be the name of a frame, or None, is {shown(contact.on)}")
    pose = real_array(contact.pose, f"{contact.name}: pose", (4, 4))
    _check_rotation(pose[:3, :3], f"{contact.name}: pose")
    if not np.array_equal(pose[3], [0, 0, 0, 1]):
        raise ContactError(f"{contact.name}: the last row of pose must be 0 0 0 1, is {pose[3].tolist()}")
    object.__setattr__(contact, "pose", pose)
    if contact.axes is not None:
        axes = real_array(contact.axes, f"{contact.name}: axes", (3, 3))
        _check_rotation(axes, f"{contact.name}: axes")
        object.__setattr__(contact, "axes", axes)


def _check_rotation(R: Array, name: str) -> None:
    if np.max(np.abs(R.T @ R - np.eye(3))) > _ORTHONORMAL or np.linalg.det(R) < 0:
        raise ContactError(f"{name} is not a rotation matrix: its columns must be orthonormal and right-handed")
