# SPDX-License-Identifier: Apache-2.0
"""Inertia of a body, against a cloud of point masses."""

import numpy as np
from chains import numbers
from differences import deviation
from hypothesis import given
from hypothesis import strategies as st

from eom_dynamics.robot import inertia
from eom_dynamics.robot.inertia import inertia_violation

clouds = st.integers(1, 6).flatmap(
    lambda n: st.tuples(numbers(1.0, (n, 3)), st.lists(st.floats(0.1, 2), min_size=n, max_size=n))
)
"""Positions (n, 3) and masses (n,) of points."""


def moments(points: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """Inertia about the origin: sum of m (r² 1 - r r')."""
    return sum(m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, points, strict=True))


@given(clouds, numbers(2.0, 6))
def test_a_cloud_of_points(cloud, twist: np.ndarray) -> None:
    """Its parallel-axis term, its kinetic energy, and its physical consistency."""
    points, masses = cloud
    mass, center = sum(masses), np.average(points, axis=0, weights=masses)
    about_origin = moments(points, masses)
    assert deviation(inertia.steiner(mass, center), about_origin - moments(points - center, masses), floor=mass) < 1e-14
    velocities = twist[3:] + np.cross(twist[:3], points)
    energy = sum(m * v @ v for m, v in zip(masses, velocities, strict=True)) / 2
    M = inertia.spatial_inertia(mass, center, about_origin)
    assert deviation(twist @ M @ twist / 2, energy, floor=1.0) < 1e-13
    assert inertia_violation(about_origin) is None


def test_entries_are_in_the_order_of_urdf() -> None:
    np.testing.assert_array_equal(inertia.symmetric(1, 2, 3, 4, 5, 6), [[1, 2, 3], [2, 4, 5], [3, 5, 6]])
