# SPDX-License-Identifier: Apache-2.0
"""Distances of inertias: against the formulas by logarithms of matrices, and differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import logm

from eom_dynamics.identification.prior import Prior, packed, unpacked
from eom_dynamics.identification.pseudo_inertia import (
    log_cholesky,
    log_cholesky_derivatives,
    parameters_of,
    pseudo_inertia,
)

thetas = st.lists(st.floats(-1.0, 1.0), min_size=10, max_size=10).map(np.array)

FILE = parameters_of(log_cholesky(np.linspace(-0.8, 0.6, 10)))


def formula(parameters: np.ndarray, kind: str) -> float:
    X = np.linalg.solve(pseudo_inertia(FILE), pseudo_inertia(parameters))
    if kind == "entropic":
        return float(np.trace(X) - np.log(np.linalg.det(X)) - 4)
    logarithm = logm(X)
    return 0.5 * float(np.trace(logarithm @ logarithm).real)


@pytest.mark.parametrize("kind", ["entropic", "geodesic"])
@given(thetas)
def test_distance(kind: str, theta: np.ndarray) -> None:
    parameters = parameters_of(log_cholesky(theta))
    desired = formula(parameters, kind)
    assert Prior(FILE, kind).distance(parameters) == pytest.approx(desired, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("kind", ["entropic", "geodesic"])
def test_no_distance_from_itself(kind: str) -> None:
    prior = Prior(FILE, kind)
    assert prior.distance(FILE) < 1e-25
    # Close by, both are half of the squared distance.
    near = parameters_of(prior.factor @ (1.001 * np.eye(4)) @ prior.factor.T)
    assert prior.distance(near) == pytest.approx(0.5 * 4 * 1e-6, rel=2e-3)


@pytest.mark.parametrize("kind", ["entropic", "geodesic"])
@given(thetas)
def test_derivatives(kind: str, theta: np.ndarray) -> None:
    prior, step, none = Prior(FILE, kind), 1e-5, np.zeros((0, 4, 4))
    ours = prior.residuals(log_cholesky(theta), log_cholesky_derivatives(theta))[1]
    for k, unit in enumerate(np.eye(10)):
        ends = [prior.residuals(log_cholesky(theta + s * step * unit), none)[0] for s in (1, -1)]
        np.testing.assert_allclose(ours[:, k], (ends[0] - ends[1]) / (2 * step), atol=1e-6)


def test_derivatives_where_eigenvalues_agree() -> None:
    """At the file all four are one."""
    prior, step, none = Prior(FILE), 1e-4, np.zeros((0, 4, 4))
    ours = prior.residuals(np.eye(4), log_cholesky_derivatives(np.zeros(10)))[1]
    for k, unit in enumerate(np.eye(10)):
        ends = [prior.residuals(log_cholesky(s * step * unit), none)[0] for s in (1, -1)]
        np.testing.assert_allclose(ours[:, k], (ends[0] - ends[1]) / (2 * step), atol=1e-6)


def test_packed() -> None:
    A = np.random.default_rng(2).standard_normal((3, 4, 4))
    A = A + np.swapaxes(A, -1, -2)
    np.testing.assert_allclose(unpacked(packed(A)), A)
    np.testing.assert_allclose(np.sum(packed(A) ** 2, axis=-1), np.sum(A**2, axis=(-1, -2)))


def test_unknown_kind() -> None:
    with pytest.raises(ValueError, match="entropic or geodesic"):
        Prior(FILE, "euclidean")
