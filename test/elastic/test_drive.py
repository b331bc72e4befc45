# SPDX-License-Identifier: Apache-2.0
"""Motors of arms: friction, gears, shafts, limits, and springs of every kind in one arm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from chains import fixed_case, packaged_parameters
from differences import derivative, deviation, polynomial_motion
from scipy.integrate import solve_ivp
from springs import EVERY_KIND, with_springs

from eom_dynamics import ElasticArm, StateError, load_robot, robot_from_parameters

MOTION = fixed_case("planar_2r", 4).motion

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


def test_shaft_of_an_arm_and_violations_of_its_limits() -> None:
    arm = driven()
    batch = np.stack([0.1 * MOTION, MOTION, 0.0 * MOTION], axis=1)
    command = arm.feedforward(*batch)
    drive = arm.drive(command)
    np.testing.assert_allclose(drive.position, command.motor_position * [1, 50], rtol=1e-15)
    np.testing.assert_allclose(drive.torque * drive.velocity, command.motor_effort * command.motor_velocity, rtol=1e-13)
    np.testing.assert_allclose(drive.current[:, 1], drive.torque[:, 1] / 0.1)
    assert np.all(np.isnan(drive.voltage[:, 0]))
    for violation in drive.exceeded:
        values = {"torque": drive.torque, "speed": drive.velocity, "current": drive.current, "voltage": drive.voltage}
        sizes = np.abs(values[violation.quantity][:, 1])
        assert (violation.name, abs(violation.value), violation.sample) == ("joint_2", np.max(sizes), np.argmax(sizes))
        assert violation.value / violation.limit > 1
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
    assert {violation.quantity for violation in drive.exceeded} == over != set()


def test_clipped_command_violates_only_the_speed_limit() -> None:
    arm = driven(limits=ACTUATOR["limits"] | {"voltage": 500.0})
    command = arm.feedforward(*(3 * MOTION))
    clipped = arm.drive(command, clip=True)
    assert abs(clipped.torque[1]) <= 0.4 + 1e-12 and abs(clipped.current[1]) <= 4.0 + 1e-9
    assert clipped.exceeded == arm.drive(command).exceeded
    assert clipped.torque[0] == command.motor_effort[0]


# The deflection of damped springs is a state, tested below.
@pytest.mark.parametrize("name", [name for name in EVERY_KIND if name != "damped"])
def test_motor_velocity_and_acceleration_are_time_derivatives(name: str) -> None:
    arm = ElasticArm(with_springs(load_robot("planar_2r"), EVERY_KIND[name]))
    motion = polynomial_motion(0.5 * MOTION)
    k = polynomial_motion(np.outer([1.5, 0.2, -0.3], arm.stiffness)) if np.any(arm.variable) else None

    def at(t: float) -> Any:
        return arm.feedforward(*motion(t), commanded_stiffness=() if k is None else k(t))

    command = at(0.0)
    velocity = derivative(lambda t: at(t).motor_position, 1e-4)
    acceleration = derivative(lambda t: at(t).motor_velocity, 1e-4)
    assert deviation(command.motor_velocity, velocity) < 1e-9
    assert deviation(command.motor_acceleration, acceleration) < 1e-6  # tables have kinks in their third derivative


def test_names_and_joints_of_motors() -> None:
    arm = ElasticArm(with_springs(load_robot("planar_2r"), EVERY_KIND["antagonistic_quadratic"], EVERY_KIND["cubic"]))
    assert arm.motor_names == ("joint_1_agonist", "joint_1_antagonist", "joint_2")
    np.testing.assert_array_equal(arm.motor_joint, [0, 0, 1])
    command = arm.feedforward(*MOTION)
    inertia = arm.motor_inertia * command.motor_acceleration
    loads = command.motor_effort - inertia
    assert loads[0] + loads[1] == pytest.approx(command.tau[0], rel=1e-12)
    assert loads[0] > 0 > loads[1]


@pytest.mark.parametrize("samples", [0, 4])
def test_batch_with_mixed_springs_is_its_samples(samples: int) -> None:
    springs = [
        EVERY_KIND[name] for name in ("variable", "antagonistic_quadratic", "dead_zone", "rigid", "damped", "tabulated")
    ]
    arm = ElasticArm(with_springs(load_robot("iiwa"), *springs))
    rng = np.random.default_rng(samples)
    motion, k = rng.uniform(-1, 1, (5, samples, 7)), arm.stiffness * rng.uniform(0.9, 1.1, (samples, 7))
    deflection = rng.uniform(-0.1, 0.1, (samples, 7))
    batch = arm.feedforward(*motion, commanded_stiffness=[k], deflection=deflection)
    assert batch.motor_effort.shape == (samples, len(arm.motor_names))
    for i in range(samples):
        one = arm.feedforward(*motion[:, i], commanded_stiffness=[k[i]], deflection=deflection[i])
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
        ([[400.0, 400.0]] * 4, r"must be a sequence of k, kd, kdd, at most 3"),
        (["stiff"], r"stiffness k is not an array of numbers"),
    ],
    ids=str,
)
def test_bad_stiffness_commands_are_refused(stiffness: Any, reason: str) -> None:
    arm = ElasticArm(with_springs(load_robot("planar_2r"), EVERY_KIND["variable"]))
    with pytest.raises(StateError, match=reason):
        arm.feedforward(*MOTION, commanded_stiffness=stiffness)


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


def test_deflections_over_time_start_without_transient() -> None:
    """Under tau = a + b t, delta = (tau - b D / K) / K solves D deltad + K delta = tau."""
    arm = ElasticArm(with_springs(load_robot("planar_2r"), EVERY_KIND["damped"], EVERY_KIND["cubic"]))
    time = np.linspace(0, 0.4, 9)
    a, b = np.array([3.0, -2.0]), np.array([7.0, 1.0])
    efforts = [a + np.outer(time, b), np.tile(b, (9, 1)), np.zeros((9, 2))]
    found = arm.deflections_over_time(time, efforts)
    np.testing.assert_allclose(found[:, 0], (a[0] + b[0] * time - b[0] * 15 / 500) / 500, rtol=1e-13)
    assert not np.any(found[:, 1])


def test_deflections_over_time_refuse_times_that_do_not_fit() -> None:
    arm = ElasticArm(with_springs(load_robot("planar_2r"), EVERY_KIND["damped"]))
    efforts = [np.zeros((3, 2))] * 3
    for time in ([0.0, 0.1], [0.0, 0.1, 0.1], [0.0, 0.2, 0.1], [[0.0], [0.1], [0.2]]):
        with pytest.raises(StateError, match=r"t must increase and have shape \(N,\)|tau must have shape \(2, 2\)"):
            arm.deflections_over_time(time, efforts)
    with pytest.raises(StateError, match="deflection must be finite at damped joints"):
        arm.deflections_over_time([0.0, 0.1, 0.2], efforts, start=[0.0, np.nan])
    undamped = ElasticArm(load_robot("planar_2r"))
    np.testing.assert_array_equal(undamped.deflections_over_time([0.0, 0.1, 0.2], efforts), np.zeros((3, 2)))
