# SPDX-License-Identifier: Apache-2.0
"""Deviations, latency, intervals and limits, compared with known values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from recorded_bags import LATENCY, NOISE, OFFSET, START, record

import eom_dynamics as eom
from eom_dynamics.actuators.actuator import Motor
from eom_dynamics.robot import Limits, Mimic
from eom_dynamics.tools.recordings import Stream
from eom_dynamics.tools.report.record import Record, limit_utilization, percent_used


def stream(t: list[float], names: tuple[str, ...] = ("a",), **values: list[list[float]]) -> Stream:
    stamp = START + np.round(np.array(t) * 1e9).astype(np.int64)
    return Stream("/x", stamp, stamp, names, {field: np.array(x, dtype=float) for field, x in values.items()})


def test_deviations_are_the_known_noise_and_offset() -> None:
    found = record("panda", count=200)
    q, effort = found.position_deviation, found.effort_deviation
    np.testing.assert_allclose([q.rms, q.peak], NOISE, rtol=1e-9)
    np.testing.assert_allclose(q.mean, 0, atol=1e-12)
    np.testing.assert_allclose(effort.mean, -OFFSET, rtol=1e-9)


def test_deviations_are_interpolated_linearly_but_not_in_pauses() -> None:
    setpoint = stream([0, 1, 2, 12, 13], position=[[0], [2], [4], [0], [0]])
    measured = stream([-0.5, 0.5, 1, 2, 7, 12, 12.5, 13.5], position=[[0]] * 8)
    found = Record("x", setpoint=setpoint, measured=measured).position_deviation
    np.testing.assert_allclose(found.value[:, 0], [np.nan, 1, 2, 4, np.nan, 0, 0, np.nan])
    assert found.peak[0] == 4 and found.rms[0] == pytest.approx(np.sqrt((1 + 4 + 16) / 5))


def test_latency_is_between_equal_stamps() -> None:
    found = record("planar_2r", count=10)
    rows = np.array([1, 2, 3, 5, 6, 8])
    some = found.command[rows]
    result = replace(found, command=replace(some, recorded=some.recorded + 1000 * rows)).latency
    np.testing.assert_allclose(result[1], 1e-9 * (LATENCY + 1000 * rows), rtol=1e-12)
    np.testing.assert_allclose(result[0], rows / 500, rtol=1e-9)


def test_spring_deflection_is_effort_over_stiffness() -> None:
    found = record("panda", count=50)
    result = found.spring_deflection
    np.testing.assert_allclose(result[2], found.command.values["effort"] / found.robot.stiffness, rtol=0, atol=1e-12)


def test_largest_utilization_of_each_limit() -> None:
    robot = eom.load_robot("planar_2r")
    first, second = robot.joints
    bounded = replace(first, limits=Limits(lower=-1.0, upper=3.0, velocity=2.0))
    robot = replace(robot, joints=(bounded, second))
    setpoint = stream(
        [0, 1, 2], robot.joint_names, position=[[1, 9], [3.4, 9], [-0.5, 9]], velocity=[[0, 0], [-1, 0], [0.5, 0]]
    )
    position, velocity = limit_utilization(Record("x", robot, setpoint=setpoint))
    # The middle of the range is 1, its half 2.
    assert (position.quantity, position.ratio) == ("position", pytest.approx(1.2))
    assert (position.limit, position.t) == (3.0, 1.0)
    assert (velocity.ratio, velocity.value, velocity.limit) == (0.5, -1.0, -2.0)


@pytest.mark.parametrize(
    ("limits", "position", "expected"),
    [
        (Limits(upper=2.0), [-50.0, 1.0], (1.0, 2.0, "0%", 1.0)),
        (Limits(upper=2.0), [3.0, 4.0], (4.0, 2.0, "exceeded", 1.0)),
        (Limits(lower=0.1), [0.6, 0.0], (0.0, 0.1, "exceeded", 1.0)),
        (Limits(lower=-0.1, upper=0.3), [0.1, 0.1 - 1e-17], (0.1, 0.3, "0%", 0.0)),
        (Limits(lower=-0.3, upper=0.3), [np.nan, 0.15], (0.15, 0.3, "50%", 1.0)),
        (Limits(lower=0.2, upper=0.2), [0.2, 0.2], (0.2, 0.2, "100%", 0.0)),
    ],
)
@pytest.mark.filterwarnings("error")
def test_utilization_of_a_position_range(limits: Limits, position: list[float], expected: tuple[object, ...]) -> None:
    robot = eom.load_robot("planar_2r")
    robot = replace(robot, joints=(replace(robot.joints[0], limits=limits), robot.joints[1]))
    setpoint = stream([0, 1], robot.joint_names, position=[[q, 0.0] for q in position])
    (use,) = limit_utilization(Record("x", robot, setpoint=setpoint))
    assert (use.value, use.limit, percent_used(use), use.t) == expected


def test_limits_of_motors_rates_and_mimic_joints_count() -> None:
    robot = eom.load_robot("planar_2r")
    first, second = robot.joints
    motor = Motor(torque_constant=0.5, resistance=2.0, torque_limit=4.0, speed_limit=1.0, voltage_limit=100.0)
    first = replace(first, limits=Limits(jerk=10.0), gear_ratio=-10.0, actuator=replace(first.actuator, motor=motor))
    second = replace(second, mimic=Mimic(0, ratio=-2.0, offset=1.0))
    second = replace(second, limits=Limits(lower=-4.0, upper=4.0, velocity=4.0))
    robot = replace(robot, joints=(first, second))
    setpoint = stream([0, 1], ("joint_1",), position=[[0], [2]], velocity=[[0], [1]], jerk=[[-9], [3]])
    motors = stream([0, 1], ("joint_1",), motor_velocity=[[9.954], [0]], motor_effort=[[0], [-20]])
    found = {use.quantity: use for use in limit_utilization(Record("x", robot, setpoint=setpoint, motors=motors))}
    assert list(found) == ["motor_speed", "jerk", "position", "velocity", "motor_torque", "motor_voltage"]
    speed, jerk, position, velocity, torque, voltage = found.values()
    assert (speed.name, speed.value, speed.limit, speed.unit) == ("joint_1", pytest.approx(-99.54), -1.0, "rad/s")
    assert percent_used(speed) == "9954%"
    assert (jerk.value, percent_used(jerk), jerk.unit) == (-9.0, "90%", "rad/s³")
    assert (voltage.value, voltage.t) == (pytest.approx(0.5 * -99.54), 0.0)
    assert (position.name, position.value, percent_used(position)) == ("joint_2", -3.0, "75%")
    assert (velocity.name, velocity.value, percent_used(velocity)) == ("joint_2", -2.0, "50%")
    assert (torque.value, torque.unit, torque.t) == (2.0, "N m", 1.0) and percent_used(torque) == "50%"
