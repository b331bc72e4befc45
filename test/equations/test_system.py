# SPDX-License-Identifier: Apache-2.0
"""Block matrices of all bodies against those of the paper, built from poses by matrix exponentials, and differences."""

import numpy as np
import pytest
from chains import FIXED, fixed_case
from differences import derivative, deviation, polynomial_motion
from scipy.linalg import block_diag
from textbook import body_poses, twist_matrix, twist_vector

from eom_dynamics.arrays import Array
from eom_dynamics.equations import system_matrices


def bracket(twist: Array) -> Array:
    """ad (6, 6) by commutators of the matrices (4, 4) of twists."""
    X, columns = twist_matrix(twist), [twist_matrix(unit) for unit in np.eye(6)]
    return np.array([twist_vector(X @ Y - Y @ X) for Y in columns]).T


def adjoint(C: Array) -> Array:
    return np.array([twist_vector(C @ twist_matrix(unit) @ np.linalg.inv(C)) for unit in np.eye(6)]).T


@pytest.mark.parametrize("name", FIXED)
def test_names_and_values_of_the_paper(name: str) -> None:
    """Equations (15)-(26), (30), (33): block by block from poses, rates by differences with errors of 1e-13."""
    case = fixed_case(name, 2)
    motion, n = polynomial_motion(case.motion), case.robot.n
    screws = [np.array(case.parameters["joints"][joint]["screw"]) for joint in case.parameters["joint_names"]]
    X = block_diag(*(screw[:, np.newaxis] for screw in screws))

    def A(t: float) -> Array:
        C = body_poses(case.parameters, motion(t)[0])
        return np.block([[adjoint(np.linalg.inv(C[i]) @ C[j]) * (j <= i) for j in range(n)] for i in range(n)])

    def D(t: float) -> Array:
        return A(t) * np.kron(np.eye(n, k=-1), np.ones((6, 6)))

    def V(t: float) -> Array:
        return A(t) @ X @ motion(t)[1]

    found = system_matrices(case.robot, *case.motion)
    q, qd, qdd = case.motion
    a = block_diag(*(rate * bracket(screw) for rate, screw in zip(qd, screws, strict=True)))
    J, identity = A(0) @ X, np.eye(6 * n)
    paper = {
        "(15)": (found.V[0], J @ qd),
        "(16)": (found.J[0], J),
        "(17) A": (found.A[0], A(0)),
        "(17) X": (found.X, X),
        "(19)": (found.J[1], derivative(lambda t: A(t) @ X)),
        "(19), right": (found.J[1], -A(0) @ a @ J),
        "(20)": (found.a[0], a),
        "(22)": (found.V[1], derivative(V)),
        "(22), right": (found.V[1], J @ qdd - A(0) @ a @ V(0)),
        "(23)": (found.A[0], np.linalg.inv(identity - found.D)),
        "(24)": (found.D, D(0)),
        "(25)": (found.A[1], A(0) @ derivative(D) @ A(0)),
        "(26)": (found.A[1], derivative(A)),
        "(26), right": (found.A[1], A(0) @ a - A(0) @ a @ A(0)),
        "(30)": (found.b[0], block_diag(*map(bracket, V(0).reshape(-1, 6)))),
        "(33)": (found.U[0], np.vstack([adjoint(np.linalg.inv(C)) for C in body_poses(case.parameters, q)])),
    }
    assert {number: gap for number, (x, y) in paper.items() if (gap := deviation(x, y, floor=1.0)) > 1e-13} == {}
