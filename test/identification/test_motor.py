# SPDX-License-Identifier: Apache-2.0
"""Motors from their own side: against known rotors, friction, gears and torque constants."""

from typing import Any

import numpy as np
import pytest
from elastic_recordings import recording
from refusals import refusals

from eom_dynamics import load_robot
from eom_dynamics.actuators.actuator import Actuator, Gear
from eom_dynamics.actuators.friction import Friction
from eom_dynamics.identification import (
    IdentificationError,
    MotorFit,
    MotorModel,
    fit_gear_ratio,
    fit_motor,
    fit_motors,
    with_motors,
)
from eom_dynamics.robot import robot_from_parameters
from eom_dynamics.robot.writers.parameters import robot_as_parameters
from eom_dynamics.trajectory import Cosine

PERIOD = 1e-3
T = PERIOD * np.arange(8000)


WAVES = Cosine([0.5, 0.2, 0.05], 2 * np.pi * np.array([0.5, 1.3, 3.1]), np.array([0.3, 1.0, 2.0]) - np.pi / 2)
THETA, THETAD, THETADD = (x.sum(axis=1) for x in WAVES.derivatives(T, 2))
TAU = 8 * np.sin(2 * np.pi * 0.8 * T) + 3 * np.cos(2 * np.pi * 2.1 * T)


def within(fit: MotorFit, name: str, true: float, share: float) -> None:
    """Within a share and four standard deviations, which one in 15,000 exceeds."""
    value, std = fit.parameters[name]
    assert value == pytest.approx(true, rel=share), name
    assert abs(value - true) < 4 * std + 1e-4 * abs(true), name


def noisy(seed: int, signals: dict[str, tuple[np.ndarray, float]], **options: Any) -> MotorFit:
    rng = np.random.default_rng(seed)
    measured = {name: x + std * rng.normal(size=T.shape) for name, (x, std) in signals.items()}
    return fit_motor(T, THETA + 1e-5 * rng.normal(size=T.shape), **measured, **options)


def test_friction_of_every_kind() -> None:
    law = Friction(viscous=0.5, coulomb=0.4, static=0.8, stribeck_velocity=0.3, smoothing_velocity=0.05)
    effort = 0.2 * THETADD + TAU + law.effort(THETAD) + 0.1 * np.abs(THETAD) + 0.3
    model = MotorModel(("viscous", "asymmetric", "coulomb", "stribeck", "offset"))
    fit = noisy(0, {"tau": (TAU, 0.05), "effort": (effort, 0.05)}, model=model)
    true = {"rotor_inertia": 0.2, "viscous": 0.5, "asymmetry": 0.1, "coulomb": 0.4, "stribeck": 0.4, "offset": 0.3}
    for name, value in true.items():
        # Stribeck's peak and Coulomb's plateau are correlated; the law is what the robot gets.
        within(fit, name, value, 0.02 if name == "rotor_inertia" else 0.25)
    v = np.linspace(-3, 3, 61)
    true_effort = law.effort(v) + 0.1 * np.abs(v)  # viscous friction that differs by direction, for the robot file too
    assert np.max(np.abs(fit.friction.effort(v) - true_effort)) < 0.03 * np.max(law.effort(v))


def test_stiffness_without_a_sensor_of_effort() -> None:
    delta = 0.02 * np.sin(2 * np.pi * 0.8 * T) + 0.01 * np.cos(2 * np.pi * 2.1 * T)
    effort = 0.2 * THETADD + Gear(0.8).load(400 * delta + 4e5 * delta**3, THETAD) + 0.5 * THETAD
    model = MotorModel(("viscous", "offset", "efficiency"), hardening=True)
    fit = noisy(1, {"deflection": (delta, 1.4e-5), "effort": (effort, 0.05)}, model=model)
    for name, value in {"stiffness": 400.0, "rotor_inertia": 0.2, "viscous": 0.5, "efficiency": 0.8}.items():
        within(fit, name, value, 0.01)
    within(fit, "cubic", 4e5, 0.03)


def test_torque_constant_from_currents() -> None:
    current = (0.2 * THETADD + TAU + 0.5 * THETAD) / (0.05 * 100)
    signals = {"tau": (TAU, 0.05), "current": (current, 0.01)}
    fit = noisy(2, signals, gear_ratio=-100.0, model=MotorModel(("viscous", "offset")))
    within(fit, "torque_per_current", 5.0, 0.01)
    within(fit, "rotor_inertia", 0.2, 0.02)
    assert fit.torque_constant[0] == pytest.approx(0.05, rel=0.01)
    assert fit.actuator(Actuator()).motor.torque_constant == fit.torque_constant[0]
    assert any("only k_t N" in line for line in fit.undetermined)


