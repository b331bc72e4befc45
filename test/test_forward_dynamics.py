# SPDX-License-Identifier: Apache-2.0
"""Forward dynamics against inverse dynamics, for states and batches."""

from __future__ import annotations

import numpy as np
import pytest
from chains import fixed_case
from differences import deviation

from eom_dynamics import Dynamics, ElasticArm, RobotDescriptionError, StateError, load_robot
from eom_dynamics.simulation import ElasticPlant
from eom_dynamics.simulation.perturbation import perturbed


@pytest.mark.parametrize("name", ["iiwa", "planar_2r", "mixed_chain"])
def test_inverse_of_inverse_dynamics(name: str) -> None:
    case = fixed_case(name, 2)
    dynamics = Dynamics(case.robot)
    q, qd, qdd = case.motion
    assert deviation(dynamics.forward_dynamics(q, qd, dynamics.effort(q, qd, qdd)), qdd) < 1e-12


def test_batches() -> None:
    dynamics = Dynamics(load_robot("iiwa"))
    q, qd, tau = np.random.default_rng(1).uniform(-2, 2, (3, 5, 7))
    added = np.linspace(0.1, 1.0, 7)
    batch = dynamics.forward_dynamics(q, qd, tau, added_inertia=added)
    for i in range(5):
        one = dynamics.forward_dynamics(q[i], qd[i], tau[i], added_inertia=added)
        assert deviation(batch[i], one) < 1e-13


def test_added_inertia() -> None:
    case = fixed_case("planar_2r", 2)
    dynamics = Dynamics(case.robot)
    q, qd, qdd = case.motion
    added = np.array([0.3, 0.7])
    tau = dynamics.effort(q, qd, qdd) + added * qdd
    assert deviation(dynamics.forward_dynamics(q, qd, tau, added_inertia=added), qdd) < 1e-13


def test_errors() -> None:
    dynamics = Dynamics(load_robot("planar_2r"))
    with pytest.raises(StateError, match=r"^q\b"):
        dynamics.forward_dynamics(np.zeros(3), np.zeros(3), np.zeros(3))
    negative = Dynamics(perturbed(load_robot("planar_2r"), mass=-2.0))
    with pytest.raises(RobotDescriptionError, match=r"^planar_2r: the mass matrix is not positive definite"):
        negative.forward_dynamics(np.zeros(2), np.zeros(2), np.zeros(2))


@pytest.mark.parametrize("rotor_model", ["reduced", "complete"])
def test_plant_with_an_indefinite_mass_matrix(rotor_model: str) -> None:
    robot = perturbed(load_robot("planar_2r"), mass=-2.0)
    plant = ElasticPlant(ElasticArm(robot, rotor_model=rotor_model))
    with pytest.raises(RobotDescriptionError, match=r"^planar_2r: the mass matrix is not positive definite"):
        plant.rate(np.zeros(8), np.zeros(2))
