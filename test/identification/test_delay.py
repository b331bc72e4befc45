# SPDX-License-Identifier: Apache-2.0
"""Timing of drives from computed recordings, and the fit of a delay to signals with noise."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.actuators.springs import RIGID
from eom_dynamics.arrays import Array
from eom_dynamics.exceptions import StateError
from eom_dynamics.identification import IdentificationError, drive_delay
from eom_dynamics.identification.elastic.delay import (
    Delay,
    DriveDelay,
    combined,
    fit_delay,
    low_passed,
    period_of,
    smooth,
)
from eom_dynamics.trajectory import paper_motion

PERIOD, KP, KD = 1e-3, 900.0, 40.0
TRUE = np.array([2.3e-3, 0.4e-3, 1.1e-3])  # delay, and ages of position and velocity, s


def driven(integral: float = 0.0, gain: float = 1.0) -> tuple[list[Array], list[Array]]:
    """Recording of a rigid arm, and commands; efforts of a PD with an integral term, 1/s."""
    robot = load_robot("planar_2r")
    arm = ElasticArm(replace(robot, joints=tuple(replace(x, spring=RIGID) for x in robot.joints)))
    t, motion = PERIOD * np.arange(5000), paper_motion(2)

    def effort(at: Array) -> Array:
        return np.asarray(0.9 * arm.feedforward(*motion.derivatives(at)).motor_effort)

    def moved(at: Array, k: int) -> Array:
        """Position or velocity of the motors, behind their references as by friction."""
        q, qd, qdd = motion.derivatives(at, 2)
        behind = np.tanh(qd / 0.2)
        return np.asarray((q - 6e-3 * behind, qd - 3e-2 * (1 - behind**2) * qdd)[k])

    delay, a, b = TRUE
    reference = motion.derivatives(t - delay, 1)
    off = reference[0] - moved(t - a, 0)
    feedback = KP * (off + integral * PERIOD * np.cumsum(off, axis=0)) + KD * (reference[1] - moved(t - b, 1))
    applied = effort(t - delay) + gain * feedback
    draw = np.random.default_rng(3).normal(size=(2, *applied.shape))
    theta = moved(t, 0) + 1e-5 * draw[0]
    return [t, theta, 1.05 * applied + 0.02 * draw[1]], [effort(t), *motion.derivatives(t, 1)]


def test_delay_and_ages_of_a_drive() -> None:
    """Within 4 standard deviations and 0.02 ms, for any gains and torque constant; efforts alone have no ages."""
    recorded, command = driven()
    found = drive_delay(*recorded, command)
    times = [found.delay, found.position_age, found.velocity_age]
    values, deviations = np.array(times, dtype=float).T
    assert np.max(np.abs(values - TRUE)) < 2e-5 and np.all(np.abs(values - TRUE) < 4 * deviations + 1e-6)
    assert not found.uncertain and not found.ages_unknown
    later = drive_delay(*recorded, command, early=3e-4)
    assert later.delay.value == pytest.approx(found.delay.value + 3e-4) and "before they act" in later.ages_unknown
    recorded, command = driven(gain=0.0)
    alone = drive_delay(*recorded, command[:1])
    assert alone.delay.value == pytest.approx(TRUE[0], abs=2e-5)
    assert alone.position_age is None and "no references" in alone.ages_unknown


def test_a_drive_with_an_integral_has_no_ages() -> None:
    recorded, command = driven(integral=3.0)
    assert drive_delay(*recorded, command).ages_unknown == "efforts do not follow a PD law"


def test_what_is_not_certain_is_not_used() -> None:
    good, bad = Delay(1e-3, 1e-5), Delay(1e-3, 1e-4)
    found = DriveDelay(good, good, good, 0.0, 1.0)
    assert not found.uncertain and not found.ages_unknown
    assert found._replace(delay=bad).uncertain == "its deviation of 0.1 ms exceeds 0.05 ms"
    for changes, reason in (
        ({"velocity_age": bad}, "deviation of 0.1 ms"),
        ({"early": 5e-4}, "recorded before they act"),
        ({"position_age": Delay(1e-5, 1e-5)}, "no age that is seen"),
        ({"position_age": None}, "no references"),
    ):
        assert reason in found._replace(**changes).ages_unknown  # type: ignore[arg-type]
    both = DriveDelay.of_all([found, found._replace(delay=Delay(3e-3, 1e-5), position_age=None)])
    assert both.delay.value == pytest.approx(2e-3) and both.position_age is None and both.velocity_age is not None


def signals(delay: float, seed: int) -> tuple[Any, Array]:
    """Design of a command that is late and of a motion with much noise, and its causes."""
    t, draw = PERIOD * np.arange(4000), np.random.default_rng(seed)

    def wave(at: Array) -> Array:
        return np.asarray(np.sin(3 * at) + 0.5 * np.sin(7.1 * at + 1) + 0.2 * np.sin(17.3 * at + 2))

    other = 0.05 * np.sin(11 * t + 2)
    y = 2 * wave(t - delay) + 5 * other + draw.normal(scale=0.1, size=len(t))
    command, late, noisy = (smooth(t, x, 10.0) for x in (wave(t), y, other + draw.normal(scale=0.1, size=len(t))))
    at = t[300:-300:10]

    def design(lag: float) -> tuple[Array, Array]:
        return late(at), np.column_stack([command(at - lag), noisy(at), np.ones_like(at)])

    known = smooth(t, other, 10.0)
    causes = np.column_stack([np.ones_like(at), command(at), command(at, 1), known(at), known(at, 1)])
    return design, causes


@pytest.mark.parametrize("delay", [-4e-3, 1.23e-3])
def test_noise_of_what_is_measured_does_not_bias_a_fit(delay: float) -> None:
    """The mean of repetitions is the truth, and their scatter the standard deviation."""
    fits = [fit_delay(*signals(delay, seed), 3.4, 10.0) for seed in range(12)]
    values, deviations = np.array([(x.x, np.sqrt(np.diag(x.covariance))) for x in fits]).swapaxes(0, 1)
    true = np.array([2.0, 5.0, 0.0, delay])
    assert np.all(np.abs(values.mean(axis=0) - true) < 3.5 * values.std(axis=0) / np.sqrt(12))
    scatter = values.std(axis=0) / np.median(deviations, axis=0)
    assert np.all((scatter > 0.6) & (scatter < 1.6))


def test_signals_without_a_delay_are_refused() -> None:
    design, causes = signals(1e-3, 0)
    with pytest.raises(IdentificationError, match="too short"):
        fit_delay(design, causes, 0.1, 10.0)
    with pytest.raises(IdentificationError, match="does not determine"):
        fit_delay(design, causes[:, :3], 3.4, 10.0)
    recorded, command = driven()
    with pytest.raises(IdentificationError, match="follow its commands"):
        drive_delay(*(x[:300] for x in recorded), [x[:300] for x in command])
    with pytest.raises(StateError, match="motor_position"):
        drive_delay(*recorded[:2], recorded[2][1:], command)
    with pytest.raises(StateError, match="motor_effort"):
        drive_delay(recorded[0][1:], *recorded[1:], command)


def test_low_pass_has_no_phase_and_half_the_power_at_its_bandwidth() -> None:
    t = PERIOD * np.arange(4000)
    wave = np.sin(2 * np.pi * 10 * t)
    found = low_passed(wave, PERIOD, 10.0)[1000:-1000]
    np.testing.assert_allclose(found, wave[1000:-1000] / np.sqrt(2), rtol=0, atol=1e-6)
    line = 3.0 + 2.0 * t
    np.testing.assert_allclose(low_passed(line, PERIOD, 5.0), line, rtol=0, atol=1e-12)


def test_joints_are_weighted_and_their_scatter_counts() -> None:
    mean = combined([Delay(1e-3, 1e-5), Delay(2e-3, 1e-3)])
    assert mean.value == pytest.approx(1e-3, abs=1e-6) and mean.standard_deviation < 2e-4
    apart = combined([Delay(1e-3, 1e-5), Delay(3e-3, 1e-5)])
    assert apart.value == pytest.approx(2e-3) and apart.standard_deviation == pytest.approx(1e-3)
    with pytest.raises(IdentificationError, match="no joint"):
        combined([])


def test_period_of_stamps() -> None:
    jitter = np.random.default_rng(2).normal(scale=5e-5, size=500)
    found = period_of(2e-3 * np.arange(500) + jitter)
    assert found.value == pytest.approx(2e-3, abs=4 * found.standard_deviation) and found.standard_deviation < 1e-5
    with pytest.raises(IdentificationError, match="too few"):
        period_of([0.0, 1.0])
