# SPDX-License-Identifier: Apache-2.0
"""Flat output to states and back, and the loop closed by feedback linearisation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from chains import fixed_case
from differences import deviation, polynomial_motion
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from springs import EVERY_KIND, MEMORYLESS, with_springs

from eom_dynamics import ElasticArm, StateError, load_robot, packaged_robots
from eom_dynamics.actuators import chain_gains, flat_state, linearizing_effort, linearizing_snap, motor_pd_effort
from eom_dynamics.drivetrain import Transmission
from eom_dynamics.drivetrain.springs import AntagonisticPair, ExponentialPair, VariableSpring

ELASTIC = {name: spring for name, spring in EVERY_KIND.items() if name not in ("rigid", "damped")}
MIX = [
    ELASTIC[name] for name in ("antagonistic_exponential", "cubic", "variable", "tabulated", "antagonistic_quadratic")
]
MOTION = fixed_case("planar_2r", 4).motion


def stiffness_of(arm: ElasticArm, rng: np.random.Generator, samples: tuple[int, ...]) -> list[np.ndarray]:
    """Changing stiffnesses within the range of every kind."""
    k = np.where(arm.paired, 2 * arm.stiffness, arm.stiffness) * rng.uniform(0.9, 1.1, (*samples, arm.robot.n))
    return [k, *rng.uniform(-50, 50, (2, *samples, arm.robot.n))]


@pytest.mark.parametrize("samples", [(), (6,)], ids=["state", "batch"])
@pytest.mark.parametrize("springs", [*([spring] for spring in ELASTIC.values()), MIX], ids=[*ELASTIC, "mix"])
def test_flat_output_to_states_and_back(springs: list[Any], samples: tuple[int, ...]) -> None:
    # Where links are light for their springs, the rounding of theta - q comes back as K/M times it, more in qddd.
    for name, bounds in (("planar_2r", [1e-9] * 4), ("panda", [1e-9] * 4), ("iiwa", [1e-9, 1e-9, 1e-8, 1e-6])):
        arm = ElasticArm(with_springs(load_robot(name), *springs))
        rng = np.random.default_rng(0)
        motion = rng.uniform(-1, 1, (5, *samples, arm.robot.n))
        stiffness = stiffness_of(arm, rng, samples)
        command = arm.feedforward(*motion, stiffness=stiffness)
        state = flat_state(arm, command.motor_position, command.motor_velocity, *motion[:2], stiffness=stiffness[:2])
        for got, expected, bound in zip(state[:4], motion, bounds, strict=False):
            assert deviation(got, expected) < bound
        assert deviation(state.k[..., arm.variable], stiffness[0][..., arm.variable]) < 1e-9
        assert deviation(state.kd[..., arm.variable], stiffness[1][..., arm.variable]) < 1e-9


@pytest.mark.parametrize("springs", [*([spring] for spring in ELASTIC.values()), MIX], ids=[*ELASTIC, "mix"])
@pytest.mark.parametrize("name", packaged_robots())
def test_flat_output_to_deflections_and_back(name: str, springs: list[Any]) -> None:
    """To 1e-9 of the size of each quantity, for every packaged arm: no digit is lost to theta - q.

    Of pairs the deflections still lose those that both pulls have in common; measured efforts lose none.
    """
    arm = ElasticArm(with_springs(load_robot(name), *springs))
    rng = np.random.default_rng(4)
    motion = rng.uniform(-1, 1, (5, 20, arm.robot.n))
    stiffness = stiffness_of(arm, rng, (20,))
    command = arm.feedforward(*motion, stiffness=stiffness)
    deflections = arm.deflections(*command[:3], stiffness=stiffness)
    assert deviation(deflections.delta, command.motor_position - motion[0][:, arm.motor_joint], floor=1e-3) < 1e-9
    state = flat_state(arm, *command[3:5], *motion[:2], deflections=deflections[:2], stiffness=stiffness[:2])
    for got, expected in zip(state[:4], motion, strict=False):
        assert deviation(got, expected) < (1e-7 if np.any(arm.paired) else 1e-9)
    for got, expected in zip(state[4:], stiffness, strict=False):
        assert deviation(got[..., arm.variable], expected[..., arm.variable]) < 1e-9
    measured = flat_state(arm, *command[3:5], *motion[:2], efforts=command[:2])
    for got, expected in zip(measured[:4], motion, strict=False):
        assert deviation(got, expected) < 1e-9


def test_bad_measurements_are_refused() -> None:
    arm = ElasticArm(load_robot("planar_2r"))
    zero = np.zeros(2)
    for bad, message in (
        ({"deflections": [zero]}, r"deflections must be \(delta, deltad\), has 1"),
        ({"deflections": [zero, np.zeros(3)]}, r"deflections must both have shape \(2,\)"),
        ({"deflections": [zero, zero * np.nan]}, "deflections must be finite"),
        ({"rigid": [zero]}, r"rigid must be \(qdd, qddd\), has 1"),
        ({"rigid": [zero, np.zeros(3)]}, r"rigid must be \(qdd, qddd\) of shape \(2,\)"),
    ):
        with pytest.raises(StateError, match=message):
            flat_state(arm, zero, zero, zero, zero, **bad)  # type: ignore[arg-type]
    mixed = ElasticArm(load_robot("planar_2r"), stiffness=[np.inf, 300.0])
    with pytest.raises(StateError, match="rigid must be finite at rigid joints"):
        flat_state(mixed, zero, zero, zero, zero, rigid=[[np.nan, 0.0], zero])


@given(seed=st.integers(0, 10**6))
def test_round_trip_of_any_motion(seed: int) -> None:
    rng = np.random.default_rng(seed)
    springs = rng.choice(list(MEMORYLESS.values()), 2)
    arm = ElasticArm(with_springs(load_robot("planar_2r"), *springs))
    motion = rng.uniform(-3, 3, (5, 2))
    command = arm.feedforward(*motion)
    state = flat_state(arm, command.motor_position, command.motor_velocity, *motion[:2])
    assert deviation(state[:4], motion[:4]) < 1e-9


def test_round_trip_with_a_wrench_and_measured_efforts() -> None:
    arm = ElasticArm(with_springs(load_robot("iiwa"), EVERY_KIND["damped"], EVERY_KIND["rigid"]))
    rng = np.random.default_rng(1)
    motion, wrench = rng.uniform(-1, 1, (5, 7)), rng.uniform(-5, 5, (3, 6))
    command = arm.feedforward(*motion, wrench=wrench)
    state = flat_state(
        arm, command.motor_position, command.motor_velocity, *motion[:2], efforts=command[:2], wrench=wrench[:2]
    )
    assert deviation(state[:4], motion[:4]) < 1e-9


def test_round_trip_through_a_transmission_and_coupled_springs() -> None:

    differential = Transmission([[0.5, 0.5], [0.5, -0.5]])
    robot = replace(load_robot("planar_2r"), transmission=((0, 1), differential))
    arm = ElasticArm(robot, stiffness=[[500.0, 60.0], [60.0, 300.0]])
    command = arm.feedforward(*MOTION)
    theta = np.array([[0.5, 0.5], [0.5, -0.5]]) @ command.motor_position
    np.testing.assert_allclose(np.array([[500.0, 60.0], [60.0, 300.0]]) @ (theta - MOTION[0]), command.tau, rtol=1e-12)
    # Motors and springs exchange the same power.
    spin = command.motor_effort - arm.motor_inertia * command.motor_acceleration
    thetad = np.array([[0.5, 0.5], [0.5, -0.5]]) @ command.motor_velocity
    assert float(spin @ command.motor_velocity) == pytest.approx(float(command.tau @ thetad), rel=1e-12)
    state = flat_state(arm, command.motor_position, command.motor_velocity, *MOTION[:2])
    assert deviation(state[:4], MOTION[:4]) < 1e-9


@pytest.mark.parametrize("kind", ["rigid", "damped"])
def test_joints_whose_deflection_says_too_little_are_named(kind: str) -> None:
    arm = ElasticArm(with_springs(load_robot("planar_2r"), ELASTIC["cubic"], EVERY_KIND[kind]))
    command = arm.feedforward(*MOTION)
    with pytest.raises(StateError, match=f"joint_2: the deflection of a {kind} joint"):
        flat_state(arm, command.motor_position, command.motor_velocity, *MOTION[:2])
    state = flat_state(arm, *command[3:5], *MOTION[:2], efforts=command[:2])
    if kind == "damped":
        with pytest.raises(StateError, match="joint_2: is damped"):
            linearizing_effort(arm, state, MOTION, chain_gains(20.0))
    else:
        effort = linearizing_effort(arm, state, MOTION, chain_gains(20.0))
        assert deviation(effort, command.motor_effort) < 1e-6


def test_the_complete_model_of_rotors_has_another_state() -> None:
    arm = ElasticArm(load_robot("planar_2r"), rotor_model="complete")
    command = arm.feedforward(*MOTION)
    with pytest.raises(StateError, match="planar_2r: in the complete model"):
        flat_state(arm, *command[3:5], *MOTION[:2])
    state = flat_state(ElasticArm(load_robot("planar_2r")), *command[3:5], *MOTION[:2])
    with pytest.raises(StateError, match="planar_2r: in the complete model"):
        linearizing_effort(arm, state, MOTION, chain_gains(20.0))


def test_gains_of_a_chain() -> None:
    np.testing.assert_allclose(chain_gains(3.0), [81, 108, 54, 12])
    np.testing.assert_allclose(chain_gains(3.0, 2), [9, 6])


@pytest.mark.parametrize(
    "springs", [[ELASTIC["linear"]], [ELASTIC["cubic"], ELASTIC["exponential"]], [ELASTIC["dead_zone"]]]
)
def test_linearized_error_decays_as_its_poles_say(springs: list[Any]) -> None:
    """From 0.01 rad off at rest, poles at -w: e(t) = e0 (1 + w t + (w t)²/2 + (w t)³/6) exp(-w t), link by link.

    The plant: springs by their own effort, motors and links by Newton, forward dynamics by the mass matrix.
    """
    arm = ElasticArm(with_springs(load_robot("planar_2r"), *springs))
    w, off = 12.0, np.array([0.01, -0.02])
    motion = polynomial_motion(np.array([[0.3, -0.4], [0.5, 0.2], [-0.6, 0.4], [0.3, 0.1], [0.2, -0.3]]))
    springs = [springs[0], springs[-1]]

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        q, theta, qd, thetad = x.reshape(4, 2)
        tau = np.array([float(spring.effort(d)) for spring, d in zip(springs, theta - q, strict=True)])
        state = flat_state(arm, theta, thetad, q, qd)
        effort = linearizing_effort(arm, state, motion(t), chain_gains(w))
        bias = arm.dynamics.effort(q, qd, np.zeros(2))
        qdd = np.linalg.solve(arm.dynamics.mass_matrix(q), tau - bias)
        return np.concatenate([qd, thetad, qdd, (effort - tau) / arm.rotor_inertia])

    start = motion(0.0)
    begin = arm.feedforward(start[0] + off, *start[1:])
    x0 = np.concatenate([start[0] + off, begin.motor_position, start[1], begin.motor_velocity])
    solution = solve_ivp(rate, (0, 0.5), x0, method="DOP853", rtol=1e-11, atol=1e-13)
    wt = w * 0.5
    expected = off * (1 + wt + wt**2 / 2 + wt**3 / 6) * np.exp(-wt)
    np.testing.assert_allclose(solution.y[:2, -1] - motion(0.5)[0], expected, atol=1e-8)


@pytest.mark.parametrize("rigid", [0, 1])
def test_linearized_error_of_an_arm_with_a_rigid_joint(rigid: int) -> None:
    """The same decay of all joints, with two integrators before the motor of the rigid one.

    The plant: the rigid joint's motor moves with its link.
    """
    stiffness = np.array([500.0, 300.0])
    stiffness[rigid] = np.inf
    arm = ElasticArm(load_robot("planar_2r"), stiffness=stiffness)
    w, off, elastic = 12.0, np.array([0.01, -0.02]), 1 - rigid
    motion = polynomial_motion(np.array([[0.3, -0.4], [0.5, 0.2], [-0.6, 0.4], [0.3, 0.1], [0.2, -0.3]]))

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        q, theta, qd, thetad, held, heldd = x.reshape(6, 2)
        state = flat_state(arm, theta, thetad, q, qd, rigid=(held, heldd))
        effort = linearizing_effort(arm, state, motion(t), chain_gains(w))
        snap = linearizing_snap(state, motion(t), chain_gains(w))
        tau = np.where(np.arange(2) == rigid, effort, stiffness[elastic] * (theta - q))
        M = arm.dynamics.mass_matrix(q) + np.diag(np.where(np.arange(2) == rigid, arm.rotor_inertia, 0.0))
        qdd = np.linalg.solve(M, tau - arm.dynamics.effort(q, qd, np.zeros(2)))
        thetadd = np.where(np.arange(2) == rigid, qdd, (effort - tau) / arm.rotor_inertia)
        return np.concatenate([qd, thetad, qdd, thetadd, heldd, snap])

    start = motion(0.0)
    begin = arm.feedforward(start[0] + off, *start[1:])
    x0 = np.concatenate([start[0] + off, begin.motor_position, start[1], begin.motor_velocity, start[2], start[3]])
    solution = solve_ivp(rate, (0, 0.5), x0, method="DOP853", rtol=1e-11, atol=1e-13)
    wt = w * 0.5
    expected = off * (1 + wt + wt**2 / 2 + wt**3 / 6) * np.exp(-wt)
    np.testing.assert_allclose(solution.y[:2, -1] - motion(0.5)[0], expected, atol=1e-8)


def test_linearizing_effort_on_the_reference_is_the_feedforward() -> None:
    arm = ElasticArm(with_springs(load_robot("iiwa"), *MIX))
    rng = np.random.default_rng(3)
    motion = rng.uniform(-1, 1, (5, 7))
    stiffness = stiffness_of(arm, rng, ())
    command = arm.feedforward(*motion, stiffness=stiffness)
    state = flat_state(arm, *command[3:5], *motion[:2], stiffness=stiffness[:2])
    effort = linearizing_effort(
        arm, state, motion, chain_gains(30.0), stiffness=stiffness, stiffness_gains=chain_gains(30.0, 2)
    )
    assert deviation(effort, command.motor_effort) < 1e-6  # gains of 30⁴ on errors of rounding


def test_motor_pd_holds_what_the_feedforward_says() -> None:
    command = ElasticArm(load_robot("iiwa")).feedforward(*np.zeros((5, 7)))
    effort = motor_pd_effort(command, command.motor_position - 0.1, command.motor_velocity + 0.2, 50.0, np.full(7, 3.0))
    np.testing.assert_allclose(effort, command.motor_effort + 5.0 - 0.6, rtol=1e-13)


def test_kinds_that_take_a_stiffness_are_those_that_vary() -> None:
    arm = ElasticArm(with_springs(load_robot("iiwa"), *MIX))
    expected = [isinstance(spring, (AntagonisticPair, VariableSpring)) for spring in arm.springs]
    np.testing.assert_array_equal(arm.variable, expected)
    np.testing.assert_array_equal(arm.paired, [isinstance(s, ExponentialPair) or s is MIX[4] for s in arm.springs])
