# SPDX-License-Identifier: Apache-2.0
"""Mass and rotational inertia of rigid bodies, and their physical consistency."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import lie
from ..arguments import real_array
from ..arrays import Array
from ..exceptions import StateError
from ..spelling import shown


def symmetric(xx: float, xy: float, xz: float, yy: float, yz: float, zz: float) -> Array:
    """Rotational inertia (3, 3) in kg m² from six entries in URDF order."""
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def steiner(mass: float, center_of_mass: Array) -> Array:
    """Parallel-axis term (3, 3): inertia about the origin minus about the center of mass; after equation (31)."""
    c = lie.skew(center_of_mass)
    return mass * (c.T @ c)


def spatial_inertia(mass: float, center_of_mass: Array, inertia_about_origin: Array) -> Array:
    """Inertia matrix (6, 6) of a body in its own frame, for twists (angular; linear), equation (31).

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
    """Mass and inertia of a body, in a frame fixed to it.

    Attributes:
        mass: mass, kg.
        center_of_mass: center of mass (3,), m.
        about_origin: rotational inertia (3, 3) about the frame's origin and along its axes, kg m².
    """

    mass: float
    center_of_mass: Array
    about_origin: Array

    @classmethod
    def about_center(cls, mass: float, center_of_mass: Array, inertia: Array) -> Inertial:
        """Create from the rotational inertia (3, 3) about the center of mass, along the frame's axes."""
        return cls(mass, center_of_mass, inertia + steiner(mass, center_of_mass))

    @classmethod
    def massless(cls) -> Inertial:
        """Inertial without mass and inertia."""
        return cls(0.0, np.zeros(3), np.zeros((3, 3)))

    @property
    def spatial_inertia(self) -> Array:
        """Inertia matrix (6, 6) about the frame's origin."""
        return spatial_inertia(self.mass, self.center_of_mass, self.about_origin)

    @property
    def about_center_of_mass(self) -> Array:
        """Rotational inertia (3, 3) about the center of mass, along the frame's axes."""
        return self.about_origin - steiner(self.mass, self.center_of_mass)

    @property
    def parameters(self) -> Array:
        """Inertial parameters (10,), kg, kg m, kg m².

        Mass, first moment x, y, z, and inertia xx, xy, xz, yy, yz, zz about the frame's origin.
        """
        moment = self.mass * np.asarray(self.center_of_mass)
        return np.concatenate([[self.mass], moment, self.about_origin[np.triu_indices(3)]])

    def moved(self, pose: Array) -> Inertial:
        """This body in another frame; ``pose`` (4, 4) is the present frame in the other frame."""
        R = pose[:3, :3]
        center = R @ self.center_of_mass + pose[:3, 3]
        return Inertial.about_center(self.mass, center, R @ self.about_center_of_mass @ R.T)

    def __add__(self, other: Inertial) -> Inertial:
        if not other.mass and not np.any(other.about_origin):
            return self
        mass = self.mass + other.mass
        first_moment = self.mass * self.center_of_mass + other.mass * other.center_of_mass
        return Inertial(mass, first_moment / mass if mass else first_moment, self.about_origin + other.about_origin)


# Error of the smallest eigenvalue from rounding to a few digits, relative to the largest.
_ROUNDING = 1e-6

# kg m²; a smaller moment is the rounding error of a point mass. A grain of sand has more.
_NEGLIGIBLE = 1e-15

# Rounding error of a shift between the origin and the center of mass, relative to the inertia about the origin.
_SHIFT = 1e-14

# Published tables violate the triangle inequality slightly: body 4 of the iiwa in Müller and Kumar by 0.6 %.
_TRIANGLE_TOLERANCE = 0.01


def inertia_violation(inertia: Array, error: float = 0.0) -> str | None:
    """Reason why a rotational inertia (3, 3), kg m², about any point, is inconsistent; None if consistent.

    Up to the rounding ``error`` of the entries, principal moments are not negative, and none exceeds the sum of the
    other two (triangle inequality).
    """
    smallest, middle, largest = np.linalg.eigvalsh(inertia)
    error += _NEGLIGIBLE
    if smallest < -_ROUNDING * abs(largest) - error:
        rule = "principal moments of inertia must not be negative"
    elif largest * (1 - _TRIANGLE_TOLERANCE) > smallest + middle + error:
        rule = "the largest principal moment of inertia must not exceed the sum of the other two"
    else:
        return None
    return f"{rule}: {smallest:.6g}, {middle:.6g}, {largest:.6g} kg m²"


def body_violation(body: Inertial, *, about_origin: bool = False) -> str | None:
    """Reason why mass and inertia of a body are inconsistent; None if consistent.

    With ``about_origin`` the inertia is checked about the frame's origin, a weaker condition than about the center of
    mass.
    """
    if not isinstance(body, Inertial):
        return f"must be an Inertial, is {shown(body)}"
    try:
        for name, shape in (("mass", ()), ("center_of_mass", (3,)), ("about_origin", (3, 3))):
            real_array(getattr(body, name), name, shape)
    except StateError as error:
        return str(error)
    if body.mass < 0:
        return f"mass must not be negative, is {body.mass:g} kg"
    if body.mass == 0 and np.any(body.about_origin):
        return "a body with inertia must have mass, its mass is zero"
    if about_origin:
        return inertia_violation(body.about_origin)
    return inertia_violation(body.about_center_of_mass, _SHIFT * float(np.linalg.norm(body.about_origin)))


def is_rounding_of_zero(body: Inertial) -> bool:
    """True if mass and inertia are inconsistent only by rounding of zero, such as -1e-22."""
    entries = np.append(body.about_origin, body.mass)
    return body.mass <= 0 and bool(np.any(entries)) and bool(np.max(np.abs(entries)) <= _NEGLIGIBLE)
