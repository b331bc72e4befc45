# SPDX-License-Identifier: Apache-2.0
"""Learning from run to run on plants of MuJoCo with errors of the model, its refusals, and what of an error repeats."""

import functools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import refusals

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.exceptions import LimitError, StateError
from eom_dynamics.learning import (
    Correction,
    ErrorShares,
    LearningError,
    LearningSettings,
    Uncertainty,
    contraction,
    error_shares,
    learn,
    read_correction,
    uncorrected,
)
from eom_dynamics.learning.iteration import _low_pass
from eom_dynamics.simulation.feedforward_comparison import perturbed
from eom_dynamics.states import STATE_NAMES
from eom_dynamics.trajectory import Fourier

PERIOD, COUNT, NOISE, REPEATED = 1e-3, 2000, 2e-5, 3
SETTINGS = LearningSettings(bandwidth=10.0, gain=1.0)
KNOWN = Uncertainty(0.05, 0.05, 0.05)


@functools.cache
def arm_of(name: str) -> ElasticArm:
    return ElasticArm(load_robot(name))


def swing(n: int) -> Fourier:
    """A sin⁶(πt/T), rest to rest and four times differentiable: A (10 - 15 cos(wt) + 6 cos(2wt) - cos(3wt))/32."""
    A, f = np.resize([0.8, -0.6, 0.5, -0.4], n), 1 / (COUNT * PERIOD)
    cosine = np.multiply.outer(A / 32, [15.0, -6.0, 1.0]) * 2 * np.pi * f * np.arange(1, 4)
    return Fourier(f, 0 * cosine, cosine, 10 / 32 * A)


def before_learning(name: str) -> Correction:
    robot, t = load_robot(name), PERIOD * np.arange(COUNT + 1)
    return uncorrected(robot.joint_names, t, np.stack(swing(robot.n).derivatives(t)))


def simulated(name: str, motion: Array, disturbance: float = 0.0, start: object = None, **factors: float) -> Array:
    """Positions (N, n) of an arm in MuJoCo, with errors of the model, under the feedforward of a motion."""
    pytest.importorskip("mujoco", reason="MuJoCo is missing: pip install mujoco")
    from mujoco_arms import MujocoArm

    y = arm_of(name).feedforward(*motion, lead=PERIOD / 2)

    def command(t: float) -> tuple[Array, Array, Array]:
        k = round(t / PERIOD)
        return y.motor_effort[k] + disturbance * np.sin(8 * np.pi * t), y.motor_position[k], y.motor_velocity[k]

    plant = MujocoArm(name, step=PERIOD, **factors)
    _, q, _ = plant.run(command, swing(motion.shape[-1]), duration=COUNT * PERIOD, period=PERIOD, start=start)
    return np.vstack([motion[0][:1], q])


def runs(name: str, count: int, settings: LearningSettings = SETTINGS, uncertainty: Uncertainty = KNOWN, **factors):
    """Errors (count,) of runs, rad, with learning from noisy measurements between them."""
    arm, last, noise, errors = arm_of(name), before_learning(name), np.random.default_rng(3), []
    for _ in range(count):
        q = simulated(name, last.motion, **factors)
        errors.append(float(np.sqrt(np.mean((q - last.reference[0]) ** 2))))
        last = learn(arm, last, q + noise.normal(scale=NOISE, size=q.shape), settings, uncertainty=uncertainty)
    return np.array(errors)


@pytest.mark.parametrize(
    ("name", "factors"),
    [
        ("sea_planar_2r", {"stiffness": 1.05, "mass": 0.95, "friction": 1.2}),
        ("panda", {"stiffness": 0.95, "mass": 1.05}),
    ],
)
def test_five_runs_leave_a_twentieth(name: str, factors: dict[str, float]) -> None:
    errors = runs(name, 6, **factors)
    assert errors[5] < errors[0] / 20
    # Monotone but for noise: 3 % of what is left.
    assert np.all(errors[1:] < 1.03 * errors[:-1])
    # As it was said beforehand, down to what the bandwidth leaves.
    bound = contraction(arm_of(name), before_learning(name).reference[0], SETTINGS, KNOWN).ratio
    assert bound < 1 and errors[1] < bound * errors[0]


def test_with_half_the_stiffness_of_the_model_careful_learning_converges() -> None:
    """Other learning ends with the first run that is worse."""
    with pytest.raises(LearningError, match="the error has grown"):
        runs("sea_planar_2r", 4, stiffness=0.49)
    careful = LearningSettings(bandwidth=1.0, gain=0.3)
    errors = runs("sea_planar_2r", 4, careful, Uncertainty(0.51, 0.05, 0.05), stiffness=0.49)
    assert np.all(errors[1:] < errors[:-1])


