# SPDX-License-Identifier: Apache-2.0
"""Pseudo-inertias against sums over point masses; distances against logarithms of matrices, and differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import logm

from eom_dynamics.identification.links.consistent import Prior, consistent, parameters_of, pseudo_inertia, unpacked

thetas = st.lists(st.floats(-1.0, 1.0), min_size=10, max_size=10).map(np.array)

_LOWER = np.tril_indices(4)


def factor(theta: np.ndarray) -> np.ndarray:
    """Lower triangular matrix (4, 4) with a positive diagonal."""
    C = np.zeros((4, 4))
    C[_LOWER] = theta
    np.fill_diagonal(C, np.exp(np.diag(C)))
    return C


FACTOR = factor(np.linspace(-0.8, 0.6, 10))
FILE = parameters_of(FACTOR @ FACTOR.T)


FORMULAS = {
    "entropic": lambda X: np.trace(X) - np.log(np.linalg.det(X)) - 4,
    "geodesic": lambda X: 0.5 * np.trace(logm(X) @ logm(X)).real,
}


@pytest.mark.parametrize("kind", FORMULAS)
@given(thetas)
def test_distance_and_its_gradient(kind: str, theta: np.ndarray) -> None:
    prior, step, C = Prior(FILE, kind), 1e-5, factor(theta)
    P, inverse = C @ C.T, np.linalg.inv(prior.factor)
    desired = FORMULAS[kind](np.linalg.solve(pseudo_inertia(FILE), P))
    assert prior.of_relative(inverse @ P @ inverse.T) == pytest.approx(float(desired), rel=1e-8, abs=1e-10)
    ours = prior.gradient(C)
    size = 1 + np.abs(ours).max()
    for k, dY in enumerate(unpacked(step * np.eye(10))):
        ends = [prior.of_relative(C @ (np.eye(4) + s * dY) @ C.T) for s in (1, -1)]
        assert ours[k] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-5 * size)


DRAW = np.random.default_rng(1)
MASSES, PLACES = DRAW.uniform(0.1, 2.0, 12), DRAW.uniform(-0.5, 0.5, (12, 3))
x, y, z = PLACES.T
INERTIA = [y * y + z * z, -x * y, -x * z, x * x + z * z, -y * z, x * x + y * y]
OF_POINTS = np.array([MASSES.sum(), *(MASSES @ PLACES), *(MASSES @ moment for moment in INERTIA)])
"""Inertial parameters of point masses, by the definitions of each."""


def test_pseudo_inertia_of_points() -> None:
    one = np.column_stack([PLACES, np.ones(len(MASSES))])
    P = pseudo_inertia(OF_POINTS)
    np.testing.assert_allclose(P, (one.T * MASSES) @ one, atol=1e-14)
    np.testing.assert_allclose(parameters_of(P), OF_POINTS, atol=1e-14)


@pytest.mark.parametrize("moment", [4, 7, 9])
def test_consistent_makes_bodies_of_others(moment: int) -> None:
    """One principal moment far beyond the sum of the others."""
    inconsistent = OF_POINTS + 50.0 * (np.arange(10) == moment)
    assert np.linalg.eigvalsh(pseudo_inertia(inconsistent))[0] < 0
    found = consistent(inconsistent, 0.01)
    assert np.linalg.eigvalsh(pseudo_inertia(found))[0] > 0
    np.testing.assert_allclose(found[:4], inconsistent[:4])