def test_gear_ratio_and_compliance_from_both_sides_of_the_gear() -> None:
    rng = np.random.default_rng(3)
    shaft = -80.0 * (THETA + TAU / 400) + 0.7 + 1e-3 * rng.normal(size=T.shape)
    fit = fit_gear_ratio(shaft, THETA + 1e-5 * rng.normal(size=T.shape), TAU + 0.05 * rng.normal(size=T.shape))
    assert fit.ratio[0] == pytest.approx(-80.0, rel=1e-4)
    assert fit.compliance[0] == pytest.approx(1 / 400, rel=1e-3)
    assert abs(fit.ratio[0] + 80) < 4 * fit.ratio[1]
    assert fit_gear_ratio(-80 * THETA, THETA).ratio[0] == pytest.approx(-80.0)


def test_motors_of_a_recorded_arm_and_its_robot_file() -> None:
    """Inertia within 2 %, friction within 3 %."""
    robot = load_robot("sea_planar_2r")
    exact = recording(robot, 20.0)
    noisy = exact.noisy(0)
    terms = ("viscous", "coulomb", "efficiency", "offset")
    fits = fit_motors(noisy.t, noisy.theta, tau=noisy.tau, effort=noisy.motor_effort, model=MotorModel(terms))
    for fit, joint in zip(fits, robot.joints, strict=True):
        friction = joint.actuator.friction
        within(fit, "rotor_inertia", joint.rotor_inertia, 0.02)
        within(fit, "viscous", friction.viscous, 0.03)
        within(fit, "coulomb", friction.coulomb, 0.03)
        within(fit, "efficiency", joint.actuator.gear.efficiency, 0.01)
    changed = with_motors(robot, dict(zip(robot.joint_names, fits, strict=True)))
    again = robot_from_parameters(robot_as_parameters(changed, []))
    assert again.joints[0].rotor_inertia == pytest.approx(fits[0].rotor_inertia[0])
    assert again.joints[0].actuator.friction.coulomb == pytest.approx(fits[0].friction.coulomb)
    assert again.joints[0].actuator.motor.resistance == 0.5  # all else as before
    # The identified file predicts the motors' efforts: a tenth of the noise of one sample.
    error = recording(again, 20.0).motor_effort - exact.motor_effort
    assert np.all(np.sqrt(np.mean(error**2, axis=0)) < 1e-3 * np.ptp(exact.motor_effort, axis=0))


BOTH = {name: np.stack([TAU, TAU], axis=1) for name in ("tau", "effort")}


test_what_is_refused = refusals(
    IdentificationError,
    (lambda: fit_motor(T, THETA, effort=TAU), "either tau or deflection"),
    (lambda: fit_motor(T, THETA, tau=TAU, deflection=TAU, effort=TAU), "either tau or deflection"),
    (lambda: fit_motor(T, THETA, tau=TAU), "either effort or current"),
    (lambda: fit_motor(T, THETA, deflection=TAU, current=TAU), "unit of effort unknown"),
    (lambda: fit_motor(T, THETA, tau=TAU, effort=TAU, model=MotorModel(("sticky",))), "unknown: sticky"),
    (lambda: fit_motor(T, THETA, tau=TAU, effort=TAU[:-1]), r"effort must have shape \(8000,\)"),
    (lambda: fit_motor(T, 0 * THETA, tau=TAU, effort=TAU), "the motor does not move"),
    (lambda: fit_motor(T, THETA, tau=TAU, current=-TAU), "current falls as the effort of the spring rises"),
    (lambda: fit_motor(T, THETA, tau=TAU, effort=TAU, cutoff=600.0), "cutoff must be between 0 and"),
    (lambda: fit_motor(T, THETA, tau=TAU, effort=TAU, cutoff=0.5), "8000 samples are too few|too few for a cut-off"),
    (lambda: fit_motor(T, BOTH["tau"], **BOTH), "fit_motors"),
    (lambda: fit_motors(T, np.stack([THETA, 0 * THETA], axis=1), **BOTH), "motor 1: the motor does not move"),
    (lambda: fit_motors(T, THETA, tau=TAU, effort=TAU), r"theta must have shape \(N, m\)"),
    (lambda: fit_gear_ratio(THETA, 0 * THETA), "the joint does not move"),
)
