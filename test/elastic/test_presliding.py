# SPDX-License-Identifier: Apache-2.0
"""Presliding friction: Dahl's equation along a motion and in streams; ``make bench`` has plants."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from reference.stream_evaluator import StreamEvaluator
from scipy.integrate import solve_ivp
from springs import EVERY_KIND, with_springs

import eom_dynamics as eom
from eom_dynamics.actuators import Actuator, Friction
from eom_dynamics.control.fields import STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS
from eom_dynamics.simulation import SimulatedRobot
from eom_dynamics.trajectory import paper_motion

X_P = 0.05
LAW = Friction(viscous=0.4, coulomb=2.0, static=3.0, stribeck_velocity=0.5, presliding_distance=X_P)
SMOOTH = replace(LAW, presliding_distance=np.nan)


def arm_with(law: Friction, *springs: str) -> eom.ElasticArm:
    kinds = [EVERY_KIND[kind] for kind in springs or ("linear",)]
    return eom.ElasticArm(with_springs(eom.load_robot("planar_2r"), *kinds, rotor_inertia=0.1, actuator=Actuator(law)))


ARM = arm_with(LAW)
MOTION = paper_motion(2)
T = 1e-3 * np.arange(1500)
STATES = np.stack(MOTION.derivatives(T))
REST = eom.FlatState(*np.zeros((6, 2)))


def message(state: Any) -> Any:
    fields = dict(zip(STATE_FIELDS, state, strict=True))
    return SimpleNamespace(joint_names=[], **fields, **{name: [] for name in (*WRENCH_FIELDS, *STIFFNESS_FIELDS)})


def stream(evaluator: StreamEvaluator, states: Any, start: int = 10**18) -> Any:
    commands = []
    for k, state in enumerate(states):
        commands.append(evaluator.evaluate(message(state), stamp=start + k * 10**6))
        evaluator.commit()
    return commands


@pytest.mark.parametrize("distance", [X_P, 1e-3])
def test_states_follow_the_differential_equation(distance: float) -> None:
    """Through reversals; a step that has one within itself is off by the way in it."""
    arm = arm_with(replace(LAW, presliding_distance=distance))
    command = arm.feedforward(*STATES)
    found = arm.friction_states(command.motor_position, command.motor_velocity)
    start = np.tanh(command.motor_velocity[0] / LAW.smoothing_velocity)
    np.testing.assert_allclose(found[0], start, rtol=1e-15)

    def rate(t: float, z: Any) -> Any:
        thetad = arm.feedforward(*MOTION.derivatives(t)).motor_velocity
        return thetad / distance * (1 - z * np.sign(thetad))

    wanted = solve_ivp(rate, (0, T[-1]), start, t_eval=T, rtol=1e-8, atol=1e-10, max_step=2e-3).y.T
    errors = np.abs(found - wanted)
    assert errors[:, 0].max() < 1e-8  # the joint without a reversal
    # A step with a reversal of the motor uses the difference of both ways: by a T²/8 each at most.
    (turn,) = np.flatnonzero(np.diff(np.sign(command.motor_velocity[1:, 1]))) + 1
    assert errors[: turn + 1, 1].max() < 1e-8
    assert errors[:, 1].max() < np.abs(np.diff(command.motor_position[turn - 1 : turn + 2, 1], 2)).max() / 4 / distance


def test_the_effort_is_that_of_the_state() -> None:
    z = np.array([0.3, -0.7])
    state = STATES[:, 700]
    sent, none = ARM.feedforward(*state, friction_state=z), arm_with(Friction()).feedforward(*state)
    thetad = sent.motor_velocity
    wanted = 0.4 * thetad + (2 + np.exp(-((thetad / 0.5) ** 2))) * z
    np.testing.assert_allclose(sent.motor_effort - none.motor_effort, wanted, rtol=0, atol=1e-13 * 100)


def test_the_effort_of_feedback_linearization_is_that_of_the_state() -> None:
    """At the measured velocity, off the reference; without a state it follows the smooth law."""
    z = np.array([[0.3, -0.7], [-1.0, 0.2]])
    smooth, none = arm_with(SMOOTH), arm_with(Friction())
    motion = STATES[:, [300, 700]]
    measured = ARM.feedforward(*motion)[3:5]
    flat = eom.flat_state(ARM, *measured, *motion[:2])

    def effort(arm: eom.ElasticArm, **given: Any) -> Any:
        return eom.linearizing_effort(arm, flat, motion + 0.01, [1e4, 4e3, 600.0, 40.0], **given)

    thetad = measured[1]
    wanted = 0.4 * thetad + (2 + np.exp(-((thetad / 0.5) ** 2))) * z
    np.testing.assert_allclose(effort(ARM, friction_state=z) - effort(none), wanted, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(effort(ARM), effort(smooth))
    assert np.abs(effort(smooth) - effort(ARM, friction_state=z)).max() > 1


@pytest.mark.parametrize("springs", [("linear",), ("damped", "antagonistic_quadratic")])
def test_a_stream_and_a_trajectory_are_the_states_along_the_motion(springs: tuple[str, ...]) -> None:
    arm = arm_with(LAW, *springs)
    found = np.array([command.motors for command in stream(StreamEvaluator(arm), STATES.swapaxes(0, 1)[:300])])
    efforts = arm.feedforward(*STATES)[:3]
    deflection = arm.deflections_over_time(T, efforts)
    command = arm.feedforward(*STATES, deflection=deflection)
    states = arm.friction_states(command.motor_position, command.motor_velocity)
    wanted = arm.feedforward(*STATES, deflection=deflection, friction_state=states)
    assert np.abs(wanted.motor_effort - command.motor_effort).max() > 1
    np.testing.assert_allclose(found[:, 3], wanted.motor_effort[:300], rtol=0, atol=1e-9)


def test_only_dry_friction_has_a_state() -> None:
    assert not Friction(viscous=1.0, presliding_distance=0.1).has_state
    assert arm_with(LAW).has_memory and not arm_with(SMOOTH).has_memory
    assert not arm_with(SMOOTH).friction_states(T[:, None] * [1, 1], STATES[1]).any()


def test_a_simulated_robot_warns_that_it_is_smooth() -> None:
    with pytest.warns(eom.exceptions.RobotDescriptionWarning, match=r"joint_1.*joint_2.*simulated"):
        SimulatedRobot(ARM)


@pytest.mark.parametrize("z", [[0.0, 1.1], [np.nan, 0.0], [0.0], "ab"])
def test_a_state_beyond_its_range_is_refused(z: Any) -> None:
    with pytest.raises(eom.StateError, match=r"friction_state (must|is not)"):
        ARM.feedforward(*STATES[:, 0], friction_state=z)
    with pytest.raises(eom.StateError, match=r"friction_state (must|is not)"):
        eom.linearizing_effort(ARM, REST, STATES[:, 0], [1e4, 4e3, 600.0, 40.0], friction_state=z)
