# SPDX-License-Identifier: Apache-2.0
"""From springs to windings: friction, gear, motor, limits, and arms that have them from their files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from chains import fixed_case, packaged_parameters
from differences import derivative, deviation, polynomial_motion
from scipy.integrate import solve_ivp
from springs import EVERY_KIND, with_springs

from eom_dynamics import ElasticArm, StateError, load_robot, robot_from_parameters
from eom_dynamics.drivetrain import Friction, Gear, Motor

MOTION = fixed_case("planar_2r", 4).motion
SPEEDS = np.concatenate([-np.geomspace(1e-4, 5, 30), [0.0], np.geomspace(1e-4, 5, 30)])

ACTUATOR = {
    "friction": {"viscous": 0.4, "coulomb": 1.0, "static": 1.5, "stribeck_velocity": 0.2, "smoothing_velocity": 0.02},
    "efficiency": 0.8,
    "smoothing_power": 0.05,
    "torque_constant": 0.1,
    "resistance": 0.5,
    "back_emf_constant": 0.09,
    "limits": {"torque": 0.5, "speed": 30.0, "current": 4.0, "voltage": 6.0},
}


def driven(**changes: Any) -> ElasticArm:
    parameters = packaged_parameters("planar_2r")
    parameters["joints"]["joint_2"] |= {"actuator": ACTUATOR | changes, "gear_ratio": 50.0}
    return ElasticArm(robot_from_parameters(parameters))


# Friction and gear.


def test_friction_is_odd_and_dissipates() -> None:
    effort = Friction(0.4, 1.0, 1.5, 0.2, 0.02).effort(SPEEDS)
    np.testing.assert_array_equal(effort, -Friction(0.4, 1.0, 1.5, 0.2, 0.02).effort(-SPEEDS))
    assert np.all(effort * SPEEDS >= 0)


def test_friction_away_from_rest_is_the_law_with_a_sign() -> None:
    friction, v = Friction(0.4, 1.0, 1.5, 0.2, 0.02), np.array([-2.0, -0.1, 0.06, 0.3, 4.0])
    law = 0.4 * v + (1.0 + 0.5 * np.exp(-((v / 0.2) ** 2))) * np.sign(v)
    assert np.max(np.abs(friction.effort(v) - law)) < 0.005 * 1.5


def test_slope_of_friction() -> None:
    friction = Friction(0.4, 1.0, 1.5, 0.2, 0.02)
    slope = np.array([derivative(lambda t, v=v: friction.effort(np.array(v + t)), 1e-3) for v in SPEEDS])
    assert deviation(friction.slope(SPEEDS), slope) < 1e-7


@pytest.mark.parametrize(
    ("tau", "speed", "expected"), [(4.0, 2.0, 5.0), (-4.0, -2.0, -5.0), (4.0, -2.0, 3.2), (-4.0, 2.0, -3.2)]
)
def test_gear_takes_its_share_either_way(tau: float, speed: float, expected: float) -> None:
    assert float(Gear(0.8, 0.1).load(np.array(tau), np.array(speed))) == pytest.approx(expected, rel=1e-12)


def test_gear_never_gives_power() -> None:
    gear = Gear(0.6, 0.5)
    tau, speed = np.meshgrid(np.linspace(-5, 5, 41), np.linspace(-2, 2, 41))
    assert np.all((gear.load(tau, speed) - tau) * speed >= -1e-15)


# Motors.


def test_current_and_voltage() -> None:
    motor = Motor(torque_constant=0.1, resistance=0.5, back_emf_constant=0.09)
    assert float(motor.voltage(np.array(0.3), np.array(20.0))) == pytest.approx(0.5 * 3.0 + 0.09 * 20)
    assert float(Motor(torque_constant=0.1, resistance=0.5).voltage(np.array(0.3), np.array(20.0))) == pytest.approx(
        3.5
    )
    assert np.isnan(Motor().current(np.array(1.0)))


@pytest.mark.parametrize("torque", [-3.0, -0.2, 0.0, 0.3, 3.0])
@pytest.mark.parametrize("speed", [-90.0, -30.0, 0.0, 30.0, 90.0])
def test_clipped_torque_keeps_within_all_limits_or_brakes(torque: float, speed: float) -> None:
    motor = Motor(0.1, 0.5, 0.09, torque_limit=1.0, current_limit=8.0, voltage_limit=6.0)
    clipped = motor.clipped(np.array(torque), np.array(speed))
    assert abs(float(motor.current(clipped))) <= 8.0 * (1 + 1e-12)
    if abs(speed) < 60:
        assert abs(float(motor.voltage(clipped, np.array(speed)))) <= 6.0 * (1 + 1e-12)
    else:
        assert float(clipped) * speed < 0


# Arms.


def test_motor_of_an_arm_with_friction_and_gear() -> None:
    arm, plain = driven(), ElasticArm(load_robot("planar_2r"))
    command, bare = arm.feedforward(*MOTION), plain.feedforward(*MOTION)
    np.testing.assert_array_equal(command[:6], bare[:6])
    assert command.motor_effort[0] == bare.motor_effort[0]
    v, tau = command.motor_velocity[1], command.tau[1]
    friction = 0.4 * v + (1.0 + 0.5 * np.exp(-((v / 0.2) ** 2))) * np.tanh(v / 0.02)
    load = tau * 0.8 ** -np.tanh(tau * v / 0.05)
    expected = arm.rotor_inertia[1] * command.motor_acceleration[1] + load + friction
    assert command.motor_effort[1] == pytest.approx(expected, rel=1e-13)


def test_shaft_of_an_arm_and_what_it_exceeds() -> None:
    arm = driven()
    batch = np.stack([0.1 * MOTION, MOTION, 0.0 * MOTION], axis=1)
    command = arm.feedforward(*batch)
    drive = arm.drive(command)
    np.testing.assert_allclose(drive.position, command.motor_position * [1, 50], rtol=1e-15)
    np.testing.assert_allclose(drive.torque * drive.velocity, command.motor_effort * command.motor_velocity, rtol=1e-13)
    np.testing.assert_allclose(drive.current[:, 1], drive.torque[:, 1] / 0.1)
    assert np.all(np.isnan(drive.voltage[:, 0]))
    for excess in drive.exceeded:
        values = {"torque": drive.torque, "speed": drive.velocity, "current": drive.current, "voltage": drive.voltage}
        sizes = np.abs(values[excess.quantity][:, 1])
        assert (excess.motor, excess.value, excess.sample) == ("joint_2", np.max(sizes), np.argmax(sizes))
        assert excess.value > excess.limit
    over = {
        q
        for q, v, m in (
            ("torque", drive.torque, 0.5),
            ("speed", drive.velocity, 30.0),
            ("current", drive.current, 4.0),
            ("voltage", drive.voltage, 6.0),
        )
        if np.max(np.abs(v[:, 1])) > m
    }
    assert {excess.quantity for excess in drive.exceeded} == over != set()


def test_clipped_command_exceeds_only_the_speed() -> None:
    arm = driven(limits=ACTUATOR["limits"] | {"voltage": 500.0})
    command = arm.feedforward(*(3 * MOTION))
    clipped = arm.drive(command, clip=True)
    assert abs(clipped.torque[1]) <= 0.4 + 1e-12 and abs(clipped.current[1]) <= 4.0 + 1e-9
    assert clipped.exceeded == arm.drive(command).exceeded
    assert clipped.torque[0] == command.motor_effort[0]


def test_reflected_inertia_at_a_rigid_joint() -> None:
    arm = ElasticArm(load_robot("planar_2r"), stiffness=np.inf)
    command = arm.feedforward(*MOTION)
    np.testing.assert_array_equal(command.motor_effort, arm.rotor_inertia * MOTION[2] + command.tau)


# The damped spring has a memory; its deflection is tested over time below.
@pytest.mark.parametrize("name", [name for name in EVERY_KIND if name != "damped"])
def test_motor_velocity_and_acceleration_are_derivatives_whatever_the_spring(name: str) -> None:
    arm = ElasticArm(with_springs(load_robot("planar_2r"), EVERY_KIND[name]))
    motion = polynomial_motion(0.5 * MOTION)
    k = polynomial_motion(np.outer([1.5, 0.2, -0.3], arm.stiffness)) if np.any(arm.variable) else None

    def at(t: float) -> Any:
        return arm.feedforward(*motion(t), stiffness=() if k is None else k(t))

    command = at(0.0)
    velocity = derivative(lambda t: at(t).motor_position, 1e-4)
    acceleration = derivative(lambda t: at(t).motor_velocity, 1e-4)
    assert deviation(command.motor_velocity, velocity) < 1e-9
    assert deviation(command.motor_acceleration, acceleration) < 1e-6  # tables have kinks in their third derivative


def test_names_and_places_of_motors() -> None:
    arm = ElasticArm(with_springs(load_robot("planar_2r"), EVERY_KIND["antagonistic_quadratic"], EVERY_KIND["cubic"]))
    assert arm.motor_names == ("joint_1_agonist", "joint_1_antagonist", "joint_2")
    np.testing.assert_array_equal(arm.motor_joint, [0, 0, 1])
    command = arm.feedforward(*MOTION)
    inertia = arm.motor_inertia * command.motor_acceleration
    pulls = command.motor_effort - inertia
    assert pulls[0] + pulls[1] == pytest.approx(command.tau[0], rel=1e-12)
    assert pulls[0] > 0 > pulls[1]


@pytest.mark.parametrize("samples", [0, 1, 4])
def test_a_batch_of_every_kind_is_its_samples(samples: int) -> None:
    springs = [
        EVERY_KIND[name] for name in ("variable", "antagonistic_quadratic", "dead_zone", "rigid", "damped", "tabulated")
    ]
    arm = ElasticArm(with_springs(load_robot("iiwa"), *springs))
    rng = np.random.default_rng(samples)
    motion, k = rng.uniform(-1, 1, (5, samples, 7)), arm.stiffness * rng.uniform(0.9, 1.1, (samples, 7))
    deflection = rng.uniform(-0.1, 0.1, (samples, 7))
    batch = arm.feedforward(*motion, stiffness=[k], deflection=deflection)
    assert batch.motor_effort.shape == (samples, len(arm.motor_names))
    for i in range(samples):
        one = arm.feedforward(*motion[:, i], stiffness=[k[i]], deflection=deflection[i])
        for quantity, expected in zip(batch, one, strict=True):
            assert deviation(quantity[i], expected) < 1e-10


@pytest.mark.parametrize(
    ("stiffness", "reason"),
    [
        ([[10.0, 400.0]], r"joint_1: stiffness 10 is outside the actuator's range 50 … 2000"),
        ([[400.0, 3e3]], r"joint_2: stiffness 3000 is outside"),
        ([[400.0, np.nan]], r"stiffness k must be finite"),
        ([[400.0, 400.0], [0.0, np.inf]], r"stiffness kd must be finite"),
        ([[400.0]], r"stiffness k must have shape \(2,\)"),
        ([[400.0, 400.0]] * 4, r"must be \(k, kd, kdd\)"),
        (["stiff"], r"stiffness k is not an array of numbers"),
    ],
    ids=str,
)
def test_a_stiffness_that_cannot_be_is_refused(stiffness: Any, reason: str) -> None:
    arm = ElasticArm(with_springs(load_robot("planar_2r"), EVERY_KIND["variable"]))
    with pytest.raises(StateError, match=reason):
        arm.feedforward(*MOTION, stiffness=stiffness)


def test_deflections_over_time_are_those_of_the_filter() -> None:
    arm = ElasticArm(with_springs(load_robot("planar_2r"), EVERY_KIND["damped"], EVERY_KIND["cubic"]))
    motion = polynomial_motion(MOTION)
    time = np.linspace(0, 0.4, 81)
    efforts = arm.feedforward(*np.stack([motion(t) for t in time], axis=1))[:3]
    found = arm.deflections_over_time(time, efforts, start=[0.02, 0.0])
    solution = solve_ivp(
        lambda t, x: (arm.feedforward(*motion(t)).tau[:1] - 500 * x) / 15, (0, 0.4), [0.02], rtol=1e-11, atol=1e-13
    )
    assert found[-1, 0] == pytest.approx(solution.y[0, -1], rel=1e-9)
    assert not np.any(found[:, 1])
