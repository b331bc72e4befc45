# SPDX-License-Identifier: Apache-2.0
"""Inertia of a rigid body, and which inertias a real body can have."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import lie

Array = NDArray[np.float64]

# What rounding to a few digits can do to the smallest eigenvalue, relative to the largest.
_ROUNDING = 1e-6

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
    if smallest < -_ROUNDING * abs(largest):
        return f"no body has a negative principal moment of inertia ({principal})"
    if largest * (1 - _TRIANGLE_TOLERANCE) > smallest + middle:
        return f"the largest principal moment exceeds the sum of the other two ({principal})"
    return None
