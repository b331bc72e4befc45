# SPDX-License-Identifier: Apache-2.0
"""Forward dynamics against inverse dynamics, for states and batches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from differences import deviation
from urdf_arms import MASSLESS_TIP

from eom_dynamics import Dynamics, ElasticArm, Robot, RobotDescriptionError, StateError, load_robot
from eom_dynamics.codegen.programs import PROGRAMS
from eom_dynamics.recursion.inverse_mass_matrix import solve_mass_matrix
from eom_dynamics.simulation import ElasticPlant
from eom_dynamics.simulation.feedforward_comparison import perturbed


def test_added_inertia_of_states_and_batches() -> None:
    dynamics = Dynamics(load_robot("iiwa"))
    q, qd, qdd = np.random.default_rng(1).uniform(-2, 2, (3, 5, 7))
    added = np.linspace(0.1, 1.0, 7)
    tau = dynamics.effort(q, qd, qdd) + added * qdd
    batch = dynamics.forward_dynamics(q, qd, tau, added_inertia=added)
    assert deviation(batch, qdd) < 1e-11
    for i in range(5):
        one = dynamics.forward_dynamics(q[i], qd[i], tau[i], added_inertia=added)
        assert deviation(batch[i], one) < 1e-13


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


def massless_on_one_axis() -> str:
    """A massless link that turns about the axis of the link before it: no effort tells the two joints apart."""
    limit = '<limit lower="-3" upper="3" velocity="1" effort="1"/>'
    return f"""<robot name="coaxial"><link name="base"/><link name="a"/>
      <link name="b"><inertial><origin xyz="0.2 0.1 0.3"/><mass value="2"/>
        <inertia ixx="0.03" ixy="0.01" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
      <joint name="j1" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0.3 1 0.2"/>{limit}</joint>
      <joint name="j2" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0.3 1 0.2"/>{limit}</joint>
    </robot>"""


def test_a_mass_matrix_that_is_singular_but_for_rounding_is_refused() -> None:
    """In each of 500 states, alone: rounding makes some of them positive definite."""
    with pytest.warns(UserWarning, match="singular"):
        robot = load_robot(massless_on_one_axis())
    dynamics = Dynamics(robot)
    for q, qd, tau in np.random.default_rng(3).uniform(-3, 3, (500, 3, 2)):
        with pytest.raises(RobotDescriptionError, match="not positive definite"):
            dynamics.forward_dynamics(q, qd, tau)
    # With rotors, it is one like others.
    qdd = dynamics.forward_dynamics(np.zeros(2), np.zeros(2), np.ones(2), added_inertia=1e-3)
    assert np.all(np.isfinite(qdd))


def point_mass_on_two_links() -> Robot:
    """A point mass on two links of equal length without mass: at q_2 = 0 and pi no effort tells the joints apart."""
    robot = load_robot("planar_2r")
    inner, outer = robot.joints
    reach = np.array([1.0, 0.0, 0.0])
    inner = replace(inner, mass=0.0, inertia_about_origin=np.zeros((3, 3)))
    outer = replace(
        outer, mass=1.0, center_of_mass=reach, inertia_about_origin=np.eye(3) * (reach @ reach) - np.outer(reach, reach)
    )
    return replace(robot, joints=(inner, outer))


@pytest.mark.parametrize("q_2", [0.0, np.pi, -np.pi, 1e-9])
def test_a_configuration_in_which_the_mass_matrix_is_singular_is_refused(q_2: float) -> None:
    """On the articulated-body path, too, which compiled code takes for robots of independent joints."""
    dynamics = Dynamics(point_mass_on_two_links())
    rate, tau = np.zeros(2), np.ones(2)
    beside = dynamics.forward_dynamics([0.3, q_2 + 0.1], rate, tau)
    np.testing.assert_allclose(dynamics.effort([0.3, q_2 + 0.1], rate, beside), tau, atol=1e-9)
    for method in (dynamics.forward_dynamics, dynamics.forward_dynamics_derivatives):
        with pytest.raises(RobotDescriptionError, match="not positive definite"):
            method([0.3, q_2], rate, tau)
        with pytest.raises(RobotDescriptionError, match="not positive definite"):
            method(np.array([[0.3, 1.0], [0.3, q_2]]), np.zeros((2, 2)), np.ones((2, 2)))


def test_large_arguments_are_not_called_singular() -> None:
    dynamics = Dynamics(load_robot("planar_2r"))
    with pytest.raises(StateError, match="numbers too large: qdd would not be finite"):
        dynamics.forward_dynamics([0.3, 0.2], [1e200, 1e200], [0.0, 0.0])


def test_light_links_on_heavy_ones_are_not_singular() -> None:
    """Grams on tons: far from what rounding leaves."""
    inertia = np.array([[1e5, 10.0], [10.0, 2e-3]])
    np.testing.assert_allclose(inertia @ solve_mass_matrix("", inertia, np.ones(2)), 1.0, rtol=1e-9)


@pytest.mark.parametrize("name", ["forward_dynamics", "forward_dynamics_partials"])
def test_a_joint_that_moves_no_mass_is_an_error_of_the_description(name: str) -> None:
    with pytest.warns(UserWarning, match="singular"):
        robot = load_robot(MASSLESS_TIP)
    with pytest.raises(RobotDescriptionError, match="a joint moves no mass"):
        PROGRAMS[name](robot)
