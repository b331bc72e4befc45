# SPDX-License-Identifier: Apache-2.0
"""Pseudo-inertias against sums over point masses; distances against logarithms of matrices, and differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import logm

from eom_dynamics.identification.links.consistent import (
    Prior,
    consistent,
    parameters_of,
    pseudo_inertia,
    unpacked,
)

thetas = st.lists(st.floats(-1.0, 1.0), min_size=10, max_size=10).map(np.array)

_LOWER = np.tril_indices(4)


def factor(theta: np.ndarray) -> np.ndarray:
    """Lower triangular matrix (4, 4) with a positive diagonal."""
    C = np.zeros((4, 4))
    C[_LOWER] = theta
    np.fill_diagonal(C, np.exp(np.diag(C)))
    return C


def positive_definite(theta: np.ndarray) -> np.ndarray:
    return factor(theta) @ factor(theta).T


FILE = parameters_of(positive_definite(np.linspace(-0.8, 0.6, 10)))


def formula(parameters: np.ndarray, kind: str) -> float:
    X = np.linalg.solve(pseudo_inertia(FILE), pseudo_inertia(parameters))
    if kind == "entropic":
        return float(np.trace(X) - np.log(np.linalg.det(X)) - 4)
    logarithm = logm(X)
    return 0.5 * float(np.trace(logarithm @ logarithm).real)


def distance(prior: Prior, parameters: np.ndarray) -> float:
    inverse = np.linalg.inv(prior.factor)
    return prior.of_relative(inverse @ pseudo_inertia(parameters) @ inverse.T)


@pytest.mark.parametrize("kind", ["entropic", "geodesic"])
@given(thetas)
def test_distance(kind: str, theta: np.ndarray) -> None:
    parameters = parameters_of(positive_definite(theta))
    desired = formula(parameters, kind)
    assert distance(Prior(FILE, kind), parameters) == pytest.approx(desired, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("kind", ["entropic", "geodesic"])
@given(thetas)
def test_gradient(kind: str, theta: np.ndarray) -> None:
    prior, step, C = Prior(FILE, kind), 1e-5, factor(theta)
    ours = prior.gradient(C)
    size = 1 + np.abs(ours).max()
    for k, dY in enumerate(unpacked(step * np.eye(10))):
        ends = [prior.of_relative(C @ (np.eye(4) + s * dY) @ C.T) for s in (1, -1)]
        assert ours[k] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-5 * size)


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


@pytest.mark.parametrize("moment", [4, 7, 9])
def test_consistent_makes_bodies_of_others(moment: int) -> None:
    """One principal moment far beyond the sum of the others."""
    inconsistent = of_points()
    inconsistent[moment] += 50.0
    assert np.linalg.eigvalsh(pseudo_inertia(inconsistent))[0] < 0
    found = consistent(inconsistent, 0.01)
    assert np.linalg.eigvalsh(pseudo_inertia(found))[0] > 0
    np.testing.assert_allclose(found[:4], inconsistent[:4])
