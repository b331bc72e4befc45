# SPDX-License-Identifier: Apache-2.0
"""Pseudo-inertias, against sums over point masses."""

from __future__ import annotations

import numpy as np
import pytest

from eom_dynamics.identification.links.consistent import consistent, parameters_of, pseudo_inertia


def points() -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(1)
    return draw.uniform(0.1, 2.0, 12), draw.uniform(-0.5, 0.5, (12, 3))


def of_points() -> np.ndarray:
    """Inertial parameters of point masses, by the definitions of each."""
    masses, places = points()
    x, y, z = places.T
    inertia = [y * y + z * z, -x * y, -x * z, x * x + z * z, -y * z, x * x + y * y]
    return np.array([masses.sum(), *(masses @ places), *(masses @ moment for moment in inertia)])


def test_pseudo_inertia_of_points() -> None:
    masses, places = points()
    one = np.column_stack([places, np.ones(len(masses))])
    P = pseudo_inertia(of_points())
    np.testing.assert_allclose(P, (one.T * masses) @ one, atol=1e-14)
    np.testing.assert_allclose(parameters_of(P), of_points(), atol=1e-14)


def test_consistent_leaves_bodies_as_they_are() -> None:
    np.testing.assert_allclose(consistent(of_points(), 0.01), of_points(), rtol=1e-12)


@pytest.mark.parametrize("moment", [4, 7, 9])
def test_consistent_makes_bodies_of_others(moment: int) -> None:
    """One principal moment far beyond the sum of the others."""
    inconsistent = of_points()
    inconsistent[moment] += 50.0
    assert np.linalg.eigvalsh(pseudo_inertia(inconsistent))[0] < 0
    found = consistent(inconsistent, 0.01)
    assert np.linalg.eigvalsh(pseudo_inertia(found))[0] > 0
    np.testing.assert_allclose(found[:4], inconsistent[:4])
