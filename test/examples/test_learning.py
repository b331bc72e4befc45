# SPDX-License-Identifier: Apache-2.0
"""examples/learning.py: both laws converge, within the bound of closed forms for simple errors."""

import re

import learning
import numpy as np
import pytest

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.trajectory import rest_to_rest

ARM = ElasticArm(load_robot("sea_planar_2r"))
POSES = np.array([[0.0, 0.0], [0.6, -0.4]])
EXACT = {"stiffness": 0.0, "mass": 0.0, "rotor_inertia": 0.0}
T = np.linspace(0.0, 2.0, 401)
REFERENCE = np.stack(rest_to_rest([0.0, 0.0], [0.6, -0.4], 2.0).derivatives(T))


def corrected(error: Array, bandwidth: float = 3.0, gain: float = 1.0) -> Array:
    """Correction (5, N, n) after a run without correction with link error ``error`` (N, n)."""
    return learning.learn(T, REFERENCE, REFERENCE, REFERENCE[0] + error, bandwidth, gain) - REFERENCE


def printed(text: str, what: str) -> list[float]:
    return [float(x) for x in re.findall(rf"{what} +([\d.]+)", text)]


def test_nominal_torque_is_that_of_the_inverse_dynamics(capsys: pytest.CaptureFixture[str]) -> None:
    learning.learn_nominal_torque()
    text = capsys.readouterr().out
    for what, first, last in (("error", 20.0, 0.6), ("nominal torque", 50.0, 1.5)):
        found = printed(text, what)
        assert len(found) == learning.RUNS and found == sorted(found, reverse=True)
        assert found[0] > first and found[-1] < last


def test_links_come_close_at_least_as_fast_as_the_bound_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over the first runs; docs/learning.md has the errors of all of them."""
    monkeypatch.setattr(learning, "RUNS", 3)
    learning.learn_links()
    text = capsys.readouterr().out
    (bound,), errors = printed(text, "to run:"), printed(text, "links")
    assert 0.2 < bound < 1 and errors[1] < bound * errors[0]
    assert len(errors) == learning.RUNS and errors == sorted(errors, reverse=True) and errors[-1] < errors[0] / 5


def test_links_are_not_learned_where_errors_may_grow(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="learning may diverge"):
        learning.learn_links(wrong=0.5)
    assert "run 1" not in capsys.readouterr().out


def test_bound_is_one_less_gain_for_an_exact_model() -> None:
    for gain in (0.3, 1.0):
        assert learning.contraction(ARM, POSES, 3.0, gain, **EXACT) == pytest.approx(1 - gain, abs=1e-8)


def test_bound_for_a_delay_is_its_phasor_within_the_bandwidth() -> None:
    """``|1 - exp(-i w D)|`` = 2 sin(w D/2), weighted with the low-pass of the spline, at its largest."""
    found = learning.contraction(ARM, POSES, 3.0, 1.0, **EXACT, delay=5e-3)
    f = np.geomspace(0.06, 6.0, 40)
    low_pass = 1 / (1 + (f / np.maximum(6.0 - f, 1e-9)) ** 16)
    assert found == pytest.approx(np.max(low_pass * 2 * np.sin(np.pi * f * 5e-3)), rel=1e-9)


def test_correction_starts_on_the_reference_and_is_smooth() -> None:
    wave = 1e-3 * np.sin(2 * np.pi * T)[:, np.newaxis] ** 4 * np.ones(2)
    found = corrected(wave, bandwidth=10.0)
    assert np.abs(found[:, 0]).max() < 1e-12
    np.testing.assert_allclose(found[0][100:], -wave[100:], rtol=0, atol=2e-5)
    for k in range(4):
        step, middle = np.diff(found[k], axis=0) / T[1], 0.5 * (found[k + 1][1:] + found[k + 1][:-1])
        np.testing.assert_allclose(step, middle, rtol=0, atol=3e-2 * np.abs(middle).max())


@pytest.mark.parametrize("bandwidth", [0.6, 3.0, 10.0])
def test_corrected_motion_ends_at_rest(bandwidth: float) -> None:
    """Also for an error that grows to the end: drives hold the last command, which must be at rest."""
    found = corrected(1e-3 * (T / 2)[:, np.newaxis] ** 4 * [1.0, -2.0], bandwidth)
    assert np.all(np.abs(found[1:, [0, -1]]) <= 1e-9 * np.abs(found[1:]).max(axis=1, keepdims=True))
    if bandwidth == 10.0:
        np.testing.assert_allclose(found[0, -1], [-1e-3, 2e-3], rtol=0.1)  # the static error is also learned


def test_part_of_the_error_is_corrected_and_the_correction_of_the_last_run_is_kept() -> None:
    half = corrected(np.full((401, 2), 2e-3), gain=0.5)
    assert half[0, 300] == pytest.approx([-1e-3, -1e-3], rel=2e-2)
    again = learning.learn(T, REFERENCE, REFERENCE + half, REFERENCE[0], 3.0) - REFERENCE
    assert again[0, 300] == pytest.approx([-1e-3, -1e-3], rel=2e-2)
