# SPDX-License-Identifier: Apache-2.0
"""Inertia of a rigid body, and which inertias a real body can have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import lie

Array = NDArray[np.float64]

# What rounding to a few digits can do to the smallest eigenvalue, relative to the largest.
_ROUNDING = 1e-6

# Less than this, in kg m², is the rounding of a point mass: a grain of sand has more.
_NEGLIGIBLE = 1e-15

# Published tables break the triangle inequality a little: body 4 of the iiwa in Müller and Kumar by 0.6 %.
_TRIANGLE_TOLERANCE = 0.01


def symmetric(xx: float, xy: float, xz: float, yy: float, yz: float, zz: float) -> Array:
    """Rotational inertia (3, 3) in kg m² from its six entries in the order of URDF."""
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def steiner(mass: float, center_of_mass: Array) -> Array:
    """What the inertia about the body's origin exceeds that about its centre of mass by, (3, 3)."""
    c = lie.skew(center_of_mass)
    return mass * (c.T @ c)


def spatial_inertia(mass: float, center_of_mass: Array, inertia_about_origin: Array) -> Array:
    """Inertia matrix (6, 6) of a body in its own frame, for twists (angular; linear), equation (30).

    Also of symbols, in object arrays.
    """
    c = mass * lie.skew(center_of_mass)
    M = np.zeros((6, 6), dtype=np.result_type(c, inertia_about_origin, float))
    M[:3, :3] = inertia_about_origin
    M[:3, 3:] = c
    M[3:, :3] = -c
    M[3:, 3:] = mass * np.eye(3, dtype=int)
    return M


def objection(inertia: Array) -> str | None:
    """Why no body can have this rotational inertia (3, 3) about any point, or None if one can.

    The principal moments of a body are not negative, and none exceeds the sum of the other two.
    """
    smallest, middle, largest = np.linalg.eigvalsh(inertia)
    principal = f"principal moments {smallest:.6g}, {middle:.6g}, {largest:.6g} kg m²"
    if smallest < -_ROUNDING * abs(largest) - _NEGLIGIBLE:
        return f"no body has a negative principal moment of inertia ({principal})"
    if largest * (1 - _TRIANGLE_TOLERANCE) > smallest + middle + _NEGLIGIBLE:
        return f"the largest principal moment exceeds the sum of the other two ({principal})"
    return None


@dataclass(frozen=True, eq=False)
class Inertial:
    """Mass and inertia of a body in a frame of its own.

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
        """From the rotational inertia (3, 3) about the centre of mass, along the axes of the body's frame."""
        return cls(mass, center_of_mass, inertia + steiner(mass, center_of_mass))

    @classmethod
    def nothing(cls) -> Inertial:
        """That of a frame without mass."""
        return cls(0.0, np.zeros(3), np.zeros((3, 3)))

    @property
    def about_center_of_mass(self) -> Array:
        """Rotational inertia (3, 3) about the centre of mass, along the axes of the frame."""
        return self.about_origin - steiner(self.mass, self.center_of_mass)

    def moved(self, pose: Array) -> Inertial:
        """The same body in a frame in which its own frame has this pose (4, 4)."""
        R = pose[:3, :3]
        center = R @ self.center_of_mass + pose[:3, 3]
        return Inertial.about_center(self.mass, center, R @ self.about_center_of_mass @ R.T)

    def __add__(self, other: Inertial) -> Inertial:
        if not other.mass and not np.any(other.about_origin):
            return self
        mass = self.mass + other.mass
        first_moment = self.mass * self.center_of_mass + other.mass * other.center_of_mass
        return Inertial(mass, first_moment / mass if mass else first_moment, self.about_origin + other.about_origin)
