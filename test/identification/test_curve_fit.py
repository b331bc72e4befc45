# SPDX-License-Identifier: Apache-2.0
"""Least squares with bounds, against NumPy and the covariance of noise that is known."""

import numpy as np
import pytest
from scipy.linalg import toeplitz

from eom_dynamics.identification.elastic.curve_fit import curve_fit, linear_fit
from eom_dynamics.identification.recording import IdentificationError
from eom_dynamics.identification.sampling import LowPass, cutoff_of, noise_level, rate_of

COUNT, WIDTH = 4000, 20
X = np.stack([np.sin(np.linspace(0, 30, COUNT)), np.ones(COUNT)], axis=-1)


def correlated(seed: int) -> np.ndarray:
    """Mean of WIDTH independent normal numbers at each sample, its correlation a triangle."""
    noise = np.random.default_rng(seed).normal(size=COUNT + WIDTH - 1)
    return np.convolve(noise, np.ones(WIDTH) / WIDTH, mode="valid")


def test_covariance_of_correlated_residuals() -> None:
    """Against (XᵀX)⁻¹ XᵀRX (XᵀX)⁻¹ with the true correlation R, five times that of independent residuals."""
    R = toeplitz(np.maximum(1 - np.arange(COUNT) / WIDTH, 0)) / WIDTH
    inverse = np.linalg.inv(X.T @ X)
    true = np.sqrt(np.diag(inverse @ X.T @ R @ X @ inverse))
    found = []
    for seed in range(10):
        y = X @ [2.0, -1.0] + correlated(seed)
        estimate = curve_fit(lambda p, y=y: y - X @ p, {"slope": 0.0, "offset": 0.0}, {})
        assert estimate.values == pytest.approx(np.linalg.lstsq(X, y, rcond=None)[0], rel=1e-8)
        found.append(estimate.std)
    # Each is of 200 independent samples.
    assert np.mean(found, axis=0) == pytest.approx(true, rel=0.1)
    independent = curve_fit(lambda p: y - X @ p, {"slope": 0.0, "offset": 0.0}, {}, independent=True)
    assert np.all(independent.std < 0.35 * true)


def test_errors_over_deviations_of_slow_columns() -> None:
    """Where few samples are as slow as the columns, with the usual N - p the RMS is 1.4, and 85 % are inside."""
    count, shape, draw = 200, np.array([0.25, 0.5, 0.25]), np.random.default_rng(0)
    phase = 2 * np.pi * np.multiply.outer(np.arange(count), [2, 4, 6]) / count
    columns = dict(zip("abcdefg", (*np.sin(phase).T, *np.cos(phase).T, np.ones(count)), strict=True))
    fits = [linear_fit(columns, np.convolve(draw.normal(size=count + 2), shape, mode="valid")) for _ in range(300)]
    z = np.array([fit.values / fit.std for fit in fits])
    assert np.sqrt(np.mean(z**2)) == pytest.approx(1.0, abs=0.06)
    assert 0.93 < np.mean(np.abs(z) < 1.96) < 0.97


def test_bounds_and_what_the_data_do_not_tell() -> None:
    y = X @ [2.0, 0.0] + 0.01 * np.random.default_rng(0).normal(size=COUNT)
    A = np.column_stack([X, X[:, 0] * (1 + 1e-6), np.zeros(COUNT)])
    estimate = curve_fit(
        lambda p: y - A[:, [0, 1, 3]] @ p, {"slope": 1.0, "offset": 1.0, "idle": 1.0}, {"offset": (0.1, np.inf)}
    )
    assert estimate["offset"] == 0.1
    assert estimate.undetermined == ("idle: no effect on these data", "offset: stopped at its bound 0.1")
    twins = curve_fit(lambda p: y - A[:, [0, 2]] @ p, {"a": 1.0, "b": 1.0}, {})
    assert any(line.startswith("a and b: inseparable") for line in twins.undetermined)


def test_bad_residuals() -> None:
    with pytest.raises(IdentificationError, match="1 samples do not determine 1 parameters"):
        curve_fit(lambda p: p - 1, {"a": 0.0}, {})
    with pytest.raises(IdentificationError, match="not finite"):
        curve_fit(lambda p: np.full(5, np.nan), {"a": 0.0}, {})


def test_rate_noise_and_cutoff_of_a_signal() -> None:
    """Against the closed integral of the noise of the second derivative, s² 2 h (2 pi)⁴ f⁵/5."""
    period, t = 1e-3, 1e-3 * np.arange(20000)
    wave, low_pass = np.sin(2 * np.pi * t), LowPass(period, 20.0)
    # (1/20)^8 = 4e-11, and transients at the ends.
    assert low_pass(wave) == pytest.approx(wave[low_pass.reach : -low_pass.reach], abs=2e-4)
    assert rate_of(wave, period) == pytest.approx(2 * np.pi * np.cos(2 * np.pi * t)[2:-2], rel=1e-6, abs=1e-6)
    x = wave + 1e-5 * np.random.default_rng(0).normal(size=t.shape)
    assert noise_level(x) == pytest.approx(1e-5, rel=0.05)
    acceleration = (2 * np.pi) ** 2 / np.sqrt(2)
    expected = (5 * (0.005 * acceleration / 1e-5) ** 2 / (2 * period * (2 * np.pi) ** 4)) ** 0.2
    assert cutoff_of(period, x, 2) == pytest.approx(expected, rel=0.05)
