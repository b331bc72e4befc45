# SPDX-License-Identifier: Apache-2.0
"""Time steps of fixed cost against SciPy's integrators, and their stability for stiff springs, drives and friction."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from differences import deviation
from springs import EVERY_KIND, with_springs

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.actuators import Actuator, Friction, Gear, Motor, Transmission
from eom_dynamics.actuators.actuator import IDEAL_ACTUATOR
from eom_dynamics.actuators.springs import CoupledSpring, CubicSpring, DampedSpring, ExponentialPair, RigidSpring
from eom_dynamics.arrays import Array
from eom_dynamics.simulation import ElasticPlant, Servo, SimulationError, Stepper, energy, simulate
from eom_dynamics.simulation.stepping import effort_only
from eom_dynamics.trajectory import paper_motion

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
    """PD around a position near the start of the paper's motion, with the efforts of that start."""
    m = len(arm.rigid)
    inertia = np.full(m, 0.15)
    effort = arm.arm.feedforward(*paper_motion(2).derivatives(0.0)).motor_effort
    position = arm.parts(start_of(arm)).theta + 0.1
    return Servo(effort, position, np.zeros(m), inertia * natural_frequency**2, 2 * inertia * natural_frequency)


def after(arm: ElasticPlant, servo: Servo, seconds: float, steps: int, wrench: Array | None = None) -> Array:
    stepper, state = Stepper(arm, seconds / steps), start_of(arm)
    for _ in range(steps):
        state = stepper.step(state, servo, wrench)
    return state


PUSH = np.array([0.0, 0.0, 3.0, 20.0, -30.0, 0.0])


@pytest.mark.parametrize("kind", ["damped", "pair", "mixed", "coupled", "complete"])
def test_steps_are_of_second_order(kind: str) -> None:
    arm, wrench = PLANTS[kind](), PUSH if kind in ("mixed", "complete") else None
    servo, duration = drives(arm), 0.05

    def control(t: float, state: Array) -> Array:
        _, theta, _, thetad = arm.parts(state)
        return servo.wanted(theta, thetad)

    given = {} if wrench is None else {"wrench": lambda t, state: wrench}
    exact = simulate(arm, control, [0.0, duration], start_of(arm), relative_tolerance=1e-10, **given).states[-1]
    errors = [np.max(np.abs(after(arm, servo, duration, steps, wrench) - exact)) for steps in (100, 200)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.2)


@pytest.mark.parametrize("kinds", list(pairwise([*EVERY_KIND, "linear"]))[::2], ids="-".join)
def test_energy_does_not_grow(kinds: tuple[str, str]) -> None:
    """Released near the equilibrium of constant efforts; the light rotor swings faster than steps can follow."""
    robot = with_springs(load_robot("planar_2r"), *(EVERY_KIND[kind] for kind in kinds))
    arm = ElasticPlant(ElasticArm(robot, rotor_inertia=[0.1, 1e-3]))
    m, zero = len(arm.rigid), np.zeros(2)
    q = np.array([0.3, -0.7])
    state = arm.on_trajectory(q, zero, zero, zero, zero)
    effort = arm.arm.feedforward(q, zero, zero, zero, zero).motor_effort
    state[2 : 2 + m] += np.where(arm.rigid, 0.0, 5e-3)
    stepper, states = Stepper(arm, 1e-3), [state]
    for _ in range(300):
        states.append(stepper.step(states[-1], effort_only(effort)))
    rows = np.array(states)
    # Constant efforts have a potential.
    held = energy(arm, rows)
    total = held.total - arm.parts(rows).theta @ effort
    # Relative to the energy of the springs: first steps may gain some, later steps lose it.
    assert np.max(total - total[0]) < 1e-2 * max(np.ptp(held.spring), 1e-3)
    assert np.max(total[150:]) - total[0] < 1e-3 * max(np.ptp(held.spring), 1e-3)


def test_any_spring_comes_to_rest_under_drives() -> None:
    """The stiffest springs swing a thousand times faster than the steps; so do the gains on the lightest rotors."""
    stiffness, rotors = np.geomspace(1e4, 1e8, 7), np.array([1e-5, 1e-2, 1.0, 1e-5, 1e-2, 1.0, 1e-5])
    arm = ElasticPlant(ElasticArm(load_robot("iiwa"), stiffness=stiffness, rotor_inertia=rotors))
    q, zero = np.linspace(-1, 1, 7), np.zeros(7)
    state = arm.on_trajectory(q, zero, zero, zero, zero)
    goal = arm.arm.feedforward(q + 0.05, zero, zero, zero, zero)
    servo = Servo(goal.motor_effort, goal.motor_position, zero, np.full(7, 2e3), np.full(7, 60.0))
    stepper = Stepper(arm, 1e-3)
    for _ in range(1000):
        state = stepper.step(state, servo)
    parts = arm.parts(state)
    assert np.max(np.abs(parts.theta - goal.motor_position)) < 1e-3
    assert np.max(np.abs(parts.q - q - 0.05)) < 1e-3
    assert np.max(np.abs(state[14:])) < 2e-2


@pytest.mark.parametrize(("inertia", "coulomb", "speed"), [(1e-4, 1.0, 1.0), (1e-2, 50.0, 2.0)])
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
    # Below its smoothing velocity friction is weaker.
    assert abs(state[2]) < 0.03
    assert state[0] == pytest.approx(0.5 * whole * speed**2 / coulomb, rel=0.05)


def test_motor_efforts_are_clipped_to_their_limits() -> None:
    changes = {"rotor_inertia": 0.1, "actuator": Actuator(motor=Motor(torque_limit=0.5)), "gear_ratio": 10.0}
    arm, servo = plant(RigidSpring(), gravity=np.zeros(3), **changes), effort_only(np.array([40.0, -2.0]))
    state = np.zeros(8)
    np.testing.assert_allclose(Stepper(arm, 1e-3).motor_effort(state, servo), [5.0, -2.0], rtol=1e-15)
    np.testing.assert_array_equal(Stepper(arm, 1e-3, limited=False).motor_effort(state, servo), servo.effort)
    slower = Stepper(arm, 1e-3).step(state, servo)
    assert deviation(slower, Stepper(arm, 1e-3).step(state, effort_only(np.array([5.0, -2.0])))) < 1e-15
    assert deviation(slower, Stepper(arm, 1e-3, limited=False).step(state, servo)) > 0.1
    np.testing.assert_allclose(Stepper(arm, 1e-3).mean_effort(state, slower, servo), [5.0, -2.0], rtol=1e-12)


def test_effort_at_a_rigid_joint_is_that_of_the_links() -> None:
    arm = PLANTS["mixed"]()
    stepper, state, servo = Stepper(arm, 1e-5), start_of(arm), drives(arm)
    q, theta, qd, thetad = arm.parts(state)
    qdd = arm.parts(arm.rate(state, servo.wanted(theta, thetad))).qd
    wanted = arm.arm.dynamics.effort(q, qd, qdd)
    assert deviation(stepper.joint_effort(state, servo, qdd), wanted) < 1e-12


@pytest.mark.parametrize("effort", [1e9, np.nan])
def test_a_motion_out_of_bounds_is_an_error_and_changes_no_state(effort: float) -> None:
    arm = PLANTS["mixed"]()
    state = start_of(arm)
    before = state.copy()
    with pytest.raises(SimulationError, match=r"planar_2r.*bounds"):
        Stepper(arm, 1e-3).step(state, effort_only(np.full(2, effort)))
    np.testing.assert_array_equal(state, before)
