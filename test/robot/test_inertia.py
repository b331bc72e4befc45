# SPDX-License-Identifier: Apache-2.0
"""Inertia of a body, against a cloud of point masses."""

import numpy as np
import pytest
from chains import numbers
from differences import deviation
from hypothesis import given
from hypothesis import strategies as st

from eom_dynamics.robot import inertia

clouds = st.integers(1, 6).flatmap(
    lambda n: st.tuples(numbers(1.0, (n, 3)), st.lists(st.floats(0.1, 2), min_size=n, max_size=n))
)
"""Positions (n, 3) and masses (n,) of points."""


def moments(points: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """Inertia about the origin: sum of m (r² 1 - r r')."""
    return sum(m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, points, strict=True))


@given(clouds)
def test_steiner_is_the_difference_between_origin_and_centre_of_mass(cloud) -> None:
    points, masses = cloud
    mass = sum(masses)
    center = np.average(points, axis=0, weights=masses)
    expected = moments(points, masses) - moments(points - center, masses)
    assert deviation(inertia.steiner(mass, center), expected, floor=mass) < 1e-14


@given(clouds, numbers(2.0, 6))
def test_spatial_inertia_gives_the_kinetic_energy_of_the_points(cloud, twist: np.ndarray) -> None:
    points, masses = cloud
    velocities = twist[3:] + np.cross(twist[:3], points)
    energy = sum(m * v @ v for m, v in zip(masses, velocities, strict=True)) / 2
    center = np.average(points, axis=0, weights=masses)
    M = inertia.spatial_inertia(sum(masses), center, moments(points, masses))
    assert deviation(twist @ M @ twist / 2, energy, floor=1.0) < 1e-13


@given(clouds)
def test_a_cloud_of_points_is_a_possible_body(cloud) -> None:
    assert inertia.objection(moments(*cloud)) is None


def test_entries_stand_in_the_order_of_urdf() -> None:
    np.testing.assert_array_equal(inertia.symmetric(1, 2, 3, 4, 5, 6), [[1, 2, 3], [2, 4, 5], [3, 5, 6]])


@pytest.mark.parametrize("principal", [(0, 0, 0), (0, 1, 1), (1, 1, 1), (1, 1, 2), (1, 2, 3), (1, 1, 2.01)], ids=str)
def test_possible_principal_moments(principal) -> None:
    assert inertia.objection(np.diag(principal)) is None


@pytest.mark.parametrize(
    ("principal", "reason"),
    [
        ((-1, 1, 1), "negative principal moment"),
        ((-1e-5, 1, 1), "negative principal moment"),
        ((-1, -1, -1), "negative principal moment"),
        ((0, 0, 1), "exceeds the sum of the other two"),
        ((1, 1, 2.03), "exceeds the sum of the other two"),
    ],
    ids=str,
)
def test_impossible_principal_moments(principal, reason: str) -> None:
    assert reason in inertia.objection(np.diag(principal))
