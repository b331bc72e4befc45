# SPDX-License-Identifier: Apache-2.0
"""Rates, loads and energy of plants against textbooks, and the work of their efforts."""

from typing import Any

import numpy as np
import pytest
from chains import packaged_parameters
from differences import deviation, gradient
from springs import with_springs
from textbook import kinetic_energy, planar_2r, potential_energy

from eom_dynamics import ElasticArm, RobotDescriptionError, load_robot
from eom_dynamics.actuators import Actuator, Friction, Gear
from eom_dynamics.actuators.springs import CubicSpring, DampedSpring, ExponentialPair, RigidSpring
from eom_dynamics.arrays import Array
from eom_dynamics.simulation import ElasticPlant, energy, energy_audit, simulate
from eom_dynamics.trajectory import paper_motion

STATE = np.array([[0.3, -0.7], [0.4, -0.9], [1.1, -0.4], [0.2, 0.9]])
EFFORT = np.array([12.0, -5.0])
STIFFNESS, ROTOR_INERTIA = np.array([500.0, 300.0]), np.array([0.2, 0.1])
"""Stiffness and rotor inertia of the packaged 2R."""
INF = float("inf")


def plant(**arguments: Any) -> ElasticPlant:
    return ElasticPlant(ElasticArm(load_robot("planar_2r"), **arguments))


def rate(arm: ElasticPlant, state: Array) -> Array:
    """Rates (4, 2) of q, theta, qd, thetad, of one state and as the second of two."""
    one = arm.rate(state.ravel(), EFFORT)
    two = arm.rate(np.array([-state.ravel(), state.ravel()]), np.array([-EFFORT, EFFORT]))
    assert deviation(two[1], one) < 1e-13
    return one.reshape(4, 2)


@pytest.mark.parametrize("rigid", [False, True])
def test_rates_of_links_and_motors(rigid: bool) -> None:
    """The motor of a rigid joint moves with its link."""
    state = STATE.copy()
    state[1::2, 0] = np.where(rigid, state[::2, 0], state[1::2, 0])
    M, forces = planar_2r(packaged_parameters("planar_2r"))(state[0], state[2])
    spring = STIFFNESS * (state[1] - state[0])
    on_links = np.where([rigid, False], EFFORT, spring)
    qdd = np.linalg.solve(M + np.diag([rigid * ROTOR_INERTIA[0], 0.0]), on_links - forces)
    thetadd = np.where([rigid, False], qdd, (EFFORT - spring) / ROTOR_INERTIA)
    rates = rate(plant(stiffness=[INF if rigid else 500.0, 300.0]), state)
    assert deviation(rates, [state[2], state[3], qdd, thetadd]) < 1e-13


def test_elastic_joints_require_rotor_inertia() -> None:
    light = plant(stiffness=[INF, 300.0], rotor_inertia=[0.0, 0.1])
    assert np.all(np.isfinite(rate(light, STATE)))
    with pytest.raises(RobotDescriptionError, match=r"rotor_inertia.*positive.*joint_2"):
        plant(rotor_inertia=[0.2, 0.0])


MOTION = paper_motion(2)
LOSS = Actuator(friction=Friction(viscous=0.4, coulomb=0.2, static=0.3, smoothing_velocity=0.5), gear=Gear(0.8, 5.0))
PAIRED = (CubicSpring(500.0, 400.0), ExponentialPair(40.0, 1.5, 300.0))


def lossy_plant(*springs: Any) -> ElasticPlant:
    return ElasticPlant(ElasticArm(with_springs(load_robot("planar_2r"), *springs, actuator=LOSS)))


@pytest.mark.parametrize("name", ["iiwa", "planar_pr"])
def test_energies_are_those_of_the_textbook(name: str) -> None:
    parameters = packaged_parameters(name)
    plant = ElasticPlant(ElasticArm(load_robot(name)))
    arm = plant.arm
    states = np.random.default_rng(3).uniform(-1, 1, (2, 4 * arm.robot.n))
    held = energy(plant, states)
    for i, (q, theta, qd, thetad) in enumerate(states.reshape(2, 4, -1)):
        rotors = 0.5 * np.sum(arm.rotor_inertia * thetad**2)
        assert held.kinetic[i] == pytest.approx(kinetic_energy(parameters, q, qd) + rotors, rel=1e-10)
        assert held.gravity[i] == pytest.approx(potential_energy(parameters, q), rel=1e-12)
        assert held.spring[i] == pytest.approx(0.5 * np.sum(arm.stiffness * (theta - q) ** 2), rel=1e-12)
        assert held.total[i] == pytest.approx(held.kinetic[i] + held.gravity[i] + held.spring[i], rel=1e-15)
        assert energy(plant, states[i]).total == pytest.approx(held.total[i], rel=1e-14)


@pytest.mark.parametrize("springs", [PAIRED, (DampedSpring(500.0, 3.0), PAIRED[0])], ids=["pair", "damper"])
def test_work_is_energy_and_heat(springs: Any) -> None:
    lossy = lossy_plant(*springs)
    command = lossy.arm.feedforward
    start = lossy.on_trajectory(*MOTION.derivatives(0.0))
    t = np.linspace(0.0, 0.25, 26)
    simulation = simulate(lossy, lambda now, _: command(*MOTION.derivatives(now)).motor_effort, t, start)
    assert simulation.heat[-1] > 0.1 and np.all(np.diff(simulation.heat) >= 0)
    assert energy_audit(lossy, simulation) < 1e-8
    if springs is PAIRED:
        assert np.max(np.abs(lossy.parts(simulation.states).q - MOTION.derivatives(t, order=0)[0])) < 1e-10


def test_lossy_gears_at_rigid_joints_are_refused() -> None:
    with pytest.raises(RobotDescriptionError, match=r"efficiency.*1"):
        lossy_plant(RigidSpring(), PAIRED[0])


def test_tangents_are_derivatives_of_efforts() -> None:
    for springs in (PAIRED, (DampedSpring(500.0, 3.0), PAIRED[0])):
        loads = lossy_plant(*springs).springs
        delta, deltad = np.array([[0.3, 0.2, -0.4], [0.1, -0.2, 0.5]])[:, : len(loads.side.motor_joint)]
        slope, damping = loads.tangents(delta)
        assert deviation(slope, gradient(lambda x: loads.loads(x, deltad), delta)) < 1e-10  # noqa: B023
        assert deviation(damping, gradient(lambda x: loads.loads(delta, x), deltad), floor=1.0) < 1e-10  # noqa: B023
