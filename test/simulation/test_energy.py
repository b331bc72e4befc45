# SPDX-License-Identifier: Apache-2.0
"""Energy against textbook formulas, and its balance with the work of the motors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from chains import packaged_parameters
from textbook import kinetic_energy, potential_energy

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.simulation import ElasticPlant, energy, energy_audit, simulate
from eom_dynamics.trajectory import paper_motion

INF = float("inf")


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


@pytest.mark.parametrize(("stiffness", "driven"), [([INF, 300.0], True), (INF, False)], ids=["mixed", "rigid, free"])
def test_energy_is_the_work_of_the_motors(stiffness: Any, driven: bool) -> None:
    plant = ElasticPlant(ElasticArm(load_robot("planar_2r"), stiffness=stiffness))
    start = plant.on_trajectory(*paper_motion(2).derivatives(0.0))

    def control(t: float, state: Array) -> Array:
        return driven * (np.array([40.0, 15.0]) * np.cos([3 * t, 5 * t]) - 2 * plant.parts(state).thetad)

    simulation = simulate(plant, control, np.linspace(0.0, 0.6, 31), start)
    held = energy(plant, simulation.states)
    exchanged = np.ptp(held.kinetic)
    balance = held.total - held.total[0] - simulation.work
    assert np.max(np.abs(balance)) < 1e-8 * exchanged
    assert np.ptp(simulation.work) > 0.1 * exchanged if driven else not np.any(simulation.work)
    assert energy_audit(plant, simulation).relative_imbalance < 1e-8
