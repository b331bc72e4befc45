# SPDX-License-Identifier: Apache-2.0
"""Friction, gear loss, and current, voltage and limits of motors."""

from __future__ import annotations

import numpy as np
import pytest
from differences import derivative, deviation

from eom_dynamics.actuators import Friction, Gear, Motor

SPEEDS = np.concatenate([-np.geomspace(1e-4, 5, 30), [0.0], np.geomspace(1e-4, 5, 30)])


def test_slope_of_friction_is_its_derivative() -> None:
    friction = Friction(0.4, 1.0, 1.5, 0.2, 0.02)
    assert deviation(friction.slope(SPEEDS), derivative(lambda t: friction.effort(SPEEDS + t), 1e-3)) < 1e-7


def test_gear_never_adds_power() -> None:
    gear = Gear(0.6, 0.5)
    tau, speed = np.meshgrid(np.linspace(-5, 5, 41), np.linspace(-2, 2, 41))
    assert np.all((gear.load(tau, speed) - tau) * speed >= -1e-15)


def test_current_and_voltage() -> None:
    motor = Motor(torque_constant=0.1, resistance=0.5, back_emf_constant=0.09)
    assert float(motor.voltage(np.array(0.3), np.array(20.0))) == pytest.approx(0.5 * 3.0 + 0.09 * 20)
    assert float(Motor(torque_constant=0.1, resistance=0.5).voltage(np.array(0.3), np.array(20.0))) == pytest.approx(
        3.5
    )
    assert np.isnan(Motor().current(np.array(1.0)))


@pytest.mark.parametrize("torque", [-3.0, -0.2, 0.0, 0.3, 3.0])
@pytest.mark.parametrize("speed", [-90.0, -30.0, 0.0, 30.0, 90.0])
def test_clipped_torque_is_within_all_limits_or_brakes(torque: float, speed: float) -> None:
    motor = Motor(0.1, 0.5, 0.09, torque_limit=1.0, current_limit=8.0, voltage_limit=6.0)
    clipped = motor.clipped(np.array(torque), np.array(speed))
    assert abs(float(motor.current(clipped))) <= 8.0 * (1 + 1e-12)
    if abs(speed) < 60:
        assert abs(float(motor.voltage(clipped, np.array(speed)))) <= 6.0 * (1 + 1e-12)
    else:
        assert float(clipped) * speed < 0


def test_voltage_limit_without_resistance_clips_no_torque() -> None:
    motor = Motor(0.1, 0.0, torque_limit=2.0, voltage_limit=3.0)
    torque, speed = np.array([-3.0, 0.5, 0.5, 3.0]), np.array([90.0, 90.0, 30.0, -90.0])
    np.testing.assert_array_equal(motor.clipped(torque, speed), [-2.0, 0.5, 0.5, 2.0])
    np.testing.assert_array_equal(Motor(0.1, 0.0, voltage_limit=3.0).clipped(torque, speed), torque)