def test_refusal_names_the_errors_and_the_largest_bandwidth() -> None:
    arm, last, wrong = arm_of("sea_planar_2r"), before_learning("sea_planar_2r"), Uncertainty(0.3, 0.0, 0.05, 2e-3)
    with pytest.raises(LearningError, match=r"\(stiffness ± 30 %, rotor inertia ± 5 %, delay ± 2 ms\)") as refusal:
        learn(arm, last, last.reference[0], SETTINGS, wrong)
    largest = float(re.search(r"with gain 1, up to ([\d.]+) Hz converge", str(refusal.value))[1])
    for factor, converges in ((1.0, True), (1.05, False)):
        settings = replace(SETTINGS, bandwidth=factor * largest)
        found = contraction(arm, last.reference[0], settings, wrong)
        assert (found.ratio < 1) == converges
    with pytest.raises(LearningError, match=r"no bandwidth above 0\.5 Hz converges with gain 1"):
        learn(arm, last, last.reference[0], SETTINGS, replace(wrong, delay=1.0))


def test_errors_that_have_grown_are_refused() -> None:
    arm, last = arm_of("planar_2r"), before_learning("planar_2r")
    off = last.reference[0] + 1e-3
    second = learn(arm, last, off, SETTINGS, uncertainty=KNOWN)
    assert second.errors == pytest.approx((1e-3,))
    with pytest.raises(LearningError, match=r"has grown from 0\.001 to 0\.0012"):
        learn(arm, second, last.reference[0] + 1.2e-3, SETTINGS, uncertainty=KNOWN)


def test_bound_is_one_less_gain_for_an_exact_model() -> None:
    q, exact = before_learning("planar_2r").reference[0], Uncertainty(0.0, 0.0, 0.0)
    for gain in (0.3, 1.0):
        found = contraction(arm_of("planar_2r"), q, LearningSettings(5.0, gain), exact)
        assert found.ratio == pytest.approx(1 - gain, abs=1e-8)
    # A delay that is not named, at the edge of the bandwidth: |1 - exp(-i w D)|.
    late = contraction(arm_of("planar_2r"), q, LearningSettings(5.0, 1.0), Uncertainty(0.0, 0.0, 0.0, delay=5e-3))
    share = _low_pass(np.array([late.frequency / 5.0]))[0]
    assert late.ratio == pytest.approx(share * 2 * np.sin(np.pi * late.frequency * 5e-3), rel=1e-9)
    assert 3 < late.frequency < 6


def test_correction_starts_on_the_reference_and_is_smooth() -> None:
    arm, last = arm_of("planar_2r"), before_learning("planar_2r")
    wave = 1e-3 * np.sin(2 * np.pi * 2 * last.t)[:, np.newaxis] ** 4 * np.ones(2)
    found = learn(arm, last, last.reference[0] + wave, LearningSettings(10.0, 1.0), uncertainty=KNOWN).correction
    assert np.all(found[:, 0] == 0)
    np.testing.assert_allclose(found[0][200:], -wave[200:], rtol=0, atol=2e-5)
    for k in range(4):
        step = np.diff(found[k], axis=0) / PERIOD
        middle = 0.5 * (found[k + 1][1:] + found[k + 1][:-1])
        np.testing.assert_allclose(step, middle, rtol=0, atol=2e-3 * (1e-12 + np.abs(middle).max()))


def test_corrected_motion_ends_at_rest() -> None:
    """Of an error that grows to the end: drives hold the last command, which must not be one of a motion."""
    arm, last = arm_of("planar_2r"), before_learning("planar_2r")
    error = 1e-3 * (last.t / last.t[-1])[:, np.newaxis] ** 4 * np.array([1.0, -2.0])
    for bandwidth in (0.6, 3.0, 10.0):
        settings = LearningSettings(bandwidth, 1.0)
        found = learn(arm, last, last.reference[0] + error, settings, uncertainty=KNOWN).correction
        # To rounding, of their sizes within the motion.
        assert np.all(np.abs(found[1:, [0, -1]]) <= 1e-12 * np.abs(found[1:]).max(axis=1, keepdims=True))
    # The static error is learned, too.
    np.testing.assert_allclose(found[0, -1], [-1e-3, 2e-3], rtol=0.1)


def test_forgetting_leaves_a_part_and_repetitions_are_averaged() -> None:
    arm, last = arm_of("planar_2r"), before_learning("planar_2r")
    off = np.stack([last.reference[0] + 2e-3, last.reference[0]])
    whole = learn(arm, last, off, LearningSettings(5.0, 1.0), uncertainty=KNOWN)
    assert whole.correction[0][1500] == pytest.approx([-1e-3, -1e-3], rel=2e-2)
    settings = LearningSettings(5.0, 0.5, 0.5)
    kept = learn(arm, whole, last.reference[0], settings, uncertainty=KNOWN)
    assert kept.correction[0][1500] == pytest.approx([-5e-4, -5e-4], rel=2e-2)


def test_file_is_a_motion_for_the_player(tmp_path: Path) -> None:
    arm, last = arm_of("planar_2r"), before_learning("planar_2r")
    found = learn(arm, last, last.reference[0] + 1e-3, SETTINGS, uncertainty=KNOWN)
    found.write(tmp_path / "next.npz")
    with np.load(tmp_path / "next.npz") as data:
        np.testing.assert_array_equal([data[name] for name in STATE_NAMES], found.motion)
    again = read_correction(tmp_path / "next.npz")
    np.testing.assert_allclose(again.correction, found.correction, rtol=0, atol=1e-12 * np.abs(found.motion).max())
    np.testing.assert_array_equal(again.reference, last.reference)
    assert again.errors == found.errors and again.joint_names == arm.robot.joint_names


