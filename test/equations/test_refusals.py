# SPDX-License-Identifier: Apache-2.0
"""Arguments that the equations refuse, with the message."""

from collections.abc import Callable

import numpy as np
import pytest
from chains import fixed_case

from eom_dynamics import StateError, equations_of_motion
from eom_dynamics.equations import (
    RigidBody,
    coriolis_tensor,
    mass_matrix_from_jacobians,
    newton_euler,
    spatial_equations_of_motion,
    system_form,
    system_matrices,
)
from eom_dynamics.robot import Inertial

ROBOT = fixed_case("planar_2r", 0).robot
ZERO, SHORT = np.zeros(2), np.zeros(3)
BODY = RigidBody(Inertial.about_center(2.0, np.zeros(3), np.eye(3)))

REFUSED: tuple[tuple[Callable[[], object], str], ...] = (
    (lambda: equations_of_motion(ROBOT, ZERO), "^equations_of_motion needs at least q and qd"),
    (lambda: spatial_equations_of_motion(ROBOT, ZERO), "^spatial_equations_of_motion needs at least q and qd"),
    (lambda: system_matrices(ROBOT, ZERO), "^system_matrices needs at least q and qd"),
    (
        lambda: equations_of_motion(ROBOT, ZERO, ZERO, coriolis="Paper"),
        r"^coriolis must be one of christoffel, skew, paper, wieber.*'Paper'",
    ),
    (lambda: equations_of_motion(ROBOT, ZERO, ZERO).efforts(SHORT), r"^next_rate \(qdd\) must have shape"),
    (lambda: equations_of_motion(ROBOT, *np.zeros((2, 0, 2))), r"^q has no states: its shape is \(0, 2\)"),
    (lambda: equations_of_motion(ROBOT, np.zeros((3, 2)), ZERO), r"^qd must have shape \(3, 2\), has \(2,\)"),
    (lambda: spatial_equations_of_motion(ROBOT, ZERO, SHORT), r"^qd must have shape \(2,\), has \(3,\)"),
    (lambda: system_matrices(ROBOT, ZERO, SHORT), r"^qd must have shape \(2,\), has \(3,\)"),
    (lambda: system_form(ROBOT, np.zeros((3, 2))), r"^q must have shape \(2,\), has \(3, 2\)"),
    (lambda: system_form(ROBOT, ZERO, ZERO, SHORT), r"^qdd must have shape \(2,\)"),
    (lambda: system_form(ROBOT, ZERO, base_twist=SHORT), r"^base_twist must have shape \(6,\), has \(3,\)"),
    (lambda: system_form(ROBOT, ZERO, base_acceleration=np.full(6, np.nan)), "^base_acceleration must be finite"),
    (lambda: coriolis_tensor(ROBOT, ZERO, "Kernel"), "^route must be one of kernel, mass_matrix, jacobians, is 'Ker"),
    (lambda: coriolis_tensor(ROBOT, np.zeros((1, 2))), r"^q must have shape \(2,\), has \(1, 2\)"),
    (lambda: mass_matrix_from_jacobians(ROBOT, [np.nan, 0]), "^q must be finite"),
    (lambda: BODY.momentum(np.zeros(5)), r"^V must have shape \(6,\) or \(…, 6\), has \(5,\)"),
    (lambda: BODY.wrench(np.zeros(6), [0, 0, np.nan, 0, 0, 0]), r"^Vd must be finite; entry \[2\] is nan"),
    (lambda: RigidBody(Inertial.massless()).acceleration(np.zeros(6), np.zeros(6)), "no mass"),
    (lambda: newton_euler(1.0, np.eye(2), SHORT, SHORT, SHORT), "^inertia must have shape"),
)


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_refusals(call: Callable[[], object], message: str) -> None:
    with pytest.raises(StateError, match=message):
        call()


def test_a_name_is_no_robot() -> None:
    with pytest.raises(TypeError, match=r"^robot must be a Robot"):
        system_matrices("planar_2r", ZERO, ZERO)  # type: ignore[arg-type]
