# SPDX-License-Identifier: Apache-2.0
"""The closed form against Pinocchio's recursive algorithms.

Both are exact up to rounding; 2e-13 is about ten times the largest deviation in 400 random chains.
"""

import numpy as np
import pytest
from chains import FIXED, Case, cases, fixed_case
from differences import deviation
from hypothesis import given

from eom_dynamics import equations_of_motion

pin = pytest.importorskip("pinocchio", reason="Pinocchio is not installed")
from pinocchio_model import pinocchio_model, tool_forces  # noqa: E402 (needs Pinocchio)

TOLERANCE = 2e-13
WRENCH = np.array([1.0, -2.0, 0.5, 3.0, 1.5, -0.7])


def check(case: Case) -> None:
    """Matrices, effort with a tool wrench, and its rate by Pinocchio's partial derivatives of the effort."""
    q, qd, qdd, qddd = case.motion
    model = pinocchio_model(case.robot)
    data = model.createData()
    terms = equations_of_motion(case.robot, q, qd)
    M = pin.crba(model, data, q)
    gravity = pin.computeGeneralizedGravity(model, data, q)
    forces = pin.nonLinearEffects(model, data, q, qd)
    assert deviation(terms.M[0], np.triu(M) + np.triu(M, 1).T, floor=1.0) < TOLERANCE
    assert deviation(terms.gravity[0], gravity, floor=1.0) < TOLERANCE
    assert deviation(terms.C[0] @ qd, forces - gravity, floor=1.0) < TOLERANCE

    (tau,) = equations_of_motion(case.robot, q, qd, wrench=[WRENCH]).efforts(qdd)
    expected = pin.rnea(model, data, q, qd, qdd, tool_forces(model, case.robot, WRENCH[None]))
    assert deviation(tau, expected, floor=1.0) < TOLERANCE

    _, taud = equations_of_motion(case.robot, q, qd, qdd).efforts(qddd)
    by_q, by_qd, by_qdd = pin.computeRNEADerivatives(model, data, q, qd, qdd)
    by_qdd = np.triu(by_qdd) + np.triu(by_qdd, 1).T
    assert deviation(taud, by_q @ qd + by_qd @ qdd + by_qdd @ qddd, floor=1.0) < TOLERANCE


@pytest.mark.parametrize("name", FIXED)
def test_fixed_robots(name: str) -> None:
    check(fixed_case(name, 3))


@given(case=cases(derivatives=3))
def test_random_chains(case: Case) -> None:
    check(case)
