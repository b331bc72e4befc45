# SPDX-License-Identifier: Apache-2.0
"""Fits of recordings: gain, noise, uneven time stamps, gaps, and invalid data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refusals
from scipy.interpolate import make_lsq_spline

from eom_dynamics.exceptions import TrajectoryError
from eom_dynamics.trajectory import fit_trajectory

W = 2 * np.pi * 0.7


def recording(seed: int, N: int = 4000, noise: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Two joints at 0.7 Hz for 20 s, with 200 random time stamps a second."""
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(0, 20, N))
    return t, truth(t, 0) + noise * rng.normal(size=(N, 2))


def truth(t: np.ndarray, k: int) -> np.ndarray:
    return W**k * np.stack([np.sin(W * t + k * np.pi / 2), 1.0 * (k == 0) + np.cos(W * t + k * np.pi / 2)], axis=1)


INSIDE = np.linspace(1, 19, 2000)


@pytest.mark.parametrize("velocities", [False, True])
@pytest.mark.parametrize("frequency", [1.0, 5.0, 10.0])
def test_gain_and_phase(frequency: float, velocities: bool) -> None:
    t = np.arange(0, 20, 0.005)
    wave = 2 * np.pi * frequency
    measured = {"velocities": wave * np.cos(wave * t)[:, np.newaxis]} if velocities else {}
    result = fit_trajectory(t, np.sin(wave * t)[:, np.newaxis], cutoff=5.0, **measured)
    q = result.trajectory.derivatives(INSIDE, order=0)[0][:, 0]
    x = frequency / 5.0
    weight = 1 + x**2 if velocities else 1.0
    # In phase and in quadrature; the error is due to the spline with six pieces per period.
    parts, *_ = np.linalg.lstsq(np.stack([np.sin(wave * INSIDE), np.cos(wave * INSIDE)], 1), q, rcond=None)
    np.testing.assert_allclose(parts, [weight / (weight + x**10), 0.0], atol=1e-5)


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_smooth_motion_is_reproduced(seed: int) -> None:
    t, q = recording(seed)
    result = fit_trajectory(t, q, cutoff=5.0)
    for k, actual in enumerate(result.trajectory.derivatives(INSIDE)):
        np.testing.assert_allclose(actual / W**k, truth(INSIDE, k) / W**k, atol=5e-4 if k == 4 else 1e-4)
    assert result.trajectory.start == t[0] and result.trajectory.end == t[-1]
    assert result.samples == 4000 and not (result.dropped or result.disordered or result.repeated or result.gaps)


def test_deviation_and_suppression_of_noise() -> None:
    """At most 10 % worse than SciPy's least-squares spline of degree nine, a filter of about the same bandwidth."""
    t, q = recording(0, noise=1e-3)
    result = fit_trajectory(t, q, cutoff=5.0)
    residual = result.trajectory.derivatives(t)[0] - q
    np.testing.assert_allclose(result.deviation, np.sqrt(np.mean(residual**2, axis=0)))
    np.testing.assert_allclose(result.largest_deviation, np.max(np.abs(residual), axis=0))
    np.testing.assert_allclose(result.deviation, 1e-3, rtol=0.1)
    knots = np.concatenate([[t[0]] * 10, np.arange(0.1, 19.95, 0.1), [t[-1]] * 10])
    other, actual = make_lsq_spline(t, q, knots, k=9), result.trajectory.derivatives(INSIDE)
    for k in range(5):
        errors = [np.sqrt(np.mean((x - truth(INSIDE, k)) ** 2)) for x in (actual[k], other(INSIDE, nu=k))]
        assert errors[0] < 1.1 * errors[1]


def test_invalid_samples_are_counted() -> None:
    t, q = recording(2)
    clean = fit_trajectory(t, q, cutoff=5.0).trajectory.derivatives(INSIDE)
    q = np.append(q, [q[100], q[200], [np.nan, 0], q[0], *truth(np.array([7.0]), 0)], axis=0)
    t = np.append(t, [t[100], t[200], 5.0, np.nan, 7.0])
    t[[50, 51]], q[[50, 51]] = t[[51, 50]], q[[51, 50]]
    result = fit_trajectory(t, q, cutoff=5.0)
    assert (result.samples, result.dropped, result.repeated) == (4001, 2, 2)
    assert result.disordered == 2  # samples 51 and 50, and sample 100 at the end
    for k, (a, b) in enumerate(zip(result.trajectory.derivatives(INSIDE), clean, strict=True)):
        np.testing.assert_allclose(a / W**k, b / W**k, atol=1e-4)


def test_samples_with_equal_time_stamps_are_averaged() -> None:
    t = np.repeat(np.arange(0, 5, 0.01), 2)
    q = np.tile([[0.0], [1.0]], (500, 1))
    result = fit_trajectory(t, q, cutoff=5.0)
    np.testing.assert_allclose(result.trajectory.derivatives(t)[0], 0.5, atol=1e-9)
    assert result.repeated == 500


def test_gaps_are_reported_and_filled_without_overshoot() -> None:
    t, q = recording(3)
    keep = (t < 6.0) | (t > 9.0)
    result = fit_trajectory(t[keep], q[keep], cutoff=5.0)
    assert len(result.gaps) == 1
    before, after = result.gaps[0]
    assert before == t[t < 6.0][-1] and after == t[t > 9.0][0]
    across = result.trajectory.derivatives(np.linspace(before, after, 500))[0]
    assert np.all(np.abs(across - np.mean(across, axis=0)) < 2.0)
    far = INSIDE[(INSIDE < 5.0) | (INSIDE > 10.0)]
    np.testing.assert_allclose(result.trajectory.derivatives(far)[0], truth(far, 0), atol=1e-3)
    assert not fit_trajectory(t[keep], q[keep], cutoff=5.0, gap=4.0).gaps


T = np.arange(20) * 0.1
Q = np.zeros((20, 2))


test_bad_recordings = refusals(
    TrajectoryError,
    (T[:9], Q[:9], {}, "at least 10"),
    (np.zeros(20), Q, {}, "1 samples"),
    (T, Q * np.nan, {}, "0 samples"),
    (T, Q, {"cutoff": 6.0}, "5 Hz"),
    (T, Q, {"cutoff": 0.1}, "from 0.5263 Hz"),
    (T, Q, {"gap": 0.0}, "gap"),
    (np.append(T[:-1], 1.7e9), Q, {}, "cut the recording there"),
    call=lambda times, positions, options: fit_trajectory(times, positions, **{"cutoff": 2.0, **options}),
)