def test_limits_are_kept() -> None:
    arm, last = arm_of("panda"), before_learning("panda")
    with pytest.raises(LimitError, match="the corrected motion exceeds limits"):
        learn(arm, last, last.reference[0] + 4.0, SETTINGS, uncertainty=KNOWN)


test_what_cannot_be_used_is_refused = refusals(
    StateError,
    (lambda *_: LearningSettings(0.0), "bandwidth must be positive, is 0"),
    (lambda *_: LearningSettings(5.0, 0.0), r"gain must be within \(0, 1\], is 0"),
    (lambda *_: LearningSettings(5.0, 1.5), "gain"),
    (lambda *_: LearningSettings(5.0, 1.0, -1.0), "forgetting"),
    (lambda arm, last: learn(arm, last, last.reference[0], LearningSettings(0.5)), "bandwidth must be above 0.5 Hz"),
    (lambda arm, last: learn(arm, last, last.reference[0][1:]), "measured must be finite"),
    (lambda _, last: uncorrected(last.joint_names, last.t**2, last.reference), "equal steps"),
    (lambda arm, last: error_shares(arm, last, np.zeros((1, COUNT + 1, 2)), 10.0), "two or more runs"),
    (lambda arm, last: error_shares(arm, last, np.zeros((2, COUNT, 2)), 10.0), "two or more runs"),
    call=lambda call: call(arm_of("planar_2r"), before_learning("planar_2r")),
)


def shares(name: str, disturbance: float = 0.0, **factors: float) -> tuple[ErrorShares, ...]:
    """Shares of the error in three runs: the same motion with sensor noise."""
    motion, errors = before_learning(name).motion, {key: x - 1 for key, x in factors.items()}
    # The arm holds itself before it moves.
    real = ElasticArm(perturbed(load_robot(name), **errors)).feedforward(*motion[:, 0])
    q = simulated(name, motion, disturbance, (real.motor_position, real.motor_velocity), **factors)
    measured = q + np.random.default_rng(5).normal(scale=NOISE, size=(REPEATED, *q.shape))
    return error_shares(arm_of(name), before_learning(name), measured, 10.0)


@pytest.mark.parametrize("factors", [{"mass": 1.1}, {"stiffness": 0.9}, {"friction": 1.3}])
def test_errors_of_the_model_are_explained_by_it(factors: dict[str, float]) -> None:
    for joint in shares("sea_planar_2r", **factors):
        assert joint.repeats and joint.repeating > 0.99 and joint.explained > 0.95


def test_a_disturbance_that_repeats_is_not_explained() -> None:
    for joint in shares("sea_planar_2r", disturbance=2.0):
        assert joint.repeats and joint.repeating > 0.99 and joint.explained < 0.2


def drawn_shares(name: str, count: int, wave: float = 0.0) -> list[ErrorShares]:
    """Shares of the error in runs of noise alone, or with a small wave of 3 Hz."""
    motion, drawn = before_learning(name), []
    exact = motion.motion[0] + wave * np.sin(2 * np.pi * 3 * motion.t)[:, np.newaxis]
    for seed in range(count):
        noise = np.random.default_rng(seed).normal(scale=NOISE, size=(REPEATED, *exact.shape))
        drawn += error_shares(arm_of(name), motion, exact + noise, 10.0)
    return drawn


def test_noise_alone_does_not_repeat() -> None:
    drawn = drawn_shares("sea_planar_2r", 20)
    assert all(joint.repeating < 0.5 for joint in drawn)
    # Of 40 tests of level 1 %.
    assert sum(joint.repeats for joint in drawn) <= 2


def test_uncertainty_of_the_share_is_that_of_many_draws() -> None:
    drawn = drawn_shares("vsa_planar_2r", 60, 2e-6)
    spread = np.std([joint.repeating for joint in drawn])
    assert np.mean([joint.deviation for joint in drawn]) == pytest.approx(spread, rel=0.25)
    # Power of the test: noncentrality 26.5 of the wave, 43 coefficients of splines.
    assert np.mean([joint.repeats for joint in drawn]) == pytest.approx(0.32, abs=0.1)
    # With a pair of motors at a joint, the model's part is not told.
    assert all(np.isnan(joint.explained) for joint in drawn)


def test_runs_without_noise_or_error() -> None:
    motion = before_learning("planar_2r")
    exact = np.repeat(motion.motion[:1], 2, axis=0)
    for joint in error_shares(arm_of("planar_2r"), motion, exact, 10.0):
        assert joint.rms == joint.repeating == 0 and not joint.repeats
    wrong = exact + 1e-3 * np.sin(motion.t)[:, np.newaxis] ** 4
    for joint in error_shares(arm_of("planar_2r"), motion, wrong, 10.0):
        assert joint.repeating == 1 and joint.repeats
