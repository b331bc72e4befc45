# SPDX-License-Identifier: Apache-2.0
"""Fourier series at rest at their ends: against differences of the trajectory, and the number of free parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differences import derivative, deviation
from hypothesis import given
from hypothesis import strategies as st

from eom_dynamics.exceptions import TrajectoryError
from eom_dynamics.identification.excitation.excitation import RestSeries

SCALE = np.array([0.5, 2.0, 3.0])


def parameters(series: RestSeries, seed: int) -> Any:
    return np.random.default_rng(seed).normal(size=series.shape)


@given(harmonics=st.integers(3, 12), frequency=st.floats(0.05, 2.0), seed=st.integers(0, 99))
def test_ends_are_at_rest(harmonics: int, frequency: float, seed: int) -> None:
    series = RestSeries(frequency, harmonics, SCALE)
    motion = series.trajectory(parameters(series, seed), periods=2)
    peaks = [np.max(np.abs(x)) for x in motion.derivatives(np.linspace(0, motion.end, 200))]
    for t in (0.0, 1 / frequency, motion.end):
        for peak, rate in zip(peaks[1:], motion.derivatives(t)[1:], strict=True):
            # Sums of harmonics to the power of four, of numbers rounded to 1e-16.
            assert np.max(np.abs(rate)) < 1e-11 * peak
    assert deviation(motion.derivatives(0.0)[0], motion.derivatives(motion.end)[0]) < 1e-12


def test_no_motion_at_rest_is_left_out() -> None:
    """Every series at rest at its ends is one of the family: 2 L coefficients less four conditions."""
    series = RestSeries(0.3, 5, SCALE)
    w = 2 * np.pi * 0.3 * np.arange(1, 6)
    conditions = np.zeros((4, 10))
    conditions[0, :5], conditions[1, 5:] = 1, w
    conditions[2, :5], conditions[3, 5:] = -(w**2), -(w**3)
    z = np.concatenate([np.zeros((6, 1)), np.eye(6)], axis=1)
    motions = [RestSeries(0.3, 5, np.ones(1)).trajectory(row[np.newaxis]) for row in z]
    coefficients = np.array([np.concatenate([m.sine[0], m.cosine[0]]) for m in motions])
    assert series.shape == (3, 7)
    assert np.linalg.matrix_rank(coefficients) == 10 - np.linalg.matrix_rank(conditions)
    np.testing.assert_allclose(coefficients @ conditions.T, 0, atol=1e-10)


def test_matrices_agree_with_the_trajectory() -> None:
    series = RestSeries(0.2, 6, SCALE)
    z, t = parameters(series, 1), np.linspace(0, 4.9, 23)
    states = series.states(z, series.matrices(t, 4))
    for k, expected in enumerate(series.trajectory(z).derivatives(t)):
        assert deviation(states[k], expected) < 1e-12


def test_gradient_agrees_with_differences() -> None:
    series = RestSeries(0.2, 4, SCALE)
    z, matrices = parameters(series, 2), series.matrices(np.linspace(0, 5, 11), 2)
    weight = np.random.default_rng(3).normal(size=(3, 11, 3))
    found = series.parameter_gradient(weight, matrices)
    for i in range(3):
        for k in range(5):
            at = np.zeros(series.shape)
            at[i, k] = 1.0
            slope = derivative(lambda h, at=at: np.sum(weight * series.states(z + h * at, matrices)))
            assert abs(slope - found[i, k]) < 1e-8 * np.max(np.abs(found))


@pytest.mark.parametrize(("harmonics", "message"), [(2, "from 3"), (51, "to 50"), (3.5, "integer")])
def test_errors(harmonics: Any, message: str) -> None:
    with pytest.raises(TrajectoryError, match=message):
        RestSeries(1.0, harmonics, SCALE)
