# SPDX-License-Identifier: Apache-2.0
"""Feedforward of elastic joints: formulas, mixtures with rigid joints, arguments."""

from typing import Any

import numpy as np
import pytest
from chains import fixed_case, packaged_parameters
from differences import derivative, deviation, polynomial_motion
from textbook import planar_2r

from eom_dynamics import ElasticArm, load_robot

INF = float("inf")
MOTION = fixed_case("planar_2r", 4).motion
STIFFNESS, ROTOR_INERTIA = np.array([500.0, 300.0]), np.array([0.2, 0.1])
"""Stiffness and rotor inertia of the packaged 2R."""


def arm(**arguments: Any) -> ElasticArm:
    return ElasticArm(load_robot("planar_2r"), **arguments)


def textbook_effort(motion: np.ndarray) -> np.ndarray:
    q, qd, qdd = motion[:3]
    M, forces = planar_2r(packaged_parameters("planar_2r"))(q, qd)
    return M @ qdd + forces


def test_motors_of_the_textbook_arm() -> None:
    """Rates of effort by numerical differentiation, with a rounding error of some 1e-11 in the second."""
    motion = polynomial_motion(MOTION)
    tau = textbook_effort(MOTION)
    taud = derivative(lambda t: textbook_effort(motion(t)))
    taudd = derivative(lambda t: derivative(lambda s: textbook_effort(motion(t + s))))
    command = arm().feedforward(*MOTION)
    thetadd = MOTION[2] + taudd / STIFFNESS
    assert deviation(command.tau, tau) < 1e-14
    assert deviation(command.taud, taud) < 1e-12
    assert deviation(command.taudd, taudd) < 1e-10
    assert deviation(command.motor_position, MOTION[0] + tau / STIFFNESS) < 1e-14
    assert deviation(command.motor_velocity, MOTION[1] + taud / STIFFNESS) < 1e-13
    assert deviation(command.motor_acceleration, thetadd) < 1e-11
    assert deviation(command.motor_effort, ROTOR_INERTIA * thetadd + tau) < 1e-11


@pytest.mark.parametrize("given", [[7, 8], 9.0, [INF, 8.0]], ids=str)
def test_arguments_override_the_file_and_are_copied(given: Any) -> None:
    stiffness = np.array(given)
    elastic = arm(stiffness=stiffness)
    stiffness *= 2
    np.testing.assert_array_equal(elastic.stiffness, np.broadcast_to(given, 2))
    np.testing.assert_array_equal(elastic.rotor_inertia, ROTOR_INERTIA)
    elastic = arm(rotor_inertia=np.minimum(given, 8.0))
    np.testing.assert_array_equal(elastic.rotor_inertia, np.broadcast_to(np.minimum(given, 8.0), 2))
    np.testing.assert_array_equal(elastic.stiffness, STIFFNESS)


def test_motors_of_rigid_joints_move_with_the_links() -> None:
    command = arm(stiffness=INF).feedforward(*MOTION)
    np.testing.assert_array_equal(command[3:6], MOTION[:3])
    np.testing.assert_array_equal(command.motor_effort, ROTOR_INERTIA * MOTION[2] + command.tau)
