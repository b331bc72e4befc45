# SPDX-License-Identifier: Apache-2.0
"""Delay from command to motion, from simulated recordings with noise."""

from __future__ import annotations

import numpy as np
import pytest

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.exceptions import StateError
from eom_dynamics.identification import IdentificationError
from eom_dynamics.identification.elastic.delay import Delay, combined, command_delay, drive_delay, low_passed, period_of
from eom_dynamics.simulation import SimulatedRobot
from eom_dynamics.simulation.simulated_robot import SensorNoise
from eom_dynamics.trajectory import paper_motion

PERIOD = 1e-3


def recorded(name: str, delay: float, seconds: float, wrong: float = 1.0) -> tuple[ElasticArm, list[Array]]:
    """Times, positions of links and motors, and the commands, which are of a model with other efforts."""
    arm = ElasticArm(load_robot(name))
    motion, t = paper_motion(arm.robot.n), PERIOD * np.arange(round(seconds / PERIOD))
    start = motion.derivatives(0.0, 0)[0]
    noise = SensorNoise(1e-5, 1e-3, 0.02)
    robot = SimulatedRobot(arm, period=PERIOD, position=start, drive_delay=delay, noise=noise, seed=1)
    y = arm.feedforward(*motion.derivatives(t))
    links, motors = [], []
    for effort, position, velocity in zip(wrong * y.motor_effort, y.motor_position, y.motor_velocity, strict=True):
        now = robot.readings()
        links.append(now.q)
        motors.append(now.theta)
        robot.follow(position, velocity, effort)
        robot.advance()
    commands = [wrong * y.motor_effort, y.motor_position, y.motor_velocity]
    return arm, [t, np.array(links), np.array(motors), *commands]


@pytest.mark.parametrize(("name", "delay", "wrong"), [("sea_planar_2r", 2e-3, 1.0), ("planar_2r", 0.0, 0.9)])
def test_delay_of_a_simulated_arm(name: str, delay: float, wrong: float) -> None:
    """Within 0.1 ms with noise of sensors and a wrong model, half the period included."""
    arm, (t, q, theta, *command) = recorded(name, delay, 3.0 if delay else 2.0, wrong)
    found = drive_delay(arm, t, q, theta, command)
    assert found.value == pytest.approx(delay + PERIOD / 2, abs=1e-4)
    assert 0 < found.standard_deviation < 2e-4
    assert abs(found.value - delay - PERIOD / 2) < 4 * found.standard_deviation + 2e-5


def signals(count: int = 2500) -> tuple[Array, Array, Array]:
    t = PERIOD * np.arange(count)
    position = np.sin(3 * t) + 0.5 * np.sin(7.1 * t + 1) + 0.2 * np.sin(17.3 * t + 2)
    rate = 3 * np.cos(3 * t) + 3.55 * np.cos(7.1 * t + 1) + 3.46 * np.cos(17.3 * t + 2)
    acceleration = -9 * np.sin(3 * t) - 25.2 * np.sin(7.1 * t + 1) - 59.9 * np.sin(17.3 * t + 2)
    return t, 0.1 * acceleration + 2 * rate + 5 * position, np.column_stack([position, rate, acceleration])


@pytest.mark.parametrize("delay", [-4e-3, 0.0, 1.23e-3, 7e-3])
def test_standard_deviation_is_that_of_repetitions(delay: float) -> None:
    t, u, x = signals()
    rng, found = np.random.default_rng(8), []
    for _ in range(8):
        late = np.interp(t + delay, t, u) + rng.normal(scale=1.0, size=len(t))
        found.append(command_delay(t, late, x))
    values, deviations = np.array(found).T
    assert np.mean(values) == pytest.approx(delay, abs=4 * np.std(values) / np.sqrt(8) + 1e-6)
    assert 0.4 < np.std(values) / np.median(deviations) < 1.7


def test_signals_without_a_delay_are_refused() -> None:
    t, u, x = signals()
    with pytest.raises(IdentificationError, match="too few"):
        command_delay(t[:300], u[:300], x[:300])
    with pytest.raises(IdentificationError, match="not within 1 ms"):
        command_delay(t, np.interp(t + 5e-3, t, u), x, longest=1e-3)
    with pytest.raises(StateError, match="command"):
        command_delay(t, u[1:], x)


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
