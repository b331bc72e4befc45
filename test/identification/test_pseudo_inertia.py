# SPDX-License-Identifier: Apache-2.0
"""Pseudo-inertias and log-Cholesky parameters: against sums over point masses, and differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eom_dynamics.identification.pseudo_inertia import (
    log_cholesky,
    log_cholesky_derivatives,
    log_cholesky_parameters,
    parameters_of,
    possible,
    pseudo_inertia,
)

thetas = st.lists(st.floats(-1.5, 1.5), min_size=10, max_size=10).map(np.array)


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


@given(thetas)
def test_log_cholesky(theta: np.ndarray) -> None:
    X = log_cholesky(theta)
    assert np.linalg.eigvalsh(X)[0] > 0
    np.testing.assert_allclose(log_cholesky_parameters(X), theta, atol=1e-9)


@given(thetas)
def test_derivatives(theta: np.ndarray) -> None:
    step = 1e-6
    ours = log_cholesky_derivatives(theta)
    size = np.abs(log_cholesky(theta)).max()
    for k, unit in enumerate(np.eye(10)):
        difference = (log_cholesky(theta + step * unit) - log_cholesky(theta - step * unit)) / (2 * step)
        np.testing.assert_allclose(ours[k], difference, atol=1e-8 * size)


def test_zero_is_the_file() -> None:
    np.testing.assert_array_equal(log_cholesky(np.zeros(10)), np.eye(4))


def test_possible_leaves_bodies_as_they_are() -> None:
    np.testing.assert_allclose(possible(of_points(), 0.01), of_points(), rtol=1e-12)


@pytest.mark.parametrize("moment", [4, 7, 9])
def test_possible_makes_bodies_of_others(moment: int) -> None:
    """One principal moment far beyond the sum of the others."""
    impossible = of_points()
    impossible[moment] += 50.0
    assert np.linalg.eigvalsh(pseudo_inertia(impossible))[0] < 0
    found = possible(impossible, 0.01)
    assert np.linalg.eigvalsh(pseudo_inertia(found))[0] > 0
    np.testing.assert_allclose(found[:4], impossible[:4])
