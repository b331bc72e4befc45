# SPDX-License-Identifier: Apache-2.0
"""Steps for real time against SciPy's integrators, and what they must never do: gain energy, shake, or go to NaN."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from differences import deviation
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from springs import EVERY_KIND, with_springs

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.drivetrain import Actuator, Friction, Gear, Motor, Transmission
from eom_dynamics.drivetrain.actuator import IDEAL_ACTUATOR
from eom_dynamics.drivetrain.springs import CoupledSpring, CubicSpring, DampedSpring, ExponentialPair, RigidSpring
from eom_dynamics.simulate import ElasticPlant, Servo, SimulationError, Stepper, energy, simulate
from eom_dynamics.simulate.servo import effort_only
from eom_dynamics.trajectory import paper_motion

Array = NDArray[np.float64]

LOSS = Actuator(friction=Friction(viscous=0.4, coulomb=0.2, static=0.3, smoothing_velocity=0.5), gear=Gear(0.8, 5.0))
PAIR = ExponentialPair(40.0, 1.5, 300.0)


def plant(
    *springs: Any,
    rotor_inertia: float = 0.15,
    gear_ratio: float = 1.0,
    actuator: Actuator = IDEAL_ACTUATOR,
    **robot_changes: Any,
) -> ElasticPlant:
    changes = {"rotor_inertia": rotor_inertia, "gear_ratio": gear_ratio, "actuator": actuator}
    robot = with_springs(load_robot("planar_2r"), *springs, **changes)
    return ElasticPlant(ElasticArm(replace(robot, **robot_changes)))


PLANTS = {
    "elastic": lambda: plant(CubicSpring(500.0, 400.0), CubicSpring(300.0, 400.0)),
    "damped": lambda: plant(DampedSpring(500.0, 3.0), CubicSpring(300.0, 4e3), actuator=LOSS),
    "pair": lambda: plant(CubicSpring(500.0, 400.0), PAIR, actuator=LOSS),
    "mixed": lambda: plant(RigidSpring(), CubicSpring(300.0, 400.0)),
    "rigid": lambda: plant(RigidSpring(), RigidSpring()),
    "coupled": lambda: plant(
        RigidSpring(),
        coupled_stiffness=((0, 1), CoupledSpring([[500.0, 100.0], [100.0, 300.0]])),
        transmission=((0, 1), Transmission([[0.5, 0.5], [0.5, -0.5]])),
    ),
    "complete": lambda: plant(CubicSpring(500.0, 400.0), RigidSpring(), rotor_model="complete", gear_ratio=20.0),
}


def start_of(arm: ElasticPlant) -> Array:
    return arm.on_trajectory(*paper_motion(2).derivatives(0.0))


def drives(arm: ElasticPlant, natural_frequency: float = 30.0) -> Servo:
    """A PD around the state that the paper's motion starts from, with what holds that."""
    m = len(arm.rigid)
    inertia = np.full(m, 0.15)
    effort = arm.arm.feedforward(*paper_motion(2).derivatives(0.0)).motor_effort
    position = arm.parts(start_of(arm)).theta + 0.1
    return Servo(effort, position, np.zeros(m), inertia * natural_frequency**2, 2 * inertia * natural_frequency)


def after(arm: ElasticPlant, servo: Servo, seconds: float, steps: int) -> Array:
    stepper, state = Stepper(arm, seconds / steps), start_of(arm)
    for _ in range(steps):
        state = stepper.step(state, servo)
    return state


@pytest.mark.parametrize("kind", PLANTS)
def test_steps_come_to_the_motion_with_the_square_of_their_length(kind: str) -> None:
    arm = PLANTS[kind]()
    servo = drives(arm)

    def control(t: float, state: Array) -> Array:
        _, theta, _, thetad = arm.parts(state)
        return servo.wanted(theta, thetad)

    exact = simulate(arm, control, [0.0, 0.1], start_of(arm)).states[-1]
    errors = [np.max(np.abs(after(arm, servo, 0.1, steps) - exact)) for steps in (200, 400, 800)]
    assert np.log2(errors[1] / errors[2]) == pytest.approx(2.0, abs=0.2)
    assert errors[0] / errors[2] == pytest.approx(16.0, rel=0.4)


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.parametrize("rotor_inertia", [1e-3, 0.1])
def test_energy_does_not_grow_by_itself(kind: str, rotor_inertia: float) -> None:
    """Pushed from where constant efforts hold it, for a second; light rotors swing faster than steps can follow."""
    arm = plant(EVERY_KIND[kind], rotor_inertia=rotor_inertia)
    m, zero = len(arm.rigid), np.zeros(2)
    q = np.array([0.3, -0.7])
    state, effort = (
        arm.on_trajectory(q, zero, zero, zero, zero),
        arm.arm.feedforward(q, zero, zero, zero, zero).motor_effort,
    )
    state[2 : 2 + m] += np.where(arm.rigid, 0.0, 5e-3)
    stepper, states = Stepper(arm, 1e-3), [state]
    for _ in range(1000):
        states.append(stepper.step(states[-1], effort_only(effort)))
    rows = np.array(states)
    # What constant efforts put in has a potential.
    held = energy(arm, rows)
    total = held.total - arm.parts(rows).theta @ effort
    # Of what springs exchange in the push, at first; later steps lose energy.
    assert np.max(total - total[0]) < 1e-2 * max(np.ptp(held.spring), 1e-3)
    assert np.max(total[500:]) - total[0] < 1e-3 * max(np.ptp(held.spring), 1e-3)


