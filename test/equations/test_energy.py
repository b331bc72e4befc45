# SPDX-License-Identifier: Apache-2.0
"""The terms of the equations of motion against energy and virtual work, from poses by matrix exponentials.

The poses are differentiated by differences; 3e-12 is some ten times the most in 400 random chains.
"""

import numpy as np
import pytest
from chains import FIXED, Case, cases, fixed_case
from differences import deviation, gradient
from hypothesis import given
from textbook import body_twists, kinetic_energy, planar_2r, potential_energy

from eom_dynamics import equations_of_motion

WRENCH = np.array([1.0, -2.0, 0.5, 3.0, 1.5, -0.7])


def check_kinetic_energy(case: Case) -> None:
    q, qd = case.motion
    M = equations_of_motion(case.robot, q, qd).M[0]
    assert deviation(qd @ M @ qd / 2, kinetic_energy(case.parameters, q, qd), floor=1.0) < 3e-12


def check_gravity(case: Case) -> None:
    q, qd = case.motion
    expected = gradient(lambda x: np.array(potential_energy(case.parameters, x)), q)
    assert deviation(equations_of_motion(case.robot, q, qd).gravity[0], expected, floor=1.0) < 3e-12


def check_virtual_work(case: Case) -> None:
    """The robot does the work W · V on its surroundings: qd' Q_ext = W' V of the tool body."""
    q, qd = case.motion
    Q_ext = equations_of_motion(case.robot, q, qd, wrench=[WRENCH]).external[0]
    columns = [body_twists(case.parameters, q, unit)[-1] for unit in np.eye(case.robot.n)]
    assert deviation(Q_ext, np.array(columns) @ WRENCH, floor=1.0) < 3e-12


@pytest.mark.parametrize("check", [check_kinetic_energy, check_gravity, check_virtual_work])
@pytest.mark.parametrize("name", FIXED)
def test_fixed_robots(name: str, check) -> None:
    check(fixed_case(name, 1))


@given(case=cases(derivatives=1))
def test_mass_matrix_gives_the_kinetic_energy_of_the_bodies(case: Case) -> None:
    check_kinetic_energy(case)


@given(case=cases(derivatives=1))
def test_gravity_is_the_gradient_of_the_potential_energy(case: Case) -> None:
    check_gravity(case)


@given(case=cases(derivatives=1))
def test_external_forces_do_the_work_of_the_tool_wrench(case: Case) -> None:
    check_virtual_work(case)


def test_packaged_2r_is_that_of_the_textbook() -> None:
    case = fixed_case("planar_2r", 1)
    q, qd = case.motion
    M, forces = planar_2r(case.parameters)(q, qd)
    terms = equations_of_motion(case.robot, q, qd)
    assert deviation(terms.M[0], M) < 1e-15
    assert deviation(terms.C[0] @ qd + terms.gravity[0], forces) < 1e-15
