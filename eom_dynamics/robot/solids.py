# SPDX-License-Identifier: Apache-2.0
"""Mass and inertia of uniform solids: box, cylinders, spheres, ellipsoid and capsule.

Each function takes either the mass in kg or the density in kg/m³. The origin is the solid's center, and its axis of
symmetry, if any, is z. :meth:`Inertial.moved` places a solid in the frame of a body. Solids add up, and a hole is a
solid of negative density:

>>> plate = box([0.2, 0.1, 0.01], density=2700) + cylinder(0.02, 0.01, density=-2700)
>>> round(plate.mass, 4)
0.5061
"""

from __future__ import annotations

from math import pi

import numpy as np
from numpy.typing import ArrayLike

from ..actuators.parameters import finite, positive, refuse
from ..arguments import all_finite
from ..arrays import Array
from .inertia import Inertial

# m; lengths in this range have volumes and fifth powers that neither overflow nor vanish.
_SMALLEST, _LARGEST = 1e-50, 1e50


def box(size: ArrayLike, *, mass: float | None = None, density: float | None = None) -> Inertial:
    """Cuboid with edges ``size`` (3,) along x, y, z, m.

    Raises:
        ParameterError: a length is not from 1e-50 to 1e50 m, or not exactly one of mass and density is passed. This
            holds for all solids.
    """
    edges = _lengths("size", size)
    m = _mass(float(np.prod(edges)), mass, density)
    return _centered(m, edges**2 / 12)


def cylinder(radius: float, length: float, *, mass: float | None = None, density: float | None = None) -> Inertial:
    """Solid cylinder about z, m."""
    r, h = _length("radius", radius), _length("length", length)
    m = _mass(pi * r**2 * h, mass, density)
    return _centered(m, np.array([r**2 / 4, r**2 / 4, h**2 / 12]))


def hollow_cylinder(
    inner_radius: float, outer_radius: float, length: float, *, mass: float | None = None, density: float | None = None
) -> Inertial:
    """Tube about z, m."""
    a, b = _shell(inner_radius, outer_radius)
    h = _length("length", length)
    m = _mass(pi * (b - a) * (b + a) * h, mass, density)
    across = (a**2 + b**2) / 4
    return _centered(m, np.array([across, across, h**2 / 12]))


def sphere(radius: float, *, mass: float | None = None, density: float | None = None) -> Inertial:
    """Solid sphere, m."""
    r = _length("radius", radius)
    return ellipsoid([r, r, r], mass=mass, density=density)


def hollow_sphere(
    inner_radius: float, outer_radius: float, *, mass: float | None = None, density: float | None = None
) -> Inertial:
    """Sphere with a concentric spherical hole, m."""
    a, b = _shell(inner_radius, outer_radius)
    # Division by b - a, so that thin shells lose no digits.
    cubes = a**2 + a * b + b**2
    fifths = a**4 + a**3 * b + a**2 * b**2 + a * b**3 + b**4
    m = _mass(4 / 3 * pi * (b - a) * cubes, mass, density)
    return _centered(m, np.full(3, fifths / cubes / 5))


def ellipsoid(semi_axes: ArrayLike, *, mass: float | None = None, density: float | None = None) -> Inertial:
    """Solid ellipsoid with ``semi_axes`` (3,) along x, y, z, m."""
    a = _lengths("semi_axes", semi_axes)
    m = _mass(4 / 3 * pi * float(np.prod(a)), mass, density)
    return _centered(m, a**2 / 5)


def capsule(radius: float, length: float, *, mass: float | None = None, density: float | None = None) -> Inertial:
    """Capsule: cylinder about z of this length, m, with a half sphere on each end."""
    r, h = _length("radius", radius), _length("length", length)
    volumes = np.array([pi * r**2 * h, 4 / 3 * pi * r**3])
    shares = _mass(float(np.sum(volumes)), mass, density) * volumes / np.sum(volumes)
    # Mean z² of the half spheres: about the sphere's center, moved by h/2, with their centroids at 3 r/8.
    along = np.array([h**2 / 12, r**2 / 5 + h**2 / 4 + 3 * r * h / 8])
    across = np.array([r**2 / 4, r**2 / 5])
    m = float(np.sum(shares))
    return _centered(m, np.array([shares @ across, shares @ across, shares @ along]) / m)


def _centered(mass: float, second_moments: Array) -> Inertial:
    """Inertial of a solid with mean x², y², z² ``second_moments`` (3,), m², neither too large nor too small."""
    with np.errstate(over="ignore"):
        inertia = mass * np.diag(np.sum(second_moments) - second_moments)
    if not all_finite(inertia):
        refuse("mass", f"is too large, {mass:g} kg, for the inertia to be a number")
    return Inertial(mass, np.zeros(3), inertia)


def _mass(volume: float, mass: float | None, density: float | None) -> float:
    if (mass is None) == (density is None):
        refuse("mass", "give either mass or density" + (", not both" if mass is not None else ""))
    name, quantity = ("density", density) if mass is None else ("mass", mass)
    value = finite(name, quantity)
    if value.ndim or not value:
        refuse(name, f"must be a number other than zero, is {quantity}")
    total = float(value) * (1.0 if density is None else volume)
    if not total or not np.isfinite(total):
        refuse(name, f"gives the impossible mass {total:g} kg with the volume {volume:g} m³")
    return total


def _length(name: str, value: float) -> float:
    return float(_lengths(name, value, ()))


def _lengths(name: str, value: ArrayLike, shape: tuple[int, ...] = (3,)) -> Array:
    lengths = positive(name, value)
    if lengths.shape != shape:
        refuse(name, f"must be {'three numbers' if shape else 'one number'}, has shape {lengths.shape}")
    if np.any((lengths < _SMALLEST) | (lengths > _LARGEST)):
        refuse(name, f"must give lengths from {_SMALLEST:g} to {_LARGEST:g} m, gives {lengths}")
    return lengths


def _shell(inner: float, outer: float) -> tuple[float, float]:
    """Radii of a hollow solid."""
    a, b = _length("inner_radius", inner), _length("outer_radius", outer)
    if a >= b:
        refuse("inner_radius", f"must be below outer_radius, {b:g}, is {a:g}")
    return a, b
