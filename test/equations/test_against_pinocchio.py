# SPDX-License-Identifier: Apache-2.0
"""The closed form in body-fixed and in spatial twists against Pinocchio's recursive algorithms.

Both are exact up to rounding; 2e-13 is about ten times the largest deviation in 400 random chains.
"""

from collections.abc import Callable

import numpy as np
import pytest
from chains import FIXED, Case, cases, fixed_case
from differences import deviation
from hypothesis import given

from eom_dynamics import equations_of_motion
from eom_dynamics.equations import EquationsOfMotion, spatial_equations_of_motion

pin = pytest.importorskip("pinocchio", reason="Pinocchio is not installed")
from pinocchio_model import pinocchio_model, tool_forces  # noqa: E402 (needs Pinocchio)

TOLERANCE = 2e-13
WRENCH = np.array([1.0, -2.0, 0.5, 3.0, 1.5, -0.7])


BOTH = (equations_of_motion, spatial_equations_of_motion)


def check(case: Case, closed_form: Callable[..., EquationsOfMotion]) -> None:
    """Matrices, effort with a tool wrench, and its rate by Pinocchio's partial derivatives of the effort."""
    q, qd, qdd, qddd = case.motion
    model = pinocchio_model(case.robot)
    data = model.createData()
    terms = closed_form(case.robot, q, qd)
    M = pin.crba(model, data, q)
    gravity = pin.computeGeneralizedGravity(model, data, q)
    forces = pin.nonLinearEffects(model, data, q, qd)
    assert deviation(terms.M[0], np.triu(M) + np.triu(M, 1).T, floor=1.0) < TOLERANCE
    assert deviation(terms.gravity[0], gravity, floor=1.0) < TOLERANCE
    assert deviation(terms.C[0] @ qd, forces - gravity, floor=1.0) < TOLERANCE

    (tau,) = closed_form(case.robot, q, qd, wrench=[WRENCH]).efforts(qdd)
    expected = pin.rnea(model, data, q, qd, qdd, tool_forces(model, case.robot, WRENCH[None]))
    assert deviation(tau, expected, floor=1.0) < TOLERANCE

    _, taud = closed_form(case.robot, q, qd, qdd).efforts(qddd)
    by_q, by_qd, by_qdd = pin.computeRNEADerivatives(model, data, q, qd, qdd)
    by_qdd = np.triu(by_qdd) + np.triu(by_qdd, 1).T
    assert deviation(taud, by_q @ qd + by_qd @ qdd + by_qdd @ qddd, floor=1.0) < TOLERANCE


@pytest.mark.parametrize("closed_form", BOTH)
@pytest.mark.parametrize("name", FIXED)
def test_fixed_robots(name: str, closed_form: Callable[..., EquationsOfMotion]) -> None:
    check(fixed_case(name, 3), closed_form)


@given(case=cases(derivatives=3))
def test_random_chains(case: Case) -> None:
    for closed_form in BOTH:
        check(case, closed_form)
