# SPDX-License-Identifier: Apache-2.0
"""Coulomb friction of a point contact: the second-order cone |f_t| <= mu f_n, and pyramids inside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import positive
from ..arrays import Array
from ..exceptions import ContactError
from ..spelling import shown
from ..states import real_array

FEWEST_FACES = 3
"""Faces of the coarsest pyramid."""


@dataclass(frozen=True)
class FrictionCone:
    """Forces (x, y, z) that a point contact can transmit, z along the normal, which points to the robot.

    Attributes:
        friction: coefficient of friction mu, positive.
    """

    friction: float

    def __post_init__(self) -> None:
        """Check the coefficient."""
        object.__setattr__(self, "friction", checked_friction(self.friction))

    def contains(self, force: ArrayLike, faces: int | None = None, tolerance: float = 0.0) -> bool:
        """Whether a force (3,) is inside the cone, or at most ``tolerance`` N beyond; see :meth:`margin`."""
        return self.margin(force, faces) >= -real_array(tolerance, "tolerance", ()).item()

    def margin(self, force: ArrayLike, faces: int | None = None) -> float:
        """Normal-force margin, N: by how much f_n may fall before the contact slips or opens; negative outside.

        Args:
            force: (3,), N.
            faces: of a pyramid inside the cone; by default the cone itself.
        """
        f = real_array(force, "force", (3,))
        if faces is None:
            return float(f[2] - np.hypot(f[0], f[1]) / self.friction)
        A = self.half_spaces(faces)
        return float(np.min((A @ f) / A[:, 2]))

    def project(self, force: ArrayLike) -> Array:
        """The force of the cone that is nearest to a force (3,)."""
        f, mu = real_array(force, "force", (3,)), self.friction
        tangential = float(np.hypot(f[0], f[1]))
        if tangential <= mu * f[2]:
            return f
        if mu * tangential <= -f[2]:  # in the polar cone
            return np.zeros(3)
        normal = (f[2] + mu * tangential) / (1 + mu**2)
        scale = mu * normal / tangential
        return np.array([scale * f[0], scale * f[1], normal])

    def generators(self, faces: int = 4) -> Array:
        """Edges (faces, 3) of a pyramid inside the cone, for a normal force of 1 N."""
        faces = checked_faces(faces)
        angle = (2 * np.arange(faces) + 1) * np.pi / faces
        return np.stack([self.friction * np.cos(angle), self.friction * np.sin(angle), np.ones(faces)], axis=1)

    def half_spaces(self, faces: int = 4) -> Array:
        """Rows A (faces, 3) of the pyramid inside the cone, A f <= 0; for four faces
        ``|f_x|, |f_y| <= mu f_n/sqrt(2)``.
        """
        faces = checked_faces(faces)
        angle = 2 * np.arange(faces) * np.pi / faces
        inner = self.friction * np.cos(np.pi / faces)
        return np.stack([np.cos(angle), np.sin(angle), np.full(faces, -inner)], axis=1)


def second_order_rows(friction: float, points: int) -> Array:
    """Rows (3 points, 3 points) that map forces at points to triples (mu f_z, f_x, f_y) of second-order cones."""
    one = np.array([[0.0, 0.0, friction], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    return np.asarray(np.kron(np.eye(points), one), dtype=float)


def checked_friction(value: float) -> float:
    """A valid coefficient of friction.

    Raises:
        ContactError: it is not a positive finite number.
    """
    return positive(value, "friction", ContactError)


def checked_faces(faces: int) -> int:
    """A valid number of faces of a pyramid.

    Raises:
        ContactError: it is not an integer of at least FEWEST_FACES.
    """
    if isinstance(faces, bool) or not isinstance(faces, int | np.integer) or faces < FEWEST_FACES:
        raise ContactError(f"faces must be an integer of at least {FEWEST_FACES}, is {shown(faces)}")
    return int(faces)
