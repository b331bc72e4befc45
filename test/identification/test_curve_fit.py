# SPDX-License-Identifier: Apache-2.0
"""Least squares with bounds, and standard deviations of identified parameters, also of links by their springs."""

from dataclasses import replace

import numpy as np
import pytest
from elastic_recordings import recording as elastic_recording
from scipy.linalg import toeplitz

from eom_dynamics import load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.identification import Fit, Options, fit, fit_motor
from eom_dynamics.identification.elastic.arm import Elasticity, identify_elasticity, with_spring_efforts
from eom_dynamics.identification.elastic.curve_fit import curve_fit
from eom_dynamics.identification.links import equations, solutions
from eom_dynamics.identification.recording import ArmRecording, IdentificationError
from eom_dynamics.identification.sampling import LowPass, cutoff_of, noise_level, rate_of
from eom_dynamics.tools.quantity_text import with_deviation

COUNT, WIDTH = 4000, 20
X = np.stack([np.sin(np.linspace(0, 30, COUNT)), np.ones(COUNT)], axis=-1)


def correlated(seed: int) -> np.ndarray:
    """Mean of WIDTH independent normal numbers at each sample, its correlation a triangle."""
    noise = np.random.default_rng(seed).normal(size=COUNT + WIDTH - 1)
    return np.convolve(noise, np.ones(WIDTH) / WIDTH, mode="valid")


def test_covariance_of_correlated_residuals() -> None:
    """Compared with (XᵀX)⁻¹ XᵀRX (XᵀX)⁻¹ with the true correlation R, five times that for independent ones."""
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


B, C = 0.5, 3.0  # rotor inertia and Coulomb friction


def test_deviations_are_unknown_without_samples_away_from_reversals() -> None:
    t = np.arange(0, 20.0, 1e-3)
    theta = 0.01 * np.sin(2 * np.pi * 4 * t)
    v = np.gradient(theta, t)
    effort = B * np.gradient(v, t) + C * np.tanh(v / 0.01)
    noise = np.random.default_rng(0).standard_normal((2, len(t)))
    found = fit_motor(t, theta + 1e-6 * noise[0], tau=0.0 * t, effort=effort + 0.01 * noise[1], cutoff=8.0)
    assert np.isnan(found.rotor_inertia[1]) and found.rotor_inertia[0] == pytest.approx(B, rel=0.1)


def test_errors_of_springs_are_those_of_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """Base parameters and offsets change with the springs as their deviations say, by differences of whole fits.

    Fits use the weights of the first fit: springs would change them as well, by the remaining efforts.
    """
    robot = load_robot("sea_planar_2r")
    x = elastic_recording(robot, rate=200.0).noisy(1)
    arm = ArmRecording(x.t, x.q, None, np.full_like(x.tau, np.nan), x.theta, x.motor_effort)
    elasticity = identify_elasticity(robot, [arm])
    options = Options(side="joint", terms=("offset",), cutoff=8.0, prior_weight=1.0)

    def fitted(springs: Elasticity, scale: Array | None = None) -> Fit:
        links = with_spring_efforts(robot, springs, arm)
        links = links if scale is None else replace(links, scale_deviation=scale)
        return fit(robot, links.links(robot, "arm"), options=options)

    weights = 1 / fitted(elasticity).estimate.sigma
    monkeypatch.setattr(solutions, "weighted", lambda system, file: equations._solve(system, weights, file))
    found = fitted(elasticity)
    x0, common = found.estimate.x, found.estimate.common
    alone = fitted(elasticity, np.zeros(2)).base_deviations
    np.testing.assert_allclose(found.base_deviations**2, alone**2 + np.sum(common**2, axis=1), rtol=1e-9)
    for k, name in enumerate(robot.joint_names):
        spring = elasticity.springs[name]
        changed = replace(spring, spring=spring.spring.scaled(1 + 1e-4))
        other = replace(elasticity, springs={**elasticity.springs, name: changed})
        expected = (fitted(other).estimate.x - x0) / 1e-4 * spring.scale_deviation(arm.theta[:, k] - arm.q[:, k])
        # Differences of a linear function are exact except for rounding, 1e-16 over 1e-4, and changes of weights.
        np.testing.assert_allclose(common[:, k], expected, atol=1e-5 * np.max(np.abs(expected)))


def test_text_of_deviations() -> None:
    assert with_deviation(0.0, 0.0) == "0, at its bound"
    texts = [with_deviation(1.0, deviation) for deviation in (np.nan, np.inf, 0.1)]
    assert texts == ["1.00", "1.00 ± ?", "1.00 ± 0.100"]