@pytest.mark.parametrize("stiffness", [1e4, 1e6, 1e8])
@pytest.mark.parametrize("rotor_inertia", [1e-5, 1e-2, 1.0])
def test_any_spring_comes_to_rest_under_drives(stiffness: float, rotor_inertia: float) -> None:
    """The stiffest here swing a thousand times faster than the steps; so do gains on the lightest rotors."""
    arm = ElasticPlant(ElasticArm(load_robot("iiwa"), stiffness=stiffness, rotor_inertia=rotor_inertia))
    q, zero = np.linspace(-1, 1, 7), np.zeros(7)
    state = arm.on_trajectory(q, zero, zero, zero, zero)
    goal = arm.arm.feedforward(q + 0.05, zero, zero, zero, zero)
    servo = Servo(goal.motor_effort, goal.motor_position, zero, np.full(7, 2e3), np.full(7, 60.0))
    stepper = Stepper(arm, 1e-3)
    for _ in range(2000):
        state = stepper.step(state, servo)
    parts = arm.parts(state)
    assert np.max(np.abs(parts.theta - goal.motor_position)) < 1e-3
    assert np.max(np.abs(parts.q - q - 0.05)) < 1e-3
    assert np.max(np.abs(state[14:])) < 2e-2


@given(st.floats(1e-4, 1.0), st.floats(1.0, 50.0), st.floats(1.0, 8.0))
@settings(max_examples=10)
def test_friction_stops_a_motor_where_its_energy_is_spent(inertia: float, coulomb: float, speed: float) -> None:
    robot = with_springs(
        load_robot("pendulum"),
        RigidSpring(),
        rotor_inertia=inertia,
        actuator=Actuator(friction=Friction(coulomb=coulomb, static=coulomb)),
    )
    arm = ElasticPlant(ElasticArm(replace(robot, gravity=np.zeros(3))))
    whole = inertia + arm.arm.dynamics.mass_matrix([0.0])[0, 0]
    state, stepper = np.array([0.0, 0.0, speed, speed]), Stepper(arm, 1e-3)
    for _ in range(int(1000 * whole * speed / coulomb) + 50):
        state = stepper.step(state, effort_only(np.zeros(1)))
    # Smooth friction is weaker below its smoothing velocity of 0.01 rad/s, where a strong one is felt only by the step.
    assert abs(state[2]) < 0.03
    assert state[0] == pytest.approx(0.5 * whole * speed**2 / coulomb, rel=0.05)


def test_motors_give_what_their_limits_allow() -> None:
    limited = Actuator(motor=Motor(torque_limit=0.5))
    robot = with_springs(load_robot("planar_2r"), RigidSpring(), rotor_inertia=0.1, actuator=limited, gear_ratio=10.0)
    arm = ElasticPlant(ElasticArm(replace(robot, gravity=np.zeros(3))))
    servo = effort_only(np.array([40.0, -2.0]))
    state = np.zeros(8)
    np.testing.assert_allclose(Stepper(arm, 1e-3).motor_effort(state, servo), [5.0, -2.0], rtol=1e-15)
    np.testing.assert_array_equal(Stepper(arm, 1e-3, limited=False).motor_effort(state, servo), servo.effort)
    slower = Stepper(arm, 1e-3).step(state, servo)
    assert deviation(slower, Stepper(arm, 1e-3).step(state, effort_only(np.array([5.0, -2.0])))) < 1e-15
    assert deviation(slower, Stepper(arm, 1e-3, limited=False).step(state, servo)) > 0.1


def test_the_effort_of_a_rigid_joint_is_what_is_left_for_the_link() -> None:
    """At the joint, by the equation of the links."""
    arm = PLANTS["mixed"]()
    stepper, state, servo = Stepper(arm, 1e-5), start_of(arm), drives(arm)
    q, theta, qd, thetad = arm.parts(state)
    qdd = arm.parts(arm.rate(state, servo.wanted(theta, thetad))).qd
    wanted = arm.arm.dynamics.effort(q, qd, qdd)
    assert deviation(stepper.joint_effort(state, servo, qdd), wanted) < 1e-12


@pytest.mark.parametrize("effort", [1e9, 1e200, np.inf, np.nan])
def test_a_motion_that_leaves_all_bounds_is_an_error_and_no_state(effort: float) -> None:
    arm = PLANTS["mixed"]()
    state = start_of(arm)
    before = state.copy()
    with pytest.raises(SimulationError, match="planar_2r: the motion leaves all bounds"):
        Stepper(arm, 1e-3).step(state, effort_only(np.full(2, effort)))
    np.testing.assert_array_equal(state, before)
