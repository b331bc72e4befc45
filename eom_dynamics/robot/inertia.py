# SPDX-License-Identifier: Apache-2.0
"""Mass and rotational inertia of a rigid body."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import lie
from ..arrays import Array


def symmetric(xx: float, xy: float, xz: float, yy: float, yz: float, zz: float) -> Array:
    """Rotational inertia (3, 3) in kg m² from its six entries, in the order of URDF."""
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def steiner(mass: float, center_of_mass: Array) -> Array:
    """Parallel-axis term (3, 3): inertia about the origin minus inertia about the centre of mass."""
    c = lie.skew(center_of_mass)
    return mass * (c.T @ c)


def spatial_inertia(mass: float, center_of_mass: Array, inertia_about_origin: Array) -> Array:
    """Inertia matrix (6, 6) of a body in its own frame, for twists (angular; linear), equation (30).

    Object arrays of symbols are allowed.
    """
    c = mass * lie.skew(center_of_mass)
    M = np.zeros((6, 6), dtype=np.result_type(c, inertia_about_origin, float))
    M[:3, :3] = inertia_about_origin
    M[:3, 3:] = c
    M[3:, :3] = -c
    M[3:, 3:] = mass * np.eye(3, dtype=int)
    return M


@dataclass(frozen=True, eq=False)
class Inertial:
    """Mass and inertia of a body, in some frame fixed to it.

    Attributes:
        mass: kg.
        center_of_mass: (3,), m.
        about_origin: rotational inertia (3, 3) about the frame's origin and along its axes, kg m².
    """

    mass: float
    center_of_mass: Array
    about_origin: Array

    @classmethod
    def about_center(cls, mass: float, center_of_mass: Array, inertia: Array) -> Inertial:
        """Create from the rotational inertia (3, 3) about the centre of mass, along the frame's axes."""
        return cls(mass, center_of_mass, inertia + steiner(mass, center_of_mass))

    @classmethod
    def massless(cls) -> Inertial:
        """No mass and no inertia."""
        return cls(0.0, np.zeros(3), np.zeros((3, 3)))

    @property
    def spatial_inertia(self) -> Array:
        """Inertia matrix (6, 6) about the frame's origin."""
        matrix: Array = spatial_inertia(self.mass, self.center_of_mass, self.about_origin)
        return matrix

    @property
    def about_center_of_mass(self) -> Array:
        """Rotational inertia (3, 3) about the centre of mass, along the frame's axes."""
        return self.about_origin - steiner(self.mass, self.center_of_mass)

    def moved(self, pose: Array) -> Inertial:
        """The same body in another frame, in which the present frame has this pose (4, 4)."""
        R = pose[:3, :3]
        center = R @ self.center_of_mass + pose[:3, 3]
        return Inertial.about_center(self.mass, center, R @ self.about_center_of_mass @ R.T)

    def __add__(self, other: Inertial) -> Inertial:
        if not other.mass and not np.any(other.about_origin):
            return self
        mass = self.mass + other.mass
        first_moment = self.mass * self.center_of_mass + other.mass * other.center_of_mass
        return Inertial(mass, first_moment / mass if mass else first_moment, self.about_origin + other.about_origin)
