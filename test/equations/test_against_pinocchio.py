# SPDX-License-Identifier: Apache-2.0
"""The closed form against Pinocchio's recursive algorithms, on the same chains.

Both sides are exact up to rounding; 2e-13 is some ten times the most in 400 random chains.
"""

import numpy as np
import pytest
from chains import FIXED, Case, cases, fixed_case
from differences import deviation
from hypothesis import given

from eom_dynamics import equations_of_motion

pin = pytest.importorskip("pinocchio", reason="Pinocchio is not installed")
from pinocchio_chain import PinocchioChain  # noqa: E402 (needs Pinocchio)

TOLERANCE = 2e-13
WRENCH = np.array([1.0, -2.0, 0.5, 3.0, 1.5, -0.7])


def check_matrices(case: Case) -> None:
    q, qd = case.motion[:2]
    chain, terms = PinocchioChain(case.parameters), equations_of_motion(case.robot, q, qd)
    M = pin.crba(chain.model, chain.data, q)
    gravity = pin.computeGeneralizedGravity(chain.model, chain.data, q)
    forces = pin.nonLinearEffects(chain.model, chain.data, q, qd)
    assert deviation(terms.M[0], np.triu(M) + np.triu(M, 1).T, floor=1.0) < TOLERANCE
    assert deviation(terms.gravity[0], gravity, floor=1.0) < TOLERANCE
    assert deviation(terms.C[0] @ qd, forces - gravity, floor=1.0) < TOLERANCE


def check_effort_with_wrench(case: Case) -> None:
    """The robot exerts W on its surroundings, so that -W acts on its tool body."""
    q, qd, qdd = case.motion[:3]
    chain = PinocchioChain(case.parameters)
    (tau,) = equations_of_motion(case.robot, q, qd, wrench=[WRENCH]).efforts(qdd)
    expected = pin.rnea(chain.model, chain.data, q, qd, qdd, chain.on_tool(-WRENCH))
    assert deviation(tau, expected, floor=1.0) < TOLERANCE


def check_effort_rate(case: Case) -> None:
    """taud by the chain rule with Pinocchio's analytic partial derivatives."""
    q, qd, qdd, qddd = case.motion[:4]
    chain = PinocchioChain(case.parameters)
    _, taud = equations_of_motion(case.robot, q, qd, qdd).efforts(qddd)
    by_q, by_qd, by_qdd = pin.computeRNEADerivatives(chain.model, chain.data, q, qd, qdd)
    by_qdd = np.triu(by_qdd) + np.triu(by_qdd, 1).T
    assert deviation(taud, by_q @ qd + by_qd @ qdd + by_qdd @ qddd, floor=1.0) < TOLERANCE


@pytest.mark.parametrize("check", [check_matrices, check_effort_with_wrench, check_effort_rate])
@pytest.mark.parametrize("name", FIXED)
def test_fixed_robots(name: str, check) -> None:
    check(fixed_case(name, 3))


@given(case=cases(derivatives=1))
def test_matrices(case: Case) -> None:
    check_matrices(case)


@given(case=cases(derivatives=2))
def test_effort_with_tool_wrench(case: Case) -> None:
    check_effort_with_wrench(case)


@given(case=cases(derivatives=3))
def test_rate_of_effort(case: Case) -> None:
    check_effort_rate(case)
