# SPDX-License-Identifier: Apache-2.0
"""Forward dynamics undo inverse dynamics, for states and batches."""

from __future__ import annotations

import numpy as np
import pytest
from chains import fixed_case
from differences import deviation

from eom_dynamics import Dynamics, ElasticArm, RobotDescriptionError, StateError, load_robot
from eom_dynamics.simulate import ElasticPlant, forward_dynamics
from eom_dynamics.simulate.model_error import with_model_error


@pytest.mark.parametrize("name", ["iiwa", "planar_2r", "mixed_chain"])
def test_undoes_inverse_dynamics(name: str) -> None:
    case = fixed_case(name, 2)
    dynamics = Dynamics(case.robot)
    q, qd, qdd = case.motion
    assert deviation(forward_dynamics(dynamics, q, qd, dynamics.effort(q, qd, qdd)), qdd) < 1e-12


def test_a_batch_is_its_samples_one_by_one() -> None:
    dynamics = Dynamics(load_robot("iiwa"))
    q, qd, tau = np.random.default_rng(1).uniform(-2, 2, (3, 5, 7))
    added = np.linspace(0.1, 1.0, 7)
    batch = forward_dynamics(dynamics, q, qd, tau, added_inertia=added)
    for i in range(5):
        one = forward_dynamics(dynamics, q[i], qd[i], tau[i], added_inertia=added)
        assert deviation(batch[i], one) < 1e-13


def test_added_inertia_takes_its_part_of_the_effort() -> None:
    case = fixed_case("planar_2r", 2)
    dynamics = Dynamics(case.robot)
    q, qd, qdd = case.motion
    added = np.array([0.3, 0.7])
    tau = dynamics.effort(q, qd, qdd) + added * qdd
    assert deviation(forward_dynamics(dynamics, q, qd, tau, added_inertia=added), qdd) < 1e-13


def test_what_cannot_be_is_refused() -> None:
    dynamics = Dynamics(load_robot("planar_2r"))
    with pytest.raises(StateError, match=r"^q\b"):
        forward_dynamics(dynamics, np.zeros(3), np.zeros(3), np.zeros(3))
    negative = Dynamics(with_model_error(load_robot("planar_2r"), mass=-2.0))
    with pytest.raises(RobotDescriptionError, match=r"^planar_2r: its mass matrix is not positive definite"):
        forward_dynamics(negative, np.zeros(2), np.zeros(2), np.zeros(2))


@pytest.mark.parametrize("rotor_model", ["reduced", "complete"])
def test_a_plant_without_a_mass_matrix_says_so(rotor_model: str) -> None:
    robot = with_model_error(load_robot("planar_2r"), mass=-2.0)
    plant = ElasticPlant(ElasticArm(robot, rotor_model=rotor_model))
    with pytest.raises(RobotDescriptionError, match=r"^planar_2r: its mass matrix is not positive definite"):
        plant.rate(np.zeros(8), np.zeros(2))
